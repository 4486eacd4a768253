/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/transport/responder/responder.c and the receive checks of receive.c. Node 1 is the responder; its peer sends from PSN 100. */
#include "tp_harness.h"
#include "transport/state/verdict.h"

static uint8_t data[8192];

static uint64_t count(const struct th *h, enum ur_counter c)
{
	return h->n[1].c.v[c];
}

static void open_filled(struct th *h, const struct th_opt *o)
{
	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + (i >> 8));
	th_open(h, o);
}

static void rx__drops(void)
{
	static const struct {
		enum ur_counter counter;
		uint8_t opcode;
		uint16_t pkey;
		uint32_t qpn_xor;
		uint8_t src_xor, dst_xor;
	} t[] = {
		{UR_C_DROP_QPN, UR_OP_SEND_ONLY, 0xffff, 0x7, 0, 0},
		{UR_C_DROP_QPN, UR_OP_SEND_ONLY, 0xffff, 0x30000, 0, 0},
		{UR_C_DROP_OPCODE, UR_UC | UR_OP_SEND_ONLY, 0xffff, 0, 0, 0},
		{UR_C_CNP_IGNORED, UR_OP_CNP, 0xffff, 0, 0, 0},
		{UR_C_DROP_SOURCE, UR_OP_CNP, 0xffff, 0, 1, 0},
		{UR_C_DROP_SOURCE, UR_OP_CNP, 0xffff, 0, 0, 1},
		{UR_C_DROP_PKEY, UR_OP_CNP, 0x8001, 0, 0, 0},
		{UR_C_DROP_QPN, UR_OP_CNP, 0xffff, 0x7, 0, 0},
		{UR_C_DROP_OPCODE, 0x1f, 0xffff, 0, 0, 0},
		{UR_C_DROP_PKEY, UR_OP_SEND_ONLY, 0x8001, 0, 0, 0},
		{UR_C_DROP_PKEY, UR_OP_SEND_ONLY, 0, 0, 0, 0},
		{UR_C_DROP_SOURCE, UR_OP_SEND_ONLY, 0xffff, 0, 1, 0},
		{UR_C_DROP_SOURCE, UR_OP_ACK, 0xffff, 0, 1, 0},
		{UR_C_DROP_SOURCE, UR_OP_SEND_ONLY, 0xffff, 0, 0, 1},
		{UR_C_DROP_SOURCE, UR_OP_ACK, 0xffff, 0, 0, 1},
	};
	static struct th h;
	struct th_pkt p;

	open_filled(&h, &th_default);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		uint64_t before = count(&h, t[i].counter);

		th_make(&h, 1, &p, UR_OP_SEND_ONLY, 100, true, NULL, data, 8);
		p.p.bth.opcode = t[i].opcode;
		p.p.bth.pkey = t[i].pkey;
		p.p.bth.dqpn ^= t[i].qpn_xor;
		p.p.src.raw[15] ^= t[i].src_xor;
		p.p.dst.raw[15] ^= t[i].dst_xor;
		th_feed(&h, 1, &p);
		CU_ASSERT_EQUAL(count(&h, t[i].counter), before + 1);
		th_expect_quiet(&h, 1);
	}
	th_make(&h, 1, &p, UR_OP_WRITE_ONLY, 100, true, &(struct th_hdr){0}, NULL, 0);
	p.p.bth.pkey = 0x7fff;
	th_feed(&h, 1, &p);
	th_expect_ack(&h, 1, 100, ACK);
	th_close(&h);
}

static void rx__states(void)
{
	static const struct {
		enum ibv_qp_state st;
		bool taken;
	} t[] = {{IBV_QPS_RESET, false}, {IBV_QPS_INIT, false}, {IBV_QPS_RTR, true},
		 {IBV_QPS_RTS, true},    {IBV_QPS_SQD, true},   {IBV_QPS_ERR, false}};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;

		open_filled(&h, &th_default);
		atomic_store(&h.n[1].qp->state, t[i].st);
		th_inject(&h, 1, UR_OP_WRITE_ONLY, 100, true, NULL, NULL, 0);
		CU_ASSERT_EQUAL(count(&h, UR_C_RX_WRITE), t[i].taken);
		CU_ASSERT_EQUAL(count(&h, UR_C_DROP_QP_STATE), !t[i].taken);
		th_close(&h);
	}
}

