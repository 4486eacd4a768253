/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Can the replay fail at all? Each row falsifies one byte of one recorded packet and says which difference has to be reported, in that very
 * frame. Rows without a difference belong to the table of permitted ones and must not be noticed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tally.h"
#include "wire/msg/cm_msg.h"

#define ATTRIBUTE_AT 16 /* in a MAD */

enum where { BTH, EXT, PAYLOAD, IP };
/*
 * Who replays: the side that sent the packet, or the one that got it. FED falsifies what goes in instead of what is compared; FED_LAST does
 * so with the last such packet, and the difference is in the answer after it; FED_NEXT, in the packet after it whose it is; FED_LATER, in
 * any later one.
 */
enum who { SENDER, RECEIVER, FED, FED_LAST, FED_NEXT, FED_LATER };

/* In the place of an opcode: a message of the connection manager, the first such one. */
#define MESSAGE(attr) (0x100 | UR_CM_##attr)

static const struct mutation {
	const char *what;
	uint16_t opcode; /* or MESSAGE */
	enum where where;
	uint8_t at, flip;
	enum who who;
	const char *field;
} of_a_connection[] = {
	{"opcode of a SEND", UR_OP_SEND_ONLY, BTH, 0, 0x01, SENDER, "opcode"},
	{"PSN of a SEND", UR_OP_SEND_ONLY, BTH, 11, 0x01, SENDER, "PSN"},
	{"pad of a SEND", UR_OP_SEND_ONLY, BTH, 1, 0x10, SENDER, "pad"},
	{"SE of a SEND", UR_OP_SEND_ONLY, BTH, 1, 0x80, SENDER, "SE"},
	{"P_Key of a SEND", UR_OP_SEND_ONLY, BTH, 3, 0x01, SENDER, "P_Key"},
	{"AckReq of a SEND", UR_OP_SEND_ONLY, BTH, 8, 0x80, SENDER, "AckReq"},
	{"destination QP of a SEND", UR_OP_SEND_ONLY, BTH, 7, 0x01, SENDER, "destination QP"},
	{"payload of a SEND", UR_OP_SEND_ONLY, PAYLOAD, 3, 0x40, SENDER, "payload byte 3"},
	{"payload of a SEND, at its receiver", UR_OP_SEND_ONLY, PAYLOAD, 3, 0x40, RECEIVER, "data received"},
	{"payload of a SEND, as it is fed", UR_OP_SEND_ONLY, PAYLOAD, 0, 0x80, FED, "data received"},
	{"PSN of a WRITE", UR_OP_WRITE_ONLY, BTH, 9, 0x80, SENDER, "PSN"},
	{"address of a WRITE", UR_OP_WRITE_ONLY, EXT, 7, 0x01, SENDER, "RETH va"},
	{"key of a WRITE", UR_OP_WRITE_ONLY, EXT, 8, 0x01, SENDER, "RETH rkey"},
	{"length of a WRITE", UR_OP_WRITE_ONLY, EXT, 12, 0x80, SENDER, "RETH length"},
	{"payload of a WRITE", UR_OP_WRITE_ONLY, PAYLOAD, 63, 0x01, SENDER, "payload byte 63"},
	{"payload of a WRITE, at its receiver", UR_OP_WRITE_ONLY, PAYLOAD, 63, 0x01, RECEIVER, "data written"},
	{"PSN of a READ", UR_OP_READ_REQ, BTH, 10, 0x10, SENDER, "PSN"},
	{"AckReq of a READ", UR_OP_READ_REQ, BTH, 8, 0x80, SENDER, "AckReq"},
	{"address of a READ", UR_OP_READ_REQ, EXT, 0, 0x80, SENDER, "RETH va"},
	{"key of a READ", UR_OP_READ_REQ, EXT, 11, 0x01, SENDER, "RETH rkey"},
	{"length of a READ", UR_OP_READ_REQ, EXT, 15, 0x01, SENDER, "RETH length"},
	{"opcode of a READ response", UR_OP_READ_RESP_ONLY, BTH, 0, 0x1d, SENDER, "opcode"},
	{"PSN of a READ response", UR_OP_READ_RESP_ONLY, BTH, 11, 0x02, SENDER, "PSN"},
	{"MSN of a READ response", UR_OP_READ_RESP_ONLY, EXT, 3, 0x01, SENDER, "MSN"},
	{"payload of a READ response", UR_OP_READ_RESP_ONLY, PAYLOAD, 0, 0x01, SENDER, "payload byte 0"},
	{"payload of a READ response, at its receiver", UR_OP_READ_RESP_ONLY, PAYLOAD, 63, 0x01, RECEIVER, "data read"},
	{"PSN of an ACK", UR_OP_ACK, BTH, 11, 0x01, SENDER, "PSN"},
	{"MSN of an ACK", UR_OP_ACK, EXT, 1, 0x01, SENDER, "MSN"},
	{"class of an ACK", UR_OP_ACK, EXT, 0, 0x20, SENDER, "syndrome class"},
	{"destination QP of an ACK", UR_OP_ACK, BTH, 5, 0x01, SENDER, "destination QP"},
	{"length of a READ, as it is fed", UR_OP_READ_REQ, EXT, 15, 0x60, FED_LAST, "payload length"},
	{"AckReq of the last SEND, as it is fed", UR_OP_SEND_ONLY, BTH, 8, 0x80, FED_LAST, "answer"},
	{"reserved bit of a READ", UR_OP_READ_REQ, BTH, 8, 0x01, SENDER, "hello"},
	{"READ that is its first probe", UR_OP_READ_REQ, BTH, 8, 0x61, SENDER, NULL},
	{"READ that is its copy", UR_OP_READ_REQ, BTH, 8, 0x5a, SENDER, NULL},
	{"MigReq of a SEND", UR_OP_SEND_ONLY, BTH, 1, 0x40, SENDER, NULL},
	{"FECN of a SEND", UR_OP_SEND_ONLY, BTH, 4, 0x80, SENDER, NULL},
	{"credits of an ACK", UR_OP_ACK, EXT, 0, 0x15, SENDER, NULL},
};

