/* SPDX-License-Identifier: BSD-3-Clause */
#include "test/explore/scenario.h"

#include "transport/transport.h"

#define NONE                                                                                                                               \
	{                                                                                                                                  \
		NULL, NULL                                                                                                                 \
	}
#define TICK (5 * UR_NS_PER_US)
#define WRAPS 0xfffffe /* the first PSNs are the last before 0 */

const struct scenario scenarios[] = {
	/* One kind of message, with receivers that keep nothing. */
	{.name = "send", .post = {{"sSs", ""}, NONE}, .window = 4, .faults = 3, .slice = 2},
	{.name = "send-late", .post = {{"ss", ""}, NONE}, .late = {true, true}, .window = 4, .faults = 3, .slice = 2},
	{.name = "imm", .post = {{"iIi", ""}, NONE}, .window = 4, .faults = 3, .slice = 2},
	{.name = "imm-late", .post = {{"Ii", ""}, NONE}, .late = {true, true}, .window = 4, .faults = 3, .slice = 2},
	{.name = "write", .post = {{"wVw", ""}, NONE}, .window = 4, .faults = 3, .slice = 2},
	{.name = "read", .post = {{"rRr", ""}, NONE}, .window = 4, .faults = 3, .slice = 2},
	{.name = "read-one", .post = {{"rYr", ""}, NONE}, .window = 4, .max_rd = 1, .faults = 3, .slice = 2},
	{.name = "atomic", .post = {{"aca", ""}, NONE}, .window = 4, .faults = 3, .slice = 2},
	{.name = "atomic-one", .post = {{"aca", ""}, NONE}, .window = 4, .max_rd = 1, .faults = 3, .slice = 2},
	/* Different ones. */
	{.name = "mixed", .post = {{"waR", ""}, NONE}, .window = 4, .faults = 3, .slice = 2},
	{.name = "mixed-send", .post = {{"sri", ""}, NONE}, .window = 4, .faults = 3, .slice = 2},
	{.name = "quiet", .post = {{"w'r'a'S", ""}, NONE}, .window = 4, .faults = 3, .slice = 2},
	{.name = "both", .post = {{"sw", "ra"}, NONE}, .window = 4, .faults = 3},
	{.name = "wraps", .post = {{"WRa", ""}, NONE}, .psn = WRAPS, .window = 4, .faults = 3, .slice = 2},
	{.name = "wraps-read", .post = {{"RaW", ""}, NONE}, .psn = WRAPS, .window = 4, .faults = 3, .slice = 2},
	{.name = "small", .post = {{"WRa", ""}, NONE}, .window = 2, .faults = 3, .slice = 2},
	{.name = "pieces", .post = {{"Yr", ""}, NONE}, .window = 2, .faults = 3, .slice = 2},
	{.name = "fence", .post = {{"rw^a", ""}, NONE}, .window = 4, .faults = 3, .slice = 2},
	{.name = "two-reads", .post = {{"rara", ""}, NONE}, .window = 4, .max_rd = 2, .faults = 3, .slice = 2},
	{.name = "bursts", .post = {{"sr", "w"}, NONE}, .bursts = true, .window = 4, .faults = 3},
	{.name = "plain", .post = {{"Wra", ""}, NONE}, .plain = true, .window = 4, .faults = 3, .slice = 2},
	/* Receivers that keep what is beyond a hole, and selective acknowledgements. */
	{.name = "keep-send", .post = {{"sSs", ""}, NONE}, .keeps = {true, true}, .window = 4, .faults = 3, .slice = 2},
	{.name = "keep-late", .post = {{"sss", ""}, NONE}, .late = {true, true}, .keeps = {true, true}, .window = 4, .faults = 3},
	{.name = "keep-read", .post = {{"rRr", ""}, NONE}, .keeps = {true, true}, .window = 4, .faults = 3, .slice = 2},
	{.name = "keep-read-one", .post = {{"rYr", ""}, NONE}, .keeps = {true, true}, .window = 4, .max_rd = 1, .faults = 3, .slice = 2},
	{.name = "keep-atomic", .post = {{"aca", ""}, NONE}, .keeps = {true, true}, .window = 4, .faults = 3, .slice = 2},
	{.name = "keep-mixed", .post = {{"waR", ""}, NONE}, .keeps = {true, true}, .window = 4, .faults = 3, .slice = 2},
	{.name = "keep-wraps", .post = {{"WRa", ""}, NONE}, .psn = WRAPS, .keeps = {true, true}, .window = 4, .faults = 3, .slice = 2},
	{.name = "keep-wraps-read", .post = {{"RaW", ""}, NONE}, .psn = WRAPS, .keeps = {true, true}, .window = 4, .faults = 3, .slice = 2},
	{.name = "keep-both", .post = {{"sw", "ra"}, NONE}, .keeps = {true, true}, .window = 4, .faults = 3},
	{.name = "keep-pieces", .post = {{"Yr", ""}, NONE}, .keeps = {true, true}, .window = 2, .faults = 3, .slice = 2},
	{.name = "keep-bursts", .post = {{"sr", "w"}, NONE}, .bursts = true, .keeps = {true, true}, .window = 4, .faults = 3},
	{.name = "keep-there", .post = {{"sra", ""}, NONE}, .keeps = {false, true}, .window = 4, .faults = 3, .slice = 2},
	{.name = "keep-here", .post = {{"sra", ""}, NONE}, .keeps = {true, false}, .window = 4, .faults = 3, .slice = 2},
	{.name = "follow",
	 .post = {{"wsr", ""}, NONE},
	 .keeps = {true, true},
	 .cwnd = UR_CWND_ALWAYS,
	 .window = 4,
	 .faults = 3,
	 .slice = 2},
	{.name = "keep-nothing",
	 .post = {{"sra", ""}, NONE},
	 .keeps = {true, true},
	 .reorder_bytes = 1024,
	 .window = 4,
	 .faults = 3,
	 .slice = 2},
	{.name = "keep-two-reads", .post = {{"rara", ""}, NONE}, .keeps = {true, true}, .window = 4, .max_rd = 2, .faults = 3, .slice = 2},
	{.name = "keep-reads-both", .post = {{"rw", "Ra"}, NONE}, .keeps = {true, true}, .window = 4, .faults = 3, .slice = 1},
	{.name = "keep-fence", .post = {{"rw^a", ""}, NONE}, .keeps = {true, true}, .window = 4, .faults = 3, .slice = 2},
	/* Time passes under way. */
	{.name = "slow-send", .post = {{"sSs", ""}, NONE}, .tick = TICK, .window = 4, .faults = 2, .soak = true},
	{.name = "slow-read", .post = {{"rRr", ""}, NONE}, .tick = TICK, .window = 4, .faults = 2, .soak = true},
	{.name = "slow-mixed", .post = {{"waR", ""}, NONE}, .tick = TICK, .window = 4, .faults = 2, .soak = true},
	{.name = "slow-keep-send",
	 .post = {{"sSs", ""}, NONE},
	 .tick = TICK,
	 .keeps = {true, true},
	 .window = 4,
	 .faults = 2,
	 .soak = true},
	{.name = "slow-keep-read",
	 .post = {{"rRr", ""}, NONE},
	 .tick = TICK,
	 .keeps = {true, true},
	 .window = 4,
	 .faults = 2,
	 .soak = true},
	{.name = "slow-keep-mixed", .post = {{"waR", ""}, NONE}, .tick = TICK, .keeps = {true, true}, .window = 4, .faults = 3},
	{.name = "slow-follow",
	 .post = {{"wsr", ""}, NONE},
	 .tick = TICK,
	 .keeps = {true, true},
	 .cwnd = UR_CWND_ALWAYS,
	 .window = 4,
	 .faults = 3},
	/* Ports that are congested, so that QPs keep a pace. */
	{.name = "paced", .post = {{"sRw", ""}, NONE}, .mbps = 100, .window = 4, .faults = 3, .slice = 2},
	{.name = "paced-keep-read",
	 .post = {{"rRwr", ""}, NONE},
	 .keeps = {true, true},
	 .mbps = 100,
	 .max_rd = 1,
	 .window = 4,
	 .faults = 3,
	 .slice = 2},
	/* A kept READ that finds no room to be answered, because of the pace. */
	{.name = "paced-greedy",
	 .post = {{"rRwr", ""}, NONE},
	 .keeps = {true, true},
	 .mbps = 100,
	 .max_rd = 2,
	 .rd_n = 1,
	 .window = 8,
	 .faults = 2,
	 .slice = 2},
	/* Two connections of the same hosts. */
	{.name = "two", .post = {{"sr", ""}, {"w", "a"}}, .window = 4, .faults = 3},
	{.name = "keep-two", .post = {{"sr", ""}, {"w", "a"}}, .keeps = {true, true}, .window = 4, .faults = 3},
};

const size_t nscenarios = sizeof(scenarios) / sizeof(scenarios[0]);