static void rx__rtr_reports_established_once(void)
{
	static struct th h;
	struct th_opt o = th_default;

	o.stay_rtr = true;
	open_filled(&h, &o);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 100, true, NULL, NULL, 0);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 101, true, NULL, NULL, 0);
	CU_ASSERT_EQUAL(h.n[1].nevents, 1);
	CU_ASSERT_EQUAL(h.n[1].event[0], IBV_EVENT_COMM_EST);
	th_expect_ack(&h, 1, 101, ACK); /* one for both */
	th_ack(&h, 1, 200, ACK);
	CU_ASSERT_EQUAL(count(&h, UR_C_DROP_QP_STATE), 1);
	th_close(&h);
}

/* Who guesses at PSNs does not establish anything: with the CM it would stand for the RTU. */
static void rx__established_by_the_right_psn(void)
{
	static const uint32_t wrong[] = {101, 99, 100 + (1 << 22), 100 - (1 << 7)};
	static struct th h;
	struct th_opt o = th_default;

	o.stay_rtr = true;
	open_filled(&h, &o);
	for (unsigned i = 0; i < ur_array_size(wrong); i++) {
		th_inject(&h, 1, UR_OP_WRITE_ONLY, wrong[i] & 0xffffff, true, NULL, NULL, 0);
		CU_ASSERT_EQUAL(h.n[1].nevents, 0);
	}
	th_drain(&h, 1);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 100, true, NULL, NULL, 0);
	CU_ASSERT_EQUAL(h.n[1].nevents, 1);
	CU_ASSERT_EQUAL(h.n[1].event[0], IBV_EVENT_COMM_EST);
	th_close(&h);
}

/* Messages as strings of packets: F M L O of SEND (upper case) and WRITE (lower case), r READ, a atomic. The last one is refused. */
static void order__table(void)
{
	static const struct {
		const char *packets;
		bool refused;
	} t[] = {
		{"O", false},  {"FL", false}, {"FML", false}, {"FMMLOo", false}, {"fml", false}, {"oflOFL", false},
		{"M", true},   {"L", true},   {"m", true},    {"l", true},       {"FF", true},   {"FO", true},
		{"Ff", true},  {"Fo", true},  {"Fm", true},   {"Fl", true},      {"Fr", true},   {"fF", true},
		{"fO", true},  {"fM", true},  {"fL", true},   {"ff", true},      {"fr", true},   {"FLM", true},
		{"flm", true}, {"rr", false}, {"rO", false},  {"a", true},       {"FMa", true},
	};
	static const struct {
		char c;
		uint8_t opcode;
		uint32_t len;
	} kinds[] = {
		{'F', UR_OP_SEND_FIRST, 1024},  {'M', UR_OP_SEND_MIDDLE, 1024},  {'L', UR_OP_SEND_LAST, 10},  {'O', UR_OP_SEND_ONLY, 10},
		{'f', UR_OP_WRITE_FIRST, 1024}, {'m', UR_OP_WRITE_MIDDLE, 1024}, {'l', UR_OP_WRITE_LAST, 10}, {'o', UR_OP_WRITE_ONLY, 10},
		{'r', UR_OP_READ_REQ, 0},       {'a', UR_OP_FETCH_ADD, 0},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		const char *s = t[i].packets;
		uint32_t psn = 100;

		open_filled(&h, &th_default);
		for (unsigned k = 0; k < 4; k++)
			th_recv(&h, 1, k, k * 8192, 8192);
		for (; *s; s++, psn++)
			for (unsigned k = 0; k < ur_array_size(kinds); k++) {
				uint32_t mids = (uint32_t)strspn(s + 1, "m");
				struct th_hdr ext = th_reth(&h, 1, 0, *s == 'f' ? 1024 * (1 + mids) + 10 : 10);

				if (kinds[k].c == *s)
					th_inject(&h, 1, kinds[k].opcode, psn, true, &ext, data, kinds[k].len);
			}
		CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp) == IBV_QPS_ERR || h.n[1].qp->resp.dying, t[i].refused);
		CU_ASSERT_EQUAL(count(&h, UR_C_REMOTE_INV), t[i].refused);
		if (t[i].refused)
			CU_ASSERT_EQUAL(h.n[1].qp->resp.ack_syndrome, NAK(UR_NAK_INV_REQ));
		th_close(&h);
	}
}

