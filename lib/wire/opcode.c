/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The opcode table. A row names an opcode and its flags; lengths and offsets of the extended headers follow from the flags, which
 * stand in the order of the headers on the wire.
 */
#include "wire/opcode.h"

#define HAS(flags, flag, len) ((flags)&UR_OPF_##flag ? (len) : 0)

#define OFF_FETH(f) (HAS(f, DETH, 8) + HAS(f, XRCETH, 4))
#define OFF_RETH(f) (OFF_FETH(f) + HAS(f, FETH, 4))
#define OFF_ATOMICETH(f) (OFF_RETH(f) + HAS(f, RETH, 16))
#define OFF_AETH(f) (OFF_ATOMICETH(f) + HAS(f, ATOMICETH, 28))
#define OFF_ATOMICACKETH(f) (OFF_AETH(f) + HAS(f, AETH, 4))
#define OFF_IMM(f) (OFF_ATOMICACKETH(f) + HAS(f, ATOMICACKETH, 8))
#define OFF_IETH(f) (OFF_IMM(f) + HAS(f, IMM, 4))
#define EXT_LEN(f) (OFF_IETH(f) + HAS(f, IETH, 4) + HAS(f, SACKETH, UR_SACKETH_LEN))

#define ROW(service, op, f)                                                                                                                \
	[UR_##service | UR_OP_##op] = {                                                                                                    \
		.name = #service "_" #op,                                                                                                  \
		.flags = (f),                                                                                                              \
		.ext_len = EXT_LEN(f),                                                                                                     \
		.off_deth = 0,                                                                                                             \
		.off_feth = OFF_FETH(f),                                                                                                   \
		.off_reth = OFF_RETH(f),                                                                                                   \
		.off_atomiceth = OFF_ATOMICETH(f),                                                                                         \
		.off_aeth = OFF_AETH(f),                                                                                                   \
		.off_atomicacketh = OFF_ATOMICACKETH(f),                                                                                   \
		.off_imm = OFF_IMM(f),                                                                                                     \
		.off_ieth = OFF_IETH(f),                                                                                                   \
	}

enum {
	FIRST = UR_OPF_FIRST,
	LAST = UR_OPF_LAST,
	ONLY = UR_OPF_FIRST | UR_OPF_LAST,
	PAYLOAD = UR_OPF_PAYLOAD,
	DETH = UR_OPF_DETH,
	FETH = UR_OPF_FETH,
	RETH = UR_OPF_RETH,
	AETH = UR_OPF_AETH,
	IMM = UR_OPF_IMM,
	IETH = UR_OPF_IETH,
	RWQE = UR_OPF_RWQE,
	SEND = UR_OPF_SEND | UR_OPF_PAYLOAD | UR_OPF_RWQE,
	WRITE = UR_OPF_WRITE | UR_OPF_PAYLOAD,
	RESPONSE = UR_OPF_RESPONSE,
	ATOMIC = UR_OPF_ATOMIC | UR_OPF_ATOMICETH,
	XRCETH = UR_OPF_XRCETH,
	CNP_RESERVED = 16, /* bytes between BTH and ICRC, all zero (annex A17) */
};

/* clang-format off */
/* `x`: what the service adds to every request */
#define SEND_AND_WRITE(service, x) \
	ROW(service, SEND_FIRST,       (x) | SEND | FIRST), \
	ROW(service, SEND_MIDDLE,      (x) | SEND), \
	ROW(service, SEND_LAST,        (x) | SEND | LAST), \
	ROW(service, SEND_LAST_IMM,    (x) | SEND | LAST | IMM), \
	ROW(service, SEND_ONLY,        (x) | SEND | ONLY), \
	ROW(service, SEND_ONLY_IMM,    (x) | SEND | ONLY | IMM), \
	ROW(service, WRITE_FIRST,      (x) | WRITE | FIRST | RETH), \
	ROW(service, WRITE_MIDDLE,     (x) | WRITE), \
	ROW(service, WRITE_LAST,       (x) | WRITE | LAST), \
	ROW(service, WRITE_LAST_IMM,   (x) | WRITE | LAST | IMM | RWQE), \
	ROW(service, WRITE_ONLY,       (x) | WRITE | ONLY | RETH), \
	ROW(service, WRITE_ONLY_IMM,   (x) | WRITE | ONLY | RETH | IMM | RWQE)
#define RELIABLE(service, x) \
	SEND_AND_WRITE(service, x), \
	ROW(service, READ_REQ,         (x) | UR_OPF_READ | ONLY | RETH), \
	ROW(service, READ_RESP_FIRST,  RESPONSE | FIRST | AETH | PAYLOAD), \
	ROW(service, READ_RESP_MIDDLE, RESPONSE | PAYLOAD), \
	ROW(service, READ_RESP_LAST,   RESPONSE | LAST | AETH | PAYLOAD), \
	ROW(service, READ_RESP_ONLY,   RESPONSE | ONLY | AETH | PAYLOAD), \
	ROW(service, ACK,              RESPONSE | ONLY | AETH), \
	ROW(service, ATOMIC_ACK,       RESPONSE | ONLY | AETH | UR_OPF_ATOMICACKETH), \
	ROW(service, CMP_SWAP,         (x) | ATOMIC | ONLY), \
	ROW(service, FETCH_ADD,        (x) | ATOMIC | ONLY), \
	ROW(service, SEND_LAST_INV,    (x) | SEND | LAST | IETH), \
	ROW(service, SEND_ONLY_INV,    (x) | SEND | ONLY | IETH), \
	ROW(service, FLUSH,            (x) | UR_OPF_FLUSH | ONLY | FETH | RETH), \
	ROW(service, ATOMIC_WRITE,     (x) | UR_OPF_ATOMIC_WRITE | ONLY | RETH | PAYLOAD)

const struct ur_opcode_info ur_opcodes[256] = {
	RELIABLE(RC, 0),
	SEND_AND_WRITE(UC, 0),
	ROW(UD, SEND_ONLY,        SEND | ONLY | DETH),
	ROW(UD, SEND_ONLY_IMM,    SEND | ONLY | DETH | IMM),
	[UR_OP_CNP] = {.name = "CNP", .ext_len = CNP_RESERVED},
	RELIABLE(XRC, XRCETH),
	[UR_OP_SACK] = {
		.name = "SACK",
		.flags = RESPONSE | ONLY | AETH | PAYLOAD | UR_OPF_SACKETH,
		.ext_len = EXT_LEN(AETH | UR_OPF_SACKETH),
	},
};
