/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap rewrite: a copy that can be shared, or replayed to another host. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "analyze/change/rewrite.h"
#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/file/write.h"
#include "apps/uroce/pcap/read/read.h"
#include "wire/frame.h"

#define LIST_MAX 256 /* of a kind */

struct wishes {
	struct ur_rewrite_config c;
	struct ur_rewrite_addr addr[LIST_MAX];
	struct ur_rewrite_qpn qpn[LIST_MAX];
	struct ur_rewrite_mac mac[LIST_MAX];
	const char *in, *out;
	bool payload, seed, share; /* given */
};

static struct wishes wishes = {.c = {.addr = wishes.addr, .qpn = wishes.qpn, .mac = wishes.mac}};

/* --- what options say; each is false when it cannot be understood --- */

static bool parse_ip(const char *s, struct ur_gid *g, bool *v4)
{
	uint32_t addr;

	*v4 = inet_pton(AF_INET, s, &addr) == 1;
	if (*v4)
		*g = ur_gid_from_v4(addr);
	return *v4 || inet_pton(AF_INET6, s, g->raw) == 1;
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

#define OLD_MAX 64

/* Cuts "old=new" in two. */
static bool halves(const char *s, char old[OLD_MAX], const char **new)
{
	size_t n = strcspn(s, "=");

	if (!n || n >= OLD_MAX || !s[n] || !s[n + 1])
		return false;
	memcpy(old, s, n);
	old[n] = 0;
	*new = s + n + 1;
	return true;
}

/* True when all are to get new ones. */
static bool is_new(const char *s, bool *new)
{
	*new |= strcmp(s, "new") == 0;
	return strcmp(s, "new") == 0;
}

static bool want_addr(const char *s)
{
	struct ur_rewrite_config *c = &wishes.c;
	struct ur_rewrite_addr *a = &wishes.addr[c->naddr];
	char old[OLD_MAX], *slash;
	const char *new;
	uint32_t bits = 128;
	bool v4[2];

	if (is_new(s, &c->new_addr))
		return true;
	if (c->naddr == LIST_MAX || !halves(s, old, &new))
		return false;
	slash = strchr(old, '/');
	if (slash)
		*slash = 0;
	if (!parse_ip(old, &a->old, &v4[0]) || !parse_ip(new, &a->new, &v4[1]) || v4[0] != v4[1])
		return false;
	if (slash && (!ur_pcap_number(slash + 1, v4[0] ? 32 : 128, &bits)))
		return false;
	if (slash && v4[0])
		bits += 96;
	a->bits = (uint8_t)bits;
	c->naddr++;
	return true;
}

static bool want_qpn(const char *s)
{
	struct ur_rewrite_config *c = &wishes.c;
	struct ur_rewrite_qpn *q = &wishes.qpn[c->nqpn];
	char old[OLD_MAX];
	const char *new;

	if (is_new(s, &c->new_qpn))
		return true;
	if (c->nqpn == LIST_MAX || !halves(s, old, &new) || !ur_pcap_number(old, 0xffffff, &q->old) ||
	    !ur_pcap_number(new, 0xffffff, &q->new))
		return false;
	c->nqpn++;
	return true;
}

static bool want_mac(const char *s)
{
	struct ur_rewrite_config *c = &wishes.c;
	struct ur_rewrite_mac *m = &wishes.mac[c->nmac];
	char old[OLD_MAX];
	const char *new;

	if (is_new(s, &c->new_mac))
		return true;
	if (c->nmac == LIST_MAX || !halves(s, old, &new) || !parse_mac(old, &m->old) || !parse_mac(new, &m->new))
		return false;
	c->nmac++;
	return true;
}

static bool want_psn(const char *s)
{
	return is_new(s, &wishes.c.new_psn) || (*s == '+' && ur_pcap_number(s + 1, 0xffffff, &wishes.c.psn_add));
}

static bool want_payload(const char *s)
{
	static const char *const names[] = {[UR_PAYLOAD_KEEP] = "keep", [UR_PAYLOAD_ZERO] = "zero", [UR_PAYLOAD_SCRAMBLE] = "scramble"};

	for (unsigned i = 0; i < ur_array_size(names); i++) {
		if (strcmp(s, names[i]) != 0)
			continue;
		wishes.c.payload = (enum ur_rewrite_payload)i;
		wishes.payload = true;
		return true;
	}
	return false;
}

static bool want_seed(const char *s)
{
	uint32_t n;

	if (!ur_pcap_number(s, UINT32_MAX, &n))
		return false;
	wishes.c.seed = ur_seed_of(n);
	wishes.seed = true;
	return true;
}

static const struct ur_option options[] = {
	{"share", .set = &wishes.share,
	 .help = "all of these: new addresses and numbers, and scrambled payload unless `--payload` says otherwise"},
	{"map", "new | OLD[/BITS]=NEW", "new", .parse = want_addr,
	 .help = "other IP addresses, in the messages of the connection manager too; may be repeated"},
	{"mac", "new | OLD=NEW", "new", .parse = want_mac, .help = "other MAC addresses; may be repeated"},
	{"qpn", "new | OLD=NEW", "new", .parse = want_qpn, .help = "other queue pair numbers; may be repeated"},
	{"psn", "new | +N", "new", .parse = want_psn, .help = "other packet sequence numbers"},
	{"payload", "keep | zero | scramble", "keep zero scramble", .parse = want_payload,
	 .help = "payload, including private data; equal contents remain equal when scrambled"},
	{"seed", "N", .parse = want_seed,
	 .help = "makes copies repeatable: the same N gives the same numbers and bytes (default: random numbers of the kernel)"},
	{0},
};

static void share(struct wishes *w)
{
	w->c.new_addr = w->c.new_mac = w->c.new_qpn = w->c.new_psn = true;
	if (!w->payload)
		w->c.payload = UR_PAYLOAD_SCRAMBLE;
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

static void print_totals(const struct wishes *w, const struct ur_rewrite_totals *t)
{
	FILE *to = strcmp(w->out, "-") == 0 ? stderr : stdout;

	fprintf(to, "%s: %" PRIu64 " frame%s, %" PRIu64 " RoCEv2 packet%s written to %s", w->in, t->frames, ur_plural(t->frames),
		t->written, ur_plural(t->written), w->out);
	if (t->other)
		fprintf(to, ", %" PRIu64 " frame%s left out without RoCEv2", t->other, ur_plural(t->other));
	if (t->hosts)
		fprintf(to, ", %" PRIu64 " left out because there are no new addresses for more hosts", t->hosts);
	fputc('\n', to);
}

static int copy(const struct wishes *w)
{
	struct ur_pcap_out *out = ur_pcap_create(w->out, w->in, UR_AN_ETHERNET);
	struct ur_rewrite *r = out ? ur_rewrite_create(&w->c, write_frame, out) : NULL;
	struct ur_rewrite_totals t = {0};
	struct ur_pcap_end end = {0};
	int rc = UR_EXIT_USAGE;
	bool read;

	if (!out)
		return UR_EXIT_FAIL;
	read = r && ur_pcap_each(w->in, rewrite_frame, r, &end);
	if (r)
		ur_rewrite_totals(r, &t);
	ur_rewrite_destroy(r);
	if (!read || !t.written)
		ur_pcap_give_up(out);
	else
		rc = ur_pcap_finish(out) ? 0 : UR_EXIT_FAIL;
	if (read && !t.written && !end.unreadable)
		ur_cmd_fail(0, "no packet of %s was recorded with all its headers: there is nothing to copy", w->in);
	else if (!rc)
		print_totals(w, &t);
	rc = ur_pcap_status(w->in, &end, rc);
	free(end.unreadable);
	return rc;
}

static const struct ur_example examples[] = {
	{"uroce pcap rewrite --share ping.pcapng show.pcap", "A copy that can be shown to others."},
	{"uroce pcap rewrite --map 10.0.0.0/8=192.168.0.0 --payload zero ping.pcapng show.pcap", "Another network, and no contents."},
	{"uroce pcap rewrite --map 10.0.0.1=192.0.2.7 --qpn 0x11=0x4f2 --psn +1000 ping.pcapng play.pcap", "For another host to answer."},
	{0},
};

static int run_pcap_rewrite(int argc, char **argv)
{
	struct wishes *w = &wishes;

	(void)argc;
	w->in = argv[0];
	w->out = argv[1];
	if (w->share)
		share(w);
	if (!w->seed && getrandom(&w->c.seed, sizeof(w->c.seed), 0) != sizeof(w->c.seed))
		return ur_cmd_fail(UR_EXIT_FAIL, "the kernel provides no random numbers: choose them with --seed N");
	return copy(w);
}

const struct ur_command ur_pcap_rewrite = {
	.name = "rewrite",
	.operands = "IN OUT",
	.complete = UR_COMPLETE_FILE,
	.summary = "write a copy with other addresses, numbers and data",
	.text = "Copies the RoCEv2 packets of a capture; lengths, checksums and ICRC are adapted, and what was wrong stays wrong in the "
		"same way. `-` is standard input or output.\n\n`new` replaces all that no OLD=NEW names: addresses of 198.18.0.0/15 and "
		"2001:db8::/32, MAC addresses that begin with 02. Remote keys and addresses of memory stay, and so do times, lengths, "
		"service and communication ids. Frames that are not RoCEv2 are left out.",
	.status = "0; 1 when OUT cannot be written, " UR_PCAP_STATUS_UNREADABLE,
	.options = options,
	.examples = examples,
	.run = run_pcap_rewrite,
};