static void length__table(void)
{
	static const struct {
		uint8_t first, opcode; /* `first` opens the message with 1024 bytes when it is not the opcode itself */
		uint32_t len, dma;
		bool ok;
	} t[] = {
		{UR_OP_SEND_ONLY, UR_OP_SEND_ONLY, 0, 0, true},
		{UR_OP_SEND_ONLY, UR_OP_SEND_ONLY, 1024, 0, true},
		{UR_OP_SEND_ONLY, UR_OP_SEND_ONLY, 1025, 0, false},
		{UR_OP_SEND_FIRST, UR_OP_SEND_FIRST, 1023, 0, false},
		{UR_OP_SEND_FIRST, UR_OP_SEND_FIRST, 0, 0, false},
		{UR_OP_SEND_FIRST, UR_OP_SEND_FIRST, 1025, 0, false},
		{UR_OP_SEND_FIRST, UR_OP_SEND_MIDDLE, 1000, 0, false},
		{UR_OP_SEND_FIRST, UR_OP_SEND_LAST, 0, 0, false},
		{UR_OP_SEND_FIRST, UR_OP_SEND_LAST, 1, 0, true},
		{UR_OP_SEND_FIRST, UR_OP_SEND_LAST, 1024, 0, true},
		{UR_OP_SEND_FIRST, UR_OP_SEND_LAST, 1025, 0, false},
		{UR_OP_WRITE_ONLY, UR_OP_WRITE_ONLY, 0, 0, true},
		{UR_OP_WRITE_ONLY, UR_OP_WRITE_ONLY, 8, 8, true},
		{UR_OP_WRITE_ONLY, UR_OP_WRITE_ONLY, 8, 9, false},
		{UR_OP_WRITE_ONLY, UR_OP_WRITE_ONLY, 8, 7, false},
		{UR_OP_WRITE_ONLY, UR_OP_WRITE_ONLY, 0, 1, false},
		{UR_OP_WRITE_FIRST, UR_OP_WRITE_FIRST, 1024, 1024, false},
		{UR_OP_WRITE_FIRST, UR_OP_WRITE_FIRST, 1024, 1025, true},
		{UR_OP_WRITE_FIRST, UR_OP_WRITE_FIRST, 1024, 0x80000001, false},
		{UR_OP_WRITE_FIRST, UR_OP_WRITE_MIDDLE, 1024, 2048, false},
		{UR_OP_WRITE_FIRST, UR_OP_WRITE_MIDDLE, 1024, 2049, true},
		{UR_OP_WRITE_FIRST, UR_OP_WRITE_LAST, 10, 1034, true},
		{UR_OP_WRITE_FIRST, UR_OP_WRITE_LAST, 10, 1035, false},
		{UR_OP_WRITE_FIRST, UR_OP_WRITE_LAST, 10, 1033, false},
		{UR_OP_READ_REQ, UR_OP_READ_REQ, 0, 100, true},
		{UR_OP_READ_REQ, UR_OP_READ_REQ, 4, 100, false},
		{UR_OP_READ_REQ, UR_OP_READ_REQ, 0, 0x80000001, false},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_hdr ext;
		uint32_t psn = 100;

		open_filled(&h, &th_default);
		ext = th_reth(&h, 1, 0, t[i].dma);
		th_recv(&h, 1, 1, 0, 8192);
		if (t[i].first != t[i].opcode)
			th_inject(&h, 1, t[i].first, psn++, false, &ext, data, 1024);
		th_inject(&h, 1, t[i].opcode, psn, true, &ext, data, t[i].len);
		CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), t[i].ok ? IBV_QPS_RTS : IBV_QPS_ERR);
		CU_ASSERT_EQUAL(count(&h, UR_C_REMOTE_INV), !t[i].ok);
		th_close(&h);
	}
}

