/* SPDX-License-Identifier: BSD-3-Clause */
#include "scenario.h"

#include "transport/transport.h"

#define NOTHING {NULL, NULL}

const struct scenario scenarios[] = {
	{.name = "sends", .post = {{"ss", ""}, NOTHING}, .window = 4, .faults = 2, .slice = true},
	{.name = "sends-3", .post = {{"sSs", ""}, NOTHING}, .window = 4, .faults = 2},
};

const size_t nscenarios = sizeof(scenarios) / sizeof(scenarios[0]);