#define DATAGRAM (UR_UD | UR_OP_SEND_ONLY_IMM)

static const struct mutation of_datagrams[] = {
	{"PSN of a datagram", DATAGRAM, BTH, 11, 0x01, SENDER, "PSN"},
	{"destination QP of a datagram", DATAGRAM, BTH, 7, 0x01, SENDER, "destination QP"},
	{"Q_Key of a datagram", DATAGRAM, EXT, 3, 0x01, SENDER, "Q_Key"},
	{"immediate of a datagram", DATAGRAM, EXT, 11, 0x01, SENDER, "immediate"},
	{"payload of a datagram", DATAGRAM, PAYLOAD, 3, 0x40, SENDER, "payload byte 3"},
	{"traffic class of a datagram", DATAGRAM, IP, 1, 0x20, SENDER, "traffic class"},
	{"hop limit of a datagram", DATAGRAM, IP, 8, 0x01, SENDER, "hop limit"},
	{"source QP of a datagram, at its receiver", DATAGRAM, EXT, 7, 0x01, RECEIVER, "source QP received"},
	{"immediate of a datagram, at its receiver", DATAGRAM, EXT, 8, 0x80, RECEIVER, "immediate received"},
	{"payload of a datagram, at its receiver", DATAGRAM, PAYLOAD, 0, 0x01, RECEIVER, "data received, byte 0"},
	{"hop limit of a datagram, at its receiver", DATAGRAM, IP, 8, 0x01, RECEIVER, "IP header received, byte 8"},
	{"Q_Key of a datagram, as it is fed", DATAGRAM, EXT, 3, 0x01, FED, "Q_Key of a datagram that is dropped"},
	{"FECN of a datagram", DATAGRAM, BTH, 4, 0x80, SENDER, NULL},
};