static void sequence__one_nak_until_resynchronised(void)
{
	static struct th h;

	open_filled(&h, &th_default);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 100, false, NULL, NULL, 0);
	for (uint32_t psn = 102; psn < 106; psn++)
		th_inject(&h, 1, UR_OP_WRITE_ONLY, psn, true, NULL, NULL, 0);
	th_expect_ack(&h, 1, 101, SEQ_NAK);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 106, true, NULL, NULL, 0);
	th_expect_quiet(&h, 1);
	CU_ASSERT_EQUAL(count(&h, UR_C_DROP_OUT_OF_SEQ), 5);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 101, true, NULL, NULL, 0);
	th_expect_ack(&h, 1, 101, ACK);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 103, true, NULL, NULL, 0);
	th_expect_ack(&h, 1, 102, SEQ_NAK);
	/* Reordered rather than lost: the NAK has not left when the missing packet comes. */
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 102, false, NULL, NULL, 0);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 104, true, NULL, NULL, 0);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 103, false, NULL, NULL, 0);
	th_expect_ack(&h, 1, 103, ACK);
	th_expect_quiet(&h, 1);
	th_close(&h);
}

static void duplicate__acknowledged_again_not_executed(void)
{
	static struct th h;
	struct th_hdr ext;

	open_filled(&h, &th_default);
	ext = th_reth(&h, 1, 0, 8);
	th_recv(&h, 1, 1, 100, 64);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 100, true, &ext, data, 8);
	th_inject(&h, 1, UR_OP_SEND_ONLY, 101, true, NULL, data, 8);
	th_expect_ack(&h, 1, 101, ACK);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 100, true, &ext, data + 50, 8);
	th_inject(&h, 1, UR_OP_SEND_ONLY, 101, true, NULL, data, 8);
	th_expect_ack(&h, 1, 101, ACK);
	th_expect_ack(&h, 1, 101, ACK); /* one of each */
	th_expect_quiet(&h, 1);
	CU_ASSERT_EQUAL(memcmp(h.n[1].mem, data, 8), 0);
	CU_ASSERT_EQUAL(count(&h, UR_C_DUPLICATE), 2);
	th_expect_wc(h.n[1].rcq, 1, IBV_WC_SUCCESS);
	th_expect_no_wc(h.n[1].rcq);
	th_close(&h);
}

/* The copy of an old packet must not take the place of a NAK that has not left: nothing would ask for the missing packet again. */
static void duplicate__leaves_a_waiting_nak(void)
{
	static struct th h;

	open_filled(&h, &th_default);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 100, false, NULL, NULL, 0);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 102, true, NULL, NULL, 0);
	th_inject(&h, 1, UR_OP_WRITE_ONLY, 100, true, NULL, NULL, 0);
	th_expect_ack(&h, 1, 101, SEQ_NAK);
	th_expect_quiet(&h, 1);
	th_close(&h);
}

