/* SPDX-License-Identifier: BSD-3-Clause */
/* The opcode table, row by row as in the specification. */
#include <CUnit/CUnit.h>
#include <string.h>

#include "wire/frame.h"
#include "wire/opcode.h"
#include "wire/path.h"

void ur_suite_opcode(void);

static const struct {
	uint8_t opcode;
	const char *name;
	uint8_t ext_len;
} rows[] = {
	{0x00, "RC_SEND_FIRST", 0},       {0x01, "RC_SEND_MIDDLE", 0},
	{0x02, "RC_SEND_LAST", 0},        {0x03, "RC_SEND_LAST_IMM", 4},
	{0x04, "RC_SEND_ONLY", 0},        {0x05, "RC_SEND_ONLY_IMM", 4},
	{0x06, "RC_WRITE_FIRST", 16},     {0x07, "RC_WRITE_MIDDLE", 0},
	{0x08, "RC_WRITE_LAST", 0},       {0x09, "RC_WRITE_LAST_IMM", 4},
	{0x0a, "RC_WRITE_ONLY", 16},      {0x0b, "RC_WRITE_ONLY_IMM", 20},
	{0x0c, "RC_READ_REQ", 16},        {0x0d, "RC_READ_RESP_FIRST", 4},
	{0x0e, "RC_READ_RESP_MIDDLE", 0}, {0x0f, "RC_READ_RESP_LAST", 4},
	{0x10, "RC_READ_RESP_ONLY", 4},   {0x11, "RC_ACK", 4},
	{0x12, "RC_ATOMIC_ACK", 12},      {0x13, "RC_CMP_SWAP", 28},
	{0x14, "RC_FETCH_ADD", 28},       {0x16, "RC_SEND_LAST_INV", 4},
	{0x17, "RC_SEND_ONLY_INV", 4},    {0x1c, "RC_FLUSH", 20},
	{0x1d, "RC_ATOMIC_WRITE", 16},    {0x20, "UC_SEND_FIRST", 0},
	{0x21, "UC_SEND_MIDDLE", 0},      {0x22, "UC_SEND_LAST", 0},
	{0x23, "UC_SEND_LAST_IMM", 4},    {0x24, "UC_SEND_ONLY", 0},
	{0x25, "UC_SEND_ONLY_IMM", 4},    {0x26, "UC_WRITE_FIRST", 16},
	{0x27, "UC_WRITE_MIDDLE", 0},     {0x28, "UC_WRITE_LAST", 0},
	{0x29, "UC_WRITE_LAST_IMM", 4},   {0x2a, "UC_WRITE_ONLY", 16},
	{0x2b, "UC_WRITE_ONLY_IMM", 20},  {0x64, "UD_SEND_ONLY", 8},
	{0x65, "UD_SEND_ONLY_IMM", 12},   {0x81, "CNP", 16},
	{0xa0, "XRC_SEND_FIRST", 4}, {0xa1, "XRC_SEND_MIDDLE", 4},
	{0xa2, "XRC_SEND_LAST", 4}, {0xa3, "XRC_SEND_LAST_IMM", 8},
	{0xa4, "XRC_SEND_ONLY", 4}, {0xa5, "XRC_SEND_ONLY_IMM", 8},
	{0xa6, "XRC_WRITE_FIRST", 20}, {0xa7, "XRC_WRITE_MIDDLE", 4},
	{0xa8, "XRC_WRITE_LAST", 4}, {0xa9, "XRC_WRITE_LAST_IMM", 8},
	{0xaa, "XRC_WRITE_ONLY", 20}, {0xab, "XRC_WRITE_ONLY_IMM", 24},
	{0xac, "XRC_READ_REQ", 20}, {0xad, "XRC_READ_RESP_FIRST", 4},
	{0xae, "XRC_READ_RESP_MIDDLE", 0}, {0xaf, "XRC_READ_RESP_LAST", 4},
	{0xb0, "XRC_READ_RESP_ONLY", 4}, {0xb1, "XRC_ACK", 4},
	{0xb2, "XRC_ATOMIC_ACK", 12}, {0xb3, "XRC_CMP_SWAP", 32},
	{0xb4, "XRC_FETCH_ADD", 32}, {0xb6, "XRC_SEND_LAST_INV", 8},
	{0xb7, "XRC_SEND_ONLY_INV", 8}, {0xbc, "XRC_FLUSH", 24},
	{0xbd, "XRC_ATOMIC_WRITE", 20}, {0xf1, "SACK", 16},
};

static void opcodes__exactly_these(void)
{
	unsigned known = 0;

	for (unsigned i = 0; i < 256; i++)
		known += ur_opcode((uint8_t)i)->name != NULL;
	CU_ASSERT_EQUAL(known, ur_array_size(rows));
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		const struct ur_opcode_info *op = ur_opcode(rows[i].opcode);

		CU_ASSERT_PTR_NOT_NULL_FATAL(op->name);
		CU_ASSERT_STRING_EQUAL(op->name, rows[i].name);
		CU_ASSERT_EQUAL(op->ext_len, rows[i].ext_len);
	}
}

static bool named(const struct ur_opcode_info *op, const char *part)
{
	return strstr(op->name, part) != NULL;
}

