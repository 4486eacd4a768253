/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trains of which the recorder kept only the beginning. The recordings of pcaps/ are made into such ones: packets in a row that a kernel
 * could have sent as one are joined, and all frames are cut.
 */
#include <CUnit/CUnit.h>
#include <stdlib.h>

#include "analyze_harness.h"
#include "base/rng.h"
#include "wire/frame.h"

void ur_suite_analyze_hidden(void);

#define TRAIN_MAX 60000 /* bytes */

static bool same_way(const struct an_pkt *a, const struct an_pkt *b)
{
	return a->bth.dqpn == b->bth.dqpn && a->bth.dqpn != 1 && a->ip_version == b->ip_version && ur_gid_eq(&a->src, &b->src) &&
	       ur_gid_eq(&a->dst, &b->dst);
}

static bool is_plain(const struct an_pkt *p)
{
	return p->udp && p->l4 == p->ip + (p->ip_version == 4 ? UR_IP4_LEN : UR_IP6_LEN);
}

/* The packet after frame `i`'s end, with headers that say so. */
static void append(struct ur_recording *r, uint32_t i, const struct an_pkt *p)
{
	struct ur_an_frame f = ur_recording_frame(r, i);
	struct an_pkt first;
	uint8_t *ip, *udp;

	an_dissect(&f, &first);
	r->f[i].data = realloc(r->f[i].data, f.len + p->udp_len);
	ip = r->f[i].data + (first.ip - f.data);
	udp = ip + (first.l4 - first.ip);
	memcpy(ip + first.ip_len, p->udp, p->udp_len);
	r->f[i].len = r->f[i].have = (uint32_t)(first.ip - f.data) + first.ip_len + p->udp_len;
	ur_put16(udp + 4, (uint16_t)(ur_get16(udp + 4) + p->udp_len));
	if (first.ip_version == 4)
		ur_put16(ip + 2, (uint16_t)(first.ip_len + p->udp_len));
	else
		ur_put16(ip + 4, (uint16_t)(first.ip_len + p->udp_len - UR_IP6_LEN));
}

/* The kernel counts IPv4 identifications within a train, and ICRCs cover them. */
static void number(struct ur_recording *r, uint32_t i, const struct an_pkt *first, unsigned place)
{
	struct ur_an_frame f = ur_recording_frame(r, i);
	struct an_pkt p;

	an_dissect(&f, &p);
	if (p.ip_version != 4)
		return;
	ur_put16(r->f[i].data + (p.ip - f.data) + 4, (uint16_t)(ur_get16(first->ip + 4) + place));
	ur_recording_fix_checksums(r, i, 0);
}

/* Returns how many packets are no longer the first of their frame. */
static unsigned join(struct ur_recording *r)
{
	unsigned joined = 0;

	for (uint32_t i = 0; i + 1 < r->n; i++) {
		struct an_pkt first, p;
		uint32_t size, all, place = 1;

		if (!ur_recording_pkt(r, i, &first) || !is_plain(&first))
			continue;
		size = all = first.udp_len;
		while (i + 1 < r->n && ur_recording_pkt(r, i + 1, &p) && is_plain(&p)) {
			const uint32_t len = p.udp_len;

			ur_recording_pkt(r, i, &first); /* of which only the first packet is looked at */
			if (!same_way(&first, &p) || len > size || all + len > TRAIN_MAX)
				break;
			number(r, i + 1, &first, place++);
			ur_recording_pkt(r, i + 1, &p);
			append(r, i, &p);
			ur_recording_remove(r, i + 1);
			all += len;
			joined++;
			if (len < size)
				break;
		}
	}
	return joined;
}

static uint64_t packets_of(const struct ur_analysis *a)
{
	struct ur_an_conn c;
	uint64_t n = 0;

	for (uint32_t i = 0; ur_analysis_conn(a, i, &c); i++)
		n += c.half[0].packets + c.half[1].packets + c.half[0].answers + c.half[1].answers;
	return n;
}

/* Short SENDs, joined into what may be one packet as well: what follows them does not say how many they were. */
static bool tells_all(const struct ur_recording *r)
{
	return !strstr(r->name, "ucmatose");
}

