/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport/rx_only.c: rows of messages of one packet each do to a QP what their packets do one by one, and end exactly where a packet
 * is not what was expected.
 */
#include <sys/mman.h>

#include "engine/catch.h"
#include "rx_only_harness.h"

void ur_suite_rx_only(void);

/* --- what fits --- */

static void whole__of_all_lengths(void)
{
	static const uint32_t lens[] = {1, 2, 3, 4, 5, 8, 9, 13, 64, 255, 256, 257, MTU - 1, MTU};
	static const unsigned ns[] = {2, 3, MOST};

	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < ur_array_size(lens); i++)
			for (unsigned n = 0; n < ur_array_size(ns); n++)
				for (unsigned v6 = 0; v6 < 2; v6++) {
					struct th_opt o = th_default;

					o.v6 = v6;
					o.psn[0] = 0xfffff0; /* and round */
					begin_with(&o);
					post_receives(MOST, MTU);
					make((enum kind)k, ns[n], lens[i]);
					deliver(ns[n]);
					for (unsigned j = 0; j < ns[n]; j++)
						CU_ASSERT_TRUE(arrived((enum kind)k, j));
					end(k == K_SEND ? ns[n] : 0);
				}
}

static void whole__one_packet(void)
{
	for (unsigned k = 0; k < KINDS; k++) {
		begin();
		post_receives(1, MTU);
		make((enum kind)k, 1, 8);
		deliver(0);
		end(k);
	}
}

/* A SEND without payload needs memory no more than a receive without elements has. */
static void whole__empty(void)
{
	for (unsigned k = 0; k < KINDS; k++) {
		begin();
		post_receives(10, 8);
		make((enum kind)k, 10, 0);
		deliver(k == K_SEND ? 10 : 0);
		end(k == K_SEND ? 10 : 0);
	}
}

static void asks__any_of_them(void)
{
	static const uint64_t masks[] = {1, 2, 1ull << (MOST - 1), UINT64_MAX, 0x5555555555555555u, 0x00000f0000000100u};

	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < ur_array_size(masks); i++) {
			begin();
			post_receives(MOST, 64);
			asks = masks[i];
			make((enum kind)k, MOST, 8);
			deliver(MOST); /* ack_psn and ack_msn are the same */
			CU_ASSERT_TRUE(t.w[0].n[1].qp->resp.ack_pending);
			end(k == K_SEND ? MOST : 0);
		}
}

static void solicited__events(void)
{
	for (unsigned k = 0; k < KINDS; k++) {
		begin();
		post_receives(6, 64);
		make((enum kind)k, 6, 8);
		for (unsigned i = 0; i < 6; i++) {
			packet(i)[1] ^= 0x80;
			fix_icrc(i);
		}
		for (unsigned w = 0; w < 2; w++)
			ur_cq_arm(t.w[w].n[1].rcq, true);
		deliver(6);
		CU_ASSERT_EQUAL(t.w[0].n[1].notified, k == K_SEND);
		end(k == K_SEND ? 6 : 0);
	}
}

/* --- what does not --- */

/* Each bit of the second packet and of the first, with an ICRC that fits or not. What is damaged writes nothing. */
static void deviation__every_bit(void)
{
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned at = 0; at < 2; at++)
			for (unsigned bit = 0; bit < 8 * (UR_BTH_LEN + (k == K_WRITE ? RETH : 0) + 8 + UR_ICRC_LEN); bit++)
				for (unsigned fixed = 0; fixed < 2; fixed++) {
					static uint8_t memory[TH_MEM];
					unsigned got;

					begin();
					post_receives(4, 64);
					make((enum kind)k, 4, 8);
					packet(at)[bit / 8] ^= (uint8_t)(1 << bit % 8);
					if (fixed)
						fix_icrc(at);
					memcpy(memory, t.w[0].n[1].mem, TH_MEM);
					got = run();
					if (!fixed || bit / 8 == 4) /* a byte that the ICRC does not cover */
						CU_ASSERT_EQUAL(got, at);
					CU_ASSERT_TRUE(got == at || got == 4 || (!at && got == 1));
					for (unsigned i = 0; i < got && got == at; i++)
						memcpy(memory + (place((enum kind)k, 0, i) - t.w[0].n[1].mem), data[i], 8);
					if (got == at) /* nothing else has been written */
						CU_ASSERT_EQUAL(memcmp(memory, t.w[0].n[1].mem, TH_MEM), 0);
					rest(got);
					twin_move(&t, 1, TWIN_BURST, 0);
					twin_completions(&t);
					twin_close(&t);
				}
}