static void opcodes__flags_follow_names(void)
{
	for (unsigned i = 0; i < ur_array_size(rows); i++) {
		const struct ur_opcode_info *op = ur_opcode(rows[i].opcode);
		bool resp = named(op, "RESP") || named(op, "ACK"), only = named(op, "ONLY"), cnp = named(op, "CNP");
		bool part = named(op, "FIRST") || named(op, "MIDDLE") || named(op, "LAST") || only;
		bool single = !part && !cnp;

		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_RESPONSE), resp);
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_SEND), named(op, "SEND"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_WRITE), named(op, "_WRITE") && !named(op, "ATOMIC"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_READ), named(op, "READ_REQ"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_ATOMIC), named(op, "CMP_SWAP") || named(op, "FETCH_ADD"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_FIRST), named(op, "FIRST") || only || single);
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_LAST), named(op, "LAST") || only || single);
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_IMM), named(op, "IMM"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_IETH), named(op, "INV"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_DETH), named(op, "UD_"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_XRCETH), named(op, "XRC_") && !resp);
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_RWQE), named(op, "SEND") || (named(op, "WRITE") && named(op, "IMM")));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_PAYLOAD), part || named(op, "ATOMIC_WRITE") || named(op, "SACK"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_AETH), resp && !named(op, "MIDDLE"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_SACKETH), named(op, "SACK"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_FLUSH), named(op, "FLUSH"));
		CU_ASSERT_EQUAL(!!(op->flags & UR_OPF_ATOMIC_WRITE), named(op, "ATOMIC_WRITE"));
	}
}

static void opcodes__offsets(void)
{
	CU_ASSERT_EQUAL(ur_opcode(UR_RC | UR_OP_WRITE_ONLY_IMM)->off_reth, 0);
	CU_ASSERT_EQUAL(ur_opcode(UR_RC | UR_OP_WRITE_ONLY_IMM)->off_imm, 16);
	CU_ASSERT_EQUAL(ur_opcode(UR_UC | UR_OP_WRITE_LAST_IMM)->off_imm, 0);
	CU_ASSERT_EQUAL(ur_opcode(UR_UD | UR_OP_SEND_ONLY_IMM)->off_deth, 0);
	CU_ASSERT_EQUAL(ur_opcode(UR_UD | UR_OP_SEND_ONLY_IMM)->off_imm, 8);
	CU_ASSERT_EQUAL(ur_opcode(UR_RC | UR_OP_ATOMIC_ACK)->off_aeth, 0);
	CU_ASSERT_EQUAL(ur_opcode(UR_RC | UR_OP_ATOMIC_ACK)->off_atomicacketh, 4);
	CU_ASSERT_EQUAL(ur_opcode(UR_RC | UR_OP_FLUSH)->off_feth, 0);
	CU_ASSERT_EQUAL(ur_opcode(UR_RC | UR_OP_FLUSH)->off_reth, 4);
	CU_ASSERT_EQUAL(ur_opcode(UR_RC | UR_OP_CMP_SWAP)->off_atomiceth, 0);
	CU_ASSERT_EQUAL(ur_opcode(UR_RC | UR_OP_SEND_ONLY_INV)->off_ieth, 0);
	CU_ASSERT_EQUAL(ur_opcode(UR_XRC | UR_OP_WRITE_ONLY_IMM)->off_reth, 4);
	CU_ASSERT_EQUAL(ur_opcode(UR_XRC | UR_OP_WRITE_ONLY_IMM)->off_imm, 20);
	CU_ASSERT_EQUAL(ur_opcode(UR_XRC | UR_OP_SEND_ONLY_INV)->off_ieth, 4);
	CU_ASSERT_EQUAL(ur_opcode(UR_XRC | UR_OP_FLUSH)->off_feth, 4);
	CU_ASSERT_EQUAL(ur_opcode(UR_XRC | UR_OP_READ_RESP_ONLY)->off_aeth, 0);
}

/* A packet with as much payload as the path MTU allows fits, whatever its headers, and no other count of them gives another path MTU. */
static void opcodes__fit_the_path_mtu(void)
{
	for (unsigned ip_mtu = 256 + UR_PATH_OVERHEAD; ip_mtu <= 9600; ip_mtu++) {
		const unsigned mtu = 128u << ur_max_path_mtu((uint16_t)ip_mtu);

		for (unsigned i = 0; i < ur_array_size(rows); i++)
			if (ur_opcode(rows[i].opcode)->flags & UR_OPF_PAYLOAD &&
			    UR_IP6_LEN + UR_UDP_LEN + UR_BTH_LEN + rows[i].ext_len + mtu + UR_ICRC_LEN > ip_mtu)
				CU_FAIL("a packet is longer than the link takes");
	}
	for (unsigned ip_mtu = 1103; ip_mtu <= 1120; ip_mtu++)
		CU_ASSERT_EQUAL(ur_max_path_mtu((uint16_t)ip_mtu), ip_mtu < 1120 ? IBV_MTU_512 : IBV_MTU_1024);
}

void ur_suite_opcode(void)
{
	CU_pSuite s = CU_add_suite("opcode", NULL, NULL);

	CU_ADD_TEST(s, opcodes__exactly_these);
	CU_ADD_TEST(s, opcodes__flags_follow_names);
	CU_ADD_TEST(s, opcodes__offsets);
	CU_ADD_TEST(s, opcodes__fit_the_path_mtu);
}