static void send__completions(void)
{
	static const struct {
		uint8_t opcode;
		uint32_t len;
		enum ibv_wc_opcode wc;
		unsigned flags;
		uint32_t byte_len;
	} t[] = {
		{UR_OP_SEND_ONLY, 10, IBV_WC_RECV, 0, 10},
		{UR_OP_SEND_ONLY_IMM, 0, IBV_WC_RECV, IBV_WC_WITH_IMM, 0},
		{UR_OP_WRITE_ONLY_IMM, 10, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, 10},
		{UR_OP_WRITE_ONLY_IMM, 0, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, 0},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct th_hdr ext;
		struct th_pkt p;
		struct ibv_wc wc;

		open_filled(&h, &th_default);
		ext = th_reth(&h, 1, 0, t[i].len);
		th_recv(&h, 1, 5, 4096, 64);
		ur_cq_arm(h.n[1].rcq, true);
		th_make(&h, 1, &p, t[i].opcode, 100, true, &ext, data, t[i].len);
		p.p.bth.se = i & 1;
		th_feed(&h, 1, &p);
		CU_ASSERT_EQUAL(h.n[1].notified, i & 1);
		wc = th_expect_wc(h.n[1].rcq, 5, IBV_WC_SUCCESS);
		CU_ASSERT_EQUAL(wc.opcode, t[i].wc);
		CU_ASSERT_EQUAL(wc.wc_flags, t[i].flags);
		CU_ASSERT_EQUAL(wc.byte_len, t[i].byte_len);
		CU_ASSERT_EQUAL(wc.qp_num, ur_qp_num(h.n[1].qp));
		CU_ASSERT_EQUAL(wc.src_qp, ur_qp_num(h.n[0].qp));
		if (t[i].flags)
			CU_ASSERT_EQUAL(wc.imm_data, 0x55667788);
		CU_ASSERT_EQUAL(memcmp(h.n[1].mem + (t[i].wc == IBV_WC_RECV ? 4096 : 0), data, t[i].len), 0);
		th_close(&h);
	}
}

static void send__scatter_and_limits(void)
{
	enum fault { NONE, SHORT, BAD_KEY, READ_ONLY };
	static const struct {
		enum fault fault;
		enum ibv_wc_status status;
		int nak;
	} t[] = {
		{NONE, IBV_WC_SUCCESS, -1},
		{SHORT, IBV_WC_LOC_LEN_ERR, UR_NAK_INV_REQ},
		{BAD_KEY, IBV_WC_LOC_PROT_ERR, UR_NAK_REM_OP},
		{READ_ONLY, IBV_WC_LOC_PROT_ERR, UR_NAK_REM_OP},
	};

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		static struct th h;
		struct ur_mr *ro;
		struct ibv_sge sge[3];
		struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = sge, .num_sge = 3}, *bad;

		open_filled(&h, &th_default);
		ur_mr_reg(h.n[1].tp, h.n[1].pd, h.n[1].mem, 8192, (uintptr_t)h.n[1].mem, 0, &ro);
		for (unsigned k = 0; k < 3; k++)
			sge[k] = (struct ibv_sge){(uintptr_t)(h.n[1].mem + k * 4096), k == 1 ? 0 : 1000, h.n[1].mr->lkey};
		sge[2].length -= t[i].fault == SHORT;
		sge[2].lkey = t[i].fault == BAD_KEY ? 77 : t[i].fault == READ_ONLY ? ro->lkey : sge[2].lkey;
		CU_ASSERT_EQUAL(ur_qp_post_recv(h.n[1].qp, &wr, &bad), 0);
		th_recv(&h, 1, 2, 0, 64);
		th_inject(&h, 1, UR_OP_SEND_FIRST, 100, false, NULL, data, 1024);
		if (t[i].nak < 0 || t[i].fault == SHORT)
			th_inject(&h, 1, UR_OP_SEND_LAST, 101, true, NULL, data + 1024, 976);
		th_expect_wc(h.n[1].rcq, 1, t[i].status);
		if (t[i].nak < 0) {
			CU_ASSERT_EQUAL(memcmp(h.n[1].mem, data, 1000), 0);
			CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 8192, data + 1000, 1000), 0);
		} else {
			th_expect_wc(h.n[1].rcq, 2, IBV_WC_WR_FLUSH_ERR);
			th_expect_refused(&h, 1, t[i].fault == SHORT ? 101 : 100, (enum ur_nak_code)t[i].nak, -1);
		}
		CU_ASSERT_EQUAL(ur_mr_dereg(ro), 0);
		th_close(&h);
	}
}

