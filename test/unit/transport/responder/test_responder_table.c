/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport/responder/responder.c: what follows from every request packet in every state of the responder, as one table (IBTA volume
 * 1, 9.7.4, 9.7.5.1 and 9.9.3). Node 1 is the responder; each case has a queue pair of its own.
 */
#include "tp_harness.h"

#define PSN 100 /* the first that node 1 expects */
#define MTU 1024u
#define TARGET 4096 /* in node 1's memory: what WRITEs and atomics change, */
#define RECV 65536  /* and where SENDs go */
#define TAIL 100u   /* bytes in a last packet */

enum state { BETWEEN, IN_SEND, IN_WRITE, NAK_SENT, DYING, STATES };
static const char *const state_names[] = {"between messages", "in a SEND", "in a WRITE", "NAK sent", "dying"};

/* What is special about the packet: one column each. */
enum { ORDER, REPEAT, OLDER, AHEAD, LENGTH, RIGHTS, KEY, NO_RECV, PROMISED, COLUMNS };
static const char *const column_names[] = {
	"in order", "the same again",    "older duplicate",           "ahead", "length", "withheld by the QP",
	"key",      "no receive posted", "not what the RETH promised"};

/*
 * A  executed and acknowledged        I  NAK invalid request, QP in ERR     D  last executed PSN acknowledged again, nothing executed
 * R  executed (once) and answered     X  NAK remote access, QP in ERR       -  silence
 * N  NAK sequence error               w  RNR NAK                            Y  as X, and the receive that is consumed tells
 * J  silence, the receive tells, ERR                                       .  no such case: no rights, key or receive is looked at
 */
static const struct row {
	uint8_t opcode;
	const char *expect[3]; /* BETWEEN, IN_SEND, IN_WRITE; NAK_SENT is as BETWEEN but that what is ahead is met with silence */
} rows[] = {
	/* clang-format off */
	{UR_OP_SEND_FIRST,       {"ADDNI..w.", "I.DNI..I.", "I.DNI..I."}},
	{UR_OP_SEND_MIDDLE,      {"I.DNI..I.", "ADDNI..A.", "I.DNI..I."}},
	{UR_OP_SEND_LAST,        {"I.DNI..I.", "ADDNI..A.", "I.DNI..I."}},
	{UR_OP_SEND_LAST_IMM,    {"I.DNI..I.", "ADDNI..A.", "I.DNI..I."}},
	{UR_OP_SEND_LAST_INV,    {"I.DNI.II.", "ADDNI.JA.", "I.DNI.II."}},
	{UR_OP_SEND_ONLY,        {"ADDNI..w.", "I.DNI..I.", "I.DNI..I."}},
	{UR_OP_SEND_ONLY_IMM,    {"ADDNI..w.", "I.DNI..I.", "I.DNI..I."}},
	{UR_OP_SEND_ONLY_INV,    {"ADDNI.Jw.", "I.DNI.II.", "I.DNI.II."}},
	{UR_OP_WRITE_FIRST,      {"ADDNIIX.I", "I.DNIII.I", "I.DNIII.I"}},
	{UR_OP_WRITE_MIDDLE,     {"I.DNI...I", "I.DNI...I", "ADDNI...I"}},
	{UR_OP_WRITE_LAST,       {"I.DNI...I", "I.DNI...I", "ADDNI...I"}},
	{UR_OP_WRITE_LAST_IMM,   {"I.DNI..II", "I.DNI..II", "ADDNI..wI"}},
	{UR_OP_WRITE_ONLY,       {"ADDNIIX.I", "I.DNIII.I", "I.DNIII.I"}},
	{UR_OP_WRITE_ONLY_IMM,   {"ADDNIIYwI", "I.DNIIIII", "I.DNIIIII"}},
	{UR_OP_READ_REQ,         {"RR-NIIX..", "I.-NIII..", "I.-NIII.."}},
	{UR_OP_CMP_SWAP,         {"RR-NIIX..", "I.-NIII..", "I.-NIII.."}},
	{UR_OP_FETCH_ADD,        {"RR-NIIX..", "I.-NIII..", "I.-NIII.."}},
	{UR_OP_ATOMIC_WRITE,     {"RR-NIIX..", "I.-NIII..", "I.-NIII.."}},
	{UR_OP_FLUSH,            {"RR-NIIX..", "I.-NIII..", "I.-NIII.."}},
	/* clang-format on */
};