#define OF(at) PAYLOAD, UR_MAD_HDR_LEN + (at)

static const struct mutation of_messages[] = {
	{"service id of a REQ", MESSAGE(REQ), OF(15), 0x01, SENDER, "service id of the REQ"},
	{"QPN of a REQ", MESSAGE(REQ), OF(34), 0x01, SENDER, "local QPN of the REQ"},
	{"GID of a REQ", MESSAGE(REQ), OF(71), 0x01, SENDER, "local GID of the REQ, byte 15"},
	{"private data of a REQ", MESSAGE(REQ), OF(150), 0x01, SENDER, "private data of the REQ, byte 10"},
	{"communication id of a REP", MESSAGE(REP), OF(7), 0x01, SENDER, "remote communication id of the REP"},
	{"transaction of a REP", MESSAGE(REP), PAYLOAD, 15, 0x01, SENDER, "transaction of the REP"},
	{"starting PSN of a REP", MESSAGE(REP), OF(22), 0x01, SENDER, "starting PSN of the REP"},
	{"depth of a REP", MESSAGE(REP), OF(25), 0x02, SENDER, "initiator depth of the REP"},
	{"private data of a REP", MESSAGE(REP), OF(36), 0x80, SENDER, "private data of the REP, byte 0"},
	{"communication id of a RTU", MESSAGE(RTU), OF(4), 0x80, SENDER, "remote communication id of the RTU"},
	{"QPN of a DREQ", MESSAGE(DREQ), OF(10), 0x01, SENDER, "remote QPN of the DREQ"},
	{"communication id of a DREP", MESSAGE(DREP), OF(7), 0x10, SENDER, "remote communication id of the DREP"},
	{"transaction of a DREP", MESSAGE(DREP), PAYLOAD, 8, 0x10, SENDER, "transaction of the DREP"},
	{"communication id of a REP, as it is fed", MESSAGE(REP), OF(7), 0x01, FED_NEXT, "message"},
	{"QPN of a REP, as it is fed", MESSAGE(REP), OF(14), 0x01, FED_LATER, "remote QPN of the DREQ"},
	{"transaction of a REQ, as it is fed", MESSAGE(REQ), PAYLOAD, 15, 0x01, FED_NEXT, "transaction of the REP"},
	{"response timeout of a REQ", MESSAGE(REQ), OF(43), 0x80, SENDER, NULL},
};

static const struct mutation of_lookups[] = {
	{"request id of a SIDR_REP", MESSAGE(SIDR_REP), OF(3), 0x01, SENDER, "request id of the SIDR_REP"},
	{"service id of a SIDR_REP", MESSAGE(SIDR_REP), OF(19), 0x01, SENDER, "service id of the SIDR_REP"},
	{"Q_Key of a SIDR_REP", MESSAGE(SIDR_REP), OF(23), 0x01, SENDER, "Q_Key of the SIDR_REP"},
	{"P_Key of a SIDR_REQ", MESSAGE(SIDR_REQ), OF(5), 0x01, SENDER, "P_Key of the SIDR_REQ"},
	{"request id of a SIDR_REQ, as it is fed", MESSAGE(SIDR_REQ), OF(3), 0x01, FED_NEXT, "request id of the SIDR_REP"},
};

static const struct mutation of_refusals[] = {
	{"refused message of a REJ", MESSAGE(REJ), OF(8), 0x40, SENDER, "message that is refused of the REJ"},
	{"reason of a REJ", MESSAGE(REJ), OF(11), 0x04, SENDER, "reason of the REJ"},
	{"communication id of a REJ", MESSAGE(REJ), OF(7), 0x01, SENDER, "remote communication id of the REJ"},
};