/* Class J: what was to be acknowledged before still is, and the request itself is not answered. */
static void send__invalidate_of_memory_regions_is_not_answered(void)
{
	static struct th h;
	struct th_hdr ext = {0};

	open_filled(&h, &th_default);
	ext.ieth = h.n[1].mr->rkey;
	th_recv(&h, 1, 1, 0, 64);
	th_recv(&h, 1, 2, 0, 64);
	th_inject(&h, 1, UR_OP_SEND_ONLY, 100, true, &ext, data, 8);
	th_inject(&h, 1, UR_OP_SEND_ONLY_INV, 101, true, &ext, data, 8);
	th_expect_wc(h.n[1].rcq, 1, IBV_WC_SUCCESS);
	th_expect_wc(h.n[1].rcq, 2, IBV_WC_REM_INV_REQ_ERR);
	CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_ERR);
	th_expect_ack(&h, 1, 100, ACK);
	th_expect_quiet(&h, 1);
	th_close(&h);
}

static void rnr__until_a_receive_is_posted(void)
{
	static const uint8_t opcodes[] = {UR_OP_SEND_ONLY, UR_OP_WRITE_ONLY_IMM};

	for (unsigned i = 0; i < ur_array_size(opcodes); i++) {
		static struct th h;
		struct th_opt o = th_default;
		struct th_hdr ext;

		o.min_rnr = 14;
		open_filled(&h, &o);
		ext = th_reth(&h, 1, 0, 8);
		memset(h.n[1].mem, 0, 8);
		th_inject(&h, 1, opcodes[i], 100, true, &ext, data + 1, 8);
		th_inject(&h, 1, UR_OP_WRITE_ONLY, 101, true, NULL, NULL, 0);
		th_expect_ack(&h, 1, 100, ur_syndrome(UR_AETH_RNR, 14));
		th_expect_quiet(&h, 1); /* no NAK for what came after */
		CU_ASSERT_EQUAL(count(&h, UR_C_RNR_NAK_SENT), 1);
		CU_ASSERT_EQUAL(h.n[1].mem[0], 0);
		th_inject(&h, 1, opcodes[i], 100, true, &ext, data + 1, 8);
		th_expect_ack(&h, 1, 100, ur_syndrome(UR_AETH_RNR, 14));
		th_recv(&h, 1, 1, 4096, 64);
		th_inject(&h, 1, opcodes[i], 100, true, &ext, data + 1, 8);
		th_expect_ack(&h, 1, 100, ACK);
		th_expect_wc(h.n[1].rcq, 1, IBV_WC_SUCCESS);
		th_close(&h);
	}
}

