/* SPDX-License-Identifier: BSD-3-Clause */
/* Rewriting recordings of which the recorder kept only the beginning of each frame: the analysis finds the same, and no address stays. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/change/rewrite.h"
#include "analyze_harness.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

void ur_suite_analyze_rewrite(void);

#define REQ_GIDS (UR_MAD_HDR_LEN + 56) /* the two GIDs of a REQ's primary path */
#define REQ_GIDS_END (REQ_GIDS + 32)
#define REQ_FIELDS_END (UR_MAD_HDR_LEN + 140)

static void cut(struct ur_recording *r, uint32_t snap)
{
	for (unsigned i = 0; i < r->n; i++)
		r->f[i].have = r->f[i].have < snap ? r->f[i].have : snap;
}

static void add(void *ctx, const struct ur_an_frame *f)
{
	struct ur_recording *r = ctx;

	CU_ASSERT_TRUE(ur_recording_add(r, f));
}

/* What does not come out, for it has no RoCEv2 packet, is passed over. */
static struct ur_recording rewrite(const struct ur_recording *r, enum ur_rewrite_payload payload)
{
	const struct ur_rewrite_config how = {
		.new_addr = true, .new_qpn = true, .new_mac = true, .new_psn = true, .payload = payload, .seed = ur_seed_of(7)};
	struct ur_recording out = {.name = r->name, .link = UR_AN_ETHERNET};
	struct ur_rewrite *w = ur_rewrite_create(&how, add, &out);

	CU_ASSERT_PTR_NOT_NULL_FATAL(w);
	for (unsigned i = 0; i < r->n; i++) {
		struct ur_an_frame f = ur_recording_frame(r, i);

		ur_rewrite_frame(w, &f);
	}
	ur_rewrite_destroy(w);
	return out;
}

/* Data that is no longer there differs no longer; trains come out as packets, and ICMP errors do not. */
static bool may_differ(enum ur_rule rule, enum ur_rewrite_payload payload)
{
	if (rule == UR_RULE_RECORDER || rule == UR_RULE_ICMP || rule == UR_RULE_ICMP_GONE)
		return true;
	return payload != UR_PAYLOAD_KEEP &&
	       (rule == UR_RULE_RETX_DATA || rule == UR_RULE_RETX_DIFFERS || rule == UR_RULE_ATOMIC_AGAIN || rule == UR_RULE_ATOMIC_VALUE);
}

static unsigned differences(const struct ur_recording *r, uint32_t snap, enum ur_rewrite_payload payload)
{
	struct ur_recording out = rewrite(r, payload);
	struct ur_an_totals t[2];
	struct findings f[2];
	unsigned n = 0;

	analyze_run(r, &f[0]);
	analyze_run(&out, &f[1]);
	for (unsigned i = 0; i < 2; i++)
		ur_analysis_totals(f[i].a, &t[i]);
	for (unsigned i = 0; i < UR_RULE_COUNT; i++)
		n += t[0].findings[i] != t[1].findings[i] && !may_differ((enum ur_rule)i, payload);
	n += t[0].roce != t[1].roce || t[0].conns != t[1].conns;
	if (n) {
		printf("# %s at %u bytes, payload %u\n", r->name, snap, payload);
		findings_print(&f[0], "before");
		findings_print(&f[1], "behind");
	}
	for (unsigned i = 0; i < 2; i++)
		findings_free(&f[i]);
	ur_recording_free(&out);
	return n;
}

static void cut__same_findings(void)
{
	static const uint32_t snaps[] = {54, 60, 82, 98, 110, 126, 140, 160, 190, 226, 240, 280, 340};
	unsigned wrong = 0;

	for (const struct ur_recording *r = analyze_recordings(); r->n; r++)
		for (unsigned k = 0; k < ur_array_size(snaps); k++) {
			struct ur_recording c = ur_recording_copy(r);

			cut(&c, snaps[k]);
			wrong += differences(&c, snaps[k], (enum ur_rewrite_payload)(k % 3)) > 0;
			ur_recording_free(&c);
		}
	CU_ASSERT_EQUAL(wrong, 0);
}

/* --- one message --- */

static struct ur_recording r;