/* PSNs that have come already, all of them or some, and those that are too early. */
static void deviation__psns(void)
{
	for (unsigned k = 0; k < KINDS; k++) {
		begin();
		post_receives(MOST, 64);
		make((enum kind)k, 10, 8);
		deliver(10);
		deliver(0); /* again: duplicates */
		twin_move(&t, 1, TWIN_BURST, 0);
		make((enum kind)k, 10, 8);
		for (unsigned i = 3; i < 10; i++) {
			packet(i)[11]++; /* one is missing */
			fix_icrc(i);
		}
		deliver(3);
		CU_ASSERT_TRUE(t.w[0].n[1].qp->resp.nak_sent);
		make((enum kind)k, 10, 8);
		deliver(0); /* the first that is right ends the NAK */
		CU_ASSERT_FALSE(t.w[0].n[1].qp->resp.nak_sent);
		end(k == K_SEND ? 23 : 0);
	}
}

static void refused__as_a_whole(void)
{
	enum { R_SOURCE, R_MARKED, R_NO_QP, R_ERROR, R_SQD, R_LONG, R_DYING, R_UNKNOWN, R_INSIDE, R_SHORT, REASONS };

	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned why = 0; why < REASONS; why++) {
			struct th_node *n;
			struct ur_qp *qp;
			struct ur_row r;

			begin();
			post_receives(10, MTU);
			make((enum kind)k, 10, 8);
			n = &t.w[0].n[1];
			qp = n->qp;
			r = row();
			switch (why) {
			case R_SOURCE: (apart ? &before.p : &train)->src.raw[15]++; break;
			case R_MARKED: (apart ? &before.p : &train)->tos |= UR_ECN_CE; break;
			case R_NO_QP:
				for (unsigned i = 0; i < 10; i++)
					packet(i)[6] ^= 0x55;
				break;
			case R_ERROR: atomic_store(&qp->state, IBV_QPS_ERR); break;
			case R_SQD: atomic_store(&qp->state, IBV_QPS_SQD); break;
			case R_LONG: qp->mtu = 4; break;
			case R_DYING: qp->resp.dying = true; break;
			case R_UNKNOWN: qp->resp.slow_path |= UR_RESP_NEW; break;
			case R_INSIDE: qp->resp.expect = UR_OPF_WRITE; break;
			default: r.stride = UR_BTH_LEN + UR_ICRC_LEN + (k == K_WRITE ? RETH - 1 : 0); break;
			}
			if (why == R_SHORT && k == K_SEND)
				packet(0)[1] |= 0x10; /* a pad that is not there */
			CU_ASSERT_EQUAL(ur_tp_rx_run(n->tp, &r, t.w[0].now), 0);
			if (why == R_SHORT && k == K_SEND)
				packet(0)[1] &= (uint8_t)~0x10;
			if (why == R_NO_QP)
				for (unsigned i = 0; i < 10; i++)
					packet(i)[6] ^= 0x55;
			(apart ? &before.p : &train)->src = t.w[0].n[0].path.sgid;
			(apart ? &before.p : &train)->tos &= (uint8_t)~UR_ECN_CE;
			atomic_store(&qp->state, IBV_QPS_RTS);
			qp->mtu = MTU;
			qp->resp.dying = false;
			qp->resp.slow_path &= (uint8_t)~UR_RESP_NEW;
			qp->resp.expect = 0;
			CU_ASSERT_TRUE(twin_node_same(&t, 1) && twin_memory_same(&t, 1));
			deliver(10);
			end(k == K_SEND ? 10 : 0);
		}
}