static void remote_access__table(void)
{
	enum fault { NONE, KEY, RANGE, LOW, WRAP, OTHER_PD, NO_RIGHT, QP_RIGHT };
	static const struct {
		enum fault fault;
		uint32_t len;
		int nak, event;
	} t[] = {
		{NONE, 8, -1, -1},
		{KEY, 8, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{KEY, 0, -1, -1}, /* a key is not looked at for no data */
		{RANGE, 8, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{LOW, 8, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{WRAP, 8, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{OTHER_PD, 8, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{NO_RIGHT, 8, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR},
		{QP_RIGHT, 8, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR},
	};

	for (unsigned i = 0; i < 2 * ur_array_size(t); i++) {
		static struct th h;
		struct th_opt o = th_default;
		enum fault f = t[i / 2].fault;
		bool write = i & 1;
		struct ur_mr *mr;
		struct ur_pd *pd;
		struct th_hdr ext;

		o.access = f == QP_RIGHT ? IBV_ACCESS_LOCAL_WRITE : TH_ALL_ACCESS;
		open_filled(&h, &o);
		ur_pd_create(h.n[1].tp, &pd);
		ur_mr_reg(h.n[1].tp, f == OTHER_PD ? pd : h.n[1].pd, h.n[1].mem, 100, 0x10000,
			  f == NO_RIGHT ? IBV_ACCESS_LOCAL_WRITE : TH_ALL_ACCESS, &mr);
		ext = (struct th_hdr){.va = 0x10000 + 92, .rkey = mr->rkey ^ (f == KEY), .len = t[i / 2].len};
		ext.va = f == RANGE ? 0x10000 + 93 : f == LOW ? 0xffff : f == WRAP ? UINT64_MAX - 3 : ext.va;
		th_inject(&h, 1, write ? UR_OP_WRITE_ONLY : UR_OP_READ_REQ, 100, true, &ext, data, write ? ext.len : 0);
		if (t[i / 2].nak >= 0) {
			th_expect_refused(&h, 1, 100, (enum ur_nak_code)t[i / 2].nak, t[i / 2].event);
		} else {
			CU_ASSERT_EQUAL(th_drain(&h, 1), 1);
			CU_ASSERT_EQUAL(ur_qp_state(h.n[1].qp), IBV_QPS_RTS);
			if (write)
				CU_ASSERT_EQUAL(memcmp(h.n[1].mem + 92, data, ext.len), 0);
		}
		CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
		CU_ASSERT_EQUAL(ur_pd_destroy(pd), 0);
		th_close(&h);
	}
}

static void unsupported__is_refused(void)
{
	static const uint8_t opcodes[] = {UR_OP_CMP_SWAP, UR_OP_FETCH_ADD, UR_OP_FLUSH, UR_OP_ATOMIC_WRITE};

	for (unsigned i = 0; i < ur_array_size(opcodes); i++) {
		static struct th h;

		open_filled(&h, &th_default);
		th_inject(&h, 1, opcodes[i], 100, true, NULL, data, ur_opcode(opcodes[i])->flags & UR_OPF_PAYLOAD ? 8 : 0);
		th_expect_refused(&h, 1, 100, UR_NAK_INV_REQ, IBV_EVENT_QP_REQ_ERR);
		th_close(&h);
	}
}

static void write__mr_gone_in_the_middle(void)
{
	static struct th h;
	struct ur_mr *mr;
	struct th_hdr ext;

	open_filled(&h, &th_default);
	ur_mr_reg(h.n[1].tp, h.n[1].pd, h.n[1].mem, 8192, 0, TH_ALL_ACCESS, &mr);
	ext = (struct th_hdr){.rkey = mr->rkey, .len = 3000};
	th_inject(&h, 1, UR_OP_WRITE_FIRST, 100, false, &ext, data, 1024);
	CU_ASSERT_EQUAL(ur_mr_dereg(mr), 0);
	th_inject(&h, 1, UR_OP_WRITE_MIDDLE, 101, false, NULL, data, 1024);
	th_expect_refused(&h, 1, 101, UR_NAK_REM_ACCESS, IBV_EVENT_QP_ACCESS_ERR);
	th_close(&h);
}

static void verdict__names(void)
{
	CU_ASSERT_STRING_EQUAL(ur_resp_verdict_name(UR_RESP_BAD_ORDER), "BAD_ORDER");
	for (unsigned v = 0; v < UR_RESP_VERDICT_COUNT; v++)
		CU_ASSERT_PTR_NOT_NULL(ur_resp_verdict_name((enum ur_resp_verdict)v));
	CU_ASSERT_STRING_EQUAL(ur_resp_verdict_name(UR_RESP_VERDICT_COUNT), "?");
}

void ur_suite_responder(void);

void ur_suite_responder(void)
{
	CU_pSuite s = CU_add_suite("responder", NULL, NULL);

	CU_ADD_TEST(s, rx__drops);
	CU_ADD_TEST(s, rx__states);
	CU_ADD_TEST(s, rx__rtr_reports_established_once);
	CU_ADD_TEST(s, rx__established_by_the_right_psn);
	CU_ADD_TEST(s, order__table);
	CU_ADD_TEST(s, length__table);
	CU_ADD_TEST(s, sequence__one_nak_until_resynchronised);
	CU_ADD_TEST(s, duplicate__acknowledged_again_not_executed);
	CU_ADD_TEST(s, duplicate__leaves_a_waiting_nak);
	CU_ADD_TEST(s, send__completions);
	CU_ADD_TEST(s, send__scatter_and_limits);
	CU_ADD_TEST(s, send__invalidate_of_memory_regions_is_not_answered);
	CU_ADD_TEST(s, rnr__until_a_receive_is_posted);
	CU_ADD_TEST(s, remote_access__table);
	CU_ADD_TEST(s, unsupported__is_refused);
	CU_ADD_TEST(s, write__mr_gone_in_the_middle);
	CU_ADD_TEST(s, verdict__names);
}