struct rt_case {
	struct th h;
	const struct row *row;
	const struct ur_opcode_info *op;
	enum state state;
	int column;
	char expect;
	struct ur_mw *mw;
	uint32_t epsn; /* after the state has been made */
	uint32_t nrecv;
	uint8_t before[2 * MTU]; /* the target */
};

static uint8_t data[2 * MTU];

static char expected(const struct row *r, enum state s, int column)
{
	char c = r->expect[s == IN_SEND || s == IN_WRITE ? s : BETWEEN][column];

	if (c == '.' || s < NAK_SENT)
		return c;
	return s == DYING || column == AHEAD ? '-' : c;
}

static void inject(struct rt_case *c, uint8_t opcode, const struct th_hdr *x, uint32_t len)
{
	th_inject(&c->h, 1, opcode, c->epsn, false, x, data, len);
	c->epsn++;
}

/* --- the states --- */

static void recv(struct rt_case *c)
{
	CU_ASSERT_EQUAL(th_recv(&c->h, 1, c->nrecv++, RECV, 4 * MTU), 0);
}

/* A duplicate must have something to be a duplicate of, so one WRITE comes first in any case. */
static void enter(struct rt_case *c)
{
	struct th_hdr x = th_reth(&c->h, 1, 0, 8);
	bool last = c->op->flags & UR_OPF_LAST;

	inject(c, UR_OP_WRITE_ONLY, &x, 8);
	switch (c->state) {
	case IN_SEND:
		recv(c);
		inject(c, UR_OP_SEND_FIRST, NULL, MTU);
		break;
	case IN_WRITE:
		x = th_reth(&c->h, 1, TARGET - MTU, last ? MTU + TAIL : 3 * MTU);
		if (c->column == PROMISED)
			x.len = last ? MTU + TAIL + 4 : 2 * MTU;
		inject(c, UR_OP_WRITE_FIRST, &x, MTU);
		break;
	case NAK_SENT:
		th_inject(&c->h, 1, UR_OP_WRITE_ONLY, c->epsn + 7, false, &x, data, 8);
		th_expect_ack(&c->h, 1, c->epsn, SEQ_NAK);
		break;
	case DYING: /* the refusal waits behind the three responses of a READ */
		x = th_reth(&c->h, 1, 0, 3 * MTU);
		th_inject(&c->h, 1, UR_OP_READ_REQ, c->epsn, true, &x, NULL, 0);
		c->epsn += 3;
		x.rkey ^= 0x100;
		th_inject(&c->h, 1, UR_OP_WRITE_ONLY, c->epsn, false, &x, data, 8);
		break;
	default: break;
	}
	if (c->column != NO_RECV)
		recv(c);
}

/* --- the packet --- */

static uint32_t right_length(const struct rt_case *c)
{
	if (c->row->opcode == UR_OP_ATOMIC_WRITE)
		return 8;
	if (!(c->op->flags & UR_OPF_PAYLOAD))
		return 0;
	return c->op->flags & UR_OPF_LAST ? TAIL : MTU;
}

static uint32_t wrong_length(const struct rt_case *c)
{
	uint32_t f = c->op->flags;

	if (!(f & UR_OPF_PAYLOAD) || c->row->opcode == UR_OP_ATOMIC_WRITE)
		return 4;
	if (!(f & UR_OPF_LAST))
		return MTU - 4;
	return f & UR_OPF_FIRST ? MTU + 4 : 0;
}