/* All headers of the first packet are here: nothing is said to be wrong or missing, and every packet is counted. */
static void trains__cut(void)
{
	static const uint32_t snaps[] = {90, 96, 110, 128, 200, 300, 1200};
	unsigned joined = 0;
	bool worse;

	for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
		struct findings whole, f;

		analyze_run(r, &whole);
		for (unsigned k = 0; k < ur_array_size(snaps); k++) {
			struct ur_recording c = ur_recording_copy(r);

			joined += join(&c);
			for (unsigned i = 0; i < c.n; i++)
				c.f[i].have = c.f[i].have < snaps[k] ? c.f[i].have : snaps[k];
			analyze_run(&c, &f);
			worse = findings_worse(&f, UR_WARNING) > findings_worse(&whole, UR_WARNING);
			CU_ASSERT_EQUAL(findings_worse(&f, UR_ERROR), 0);
			CU_ASSERT_FALSE(worse);
			CU_ASSERT(packets_of(f.a) == packets_of(whole.a) || !tells_all(r));
			CU_ASSERT(packets_of(f.a) <= packets_of(whole.a));
			if (worse)
				findings_print(&f, r->name);
			findings_free(&f);
			ur_recording_free(&c);
		}
		findings_free(&whole);
	}
	CU_ASSERT(joined > 1000);
}

/* --- whole trains --- */

/* Puts what lies after the UDP header of frames 1 to n - 1 after frame 0; their IPv4 identifications count, as the kernel's do. */
static void make_train(struct ur_recording *r)
{
	const unsigned head = UR_ETH_LEN + UR_IP4_LEN + UR_UDP_LEN;
	struct ur_rec_frame *f = &r->f[0];

	for (unsigned i = 1; i < r->n; i++) {
		ur_put16(r->f[i].data + UR_ETH_LEN + 4, (uint16_t)i);
		ur_recording_fix_checksums(r, i, 0);
		f->data = realloc(f->data, f->len + r->f[i].len - head);
		memcpy(f->data + f->len, r->f[i].data + head, r->f[i].len - head);
		f->len += r->f[i].len - head;
		free(r->f[i].data);
	}
	r->n = 1;
	f->have = f->len;
	ur_put16(f->data + UR_ETH_LEN + 2, (uint16_t)(f->len - UR_ETH_LEN));
	ur_put16(f->data + UR_ETH_LEN + UR_IP4_LEN + 4, (uint16_t)(f->len - UR_ETH_LEN - UR_IP4_LEN));
}

static void train__cut(void)
{
	static const struct step steps[][4] = {
		{{'A', UR_OP_SEND_FIRST, 100, MTU, 0, 0}, {'A', UR_OP_SEND_MIDDLE, 101, MTU, 0, 0}, {'A', UR_OP_SEND_LAST, 102, 9, 0, 0}},
		{{'A', UR_OP_READ_REQ, 100, 64, 0, 0}, {'A', UR_OP_ACK, 7777, 0x1f, 5, 0}},
	};

	for (unsigned i = 0; i < ur_array_size(steps); i++) {
		struct ur_recording r = {.name = "train"};
		struct ur_an_totals t;
		struct findings f;
		unsigned n = 0;

		for (const struct step *s = steps[i]; s < steps[i] + 4 && s->from; s++, n++)
			analyze_add_step(&r, s, UR_NS_PER_S);
		make_train(&r);
		analyze_run(&r, &f);
		ur_analysis_totals(f.a, &t);
		CU_ASSERT_EQUAL(t.frames, 1);
		CU_ASSERT_EQUAL(t.roce, n);
		CU_ASSERT_EQUAL(findings_worse(&f, UR_WARNING), 0);
		CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_RECORDER, 1), 1);
		findings_free(&f);
		ur_recording_free(&r);
	}
}

void ur_suite_analyze_hidden(void)
{
	CU_pSuite s = CU_add_suite("analyze_hidden", NULL, NULL);

	CU_add_test(s, "train: cut into its packets", train__cut);
	CU_ADD_TEST(s, trains__cut);
}