/* A recording of one REQ, by the name of what it is copied from. */
static void load_req(const char *name)
{
	const struct ur_recording *all = analyze_recordings();
	struct an_pkt p;

	while (all->n && strcmp(all->name, name) != 0)
		all++;
	CU_ASSERT_TRUE_FATAL(all->n > 0);
	r = (struct ur_recording){.name = name, .link = all->link};
	for (unsigned i = 0; i < all->n && !r.n; i++) {
		struct ur_an_frame f = ur_recording_frame(all, i);

		if (ur_recording_pkt(all, i, &p) && p.bth.dqpn == 1 && p.payload_len == UR_MAD_LEN && p.payload[17] == UR_CM_REQ)
			CU_ASSERT_TRUE(ur_recording_add(&r, &f));
	}
	CU_ASSERT_EQUAL_FATAL(r.n, 1);
}

static void teardown(void)
{
	ur_recording_free(&r);
	memset(&r, 0, sizeof(r));
}

static uint8_t *mad(const struct ur_recording *of)
{
	return ur_recording_bth(of, 0) + UR_BTH_LEN + 8;
}

/* What was recorded of a GID that stands at `at`, beyond what all IPv4 addresses share, is no longer there. */
static unsigned stays(const struct ur_recording *c, const struct ur_recording *out, uint32_t have, uint32_t at, uint32_t len,
		      uint32_t shared)
{
	const uint32_t end = have < at + len ? have : at + len;

	return end > at + shared && memcmp(mad(c) + at + shared, mad(out) + at + shared, end - at - shared) == 0;
}

static void one_address(const char *name, uint32_t shared)
{
	const uint32_t header = REQ_FIELDS_END; /* of the RDMA CM: its addresses after 4 and 20 bytes */
	struct ur_recording whole;
	uint32_t front;

	load_req(name);
	whole = rewrite(&r, UR_PAYLOAD_KEEP);
	front = (uint32_t)(mad(&r) - r.f[0].data);
	for (uint32_t have = UR_MAD_HDR_LEN + 12; have < UR_MAD_LEN; have++) {
		struct ur_recording c = ur_recording_copy(&r), out;
		unsigned wrong = 0;

		cut(&c, front + have);
		out = rewrite(&c, UR_PAYLOAD_KEEP);
		CU_ASSERT_EQUAL_FATAL(out.n, 1);
		CU_ASSERT_EQUAL(out.f[0].have, c.f[0].have);
		CU_ASSERT_EQUAL(out.f[0].len, c.f[0].len);
		wrong += stays(&c, &out, have, UR_MAD_HDR_LEN + 32, 3, 0) && have >= UR_MAD_HDR_LEN + 35; /* the QPN */
		for (uint32_t i = 0; i < 2; i++) {
			wrong += stays(&c, &out, have, REQ_GIDS + 16 * i, 16, shared);
			wrong += stays(&c, &out, have, header + 4 + 16 * i, 16, shared);
		}
		/* and each is the beginning of what the whole message becomes, where no address, QPN or GUID is only begun */
		if (have == REQ_GIDS_END || have == REQ_FIELDS_END || have == header + UR_RDMA_CM_HDR_LEN)
			CU_ASSERT_EQUAL(memcmp(mad(&out), mad(&whole), have), 0);
		CU_ASSERT_EQUAL(wrong, 0);
		ur_recording_free(&out);
		ur_recording_free(&c);
	}
	ur_recording_free(&whole);
	teardown();
}

static void cut__no_address_stays(void)
{
	one_address("rping-rc.pcap", 12);
	one_address("rping-rc-v6.pcap", 0);
}

/* Two REQs, of which less is here of one: they are one exchange as long as neither says otherwise. */
static void cut__req_again(void)
{
	static const uint32_t haves[] = {40, 57, 58, 59, 69, 70, 71, 100, 200};

	load_req("rping-rc.pcap");
	memset(mad(&r) + UR_MAD_HDR_LEN + 44, 0, 3); /* the PSN is 0, as bytes that were cut off are */
	ur_recording_fix_checksums(&r, 0, 0);
	CU_ASSERT_TRUE(ur_recording_repeat(&r, 0));
	for (unsigned k = 0; k < 2 * ur_array_size(haves); k++) {
		struct ur_recording c = ur_recording_copy(&r), out;
		struct findings f;

		c.f[1].when += UR_NS_PER_S;
		c.f[k % 2].have = (uint32_t)(mad(&r) - r.f[0].data) + haves[k / 2];
		out = rewrite(&c, UR_PAYLOAD_SCRAMBLE);
		for (unsigned i = 0; i < 2; i++) {
			analyze_run(i ? &out : &c, &f);
			CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CM_RETRY, 2), 1);
			CU_ASSERT_EQUAL(findings_worse(&f, UR_ERROR), 0);
			findings_free(&f);
		}
		ur_recording_free(&out);
		ur_recording_free(&c);
	}
	teardown();
}

