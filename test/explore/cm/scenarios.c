/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scripts of the two programs. c: connects, once it has no connection; A, R: accepts or refuses a request that has come; d: disconnects
 * what is established; D: what it has accepted and is not established yet; x: gives up a connection, whatever it is in; l: looks up a QP;
 * L: answers a lookup.
 */
#include "test/explore/scenario.h"

#define SCRIPT(active, passive)                                                                                                            \
	{                                                                                                                                  \
		{active, passive},                                                                                                         \
		{                                                                                                                          \
			NULL, NULL                                                                                                         \
		}                                                                                                                          \
	}

const struct scenario scenarios[] = {
	{.name = "connect", .post = SCRIPT("c", "A"), .faults = 3, .slice = 3},
	{.name = "reject", .post = SCRIPT("c", "R"), .faults = 3, .slice = 3},
	{.name = "disconnect", .post = SCRIPT("cd", "A"), .faults = 3, .slice = 2},
	{.name = "hang-up", .post = SCRIPT("c", "Ad"), .faults = 3, .slice = 2},
	{.name = "cross", .post = SCRIPT("cd", "Ad"), .faults = 3, .slice = 2},
	{.name = "withdraw", .post = SCRIPT("cx", "A"), .faults = 3, .slice = 2},
	{.name = "give-up", .post = SCRIPT("c", "Ax"), .faults = 3, .slice = 2},
	{.name = "hang-up-early", .post = SCRIPT("c", "AD"), .faults = 3, .slice = 2},
	{.name = "again", .post = SCRIPT("cdc", "AA"), .faults = 3, .slice = 1},
	{.name = "refused-once", .post = SCRIPT("cc", "RA"), .faults = 3, .slice = 2},
	{.name = "lookup", .post = SCRIPT("l", "L"), .faults = 2, .slice = 2},
};

const size_t nscenarios = sizeof(scenarios) / sizeof(scenarios[0]);