static void make(struct rt_case *c, struct th_pkt *p)
{
	uint32_t flags = c->op->flags, len = c->column == LENGTH ? wrong_length(c) : right_length(c), psn = c->epsn;
	struct th_hdr x = th_reth(&c->h, 1, TARGET, len);

	if (!(flags & UR_OPF_LAST))
		x.len = 2 * MTU;
	if (c->column == PROMISED)
		x.len = flags & UR_OPF_LAST ? len + 4 : MTU;
	if (flags & (UR_OPF_READ | UR_OPF_FLUSH))
		x.len = TAIL;
	if (c->row->opcode == UR_OP_READ_REQ && c->column == LENGTH) {
		x.len = UR_MAX_MSG + 1;
		len = 0;
	}
	x.ieth = ur_mw_rkey(c->mw);
	x.feth = (struct ur_feth){.placement = 1};
	memcpy(&x.compare, c->before, 8);
	x.swap_add = ~x.compare;
	if (c->column == KEY) {
		x.rkey ^= 0x100;
		x.ieth = c->h.n[1].mr->rkey; /* a region's cannot be invalidated */
	} else if (c->column == RIGHTS) {
		c->h.n[1].qp->access = 0;
	}
	psn += c->column == AHEAD ? 1 : c->column == OLDER ? UR_PSN_MASK : 0;
	th_make(&c->h, 1, p, c->row->opcode, psn, true, &x, data, len);
}

/* --- what follows --- */

static void expect_response(struct rt_case *c)
{
	uint8_t opcode = c->op->flags & UR_OPF_ATOMIC ? UR_OP_ATOMIC_ACK : UR_OP_READ_RESP_ONLY;
	struct th_pkt p;

	if (!th_pull(&c->h, 1, &p)) {
		CU_FAIL("no response");
		return;
	}
	CU_ASSERT_EQUAL(p.p.bth.opcode, opcode);
	CU_ASSERT_EQUAL(p.p.bth.psn, c->epsn);
}

static void expect_answer(struct rt_case *c)
{
	uint32_t e = c->epsn;

	switch (c->expect) {
	case 'A': th_expect_ack(&c->h, 1, e, ACK); break;
	case 'D': th_expect_ack(&c->h, 1, c->column == REPEAT ? e : e - 1, ACK); break;
	case 'R': expect_response(c); break;
	case 'N': th_expect_ack(&c->h, 1, e, SEQ_NAK); break;
	case 'w': th_expect_ack(&c->h, 1, e, ur_syndrome(UR_AETH_RNR, c->h.opt.min_rnr)); break;
	case 'I': th_expect_ack(&c->h, 1, e, NAK(UR_NAK_INV_REQ)); break;
	case 'X':
	case 'Y': th_expect_ack(&c->h, 1, e, NAK(UR_NAK_REM_ACCESS)); break;
	default: break;
	}
	if (c->state == DYING) {
		CU_ASSERT_EQUAL(c->h.n[1].c.v[UR_C_DROP_QP_STATE], 1);
		CU_ASSERT_EQUAL(th_drain(&c->h, 1), 4); /* three responses and the refusal, nothing for what came after it */
	}
	th_expect_quiet(&c->h, 1);
}

static void expect_memory(struct rt_case *c, bool executed)
{
	bool changes = executed && c->op->flags & (UR_OPF_WRITE | UR_OPF_ATOMIC | UR_OPF_ATOMIC_WRITE);

	CU_ASSERT_EQUAL(memcmp(c->h.n[1].mem + TARGET, c->before, MTU) != 0, changes);
}

