/* SPDX-License-Identifier: BSD-3-Clause */
/* An input of a fuzz target that is a list of steps: bytes taken one by one, zeros when it is over. */
#ifndef UR_FUZZ_INPUT_H
#define UR_FUZZ_INPUT_H

#include "base/base.h"

struct input {
	const uint8_t *at;
	size_t left;
};

static inline uint8_t take(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static inline uint32_t take16(struct input *in)
{
	uint32_t high = take(in);

	return high << 8 | take(in);
}

#endif
