/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/transport/rx_run.c: runs do to a QP what their packets do one by one, and end exactly where a packet is not what was expected. One QP
 * gets trains, or rows of packets that are apart, its twin (twin.h) packets. Random programs of both are in test_tp_trains.c.
 */
#include <sys/mman.h>

#include "engine/catch.h"
#include "rx_run_harness.h"
#include "transport/memory/mr.h"

void ur_suite_rx_run(void);

/* --- what fits --- */

static void whole__trains(void)
{
	static const unsigned n[] = {2, 3, 17, MOST};

	for (unsigned k = 0; k < KINDS; k++)
		for (unsigned i = 0; i < ur_array_size(n); i++) {
			begin((enum kind)k);
			make_train(1, n[i], 0);
			deliver(n[i]);
			CU_ASSERT_TRUE(arrived(n[i] + 1));
			end(n[i] + 1);
		}
}

/* One packet is not worth a run, and goes the usual way. */
static void whole__one_packet(void)
{
	for (unsigned k = 0; k < KINDS; k++) {
		begin((enum kind)k);
		make_train(1, 1, 0);
		deliver(0);
		end(2);
	}
}

static void whole__of_both_ip_versions_and_round_the_psns(void)
{
	for (unsigned k = 0; k < KINDS; k++) {
		const uint32_t all = TOTAL * MTU;
		struct th_opt o = th_default;

		o.window = 1024;
		o.v6 = true;
		begin_list((enum kind)k, &o, &all, 1, TOTAL);
		make_train(1, MOST, 0x0f0f);
		deliver(MOST);
		end(MOST + 1);
	}
}

/* The part of a train that the kernel cut in two begins at another place. */
static void whole__from_another_place(void)
{
	for (unsigned k = 0; k < KINDS; k++) {
		begin((enum kind)k);
		make_train(1, 30, 0);
		train.place = 0xfff0; /* and goes round */
		for (unsigned i = 0; i < 30; i++)
			fix_icrc(i);
		deliver(30);
		end(31);
	}
}

/* Identifications that do not count from the place on: no run, but good packets. */
static void whole__with_other_identifications(void)
{
	for (unsigned k = 0; k < KINDS; k++) {
		begin((enum kind)k);
		make_train(1, 30, 0);
		train.place = 7;
		deliver(0);
		CU_ASSERT_TRUE(arrived(31));
		end(31);
	}
}

static void asks__any_of_them(void)
{
	static const uint64_t masks[] = {0, 1, 2, 0x8000000000000000u >> 2, UINT64_MAX, 0x5555555555555555u, 0x00000f0000000100u};

	for (unsigned k = K_WRITE; k <= K_SEND; k++)
		for (unsigned i = 0; i < ur_array_size(masks); i++) {
			begin((enum kind)k);
			make_train(1, MOST, masks[i]);
			deliver(MOST);
			CU_ASSERT_EQUAL(t.w[0].n[1].qp->resp.ack_pending, (masks[i] & ((1ull << MOST) - 1)) != 0);
			twin_move(&t, 1, TWIN_BURST, 0); /* the acknowledgement is the same */
			end(MOST + 1);
		}
}

/* --- what does not --- */

/* A packet that is wrong; one that is damaged, so its ICRC is wrong as well; one that may be so, though not behind others. */
enum how { WRONG, DAMAGED, ALLOWED };

struct deviation {
	const char *what;
	unsigned at; /* byte of the packet */
	uint8_t bits;
	enum how how;
};