/* --- where WRITEs go --- */

/* At the edges of the region, before and behind them, and round the end of the address space. */
static void region__edges(void)
{
	static const struct {
		uint64_t va;
		bool in;
	} places[] = {
		{TWIN_IOVA, true},
		{TWIN_IOVA + TH_MEM - 8, true},
		{TWIN_IOVA - 1, false},
		{TWIN_IOVA + TH_MEM - 7, false},
		{TWIN_IOVA + TH_MEM, false},
		{TWIN_IOVA - 8, false},
		{TWIN_IOVA + TH_MEM + 1, false},
		{UINT64_MAX - 3, false},
		{0, false},
	};

	for (unsigned i = 0; i < ur_array_size(places); i++)
		for (unsigned k = 0; k < 4; k++) {
			begin();
			va[k] = places[i].va;
			make(K_WRITE, 6, 8);
			deliver(places[i].in ? 6 : k);
			end(0);
		}
}

/* A key of another region, of none, of one that may not be written, of another domain; and a QP that does not allow it. */
static void region__keys(void)
{
	enum { A_OTHER, A_NONE, A_READ_ONLY, A_DOMAIN, A_QP, WAYS };

	for (unsigned way = 0; way < WAYS; way++)
		for (unsigned k = 0; k < 3; k++) {
			struct ur_mr *mr[2] = {NULL};
			struct ur_pd *pd[2] = {NULL};

			begin();
			for (unsigned w = 0; w < 2; w++) {
				struct th_node *n = &t.w[w].n[1];
				const int access = way == A_READ_ONLY ? IBV_ACCESS_REMOTE_READ : TH_MR_ACCESS;

				CU_ASSERT_EQUAL_FATAL(ur_pd_create(n->tp, &pd[w]), 0);
				CU_ASSERT_EQUAL_FATAL(
					ur_mr_reg(n->tp, way == A_DOMAIN ? pd[w] : n->pd, n->mem, TH_MEM, TWIN_IOVA, access, &mr[w]), 0);
				if (way == A_QP)
					n->qp->access = 0;
			}
			CU_ASSERT_EQUAL_FATAL(mr[0]->rkey, mr[1]->rkey);
			odd_one = k;
			odd_rkey = way == A_QP ? t.mr[0][1]->rkey : way == A_NONE ? mr[0]->rkey ^ 1 : mr[0]->rkey;
			make(K_WRITE, 6, 8);
			deliver(way == A_QP ? 0 : way == A_OTHER && !k ? 1 : k);
			CU_ASSERT_EQUAL(ur_qp_st(t.w[0].n[1].qp), ur_qp_st(t.w[1].n[1].qp));
			twin_move(&t, 1, TWIN_BURST, 0);
			for (unsigned w = 0; w < 2; w++) {
				CU_ASSERT_EQUAL(ur_mr_dereg(mr[w]), 0);
				CU_ASSERT_EQUAL(ur_pd_destroy(pd[w]), 0);
			}
			end(0);
		}
}

/* A RETH that does not say what has come. */
static void region__lengths(void)
{
	static const uint32_t lens[] = {0, 7, 9, 1024, UR_MAX_MSG + 1};

	for (unsigned i = 0; i < ur_array_size(lens); i++)
		for (unsigned k = 0; k < 3; k++) {
			begin();
			make(K_WRITE, 6, 8);
			ur_put32(packet(k) + UR_BTH_LEN + 12, lens[i]);
			fix_icrc(k);
			deliver(k);
			end(0);
		}
}