/* --- options and extension headers --- */

#define SECRET4 0xac, 0x10, 0x05, 0x09
#define SECRET6 0xfd, 0x00, 0x5e, 0xc2, 0xe7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34
#define OF_SENDER 0xf1 /* takes the place of each byte of the sender's address, and of the receiver's */
#define OF_RECEIVER 0xf2
#define SENDER4 OF_SENDER, OF_SENDER, OF_SENDER, OF_SENDER
#define SENDER6 SENDER4, SENDER4, SENDER4, SENDER4
#define RECEIVER6 RECEIVER4, RECEIVER4, RECEIVER4, RECEIVER4
#define RECEIVER4 OF_RECEIVER, OF_RECEIVER, OF_RECEIVER, OF_RECEIVER

static const struct between {
	const char *name;
	uint8_t version, next; /* the first extension header; of IPv4 0: options */
	uint8_t n, sender;     /* bytes; where the sender's address is among them, which becomes what it is in the header */
	bool hop;              /* the destination of the header is the secret address */
	uint8_t bytes[64];
} between[] = {
	{"record route", 4, 0, 16, 3, false, {7, 15, 12, SENDER4, SECRET4, 0, 0, 0, 0, 0}},
	{"record route, not all used", 4, 0, 12, 7, false, {7, 11, 4, SECRET4, SENDER4, 1}},
	{"loose source route", 4, 0, 12, 3, false, {131, 11, 4, SENDER4, SECRET4, 0}},
	{"strict source route", 4, 0, 12, 4, false, {1, 137, 11, 8, SENDER4, SECRET4}},
	{"timestamps with addresses", 4, 0, 20, 4, false, {68, 20, 21, 1, SENDER4, 0, 1, 2, 3, SECRET4, 0, 1, 2, 3}},
	{"timestamps of hosts that are named", 4, 0, 12, 0, false, {68, 12, 5, 3, SECRET4, 0, 0, 0, 0}},
	{"an option that is not known", 4, 0, 8, 0, false, {82, 8, 0, 1, SECRET4}},
	{"behind the end of options", 4, 0, 8, 0, false, {1, 0, 0, 0, SECRET4}},
	{"an option that is too long", 4, 0, 8, 0, false, {7, 200, 4, 0, SECRET4}},
	{"authentication, whose digest is of addresses", 4, 51, 24, 0, false, {17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, SECRET4, SECRET4}},
	{"segment routing", 6, 43, 40, 8, true, {17, 4, 4, 1, 1, 0, 0, 0, RECEIVER6, SECRET6}},
	{"segment routing with an option", 6, 43, 48, 0, true, {17, 5, 4, 1, 1, 0, 0, 0, RECEIVER6, SECRET6, 5, 6, 0, 0, SECRET4}},
	{"segments beyond the header", 6, 43, 24, 0, false, {17, 2, 4, 0, 9, 0, 0, 0, SECRET6}},
	{"routing of type 0", 6, 43, 40, 8, false, {17, 4, 0, 0, 0, 0, 0, 0, SENDER6, SECRET6}},
	{"routing of type 2", 6, 43, 24, 0, false, {17, 2, 2, 0, 0, 0, 0, 0, SECRET6}},
	{"routing of type 3, compressed", 6, 43, 16, 0, false, {17, 1, 3, 0, 0xcc, 0x40, 0, 0, 0xfd, 0x00, 0x5e, 0xc2}},
	{"home address", 6, 60, 24, 8, false, {17, 2, 1, 2, 0, 0, 0xc9, 16, SENDER6}},
	{"home address of another", 6, 60, 24, 0, false, {17, 2, 1, 2, 0, 0, 0xc9, 16, SECRET6}},
	{"an option of IPv6 that is not known", 6, 0, 24, 0, false, {17, 2, 0x31, 18, 0, 0, SECRET6}},
	{"padding with something in it", 6, 60, 24, 0, false, {17, 2, 1, 20, 0, 0, SECRET6}},
	{"two headers", 6, 0, 48, 32, false, {43, 0, 1, 4, 0, 0, 0, 0, 17, 4, 0, 0, 0, 0, 0, 0, SECRET6, SENDER6}},
};