static const struct deviation deviations[] = {
	{"opcode: first", 0, 0x01, WRONG},
	{"opcode: another", 0, 0x03, WRONG},
	{"opcode: one that does not exist", 0, 0x1f, WRONG},
	{"opcode: another service", 0, 0x20, WRONG},
	{"solicited event", 1, 0x80, WRONG},
	{"migration state", 1, 0x40, ALLOWED},
	{"pad", 1, 0x10, WRONG},
	{"version", 1, 0x01, WRONG},
	{"partition", 3, 0x01, WRONG},
	{"partition: limited member", 2, 0x80, ALLOWED},
	{"forward congestion", 4, 0x80, WRONG},
	{"backward congestion", 4, 0x40, WRONG},
	{"reserved", 4, 0x01, WRONG},
	{"another QP", 7, 0x01, WRONG},
	{"another slot", 5, 0x01, WRONG},
	{"reserved beside AckReq", 8, 0x01, WRONG},
	{"PSN: one more or less", 11, 0x01, WRONG},
	{"PSN: far away", 9, 0x80, WRONG},
	{"PSN: a few away", 11, 0x10, WRONG},
	{"ICRC", STRIDE - 1, 0x80, DAMAGED},
	{"ICRC, first byte", STRIDE - 4, 0x01, DAMAGED},
	{"payload, first byte", UR_BTH_LEN, 0x01, DAMAGED},
	{"payload, last byte", STRIDE - 5, 0x10, DAMAGED},
	{"AckReq damaged", 8, 0x80, DAMAGED},
	{"PSN damaged", 11, 0x02, DAMAGED},
};

/* A deviation in packet k of n: the packets before are executed, nothing behind is touched, and then all goes as in the twin. */
static void deviate(enum kind kk, const struct deviation *d, unsigned k, unsigned n)
{
	static uint8_t memory[TH_MEM];
	const struct th_node *node;
	const unsigned want = d->how == ALLOWED && !k ? 1 : k;
	const bool header = d->at < UR_BTH_LEN && !(d->at == 8 && d->bits == 0x80);
	uint32_t untouched;

	begin(kk);
	make_train(1, n, 0);
	packet(k)[d->at] ^= d->bits;
	if (d->how != DAMAGED)
		fix_icrc(k);
	node = &t.w[0].n[to];
	memcpy(memory, node->mem, TH_MEM);
	if (run() != want)
		CU_FAIL(d->what);
	CU_ASSERT_TRUE(arrived(want + 1));
	untouched = DST + (want + (header ? 1 : 2)) * MTU; /* payload is written before its ICRC is known */
	CU_ASSERT_EQUAL(memcmp(node->mem + untouched, memory + untouched, TH_MEM - untouched), 0);
	deliver_rest(want);
	if (!twin_node_same(&t, to))
		CU_FAIL(d->what);
	end_from(k + 1, TOTAL);
	if (!twin_memory_same(&t, to))
		CU_FAIL(d->what);
	twin_completions(&t);
	twin_close(&t);
}

static void deviation__stops_the_run_there(void)
{
	static const unsigned places[] = {0, 1, 2, 5};

	for (unsigned kk = 0; kk < KINDS; kk++)
		for (unsigned i = 0; i < ur_array_size(deviations); i++)
			for (unsigned k = 0; k < ur_array_size(places); k++)
				deviate((enum kind)kk, &deviations[i], places[k], 6);
}

/* A shorter packet can only be the last of a train: what it is, the usual way finds out. */
static void deviation__shorter_last_packet(void)
{
	static const uint32_t lens[] = {0, 1, 4, MTU - 4, MTU - 1};

	for (unsigned kk = 0; kk < KINDS; kk++)
		for (unsigned i = 0; i < ur_array_size(lens); i++)
			for (unsigned last = 0; last < 2; last++) {
				static struct th_pkt p[9];
				const struct th_hdr ext = {.syndrome = ACK, .msn = 1};
				const uint8_t op = last ? last_op[kk] : middle_op[kk];
				uint32_t len = last && kk == K_READ && lens[i] > MTU - 8 ? MTU - 8 : lens[i];

				begin((enum kind)kk);
				for (unsigned n = 0; n < 8; n++)
					th_make(&t.w[0], to, &p[n], middle_op[kk], PSN + 1 + n, false, NULL, data[1 + n], MTU);
				th_make(&t.w[0], to, &p[8], op, PSN + 9, true, &ext, data[9], len);
				train = (struct ur_pkt){.data = bytes, .room = sizeof(bytes)};
				CU_ASSERT_EQUAL_FATAL(twin_join(&train, p, 9), 9);
				deliver(8);
				twin_move(&t, to, TWIN_BURST, 0);
				CU_ASSERT_TRUE(twin_memory_same(&t, to));
				twin_completions(&t);
				twin_close(&t);
			}
}

