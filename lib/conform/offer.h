/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `uroce conform` and its responder say to each other, and no more than both have to know: the responder is an ordinary program of
 * librdmacm and libibverbs, which runs on the device that is to be judged, and includes nothing else of this tree.
 *
 * The private data of a REQ: the magic, in the next byte how the connection should be served, and after it the PSN that the first request
 * to UR_CF_SERVE_PSN should have (4). That of the REP: the magic, and a region after the other, each with address (8 bytes), key (4) and
 * length (4); after them a bit for each enum ur_cf_serve that the responder has (4), and the numbers of XRC SRQs, 4 bytes each, in the
 * order of enum ur_cf_srq. All is big-endian. A responder of before the bits, which sends zeros there, has the first two.
 *
 * A SEND of 16 bytes advertises memory of the sender's as rping does: address, key and length. For the first one the responder READs
 * that memory, for the next one WRITEs to it what it has read, and so on; after each it SENDs 16 bytes. Length 0 is only taken. To a
 * message on an unreliable service it answers with one of 16 bytes: how many it has taken (8 bytes) and the length of this one (4).
 */
#ifndef UR_CF_OFFER_H
#define UR_CF_OFFER_H

#include <stdint.h>

#define UR_CF_PORT 7174 /* of all port spaces; rping's */
#define UR_CF_MAGIC 0x75726366u
#define UR_CF_RECV_LEN 2048 /* of each receive; a datagram has 40 bytes less */
#define UR_CF_REGION_LEN 8192
#define UR_CF_WINDOW_OFF 5120 /* where no other rule writes */
#define UR_CF_WINDOW_LEN 1024
#define UR_CF_LATE_MS 250 /* a connection of UR_CF_SERVE_LATE has no receive for so long */
#define UR_CF_ADVERT_LEN 16
#define UR_CF_REQ_LEN 9
#define UR_CF_REP_MODES (4 + 16 * UR_CF_OFFERED) /* where the bits are */
#define UR_CF_REP_SRQS (UR_CF_REP_MODES + 4)
#define UR_CF_REP_LEN (UR_CF_REP_SRQS + 4 * UR_CF_SRQS)

enum ur_cf_serve {
	UR_CF_SERVE_READY,
	UR_CF_SERVE_LATE,         /* the first receive is posted UR_CF_LATE_MS later */
	UR_CF_SERVE_PSN,          /* the judge's requests begin at a PSN of its choice, whatever the REP says */
	UR_CF_SERVE_WINDOWS,      /* the connection's QP has two memory windows of type 2 */
	UR_CF_SERVE_XRC,          /* the QP is the receiving half of XRC, though the REQ asks for RC */
	UR_CF_SERVE_FLUSH,        /* UR_CF_RW may be flushed, to global visibility */
	UR_CF_SERVE_ATOMIC_WRITE, /* and written atomically */
	UR_CF_SERVES,
};

enum ur_cf_srq {
	UR_CF_SRQ,         /* of the connection */
	UR_CF_SRQ_FOREIGN, /* of another XRC domain */
	UR_CF_SRQS,
	UR_CF_SRQ_UNKNOWN = UR_CF_SRQS, /* a number that was never issued */
};

/* In the order of the REP. */
enum ur_cf_region {
	UR_CF_RW,    /* the peer may READ, WRITE and change it atomically */
	UR_CF_RO,    /* only READ; filled with pattern 0 */
	UR_CF_WO,    /* only WRITE */
	UR_CF_LOCAL, /* nothing */
	UR_CF_GONE,  /* it has been deregistered */
	UR_CF_REGIONS,
	/* Parts of UR_CF_RW, UR_CF_WINDOW_LEN bytes from UR_CF_WINDOW_OFF on; all zero where the connection has no windows. */
	UR_CF_WINDOW = UR_CF_REGIONS, /* READ and WRITE */
	UR_CF_WINDOW_RO,              /* only READ */
	UR_CF_OFFERED,
	UR_CF_UNKNOWN = UR_CF_OFFERED, /* an R_Key that was never issued */
	UR_CF_OURS,                    /* of the judging side */
	UR_CF_WINDOW_OTHER,            /* the key of UR_CF_WINDOW, except for its tag: bits that it may have had before it was bound */
	UR_CF_NOWHERE,
};

/* Byte `at` of a pattern. */
static inline uint8_t ur_cf_pattern(uint8_t fill, uint32_t at)
{
	return (uint8_t)((at + 1) * 0x9e3779b1u >> 24) ^ fill;
}

#endif
