/* SPDX-License-Identifier: BSD-3-Clause */
/* The one opcode table (IBTA volume 1, 9.2.1 table 38; annex A14 for XRC, A17 for CNP, A19 for FLUSH and ATOMIC WRITE; sack.h). */
#ifndef UR_OPCODE_H
#define UR_OPCODE_H

#include "base/base.h"

/* The upper three bits of an opcode. */
#define UR_SERVICE_MASK 0xe0
enum ur_service { UR_RC = 0x00, UR_UC = 0x20, UR_UD = 0x60, UR_CNP_SERVICE = 0x80, UR_XRC = 0xa0 };

/* The low five bits of an opcode; OR with the service. */
#define UR_OP_MASK 0x1f
enum ur_opcode {
	UR_OP_SEND_FIRST = 0x00,
	UR_OP_SEND_MIDDLE = 0x01,
	UR_OP_SEND_LAST = 0x02,
	UR_OP_SEND_LAST_IMM = 0x03,
	UR_OP_SEND_ONLY = 0x04,
	UR_OP_SEND_ONLY_IMM = 0x05,
	UR_OP_WRITE_FIRST = 0x06,
	UR_OP_WRITE_MIDDLE = 0x07,
	UR_OP_WRITE_LAST = 0x08,
	UR_OP_WRITE_LAST_IMM = 0x09,
	UR_OP_WRITE_ONLY = 0x0a,
	UR_OP_WRITE_ONLY_IMM = 0x0b,
	UR_OP_READ_REQ = 0x0c,
	UR_OP_READ_RESP_FIRST = 0x0d,
	UR_OP_READ_RESP_MIDDLE = 0x0e,
	UR_OP_READ_RESP_LAST = 0x0f,
	UR_OP_READ_RESP_ONLY = 0x10,
	UR_OP_ACK = 0x11,
	UR_OP_ATOMIC_ACK = 0x12,
	UR_OP_CMP_SWAP = 0x13,
	UR_OP_FETCH_ADD = 0x14,
	UR_OP_SEND_LAST_INV = 0x16,
	UR_OP_SEND_ONLY_INV = 0x17,
	UR_OP_FLUSH = 0x1c,
	UR_OP_ATOMIC_WRITE = 0x1d,
	UR_OP_CNP = 0x81,
	UR_OP_SACK = 0xf1, /* of the opcodes left to manufacturers; for RC and XRC */
};

/* What a packet is and which extended headers follow its BTH, in this order. */
enum ur_op_flag {
	UR_OPF_SEND = 1 << 0,
	UR_OPF_WRITE = 1 << 1,
	UR_OPF_READ = 1 << 2,     /* READ request */
	UR_OPF_ATOMIC = 1 << 3,   /* CMP_SWAP, FETCH_ADD */
	UR_OPF_RESPONSE = 1 << 4, /* flows from responder to requester */
	UR_OPF_FIRST = 1 << 5,    /* starts a message (FIRST and ONLY) */
	UR_OPF_LAST = 1 << 6,     /* ends a message (LAST and ONLY) */
	UR_OPF_PAYLOAD = 1 << 7,
	UR_OPF_DETH = 1 << 8,
	UR_OPF_FETH = 1 << 9,
	UR_OPF_RETH = 1 << 10,
	UR_OPF_ATOMICETH = 1 << 11,
	UR_OPF_AETH = 1 << 12,
	UR_OPF_ATOMICACKETH = 1 << 13,
	UR_OPF_IMM = 1 << 14,
	UR_OPF_IETH = 1 << 15,
	UR_OPF_RWQE = 1 << 16, /* of a message that consumes a receive WQE: every SEND packet, and the last of a WRITE with immediate */
	UR_OPF_FLUSH = 1 << 17,
	UR_OPF_ATOMIC_WRITE = 1 << 18,
	UR_OPF_XRCETH = 1 << 19, /* of every XRC request; before all other extended headers */
	UR_OPF_SACKETH = 1 << 20, /* of a SACK (sack.h); after its AETH */
};

#define UR_SACKETH_LEN 12

struct ur_opcode_info {
	const char *name;    /* "RC_SEND_FIRST"; NULL when the opcode is not in the table */
	uint32_t flags;      /* enum ur_op_flag */
	uint8_t ext_len;     /* bytes of extended headers between BTH and payload */
	/* From the end of the BTH. An XRCETH is always at 0. */
	uint8_t off_deth, off_feth, off_reth, off_atomiceth, off_aeth, off_atomicacketh, off_imm, off_ieth;
};

extern const struct ur_opcode_info ur_opcodes[256];

static inline const struct ur_opcode_info *ur_opcode(uint8_t opcode)
{
	return &ur_opcodes[opcode];
}

#endif