/* PSNs that have come already, all of them or the first ones; and those that are too early. */
static void deviation__psns_of_the_whole_train(void)
{
	for (unsigned kk = 0; kk < KINDS; kk++)
		for (unsigned early = 0; early < 2; early++) {
			begin((enum kind)kk);
			make_train(1, 10, 0);
			deliver(10);
			make_train(early ? 13 : 1, 10, UINT64_MAX);
			deliver(0);
			twin_move(&t, to, TWIN_BURST, 0);
			if (!early) {
				make_train(6, 20, 0); /* five of them again, then new ones */
				deliver(0);
				if (kk != K_READ) /* of the responses one is in the way, and the others wait */
					CU_ASSERT_TRUE(t.in_runs >= 15);
			}
			twin_move(&t, to, TWIN_BURST, 0);
			end_from(early ? 11 : 26, TOTAL);
			CU_ASSERT_TRUE(twin_memory_same(&t, to));
			twin_completions(&t);
			twin_close(&t);
		}
}

/* No QP that could expect them, or not now: the usual way says what becomes of them. */
static void refused__as_a_whole(void)
{
	enum { R_SOURCE, R_DESTINATION, R_MARKED, R_NO_QP, R_ERROR, R_OTHER_MTU, R_SHORT, REASONS };

	for (unsigned kk = 0; kk < KINDS; kk++)
		for (unsigned why = 0; why < REASONS; why++) {
			struct th_node *n;
			struct ur_row r;

			begin((enum kind)kk);
			n = &t.w[0].n[to];
			make_train(1, 10, 0);
			switch (why) {
			case R_SOURCE: common()->src.raw[15]++; break;
			case R_DESTINATION: common()->dst.raw[15]++; break;
			case R_MARKED: common()->tos |= UR_ECN_CE; break;
			case R_NO_QP:
				for (unsigned i = 0; i < 10; i++)
					packet(i)[6] ^= 0x55;
				break;
			case R_ERROR: atomic_store(&n->qp->state, IBV_QPS_ERR); break;
			default: break;
			}
			r = row();
			if (why == R_OTHER_MTU || why == R_SHORT)
				r.stride = why == R_SHORT ? UR_BTH_LEN : STRIDE / 2;
			CU_ASSERT_EQUAL(ur_tp_rx_run(n->tp, &r, t.w[0].now), 0);
			atomic_store(&n->qp->state, IBV_QPS_RTS);
			CU_ASSERT_TRUE(twin_node_same(&t, to) && twin_memory_same(&t, to));
			end(1);
		}
}

/* Nothing of the kind is expected: no message, another, or one that the peer has been told to begin again. */
static void refused__nothing_is_expected(void)
{
	for (unsigned kk = 0; kk < KINDS; kk++)
		for (unsigned other = 0; other < KINDS; other++) {
			if (kk == other)
				continue;
			begin((enum kind)kk);
			kind = (enum kind)other;
			make_train(1, 10, 0);
			kind = (enum kind)kk;
			deliver(0);
			twin_move(&t, to, TWIN_BURST, 0);
			CU_ASSERT_TRUE(twin_memory_same(&t, to));
			twin_completions(&t);
			twin_close(&t);
		}
	for (unsigned kk = 0; kk < KINDS; kk++) {
		begin((enum kind)kk);
		end_from(1, TOTAL);
		make_train(1, 10, 0);
		deliver(0); /* all of it is over */
		twin_move(&t, to, TWIN_BURST, 0);
		CU_ASSERT_TRUE(twin_memory_same(&t, to));
		twin_completions(&t);
		twin_close(&t);
	}
}