/* Memory whose second page is missing: the packet that meets it is refused as ever, those before it have been executed. */
static void region__missing_memory(void)
{
	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned at = 0; at < 4; at++) {
			const uint64_t iova = 0x70000000;
			struct ur_mr *mr[2];
			uint8_t *mem[2];

			open_with(&th_default);
			CU_ASSERT_TRUE_FATAL(ur_catch_start());
			ur_catch_again();
			ur_catch_admit();
			for (unsigned w = 0; w < 2; w++) {
				struct th_node *n = &t.w[w].n[1];

				mem[w] = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
				CU_ASSERT_PTR_NOT_EQUAL_FATAL(mem[w], MAP_FAILED);
				CU_ASSERT_EQUAL(mprotect(mem[w] + 4096, 4096, PROT_NONE), 0);
				CU_ASSERT_EQUAL_FATAL(ur_mr_reg(n->tp, n->pd, mem[w], 8192, iova, TH_MR_ACCESS, &mr[w]), 0);
				th_inject(&t.w[w], 1, UR_OP_WRITE_ONLY, n->qp->resp.epsn, false, &(struct th_hdr){.len = 0}, NULL, 0);
				for (unsigned i = 0; i < 6 && k == K_SEND; i++) {
					struct ibv_sge s = {iova + (i == at ? 4090 : i * 100), 64, mr[w]->lkey};
					struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &s, .num_sge = 1}, *bad;

					CU_ASSERT_EQUAL(ur_qp_post_recv(n->qp, &wr, &bad), 0);
				}
			}
			for (unsigned i = 0; i < 6; i++)
				va[i] = iova + (i == at ? 4090 : i * 100);
			rkey = mr[0]->rkey;
			make((enum kind)k, 6, 9);
			deliver(at);
			CU_ASSERT_EQUAL(memcmp(mem[0], mem[1], 4096), 0);
			for (unsigned i = 0; i < at; i++)
				CU_ASSERT_EQUAL(memcmp(mem[0] + i * 100, data[i], 9), 0);
			CU_ASSERT_EQUAL(t.w[0].n[1].c.v[UR_C_MEMORY_GONE], 1);
			twin_move(&t, 1, TWIN_BURST, 0);
			twin_completions(&t);
			for (unsigned w = 0; w < 2; w++) {
				CU_ASSERT_EQUAL(ur_mr_dereg(mr[w]), 0);
				munmap(mem[w], 8192);
			}
			twin_close(&t);
		}
}

/* --- what SENDs find --- */

/* Too few receives: the row ends with them, and the next packet is told so. */
static void receives__too_few(void)
{
	for (unsigned n = 0; n < 5; n++) {
		begin();
		post_receives(n, 64);
		make(K_SEND, 6, 8);
		deliver(n);
		CU_ASSERT_TRUE(t.w[0].n[1].qp->resp.nak_sent);
		post_receives(6, 64);
		make(K_SEND, 6, 8);
		deliver(0); /* by itself it fetches the rest from the first on */
		end(n + 6);
	}
}

/* One that is too short, has several elements or none, or names memory that is not there. */
static void receives__unusual(void)
{
	static const struct {
		uint32_t len[3];
		unsigned nsge;
		bool fits; /* as the usual way finds */
	} lists[] = {{{7}, 1, false}, {{0}, 0, false}, {{4, 4}, 2, true}, {{0, 8}, 2, true}, {{4, 3}, 2, false}, {{8}, 1, true}};

	for (unsigned i = 0; i < ur_array_size(lists); i++)
		for (unsigned k = 0; k < 3; k++) {
			const uint32_t usual = 64;
			const bool row_takes = lists[i].fits && lists[i].nsge == 1;

			begin();
			for (unsigned n = 0; n < 6; n++)
				twin_recv(&t, 1, n, n == k ? lists[i].len : &usual, n == k ? lists[i].nsge : 1, DST + n * STEP);
			make(K_SEND, 6, 8);
			deliver(row_takes ? 6 : k);
			CU_ASSERT_EQUAL(ur_qp_st(t.w[0].n[1].qp), lists[i].fits ? IBV_QPS_RTS : ur_qp_st(t.w[1].n[1].qp));
			end(6);
		}
}

