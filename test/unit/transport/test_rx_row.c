/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/wire/row.c, and runs of packets that are apart: whatever differs in what stands before the BTH ends them. */
#include <stdio.h>

#include "rx_run_harness.h"
#include "wire/ip.h"

void ur_suite_rx_row(void);

/* Any bit of what stands before the BTH, but for the UDP checksum, which nobody looks at. */
static void headers__every_bit(void)
{
	for (unsigned v6 = 0; v6 < 2; v6++)
		for (unsigned bit = 0;; bit++) {
			const uint32_t all = TOTAL * MTU;
			struct th_opt o = th_default;
			const struct ur_pkt *p = &alone[2].p;
			unsigned want, done;

			o.window = 1024;
			o.v6 = v6;
			begin_list(K_WRITE, &o, &all, 1, TOTAL);
			make_train(1, 6, 0);
			done = bit / 8 == p->bth_off;
			if (!done) {
				p->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
				fix_icrc(2);
			}
			want = bit / 8 >= p->bth_off - 2u ? 6 : 2;
			if (run() != want) {
				printf("byte %u bit %u of version %u\n", bit / 8, bit % 8, v6 ? 6 : 4);
				CU_FAIL("a header that differs");
			}
			CU_ASSERT_TRUE(arrived(want + 1));
			twin_completions(&t);
			twin_close(&t);
			if (done)
				break;
		}
}

static void put_id(unsigned k, uint16_t id, bool sum)
{
	uint8_t *ip = alone[k].p.data + alone[k].p.l3_off;

	ur_put16(ip + 4, id);
	if (sum)
		ur_ip4_finish_again(ip);
	fix_icrc(k);
}

/* Devices choose identifications as they like. */
static void headers__other_identifications(void)
{
	for (unsigned sum = 0; sum < 2; sum++) {
		begin(K_WRITE);
		make_train(1, 30, 0x10);
		for (unsigned i = 4; i < 30; i++)
			put_id(i, (uint16_t)(0xfffa + i), sum);
		deliver(sum ? 30 : 4);
		end_from(sum ? 31 : 5, TOTAL); /* without a checksum they were dropped */
		CU_ASSERT_TRUE(arrived(TOTAL));
		twin_completions(&t);
		twin_close(&t);
	}
}

static void headers__other_length(void)
{
	static const int more[] = {-4, -1, 1, 4};

	for (unsigned i = 0; i < ur_array_size(more); i++)
		for (unsigned k = 1; k < 3; k++) {
			begin(K_SEND);
			make_train(1, 10, 0);
			alone[k].p.len = (uint32_t)((int)alone[k].p.len + more[i]); /* as if the port had cut it, or brought padding */
			deliver(k);
			end_from(more[i] > 0 ? 11 : k + 1, TOTAL);
			CU_ASSERT_TRUE(arrived(TOTAL));
			twin_completions(&t);
			twin_close(&t);
		}
}

static void headers__from_this_host_or_a_train(void)
{
	for (unsigned local = 0; local < 2; local++) {
		begin(K_WRITE);
		make_train(1, 10, 0);
		if (local)
			alone[5].p.flags = UR_PKT_LOCAL;
		else
			alone[5].p.stride = STRIDE;
		CU_ASSERT_EQUAL(run(), 5);
		before.p.flags = UR_PKT_BARE;
		CU_ASSERT_FALSE(ur_row_of_burst(&(struct ur_row){.n = 0}, &before.p, burst, 10));
		before.p.flags = 0;
		CU_ASSERT_FALSE(ur_row_of_burst(&(struct ur_row){.n = 0}, &before.p, burst, 0));
		twin_completions(&t);
		twin_close(&t);
	}
}

void ur_suite_rx_row(void)
{
	CU_pSuite s = CU_add_suite("rx_row", as_bursts, NULL);

	CU_ADD_TEST(s, headers__every_bit);
	CU_ADD_TEST(s, headers__other_identifications);
	CU_ADD_TEST(s, headers__other_length);
	CU_ADD_TEST(s, headers__from_this_host_or_a_train);
}
