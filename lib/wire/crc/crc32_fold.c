/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of crc32_fold.h, which says what they are; test/unit/wire/test_crc32.c computes the constants anew from their definitions. */
#include "wire/crc/crc32_fold.h"

/* clang-format off */
const uint64_t ur_crc32_weights[UR_CRC32_BLOCKS][2] __attribute__((aligned(64))) = {
	{0x0c30f51dull << 32, 0x398e2ff2ull << 32},
	{0x145575d5ull << 32, 0xc2dcc467ull << 32},
	{0x9ee62949ull << 32, 0x9fb66bd3ull << 32},
	{0x6d40f445ull << 32, 0xad0d2bb2ull << 32},
	{0xcd669a40ull << 32, 0xeff5e99dull << 32},
	{0xf9d9c7eeull << 32, 0x4b700aa8ull << 32},
	{0xeea395c4ull << 32, 0x8b8d8645ull << 32},
	{0x4470ac44ull << 32, 0x2ce423f1ull << 32},
	{0xd31343eaull << 32, 0x7eaed122ull << 32},
	{0x9b9bdbd0ull << 32, 0xc51b93e3ull << 32},
	{0xf183c71bull << 32, 0x76278617ull << 32},
	{0x1c63267bull << 32, 0x0e9bd5ccull << 32},
	{0xcec97417ull << 32, 0x32b0733cull << 32},
	{0xff6f2fc2ull << 32, 0x2c538639ull << 32},
	{0x71d54a59ull << 32, 0xa749e894ull << 32},
	{0xb918a347ull << 32, 0xce3371cbull << 32},
	{0xe95c1271ull << 32, 0x0077f00dull << 32},
	{0x1f0c2cddull << 32, 0x4a28bd43ull << 32},
	{0xfe807bbdull << 32, 0x682bdd4full << 32},
	{0x3c656cedull << 32, 0x596c8d81ull << 32},
	{0xf5e48c85ull << 32, 0x5a1bb05dull << 32},
	{0xd1df2327ull << 32, 0xe3543be0ull << 32},
	{0x9026d5b1ull << 32, 0x26b70c3dull << 32},
	{0x3f41287aull << 32, 0x33fff533ull << 32},
	{0x910eeec1ull << 32, 0x31f8303full << 32},
	{0x0cbec0edull << 32, 0xdf068dc2ull << 32},
	{0x57c54819ull << 32, 0x1c279815ull << 32},
	{0xae0b5394ull << 32, 0x8f352d95ull << 32},
	{0x1d9513d7ull << 32, 0x3db1ecdcull << 32},
	{0xaf449247ull << 32, 0xf1da05aaull << 32},
	{0x81256527ull << 32, 0xae689191ull << 32},
	{0xccaa009eull << 32, 0x00000001ull << 32},
};

const uint64_t ur_crc32_over_8[2] __attribute__((aligned(16))) = {0x7d657a10ull << 32, 0x7406fa95ull << 32};

const uint8_t ur_crc32_slide[48] __attribute__((aligned(16))) = {
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
};
/* clang-format on */