static void expect_completions(struct rt_case *c, bool executed, bool refused)
{
	bool whole = executed && c->op->flags & UR_OPF_LAST && c->op->flags & UR_OPF_RWQE;
	struct ibv_wc wc;

	if (refused) {
		for (uint32_t i = 0; i < c->nrecv; i++) {
			enum ibv_wc_status own = strchr("IJ", c->expect) ? IBV_WC_REM_INV_REQ_ERR
						 : c->expect == 'Y'        ? IBV_WC_LOC_ACCESS_ERR
									   : IBV_WC_REM_ACCESS_ERR;
			bool held = c->state == IN_SEND || strchr("YJ", c->expect) || (c->expect == 'X' && c->op->flags & UR_OPF_SEND);

			th_expect_wc(c->h.n[1].rcq, i, held && !i ? own : IBV_WC_WR_FLUSH_ERR);
		}
	} else if (whole) {
		wc = th_expect_wc(c->h.n[1].rcq, 0, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(wc.byte_len, c->state == BETWEEN || c->state == NAK_SENT ? TAIL : MTU + TAIL);
	}
	if (c->state != DYING)
		th_expect_no_wc(c->h.n[1].rcq);
}

static bool counted(const struct rt_case *c)
{
	const uint64_t *n = c->h.n[1].c.v;

	if (c->state == DYING)
		return n[UR_C_DROP_QP_STATE] == 1;
	switch (c->column) {
	case REPEAT:
	case OLDER: return n[UR_C_DUPLICATE] == 1;
	case AHEAD: return n[UR_C_DROP_OUT_OF_SEQ] == 1u + (c->state == NAK_SENT);
	default:
		return n[UR_C_REMOTE_INV] == (c->expect == 'I') && n[UR_C_REMOTE_ACCESS] == (strchr("XYJ", c->expect) != NULL) &&
		       n[UR_C_RNR_NAK_SENT] == (c->expect == 'w');
	}
}

static void run(struct rt_case *c)
{
	bool executed = c->expect == 'A' || c->expect == 'R' || c->column == REPEAT, refused = strchr("IXYJ", c->expect);
	struct ur_qp *qp = c->h.n[1].qp;
	struct th_pkt p;

	enter(c);
	memcpy(c->before, c->h.n[1].mem + TARGET, MTU);
	make(c, &p);
	if (c->column == REPEAT && c->state != DYING) {
		th_feed(&c->h, 1, &p);
		CU_ASSERT_EQUAL(th_drain(&c->h, 1), 1);
		expect_memory(c, true);
		memcpy(c->before, c->h.n[1].mem + TARGET, MTU);
	}
	th_feed(&c->h, 1, &p);
	expect_answer(c);
	expect_memory(c, executed && c->column != REPEAT);
	expect_completions(c, executed && c->state != DYING, refused);
	CU_ASSERT_TRUE(counted(c));
	CU_ASSERT_EQUAL(ur_qp_state(qp), refused || c->state == DYING ? IBV_QPS_ERR : IBV_QPS_RTS);
	if (!refused && c->state != DYING)
		CU_ASSERT_EQUAL(qp->resp.epsn, c->epsn + executed);
}

static void rx__every_packet_in_every_state(void)
{
	static struct rt_case c;
	struct th_opt o = th_default;
	unsigned cases = 0;

	o.access = TH_MR_ACCESS;
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + 1);
	for (unsigned r = 0; r < ur_array_size(rows); r++)
		for (int s = 0; s < STATES; s++)
			for (int col = 0; col < COLUMNS; col++) {
				unsigned failures = CU_get_number_of_failures();
				char e = expected(&rows[r], (enum state)s, col);

				if (e == '.')
					continue;
				memset(&c, 0, sizeof(c));
				th_open(&c.h, &o);
				c.row = &rows[r];
				c.op = ur_opcode(rows[r].opcode);
				c.state = (enum state)s;
				c.column = col;
				c.expect = e;
				c.epsn = PSN;
				CU_ASSERT_FATAL(ur_mw_alloc(c.h.n[1].tp, c.h.n[1].pd, IBV_MW_TYPE_2, &c.mw) == 0);
				run(&c);
				ur_mw_dealloc(c.mw);
				th_close(&c.h);
				if (CU_get_number_of_failures() != failures)
					printf("\n    %s, %s, %s: expected '%c'", c.op->name, state_names[s], column_names[col], e);
				cases++;
			}
	CU_ASSERT_TRUE(cases > 500);
}

/* Every request opcode of RC has its row. */
static void rows__are_complete(void)
{
	for (unsigned opcode = 0; opcode <= UR_OP_MASK; opcode++) {
		const struct ur_opcode_info *op = ur_opcode((uint8_t)opcode);
		unsigned n = 0;

		for (unsigned r = 0; r < ur_array_size(rows); r++)
			n += rows[r].opcode == opcode;
		CU_ASSERT_EQUAL(n, op->name && !(op->flags & UR_OPF_RESPONSE));
	}
}

void ur_suite_responder_table(void);

void ur_suite_responder_table(void)
{
	CU_pSuite s = CU_add_suite("responder_table", NULL, NULL);

	CU_ADD_TEST(s, rows__are_complete);
	CU_ADD_TEST(s, rx__every_packet_in_every_state);
}