/* More than the message has left: its last packet is never one of a run, and what is beyond is refused as ever. */
static void refused__more_than_the_message(void)
{
	static const unsigned packets[] = {2, 3, 4, 7, 12, 30};

	for (unsigned kk = 0; kk < KINDS; kk++)
		for (unsigned i = 0; i < ur_array_size(packets); i++) {
			const uint32_t all = packets[i] * MTU;
			/* A SEND's receive may be longer than the message: nobody knows where it ends. */
			const unsigned want = kk == K_SEND ? packets[i] - 1 : packets[i] - 2;
			struct th_opt o = th_default;

			o.window = 1024;
			begin_list((enum kind)kk, &o, &all, 1, packets[i]);
			make_train(1, 28, 0);
			deliver(want < 2 ? 0 : ur_min_u32(want, 28));
			twin_move(&t, to, TWIN_BURST, 0);
			CU_ASSERT_TRUE(twin_memory_same(&t, to));
			twin_completions(&t);
			twin_close(&t);
		}
}

/* --- where it goes --- */

/* Lists whose elements end inside packets, at their edges, or are empty: only what lies in one element is a run. */
static void place__scatter_lists(void)
{
	static const struct {
		uint32_t len[4];
		unsigned nsge, first; /* that the first call takes */
	} lists[] = {
		{{TOTAL * MTU}, 1, 40},
		{{MTU, TOTAL * MTU}, 2, 40},
		{{0, MTU, 0, TOTAL * MTU}, 4, 40},
		{{11 * MTU, TOTAL * MTU}, 2, 10},
		{{11 * MTU + 1, TOTAL * MTU}, 2, 10},
		{{11 * MTU - 1, TOTAL * MTU}, 2, 9},
		{{3 * MTU, 2 * MTU, 500, TOTAL * MTU}, 4, 2},
		{{1500, 700, 5000, TOTAL * MTU}, 4, 0},
		{{2 * MTU, 1, 1, TOTAL * MTU}, 4, 0},
	};

	for (unsigned kk = K_SEND; kk < KINDS; kk++)
		for (unsigned i = 0; i < ur_array_size(lists); i++) {
			struct th_opt o = th_default;
			uint32_t len[4], sum = 0;

			o.window = 1024;
			for (unsigned k = 0; k < lists[i].nsge; k++) {
				len[k] = ur_min_u32(lists[i].len[k], TOTAL * MTU - sum);
				sum += len[k];
			}
			begin_list((enum kind)kk, &o, len, lists[i].nsge, TOTAL);
			make_train(1, 40, 0);
			deliver(lists[i].first);
			CU_ASSERT_TRUE(t.in_runs + lists[i].first >= 25); /* it is found again behind the edge */
			end_from(41, TOTAL);
			CU_ASSERT_TRUE(twin_memory_same(&t, to));
			CU_ASSERT_EQUAL(twin_completions(&t), 1);
			twin_close(&t);
		}
}

/* Where a READ is asked for in pieces, their responses end messages. */
static void place__pieces_of_a_read(void)
{
	const uint32_t all = TOTAL * MTU;
	struct th_opt o = th_default;
	struct ur_swqe *w;

	o.window = 16;
	begin_list(K_READ, &o, &all, 1, TOTAL);
	w = ur_sq_at(t.w[0].n[0].qp, t.w[0].n[0].qp->req.head);
	CU_ASSERT_TRUE_FATAL(w->rd_shift > 1 && 1u << w->rd_shift < MOST);
	make_train(1, 60, 0);
	deliver((1u << w->rd_shift) - 2);
	twin_move(&t, 0, TWIN_BURST, 0);
	CU_ASSERT_TRUE(twin_memory_same(&t, 0));
	twin_completions(&t);
	twin_close(&t);
}

/* The right to write, or the memory, may have gone since the message began. */
static void place__rights_that_have_gone(void)
{
	for (unsigned kk = 0; kk < KINDS; kk++) {
		begin((enum kind)kk);
		make_train(1, 20, 0);
		for (unsigned w = 0; w < 2; w++) {
			CU_ASSERT_EQUAL(ur_mr_dereg(t.mr[w][to]), 0);
			CU_ASSERT_EQUAL_FATAL(ur_mr_reg(t.w[w].n[to].tp, t.w[w].n[to].pd, t.w[w].n[to].mem, TH_MEM, TWIN_IOVA, TH_MR_ACCESS,
							&t.mr[w][to]),
					      0);
		}
		deliver(0); /* the keys are others now */
		twin_move(&t, to, TWIN_BURST, 0);
		CU_ASSERT_TRUE(twin_memory_same(&t, to));
		CU_ASSERT_FALSE(arrived(2));
		twin_completions(&t);
		twin_close(&t);
	}
}

