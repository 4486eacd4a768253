/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of the recordings with one wrong bit, and recordings in which a device translates addresses. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

#include "analyze/change/rewrite_priv.h"
#include "analyze_harness.h"
#include "base/rng.h"
#include "wire/frame.h"

void ur_suite_analyze_damage(void);

#define PER_FILE 40

static bool in(const struct findings *base, const struct ur_finding *f)
{
	for (unsigned i = 0; i < base->n; i++)
		if (base->f[i].rule == f->rule && base->f[i].frame == f->frame)
			return true;
	return false;
}

/* Every bit after the masked ones of the IP header. Which header a wrong bit of a length would make is another matter. */
static uint32_t choose(struct ur_rng *rng, const struct an_pkt *p)
{
	const uint32_t from = (uint32_t)(p->udp - p->l3), upto = from + p->udp_len;

	for (;;) {
		const uint32_t byte = from + ur_rng_below(rng, upto - from);

		if (byte != from + 4) /* FECN and BECN */
			return byte;
	}
}

/* One finding, at the frame, that says which bit: nothing is called missing because of it. */
static void one_bit(void)
{
	unsigned tried = 0, more = 0, located = 0;
	struct ur_rng rng = {4};
	char text[512], want[64];

	for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
		struct findings base;

		analyze_run(r, &base);
		for (unsigned k = 0; k < PER_FILE; k++) {
			const unsigned i = ur_rng_below(&rng, r->n);
			struct ur_recording c = ur_recording_copy(r);
			struct ur_an_frame f = ur_recording_frame(&c, i);
			struct findings got;
			struct an_pkt p;

			if (ur_recording_pkt(&c, i, &p) && an_dissect(&f, &p) && p.l3 && p.bth.dqpn != 1) {
				const uint32_t byte = choose(&rng, &p), bit = 1u << ur_rng_below(&rng, 8);
				unsigned others = 0;

				c.f[i].data[(uint32_t)(p.l3 - f.data) + byte] ^= (uint8_t)bit;
				analyze_run(&c, &got);
				for (unsigned g = 0; g < got.n; g++)
					others += got.f[g].rule != UR_RULE_ICRC && got.f[g].severity >= UR_WARNING && !in(&base, &got.f[g]);
				snprintf(want, sizeof(want), "(byte %u of the IP packet, 0x%x)", byte, bit);
				for (unsigned g = 0; g < got.n; g++)
					located += got.f[g].rule == UR_RULE_ICRC && got.f[g].frame == i + 1 &&
						   ur_finding_text(&got.f[g], text, sizeof(text)) && strstr(text, want);
				tried++;
				more += others > 0;
				if (others && more < 5) {
					printf("# %s frame %u byte %u\n", r->name, i + 1, byte);
					findings_print(&got, r->name);
				}
				findings_free(&got);
			}
			ur_recording_free(&c);
		}
		findings_free(&base);
	}
	printf("# %u packets with a wrong bit, %u located, %u with more findings\n", tried, located, more);
	CU_ASSERT_TRUE(tried > 500);
	CU_ASSERT_EQUAL(located, tried);
	CU_ASSERT_TRUE(more * 100 <= tried);
}

/* 10.99.0.3 has another address on this side; `ports` as well. */
static void translate(struct ur_recording *c, bool ports)
{
	for (unsigned i = 0; i < c->n; i++) {
		uint8_t *ip = c->f[i].data + UR_ETH_LEN;

		if (c->f[i].data[12] != 8 || c->f[i].data[13] != 0 || ip[9] != 17)
			continue;
		for (unsigned at = 12; at <= 16; at += 4)
			if (ip[at] == 10 && ip[at + 3] == 3)
				memcpy(ip + at, "\xc0\xa8\x09\x09", 4);
		if (ports)
			ip[UR_IP4_LEN] ^= 0x15;
	}
}

/* One sentence for each direction, not one for each packet. */
static void all_translated(void)
{
	for (unsigned ports = 0; ports < 2; ports++) {
		unsigned n = 0;

		for (const struct ur_recording *r = analyze_recordings(); r->n; r++) {
			struct ur_recording c;
			struct findings f;
			char text[512];

			if (strncmp(r->name, "rping-rc.", 9) != 0 && strncmp(r->name, "read_bw.", 8) != 0)
				continue;
			c = ur_recording_copy(r);
			translate(&c, ports);
			analyze_run(&c, &f);
			CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_ICRC, 0), 2);
			CU_ASSERT_EQUAL(findings_worse(&f, UR_WARNING), 2);
			for (unsigned i = 0; i < f.n; i++)
				n += ur_finding_text(&f.f[i], text, sizeof(text)) && strstr(text, "translates addresses or ports");
			findings_free(&f);
			ur_recording_free(&c);
		}
		CU_ASSERT_EQUAL(n, 4);
	}
}

void ur_suite_analyze_damage(void)
{
	CU_pSuite s = CU_add_suite("analyze_damage", NULL, NULL);

	CU_add_test(s, "one wrong bit is one finding", one_bit);
	CU_add_test(s, "translated addresses are one finding", all_translated);
}
