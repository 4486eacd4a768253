/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap rewrite: a copy that may be shown to others, or played to another host. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "analyze/rewrite.h"
#include "cmd.h"
#include "pcap.h"
#include "wire/frame.h"

#define LIST_MAX 256 /* of a kind */

struct wishes {
	struct ur_rewrite_config c;
	struct ur_rewrite_addr addr[LIST_MAX];
	struct ur_rewrite_qpn qpn[LIST_MAX];
	struct ur_rewrite_mac mac[LIST_MAX];
	const char *in, *out;
};

/* --- what options say; each is false when it cannot be understood --- */

static bool parse_ip(const char *s, struct ur_gid *g, bool *v4)
{
	uint32_t addr;

	*v4 = inet_pton(AF_INET, s, &addr) == 1;
	if (*v4)
		*g = ur_gid_from_v4(addr);
	return *v4 || inet_pton(AF_INET6, s, g->raw) == 1;
}

static bool parse_number(const char *s, uint32_t max, uint32_t *v)
{
	char *end;
	unsigned long n;

	if (*s < '0' || *s > '9')
		return false;
	n = strtoul(s, &end, 0);
	*v = (uint32_t)n;
	return !*end && n <= max;
}

static bool parse_mac(const char *s, struct ur_mac *m)
{
	unsigned b[6];
	int used = 0;

	if (sscanf(s, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &used) != 6 || s[used])
		return false;
	for (unsigned i = 0; i < 6; i++)
		m->b[i] = (uint8_t)b[i];
	return true;
}

/* Cuts "old=new" in two. */
static bool halves(char *s, char **old, char **new)
{
	char *eq = strchr(s, '=');

	if (!eq || eq == s || !eq[1])
		return false;
	*eq = 0;
	*old = s;
	*new = eq + 1;
	return true;
}

static bool want_addr(struct wishes *w, char *s)
{
	struct ur_rewrite_addr *a = &w->addr[w->c.naddr];
	char *old, *new, *slash;
	uint32_t bits = 128;
	bool v4[2];

	w->c.new_addr |= strcmp(s, "new") == 0;
	if (strcmp(s, "new") == 0)
		return true;
	if (w->c.naddr == LIST_MAX || !halves(s, &old, &new))
		return false;
	slash = strchr(old, '/');
	if (slash)
		*slash = 0;
	if (!parse_ip(old, &a->old, &v4[0]) || !parse_ip(new, &a->new, &v4[1]) || v4[0] != v4[1])
		return false;
	if (slash && (!parse_number(slash + 1, v4[0] ? 32 : 128, &bits)))
		return false;
	if (slash && v4[0])
		bits += 96;
	a->bits = (uint8_t)bits;
	w->c.naddr++;
	return true;
}

static bool want_qpn(struct wishes *w, char *s)
{
	char *old, *new;

	w->c.new_qpn |= strcmp(s, "new") == 0;
	if (strcmp(s, "new") == 0)
		return true;
	return w->c.nqpn < LIST_MAX && halves(s, &old, &new) && parse_number(old, 0xffffff, &w->qpn[w->c.nqpn].old) &&
	       parse_number(new, 0xffffff, &w->qpn[w->c.nqpn++].new);
}

static bool want_mac(struct wishes *w, char *s)
{
	char *old, *new;

	w->c.new_mac |= strcmp(s, "new") == 0;
	if (strcmp(s, "new") == 0)
		return true;
	return w->c.nmac < LIST_MAX && halves(s, &old, &new) && parse_mac(old, &w->mac[w->c.nmac].old) &&
	       parse_mac(new, &w->mac[w->c.nmac++].new);
}

static bool want_psn(struct wishes *w, char *s)
{
	w->c.new_psn |= strcmp(s, "new") == 0;
	return strcmp(s, "new") == 0 || (*s == '+' && parse_number(s + 1, 0xffffff, &w->c.psn_add));
}

static bool want_payload(struct wishes *w, char *s)
{
	static const char *const names[] = {
		[UR_PAYLOAD_KEEP] = "keep", [UR_PAYLOAD_ZERO] = "zero", [UR_PAYLOAD_SCRAMBLE] = "scramble"};

	for (unsigned i = 0; i < ur_array_size(names); i++) {
		if (strcmp(s, names[i]) != 0)
			continue;
		w->c.payload = (enum ur_rewrite_payload)i;
		return true;
	}
	return false;
}

static bool want_seed(struct wishes *w, char *s)
{
	uint32_t n;

	if (!parse_number(s, UINT32_MAX, &n))
		return false;
	w->c.seed = ur_seed_of(n);
	return true;
}

static const struct option {
	const char *name;
	bool (*want)(struct wishes *w, char *s);
	const char *takes, *help;
} options[] = {
	{"--map", want_addr, "new | OLD[/BITS]=NEW", "IP addresses, in the messages of the connection manager too; may be given again"},
	{"--mac", want_mac, "new | OLD=NEW", "MAC addresses; may be given again"},
	{"--qpn", want_qpn, "new | OLD=NEW", "queue pair numbers; may be given again"},
	{"--psn", want_psn, "new | +N", "packet sequence numbers"},
	{"--payload", want_payload, "keep | zero | scramble", "what packets carry, private data too; scrambled, equal ones stay equal"},
	{"--seed", want_seed, "N", "the same numbers and bytes again next time; otherwise they come from the kernel"},
};