/* Pages are missing from byte `edge` on: the run ends before the packet that would reach them, and the usual way refuses that. */
static void place__missing_memory(void)
{
	for (unsigned k = 0; k < 6; k++) {
		const uint32_t edge = 4096 * (1 + k), size = TOTAL * MTU, shift = k & 1 ? 100 : 0;
		const unsigned good = (edge - shift) / MTU; /* packets that fit, the first included */
		const uint64_t va = 0x70000000;
		struct th_opt o = th_default;
		struct ur_mr *mr[2];
		uint8_t *mem[2];

		o.window = 1024;
		to = 1;
		kind = K_WRITE;
		twin_open(&t, &o, 1);
		CU_ASSERT_TRUE_FATAL(ur_catch_start());
		ur_catch_again();
		ur_catch_admit();
		for (unsigned w = 0; w < 2; w++) {
			mem[w] = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			CU_ASSERT_PTR_NOT_EQUAL_FATAL(mem[w], MAP_FAILED);
			CU_ASSERT_EQUAL(mprotect(mem[w] + edge, size + 4096 - edge, PROT_NONE), 0);
			CU_ASSERT_EQUAL_FATAL(ur_mr_reg(t.w[w].n[1].tp, t.w[w].n[1].pd, mem[w], size + 4096, va, TH_MR_ACCESS, &mr[w]), 0);
		}
		inject(UR_OP_WRITE_FIRST, PSN, false, &(struct th_hdr){.va = va + shift, .rkey = mr[0]->rkey, .len = size}, data[0], MTU);
		make_train(1, 40, 0);
		deliver(good - 1);
		CU_ASSERT_EQUAL(memcmp(mem[0] + shift, data, good * (size_t)MTU), 0);
		CU_ASSERT_EQUAL(memcmp(mem[1] + shift, data, good * (size_t)MTU), 0);
		CU_ASSERT_EQUAL(ur_qp_st(t.w[1].n[1].qp), ur_qp_st(t.w[0].n[1].qp));
		twin_move(&t, 1, TWIN_BURST, 0);
		for (unsigned w = 0; w < 2; w++) {
			CU_ASSERT_EQUAL(ur_mr_dereg(mr[w]), 0);
			munmap(mem[w], size + 4096);
		}
		twin_close(&t);
	}
}

static void add_common(CU_pSuite s)
{
	CU_ADD_TEST(s, whole__trains);
	CU_ADD_TEST(s, whole__one_packet);
	CU_ADD_TEST(s, whole__of_both_ip_versions_and_round_the_psns);
	CU_ADD_TEST(s, asks__any_of_them);
	CU_ADD_TEST(s, deviation__stops_the_run_there);
	CU_ADD_TEST(s, deviation__psns_of_the_whole_train);
	CU_ADD_TEST(s, refused__as_a_whole);
	CU_ADD_TEST(s, refused__nothing_is_expected);
	CU_ADD_TEST(s, refused__more_than_the_message);
	CU_ADD_TEST(s, place__scatter_lists);
	CU_ADD_TEST(s, place__pieces_of_a_read);
	CU_ADD_TEST(s, place__rights_that_have_gone);
	CU_ADD_TEST(s, place__missing_memory);
}

void ur_suite_rx_run(void)
{
	CU_pSuite s = CU_add_suite("rx_run", as_trains, NULL);

	add_common(s);
	CU_ADD_TEST(s, whole__from_another_place);
	CU_ADD_TEST(s, whole__with_other_identifications);
	CU_ADD_TEST(s, deviation__shorter_last_packet);
	add_common(CU_add_suite("rx_run_apart", as_bursts, NULL));
}