static const struct mutation of_xrc[] = {
	{"SRQ number of a SEND", UR_XRC | UR_OP_SEND_LAST, EXT, 3, 0x01, SENDER, "SRQ number"},
	{"payload of a SEND over XRC, at its receiver", UR_XRC | UR_OP_SEND_LAST, PAYLOAD, 9, 0x01, RECEIVER, "data received"},
	{"SRQ number of a SEND, as it is fed", UR_XRC | UR_OP_SEND_LAST, EXT, 3, 0x01, FED, "syndrome of the answer"},
	{"MSN of an ACK over XRC", UR_XRC | UR_OP_ACK, EXT, 3, 0x01, SENDER, "MSN"},
};

#define SACK_EXPECTED EXT, 4 + 7 /* its last byte */

static const struct mutation of_selective_repeat[] = {
	{"version of a SACK", UR_OP_SACK, EXT, 4, 0x02, SENDER, "SACK"},
	{"PSN of a SACK", UR_OP_SACK, BTH, 11, 0x40, SENDER, "expected PSN"},
	{"MSN of a SACK", UR_OP_SACK, EXT, 3, 0x01, SENDER, "MSN of a SACK"},
	{"class of a SACK", UR_OP_SACK, EXT, 0, 0x20, SENDER, "syndrome class of a SACK"},
	{"expected PSN of a SACK", UR_OP_SACK, SACK_EXPECTED, 0x40, SENDER, "expected PSN"},
	{"a bit of a SACK", UR_OP_SACK, PAYLOAD, 0, 0x01, SENDER, "PSN that has arrived"},
	{"hello of a WRITE", UR_OP_WRITE_MIDDLE, BTH, 8, 0x59, SENDER, "hello"},
	{"hello of a WRITE, which is missing", UR_OP_WRITE_FIRST, BTH, 8, 0x59, SENDER, NULL},
};

static const struct {
	const char *file;
	const struct mutation *m;
	unsigned n;
} sets[] = {
	{"lossy/selective.pcap", of_selective_repeat, ur_array_size(of_selective_repeat)},
	{"rping-rc.pcap", of_a_connection, ur_array_size(of_a_connection)},
	{"udaddy-ud.pcap", of_datagrams, ur_array_size(of_datagrams)},
	{"rping-rc.pcap", of_messages, ur_array_size(of_messages)},
	{"udaddy-ud.pcap", of_lookups, ur_array_size(of_lookups)},
	{"cm-reject.pcap", of_refusals, ur_array_size(of_refusals)},
	{"xsrq_pingpong.pcap", of_xrc, ur_array_size(of_xrc)},
};

static void flip(struct ur_pkt *p, const struct mutation *m)
{
	static const char *const names[] = {[BTH] = "BTH", [EXT] = "extended header", [PAYLOAD] = "payload", [IP] = "IP header"};
	const uint32_t base[] = {
		[BTH] = p->bth_off, [EXT] = p->bth_off + UR_BTH_LEN, [PAYLOAD] = p->payload_off, [IP] = p->l3_off};

	if (base[m->where] + m->at >= p->len) {
		printf("# %s: the packet has no byte %u in its %s\n", m->what, m->at, names[m->where]);
		return;
	}
	p->data[base[m->where] + m->at] ^= m->flip;
	ur_bth_get(p->data + p->bth_off, &p->bth);
}

/* `r` is falsified in a copy or, when that is what is fed, in place, with the copy to compare with. */
static void falsify(struct rec *r, const struct mutation *m, struct ur_pkt *copy)
{
	*copy = r->pkt;
	copy->data = malloc(copy->len);
	memcpy(copy->data, r->pkt.data, copy->len);
	flip(m->who >= FED ? &r->pkt : copy, m);
	r->want = copy;
}

/* A UD QP has what it sent and what it got in one list. */
static bool other_way(const struct conn *c, const struct mutation *m, unsigned k)
{
	return c->service == UR_UD && c->from[k] != (m->who != SENDER);
}