static int help(void)
{
	puts("uroce pcap rewrite [OPTIONS] IN OUT: copies the RoCEv2 packets of a capture; lengths, checksums and ICRC fit\n"
	     "what has changed, and what was wrong stays wrong in the same way. '-' is standard input or output.\n");
	for (unsigned i = 0; i < ur_array_size(options); i++)
		printf("  %-10s %-22s %s\n", options[i].name, options[i].takes, options[i].help);
	printf("  %-10s %-22s %s\n", "--share", "", "all of it: new addresses and numbers, scrambled payload");
	puts("\n'new' gives all that no OLD=NEW names a new one: addresses of 198.18.0.0/15 and 2001:db8::/32, MAC addresses that\n"
	     "begin with 02. Remote keys and addresses of memory stay. Frames that are not RoCEv2 are left out.");
	return 0;
}

static void share(struct wishes *w)
{
	w->c.new_addr = w->c.new_mac = w->c.new_qpn = w->c.new_psn = true;
	w->c.payload = UR_PAYLOAD_SCRAMBLE;
}

/* 0, or the status to end with. */
static int read_options(struct wishes *w, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const struct option *o = NULL;

		for (unsigned k = 0; k < ur_array_size(options); k++)
			if (strcmp(argv[i], options[k].name) == 0)
				o = &options[k];
		if (strcmp(argv[i], "--share") == 0) {
			share(w);
		} else if (o) {
			char *value = i + 1 < argc ? strdup(argv[++i]) : NULL;
			bool ok = value && o->want(w, value);

			free(value);
			if (!ok)
				return ur_cmd_fail(UR_EXIT_USAGE, "%s takes %s, and not '%s'", o->name, o->takes, value ? argv[i] : "");
		} else if (strncmp(argv[i], "--", 2) == 0) {
			return ur_cmd_fail(UR_EXIT_USAGE, "unknown option '%s': 'uroce pcap rewrite --help' names them", argv[i]);
		} else if (!w->in) {
			w->in = argv[i];
		} else if (!w->out) {
			w->out = argv[i];
		} else {
			return ur_cmd_fail(UR_EXIT_USAGE, "too many files: uroce pcap rewrite [OPTIONS] IN OUT");
		}
	}
	if (!w->out)
		return ur_cmd_fail(UR_EXIT_USAGE, "no %s given: uroce pcap rewrite [OPTIONS] IN OUT",
				   w->in ? "name for the result" : "file");
	return 0;
}

/* --- the copy --- */

static void write_frame(void *ctx, const struct ur_an_frame *f)
{
	ur_pcap_write(ctx, f);
}

static void rewrite_frame(void *ctx, const struct ur_an_frame *f)
{
	ur_rewrite_frame(ctx, f);
}

static void tell(const struct wishes *w, const struct ur_rewrite_totals *t)
{
	FILE *to = strcmp(w->out, "-") == 0 ? stderr : stdout;

	fprintf(to, "%s: %" PRIu64 " frames, %" PRIu64 " RoCEv2 packets written to %s", w->in, t->frames, t->written, w->out);
	if (t->other)
		fprintf(to, ", %" PRIu64 " frames left out that are not RoCEv2", t->other);
	if (t->hosts)
		fprintf(to, ", %" PRIu64 " left out for want of new addresses", t->hosts);
	fputc('\n', to);
}

static int copy(const struct wishes *w)
{
	struct ur_pcap_out *out = ur_pcap_create(w->out, w->in, UR_AN_ETHERNET);
	struct ur_rewrite *r = out ? ur_rewrite_create(&w->c, write_frame, out) : NULL;
	struct ur_rewrite_totals t = {0};
	char *unreadable = NULL;
	int rc = UR_EXIT_USAGE;
	bool read;

	if (!out)
		return UR_EXIT_FAIL;
	read = r && ur_pcap_each(w->in, rewrite_frame, r, &unreadable);
	if (r)
		ur_rewrite_totals(r, &t);
	ur_rewrite_destroy(r);
	if (!read || !t.written)
		ur_pcap_give_up(out);
	else
		rc = ur_pcap_finish(out) ? 0 : UR_EXIT_FAIL;
	if (read && !t.written)
		rc = ur_cmd_fail(UR_EXIT_USAGE, "%s holds no RoCEv2 packet (UDP port %u)", w->in, UR_ROCE_PORT);
	else if (!rc)
		tell(w, &t);
	if (unreadable)
		rc = ur_cmd_fail(UR_EXIT_USAGE, "%s cannot be read behind frame %" PRIu64 ": %s", w->in, t.frames, unreadable);
	free(unreadable);
	return rc;
}

int ur_pcap_rewrite(int argc, char **argv)
{
	struct wishes *w;
	int rc;

	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return help();
	w = calloc(1, sizeof(*w));
	if (!w || getrandom(&w->c.seed, sizeof(w->c.seed), 0) != sizeof(w->c.seed)) {
		free(w);
		return ur_cmd_fail(UR_EXIT_FAIL, "no memory, or no random numbers from the kernel");
	}
	w->c.addr = w->addr;
	w->c.qpn = w->qpn;
	w->c.mac = w->mac;
	rc = read_options(w, argc, argv);
	if (!rc)
		rc = copy(w);
	free(w);
	return rc;
}
