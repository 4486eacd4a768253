/* SPDX-License-Identifier: BSD-3-Clause */
/* A cable, frames that go in, and what has come out. */
#ifndef BETWEEN_HARNESS_H
#define BETWEEN_HARNESS_H

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>

#include "between/between.h"
#include "wire/frame.h"
#include "wire/sack.h"

#define OUT_MAX 20000
#define PAYLOAD 64

struct cable_out {
	unsigned end;
	uint32_t len, psn;
	uint8_t opcode, tos, extra;
	ur_time when;
	bool damaged;
};

static struct {
	struct ur_between *b;
	ur_time now;
	struct cable_out out[OUT_MAX];
	unsigned n, judged;
	struct ur_between_fate fate; /* of the last frame that came in */
	uint8_t last[2048];          /* the last that went out */
	uint8_t last_extra[UR_BETWEEN_EXTRA];
} cable;

static const uint8_t cable_mac[2] = {0x02, 0x12};

static inline void cable_send(void *ctx, unsigned end, const uint8_t *frame, uint32_t len, const uint8_t *extra)
{
	struct cable_out *o = &cable.out[cable.n];
	struct ur_fault_frame f;
	uint8_t differs = 0;

	CU_ASSERT_FATAL(ctx == &cable && end < 2 && cable.n < OUT_MAX);
	cable.n++;
	*o = (struct cable_out){.end = end, .len = len, .extra = extra[UR_BETWEEN_EXTRA - 1], .when = cable.now};
	memcpy(cable.last, frame, ur_min_u32(len, sizeof(cable.last)));
	memcpy(cable.last_extra, extra, UR_BETWEEN_EXTRA);
	if (!ur_fault_find_frame(frame, len, &f) || len < PAYLOAD)
		return;
	o->opcode = f.bth.opcode;
	o->psn = f.bth.psn;
	o->tos = frame[UR_ETH_LEN + 1];
	for (unsigned i = 0; i < 16; i++)
		differs |= frame[len - 1 - i] ^ 0x5a;
	o->damaged = differs;
}

static inline void cable_judged(void *ctx, ur_time now, unsigned end, const uint8_t *frame, uint32_t len,
				const struct ur_between_fate *fate)
{
	CU_ASSERT(ctx == &cable && now == cable.now && end < 2 && frame && len);
	cable.judged++;
	cable.fate = *fate;
}

static inline unsigned cable_add(const char *rule)
{
	struct ur_fault_rule r;
	unsigned at;

	CU_ASSERT_PTR_NULL_FATAL(ur_fault_rule_parse(rule, &r, &at));
	return ur_between_add(cable.b, cable.now, &r, rule);
}

static inline void cable_limit(const struct ur_between_limit *limit)
{
	CU_ASSERT_EQUAL_FATAL(ur_between_set_limit(cable.b, cable.now, limit), 0);
}

/* With rules between commas, and a limit, or NULL. */
static inline void cable_open(const char *rules, const struct ur_between_limit *limit)
{
	static const struct ur_between_host host = {.send = cable_send, .judged = cable_judged, .ctx = &cable};
	char copy[512], *save;

	memset(&cable, 0, sizeof(cable));
	cable.now = 1000;
	strncpy(copy, rules, sizeof(copy) - 1)[sizeof(copy) - 1] = 0;
	CU_ASSERT_PTR_NOT_NULL_FATAL(cable.b = ur_between_create(1, &host));
	for (char *t = strtok_r(copy, ",", &save); t; t = strtok_r(NULL, ",", &save))
		CU_ASSERT_FATAL(cable_add(t));
	if (limit)
		cable_limit(limit);
}

static inline unsigned cable_hits(unsigned i)
{
	return ur_between_rule(cable.b, i)->row.hits;
}

static inline void cable_close(void)
{
	ur_between_destroy(cable.b);
}

/* A packet from host 10.0.0.1 (end 0) or 10.0.0.2; `ext` follows the BTH. Its tail is all 0x5a, ICRC included: nobody looks at it here. A
 * SACK has nothing more. */
static inline void cable_frame(unsigned end, uint8_t opcode, uint32_t qpn, uint32_t psn, uint8_t tos, const uint8_t *ext, uint32_t ext_len)
{
	const struct ur_gid host[2] = {ur_gid_from_v4(0x0100000a), ur_gid_from_v4(0x0200000a)};
	const struct ur_mac mac = {{cable_mac[end]}};
	const struct ur_bth bth = {.opcode = opcode, .dqpn = qpn, .psn = psn & 0xffffff};
	const uint8_t extra[UR_BETWEEN_EXTRA] = {[UR_BETWEEN_EXTRA - 1] = (uint8_t)(0xe0 + end)};
	uint8_t f[512];
	struct ur_path path;

	memset(f, 0x5a, sizeof(f));
	ur_path_build(&path, &mac, &mac, 0, &host[end], &host[!end], tos, 64, 0, 0xc000);
	memcpy(f, path.hdr, path.hdr_len);
	ur_bth_put(f + path.hdr_len, &bth);
	if (ext_len)
		memcpy(f + path.hdr_len + UR_BTH_LEN, ext, ext_len);
	ur_between_in(cable.b, cable.now, end, f, path.hdr_len + UR_BTH_LEN + ext_len + (opcode == UR_OP_SACK ? UR_ICRC_LEN : PAYLOAD),
		      extra);
}

static inline void cable_pass(unsigned end, uint8_t opcode, uint32_t qpn, uint32_t psn)
{
	cable_frame(end, opcode, qpn, psn, 0, NULL, 0);
}

static inline void cable_later(ur_time ns)
{
	cable.now += ns;
	ur_between_run(cable.b, cable.now);
}

/* Have exactly these PSNs left, in this order? */
static inline bool cable_out_is(const uint32_t *psn, unsigned n)
{
	for (unsigned i = 0; i < n && i < cable.n; i++)
		if (cable.out[i].psn != psn[i])
			return false;
	return n == cable.n;
}

#define CABLE_OUT(...) cable_out_is((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4)
#define SEND UR_OP_SEND_ONLY

#endif