/* Is packet k such a message? */
static bool is_message(const struct conn *c, const struct mutation *m, unsigned k)
{
	return ur_get16(pkt_payload(&c->rec[k]->pkt) + ATTRIBUTE_AT) == (m->opcode & 0xff);
}

/* Which packet: of an exchange the first such message; of others the second, so that there is something before it, or the last. */
static unsigned choose(const struct conn *c, const struct mutation *m)
{
	unsigned n = 0, at = c->n;

	for (unsigned k = c->n; k-- > 0 && m->opcode > 0xff;)
		at = is_message(c, m, k) ? k : at;
	for (unsigned k = 0; k < c->n && m->opcode <= 0xff; k++)
		if (c->rec[k]->pkt.bth.opcode == m->opcode && !other_way(c, m, k) && (m->who == FED_LAST || n++ == 1))
			at = k;
	return at;
}

static bool noticed(const struct mutation *m, const struct report *rep, const char *file, const struct rec *r, enum side_state st)
{
	bool ok;

	if (!m->field)
		ok = !st && !rep->differences;
	else
		ok = !st && rep->differences && (m->who == FED_LATER || rep->first_frame == r->frame) &&
		     strcmp(rep->first_field, m->field) == 0;
	if (!ok)
		printf("# %s, frame %u: expected %s, %u differences were reported, the first in frame %u: %s\n", file, r->frame,
		       m->field ? m->field : "nothing", rep->differences, rep->first_frame, rep->first_field);
	return ok;
}

static bool try(const struct mutation *m, const char *file, const struct conn *c)
{
	struct report rep = {.tell = NULL};
	unsigned at = c ? choose(c, m) : 0, there = at + (m->who == FED_LAST || m->who == FED_NEXT);
	enum side_state st;
	struct ur_pkt copy;
	const char *why;
	struct side s;
	bool ok;

	if (!c || there >= c->n) {
		printf("# %s has no such packet\n", file);
		return false;
	}
	falsify(c->rec[at], m, &copy);
	st = side_open(&s, c, conn_sides(c) == 1 ? 0 : m->who == SENDER ? c->from[at] : !c->from[at], &rep, &why);
	if (!st)
		side_run(&s);
	side_close(&s);
	ok = noticed(m, &rep, file, c->rec[there], st);
	free(copy.data);
	return ok;
}

/* The first connection, QP or exchange that a packet with this opcode may belong to. */
static const struct conn *conn_of(const struct conns *s, const struct mutation *m)
{
	const uint8_t service = m->opcode > 0xff ? SERVICE_CM : m->opcode == UR_OP_SACK ? UR_RC : m->opcode & UR_SERVICE_MASK;

	for (unsigned i = 0; i < s->n; i++)
		if (s->conn[i].service == service && s->conn[i].n)
			return &s->conn[i];
	return NULL;
}

static void mutate_once(const char *path, const struct mutation *m, struct tally *t)
{
	struct capture cap;
	struct conns conns;
	const char *why;
	char line[160];

	snprintf(line, sizeof(line), "falsified: %s %s", m->what, m->field ? "is noticed" : "is permitted");
	if (!load(&cap, path, &why)) {
		printf("# %s\n", why);
		tally_line(t, false, line);
		capture_free(&cap);
		return;
	}
	conns_find(&conns, &cap, 1);
	tally_line(t, try(m, cap.file, conn_of(&conns, m)), line);
	conns_free(&conns);
	capture_free(&cap);
}

void mutate_all(const char *folder, struct tally *t)
{
	char path[512];

	for (unsigned k = 0; k < ur_array_size(sets); k++) {
		snprintf(path, sizeof(path), "%s/%s", folder, sets[k].file);
		for (unsigned i = 0; i < sets[k].n; i++)
			mutate_once(path, &sets[k].m[i], t);
	}
}