/* A completion that finds no room: the QP is lost at that packet. */
static void receives__full_cq(void)
{
	struct th_opt o = th_default;

	o.cqe = 4;
	begin_with(&o);
	post_receives(10, 64);
	make(K_SEND, 10, 8);
	deliver(4);
	CU_ASSERT_EQUAL(ur_qp_st(t.w[0].n[1].qp), IBV_QPS_ERR);
	twin_completions(&t);
	twin_close(&t);
}

/* --- random rows --- */

static void random__rows(void)
{
	unsigned long in_rows = 0;

	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct ur_rng rng = {seed};
		struct th_opt o = th_default;

		o.v6 = seed & 1;
		o.psn[0] = 0xffffe0;
		begin_with(&o);
		for (unsigned i = 0; i < 12; i++) {
			const enum kind k = (enum kind)ur_rng_below(&rng, KINDS);
			const unsigned n = 1 + ur_rng_below(&rng, MOST);
			const uint32_t len = ur_rng_below(&rng, 4) ? ur_rng_below(&rng, 64) : ur_rng_below(&rng, MTU + 1);
			unsigned got;

			post_receives(ur_rng_below(&rng, 40), 64 + ur_rng_below(&rng, MTU));
			asks = ur_rng_u64(&rng) & ur_rng_u64(&rng);
			for (unsigned j = 0; j < n; j++)
				va[j] = TWIN_IOVA + ur_rng_below(&rng, TH_MEM - MTU);
			make(k, n, len);
			for (unsigned j = ur_rng_below(&rng, 4); j < 2 && n > 1; j++) {
				const unsigned at = ur_rng_below(&rng, n), bit = ur_rng_below(&rng, 8 * stride());

				packet(at)[bit / 8] ^= (uint8_t)(1 << bit % 8);
				if (ur_rng_below(&rng, 2))
					fix_icrc(at);
			}
			got = run();
			in_rows += got;
			rest(got);
			twin_move(&t, 1, TWIN_BURST, 0);
			twin_completions(&t);
			if (ur_qp_st(t.w[0].n[1].qp) != IBV_QPS_RTS)
				break;
		}
		CU_ASSERT_EQUAL(ur_qp_st(t.w[0].n[1].qp), ur_qp_st(t.w[1].n[1].qp));
		twin_completions(&t);
		twin_close(&t);
	}
	CU_ASSERT_TRUE(in_rows > 5000);
}

static void add(CU_pSuite s)
{
	CU_ADD_TEST(s, whole__of_all_lengths);
	CU_ADD_TEST(s, whole__one_packet);
	CU_ADD_TEST(s, whole__empty);
	CU_ADD_TEST(s, asks__any_of_them);
	CU_ADD_TEST(s, solicited__events);
	CU_ADD_TEST(s, deviation__every_bit);
	CU_ADD_TEST(s, deviation__psns);
	CU_ADD_TEST(s, refused__as_a_whole);
	CU_ADD_TEST(s, region__edges);
	CU_ADD_TEST(s, region__keys);
	CU_ADD_TEST(s, region__lengths);
	CU_ADD_TEST(s, region__missing_memory);
	CU_ADD_TEST(s, receives__too_few);
	CU_ADD_TEST(s, receives__unusual);
	CU_ADD_TEST(s, receives__full_cq);
	CU_ADD_TEST(s, random__rows);
}

void ur_suite_rx_only(void)
{
	add(CU_add_suite("rx_only", as_trains, NULL));
	add(CU_add_suite("rx_only_apart", as_bursts, NULL));
}
