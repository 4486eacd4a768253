/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drivers/ethdev in liburoce-dpdk.so, as liburoce.so uses it: loaded, by its table. DPDK's ring device shows what a port of its sends.
 *
 *   test_module MODULE
 */
#define _GNU_SOURCE
#include <CUnit/Basic.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "drivers/ethdev/interface.h"
#include "drivers/ethdev/module.h"
#include "test/drivers/port_util.h"

#define PAYLOAD 1000

static const struct ur_ethdev_module *module;
static unsigned copies;
static bool gone; /* what is to be copied has gone */

static bool touch_copy(void *to, const void *from, size_t len)
{
	copies++;
	if (!gone)
		memcpy(to, from, len);
	return !gone;
}

static void table__names_the_build(void)
{
	CU_ASSERT_STRING_EQUAL(module->version, UR_VERSION);
	CU_ASSERT_STRING_EQUAL(module->interface, UR_ETHDEV_INTERFACE);
}

static void open__says_why_not(void)
{
	struct ur_port *p = NULL;

	CU_ASSERT_EQUAL(module->open(&(struct ur_ethdev_config){.ifname = "nosuch0"}, &p, err, sizeof(err)), ENODEV);
	CU_ASSERT_PTR_NULL(p);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "'nosuch0' does not exist"));
}

/* Sends a frame that refers to memory, and compares what the ring returns. */
static void send_and_receive(struct ur_port *p, uint8_t *memory, const uint8_t *want)
{
	struct ur_ref ref = {.n = 1};
	struct ur_pkt *pkt = new_pkt(p, &p->mac, HDR + PAYLOAD), *r;

	pkt->seg[0] = (struct ur_seg){memory, PAYLOAD, &ref};
	pkt->nseg = 1;
	CU_ASSERT_EQUAL(ur_queue_tx(p->queue, &pkt, 1), 1);
	CU_ASSERT_EQUAL(atomic_load(&ref.n), 0);
	r = receive(p);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(r->len, HDR + PAYLOAD);
	CU_ASSERT_EQUAL(memcmp(r->data + HDR, want, PAYLOAD), 0);
	ur_pkts_release(&r, 1);
}

/* The handlers of faults are liburoce's, and know nothing of the module's memory: so liburoce copies. */
static void tx__memory_is_copied_by_the_host(void)
{
	static uint8_t memory[PAYLOAD] = {1, 2, 3}, zeros[PAYLOAD];
	struct ur_port *p = NULL;

	CU_ASSERT_EQUAL_FATAL(module->open(&(struct ur_ethdev_config){.vdev = "net_ring0", .chain_min = UINT32_MAX}, &p, err, sizeof(err)),
			      0);
	copies = 0;
	send_and_receive(p, memory, memory);
	CU_ASSERT_EQUAL(copies, 1);
	gone = true;
	send_and_receive(p, memory, zeros);
	CU_ASSERT_EQUAL(copies, 2);
	gone = false;
	p->ops->close(p);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		CU_TestFunc fn;
	} t[] = {
		{"table__names_the_build", table__names_the_build},
		{"open__says_why_not", open__says_why_not},
		{"tx__memory_is_copied_by_the_host", tx__memory_is_copied_by_the_host},
	};
	static const struct ur_ethdev_host host = {.touch_copy = touch_copy};
	void *handle = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	unsigned failed;

	module = handle ? dlsym(handle, UR_ETHDEV_MODULE_TABLE) : NULL;
	if (!module) {
		fprintf(stderr, "test_module: %s\n", argc == 2 ? dlerror() : "name the module");
		return 1;
	}
	module->attach(&host);
	alarm(60);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite s = CU_add_suite("module", NULL, NULL);
	for (unsigned i = 0; i < ur_array_size(t); i++)
		CU_add_test(s, t[i].name, t[i].fn);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	failed = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failed != 0;
}