/* The frame of a REQ with this between its IP header and UDP. */
static void put_between(const struct between *b, const struct an_pkt *p)
{
	const uint32_t head = b->version == 4 ? UR_IP4_LEN : UR_IP6_LEN, front = (uint32_t)(p->ip - r.f[0].data) + head;
	const uint8_t *src = p->ip + (b->version == 4 ? 12 : 8), *dst = p->ip + (b->version == 4 ? 16 : 24);
	const unsigned size = b->version == 4 ? 4 : 16;
	uint8_t data[1024], *ip = data + (p->ip - r.f[0].data);

	memcpy(data, r.f[0].data, front);
	memcpy(data + front, b->bytes, b->n);
	memcpy(data + front + b->n, r.f[0].data + front, r.f[0].have - front);
	for (unsigned i = 0; i < b->n; i++) {
		uint8_t *at = data + front + i;

		if (*at == OF_SENDER || *at == OF_RECEIVER) {
			memcpy(at, *at == OF_SENDER ? src : dst, size);
			i += size - 1;
		}
	}
	if (b->version == 4 && !b->next)
		ip[0] = (uint8_t)(0x40 | (UR_IP4_LEN + b->n) / 4);
	else
		ip[b->version == 4 ? 9 : 6] = b->next;
	ur_put16(ip + (b->version == 4 ? 2 : 4), (uint16_t)(ur_get16(ip + (b->version == 4 ? 2 : 4)) + b->n));
	if (b->hop)
		memcpy(ip + 24, (const uint8_t[]){SECRET6}, 16);
	ur_recording_add(&r,
			 &(struct ur_an_frame){.when = r.f[0].when, .data = data, .have = r.f[0].have + b->n, .len = r.f[0].have + b->n});
	ur_recording_remove(&r, 0);
}

static void dissect(const struct ur_recording *of, struct an_pkt *p)
{
	struct ur_an_frame f = ur_recording_frame(of, 0);

	CU_ASSERT_TRUE_FATAL(an_dissect(&f, p));
}

static void between__no_address_stays(void)
{
	static const uint8_t secret4[] = {SECRET4}, secret6[] = {SECRET6};

	for (unsigned i = 0; i < ur_array_size(between); i++) {
		const struct between *b = &between[i];
		const uint32_t size = b->version == 4 ? 4 : 16, head = b->version == 4 ? UR_IP4_LEN : UR_IP6_LEN;
		struct ur_recording out;
		struct an_pkt was, now;
		const uint8_t *ip;
		unsigned wrong = 0;

		load_req(b->version == 4 ? "rping-rc.pcap" : "rping-rc-v6.pcap");
		CU_ASSERT_TRUE_FATAL(ur_recording_pkt(&r, 0, &was));
		put_between(b, &was);
		dissect(&r, &was);
		CU_ASSERT_EQUAL(was.icrc, AN_ICRC_OK);
		out = rewrite(&r, UR_PAYLOAD_SCRAMBLE);
		CU_ASSERT_EQUAL_FATAL(out.n, 1);
		CU_ASSERT_EQUAL_FATAL(out.f[0].have, r.f[0].have);
		dissect(&out, &now);
		wrong += now.icrc != AN_ICRC_OK;
		wrong += memmem(out.f[0].data, out.f[0].have, secret4, sizeof(secret4)) != NULL;
		wrong += memmem(out.f[0].data, out.f[0].have, secret6, 4) != NULL;
		wrong += memmem(out.f[0].data, out.f[0].have, was.src.raw + 16 - size, size) != NULL;
		wrong += memmem(out.f[0].data, out.f[0].have, was.dst.raw + 16 - size, size) != NULL;
		ip = now.ip;
		if (b->sender && !b->hop)
			wrong += memcmp(ip + head + b->sender, ip + (size == 4 ? 12 : 8), size) != 0;
		if (b->hop) /* on the way to the same as all other packets of its connection */
			wrong += memcmp(ip + head + 8, now.dst.raw, 16) != 0 || memcmp(ip + 24, now.dst.raw, 16) == 0;
		if (wrong)
			printf("# %s\n", b->name);
		CU_ASSERT_EQUAL(wrong, 0);
		ur_recording_free(&out);
		teardown();
	}
}

void ur_suite_analyze_rewrite(void)
{
	CU_pSuite s = CU_add_suite("analyze_rewrite", NULL, NULL);

	CU_add_test(s, "cut frames: the same findings", cut__same_findings);
	CU_add_test(s, "cut frames: no address of a REQ stays", cut__no_address_stays);
	CU_add_test(s, "cut frames: a REQ again, and shorter", cut__req_again);
	CU_add_test(s, "between IP and UDP: no address stays", between__no_address_stays);
}
