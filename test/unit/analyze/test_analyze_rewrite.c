/* SPDX-License-Identifier: BSD-3-Clause */
/* Rewriting recordings of which the recorder kept only the beginning of each frame: the analysis finds the same, and no address stays. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/rewrite.h"
#include "analyze_harness.h"
#include "wire/cm_msg.h"
#include "wire/frame.h"

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

void ur_suite_analyze_rewrite(void)
{
	CU_pSuite s = CU_add_suite("analyze_rewrite", NULL, NULL);

	CU_add_test(s, "cut frames: the same findings", cut__same_findings);
	CU_add_test(s, "cut frames: no address of a REQ stays", cut__no_address_stays);
	CU_add_test(s, "cut frames: a REQ again, and shorter", cut__req_again);
}
