/* SPDX-License-Identifier: BSD-3-Clause */
/* What was expected and what was seen, in words. */
#include "conform/internal.h"

struct text {
	char *to;
	unsigned len;
};

static void add_text(struct text *t, const char *s)
{
	while (*s && t->len < UR_CF_TEXT - 1)
		t->to[t->len++] = *s++;
	t->to[t->len] = 0;
}

static void add_digits(struct text *t, uint64_t n, unsigned base)
{
	char digits[24];
	unsigned i = sizeof(digits) - 1;

	digits[i] = 0;
	do {
		digits[--i] = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	add_text(t, digits + i);
}

static void add_number(struct text *t, const char *before, uint64_t n)
{
	add_text(t, before);
	add_digits(t, n, 10);
}

static void add_psn(struct text *t, int32_t from_first)
{
	add_text(t, ", PSN ");
	if (from_first > 99999 || from_first < -99999) {
		add_text(t, "far away");
		return;
	}
	add_text(t, from_first < 0 ? "first-" : "first+");
	add_digits(t, (uint64_t)(from_first < 0 ? -from_first : from_first), 10);
}

static void add_opcode(struct text *t, uint8_t opcode)
{
	const char *name = ur_opcode(opcode)->name;

	if (name) {
		add_text(t, name);
		return;
	}
	add_text(t, "opcode 0x");
	add_digits(t, opcode, 16);
}

static void add_syndrome(struct text *t, uint8_t s)
{
	static const char *const naks[] = {[UR_NAK_PSN_SEQ] = "PSN sequence error",
					   [UR_NAK_INV_REQ] = "invalid request",
					   [UR_NAK_REM_ACCESS] = "remote access error",
					   [UR_NAK_REM_OP] = "remote operational error",
					   [UR_NAK_INV_RD] = "invalid RD request"};
	unsigned value = ur_syndrome_value(s);

	switch (ur_syndrome_type(s)) {
	case UR_AETH_ACK: add_text(t, "ACK"); break;
	case UR_AETH_RNR: add_text(t, "RNR NAK"); break;
	case UR_AETH_NAK:
		add_text(t, "NAK ");
		add_text(t, value < ur_array_size(naks) ? naks[value] : "of a reserved code");
		break;
	default: add_text(t, "reserved syndrome"); break;
	}
}

static const char *cm_name(unsigned attr)
{
	const char *name = ur_cm_attr_name(attr);

	return name ? name : "message";
}

static void say_expected_packet(struct text *t, const struct ur_cf_run *r, const struct ur_cf_step *s)
{
	const struct ur_opcode_info *op = ur_opcode(s->opcode);

	add_opcode(t, s->opcode);
	if (op->flags & UR_OPF_AETH) {
		add_text(t, ": ");
		add_syndrome(t, s->code);
		if (s->code2 == UR_CF_ANY) {
			add_text(t, " or any NAK");
		} else if (s->code2) {
			add_text(t, " or ");
			add_syndrome(t, s->code2);
		}
	}
	if (s->opcode != UR_OP_CNP && !(s->flags & UR_CF_ANY_PSN))
		add_psn(t, s->psn);
	if (op->flags & UR_OPF_AETH && !(s->flags & UR_CF_ANY_MSN))
		add_number(t, ", MSN ", ur_cf_msn(r, s));
	if (s->kept)
		add_number(t, ", or both more by ", s->kept);
	if (op->flags & UR_OPF_PAYLOAD && !(s->flags & (UR_CF_ANY_LEN | UR_CF_ECHO)))
		add_number(t, ", bytes ", s->len);
	if (s->flags & UR_CF_ECHO) {
		add_number(t, ", messages taken ", s->x);
		add_number(t, ", bytes of the last ", s->y);
	}
	if (s->flags & UR_CF_PAYLOAD)
		add_text(t, " as they were written");
	if (op->flags & UR_OPF_ATOMICACKETH)
		add_number(t, ", value ", s->x);
	if (op->flags & UR_OPF_RETH)
		add_number(t, ", DMA length ", s->dma_len);
	if (s->ms)
		add_number(t, ", not before ms ", s->ms);
	if (s->flags & UR_CF_OR_SILENCE)
		add_text(t, "; or no answer");
}

static void say_expected_cm(struct text *t, const struct ur_cf_step *s)
{
	add_text(t, cm_name(s->opcode));
	if (s->opcode == UR_CM_REJ)
		add_number(t, " with reason ", s->code);
	if (s->opcode == UR_CM_SIDR_REP)
		add_number(t, " with status ", s->code);
	if (s->code2 == UR_CF_ANY)
		add_text(t, " or another");
	else if (s->code2)
		add_number(t, " or ", s->code2);
	if (s->flags & UR_CF_SAME_ID)
		add_text(t, " of the same connection");
	if (s->flags & UR_CF_OR_SILENCE)
		add_text(t, "; or no answer");
}

void ur_cf_say_step(const struct ur_cf_run *r, const struct ur_cf_step *s, char *to)
{
	struct text t = {.to = to};

	to[0] = 0;
	switch (s->kind) {
	case UR_CF_EXPECT: say_expected_packet(&t, r, s); break;
	case UR_CF_CM_EXPECT: say_expected_cm(&t, s); break;
	case UR_CF_BULK:
		add_text(&t, "ACKs of all messages, or a NAK of one that was lost, each with the MSN that belongs to its PSN");
		break;
	case UR_CF_QUIET:
		add_text(&t, "no ");
		add_text(&t, s->opcode ? ur_opcode(s->opcode)->name : "answer");
		break;
	case UR_CF_CM_QUIET:
		add_text(&t, "no ");
		add_text(&t, s->opcode ? cm_name(s->opcode) : "answer of the CM");
		break;
	default: add_text(&t, "nothing in particular"); break;
	}
}

static void say_headers(struct text *t, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	const uint8_t *ext = ur_bth_ext(p);
	struct ur_aeth h;

	if (op->flags & UR_OPF_AETH) {
		ur_aeth_get(ext + op->off_aeth, &h);
		add_text(t, ": ");
		add_syndrome(t, h.syndrome);
	}
}

static void say_rest(struct text *t, const struct ur_pkt *p, const struct ur_opcode_info *op)
{
	const uint8_t *ext = ur_bth_ext(p);
	struct ur_reth reth;
	struct ur_aeth h;

	if (op->flags & UR_OPF_AETH) {
		ur_aeth_get(ext + op->off_aeth, &h);
		add_number(t, ", MSN ", h.msn);
	}
	if (op->flags & UR_OPF_PAYLOAD)
		add_number(t, ", bytes ", p->payload_len);
	if (op->flags & UR_OPF_ATOMICACKETH)
		add_number(t, ", value ", ur_get64(ext + op->off_atomicacketh));
	if (op->flags & UR_OPF_RETH) {
		ur_reth_get(ext + op->off_reth, &reth);
		add_number(t, ", DMA length ", reth.len);
	}
}

void ur_cf_say_packet(const struct ur_cf_run *r, const struct ur_pkt *p, const char *odd, char *to)
{
	const struct ur_opcode_info *op = ur_opcode(p->bth.opcode);
	struct text t = {.to = to};

	add_opcode(&t, p->bth.opcode);
	say_headers(&t, p, op);
	if (p->bth.opcode != UR_OP_CNP)
		add_psn(&t, ur_psn_diff(p->bth.psn, ur_cf_is_answer(p->bth.opcode) ? r->conn.psn : r->conn.their_psn));
	say_rest(&t, p, op);
	if (odd) {
		add_text(&t, ": ");
		add_text(&t, odd);
	}
}

void ur_cf_say_cm(const struct ur_cm_msg *m, const char *odd, char *to)
{
	struct text t = {.to = to};

	add_text(&t, cm_name(m->attr));
	if (m->attr == UR_CM_REJ)
		add_number(&t, " with reason ", m->rej.reason);
	if (m->attr == UR_CM_SIDR_REP)
		add_number(&t, " with status ", m->sidr_rep.status);
	if (odd) {
		add_text(&t, ": ");
		add_text(&t, odd);
	}
}

void ur_cf_say(char *to, const char *sentence)
{
	struct text t = {.to = to};

	to[0] = 0;
	add_text(&t, sentence);
}

void ur_cf_say_number(char *to, const char *before, uint32_t n, const char *behind)
{
	struct text t = {.to = to};

	add_number(&t, before, n);
	add_text(&t, behind);
}
