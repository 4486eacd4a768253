/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that links uroce in place of librdmacm and libibverbs (pkg-config --libs uroce) and needs no `uroce run`:
 * chooses the interface, lists the devices, makes an id, starts the port and reads the counters.
 *
 *   linked IFACE
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <uroce/uroce.h>

static int fail(const char *what)
{
	fprintf(stderr, "linked: %s: %s\n", what, uroce_error());
	return 1;
}

#if UROCE_VERSION < UROCE_VERSION_NUMBER(0, 1, 0) || UROCE_VERSION >= UROCE_VERSION_NUMBER(UROCE_VERSION_MAJOR, UROCE_VERSION_MINOR + 1, 0)
#error the numbers of versions cannot be compared
#endif

/* The header and the library are of one build here. */
static int check_version(void)
{
	char text[40];

	snprintf(text, sizeof(text), "%d.%d.%d", UROCE_VERSION_MAJOR, UROCE_VERSION_MINOR, UROCE_VERSION_PATCH);
	if (strcmp(text, uroce_version()) == 0)
		return 0;
	fprintf(stderr, "linked: header %s, library %s\n", text, uroce_version());
	return 1;
}

static int list_devices(void)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);

	if (!list || n != 1)
		return fail("ibv_get_device_list did not find one device");
	printf("device %s\n", ibv_get_device_name(list[0]));
	ibv_free_device_list(list);
	return 0;
}

static int check_counters(void)
{
	uint64_t values[256];
	int n = uroce_counters(values, 256);

	if (n <= 0)
		return fail("uroce_counters");
	for (int i = 0; i < n; i++)
		if (!uroce_counter_name((unsigned)i) || !uroce_counter_help((unsigned)i))
			return fail("a counter has no name");
	if (uroce_counter_name((unsigned)n))
		return fail("there is a counter past the last");
	if (uroce_counters(NULL, 0) != n)
		return fail("the number of counters alone");
	printf("%d counters\n", n);
	return 0;
}

static int check_rdmacm(void)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_cm_id *id;

	if (!ch)
		return fail("rdma_create_event_channel");
	if (rdma_create_id(ch, &id, NULL, RDMA_PS_TCP))
		return fail("rdma_create_id");
	rdma_destroy_id(id);
	rdma_destroy_event_channel(ch);
	return 0;
}

/* Each failing call leaves a sentence of its own, which explains that call and not an earlier one. */
static int explained(int failed, const char *says)
{
	const char *sentence = uroce_error();

	if (failed && strstr(sentence, says))
		return 0;
	fprintf(stderr, "linked: '%s' is not what was said: ", says);
	return fail(failed ? "a stale sentence" : "no failure");
}

static int check_sentences(bool started)
{
	uint64_t v;

	return explained(uroce_config(NULL, "1") == EINVAL, "a name and a value") ||
	       explained(uroce_config("no-such-knob", "1") == (started ? EBUSY : ENOENT), "no-such-knob") ||
	       (!started && explained(uroce_counters(&v, 1) < 0, "no counters yet")) ||
	       explained(uroce_capture_start(NULL) == EINVAL, "path must not be NULL") ||
	       (!started && explained(uroce_capture_stop() == ENOENT, "no capture is running")) ||
	       (started && explained(uroce_capture_start("/no/such/dir/f") != 0, "/no/such/dir/f")) ||
	       (started && explained(uroce_fault("drop=nonsense") == EINVAL, "nonsense"));
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	printf("uroce %s\n", uroce_version());
	if (check_version() || check_sentences(false))
		return 1;
	if (uroce_config("dev", argv[1]))
		return fail("uroce_config");
	if (list_devices() || check_rdmacm())
		return 1;
	if (uroce_start())
		return fail("uroce_start");
	if (uroce_config("dev", argv[1]) == 0)
		return fail("a knob was changed while the engine was open");
	return check_sentences(true) || check_counters();
}
