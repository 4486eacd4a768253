/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of faults, to which packets they can be done, and how. */
#include "analyze/change/mutate.h"

#include <stdlib.h>

#include "analyze/change/rewrite_priv.h"
#include "analyze/frame/hash.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

#define MOVE_MAX (500 * UR_NS_PER_US) /* what comes later than this is lost and repeated, as far as anybody can see */
#define LOOK_AHEAD 100000 /* packets */

enum what {
	DROP,
	REPEAT,
	AGAIN, /* as REPEAT, but not quite */
	SWAP,
	LATE,
	BTH_BITS,
	BTH_ADD,
	EXT_BITS,
	EXT_ADD,
	EXT_SET,
	PAYLOAD_BITS,
	SHORTEN,
	MARK,
	/* from here on lengths and ICRC are not right again */
	RAW,
	ICRC,
	UDP_LEN,
	IP_LEN
};

#define ATOMIC_VALUE 11 /* the last byte of the value, after the AETH */
#define WORD_LEN 12     /* of an AtomicETH: address and key */

enum whom { REQUEST, INNER, WRITE, WRITE_RETH, READ_REQ, RESPONSE, RESPONSE_AETH, ATOMIC_RESP, ACK, MAD_REQ, MAD_REP, ANY };

enum { ICRC_ZERO, ICRC_REVERSED, ICRC_PADLESS }; /* `at` of ICRC */

/* Bytes of a CM message count from the beginning of its MAD. */
#define MSG(byte) (UR_MAD_HDR_LEN + (byte))
#define REQ_MTU MSG(50)
#define REQ_PDATA MSG(140)

#define FAR_PSN "PSN GAP CM-PSN"
#define NEAR_PSN "GAP PSN REORDERED RETX RETX-SPURIOUS RETX-DIFFERS RETX-DATA CM-PSN"

static const struct row {
	const char *name;
	enum whom whom;
	enum what what;
	uint8_t at, by;
	const char *rules;
} rows[] = {
	{"a request missing", REQUEST, DROP, 0, 0, "GAP OPSEQ MISSING"},
	{"a READ response missing", RESPONSE, DROP, 0, 0, "READ-GAP"},
	{"an atomic answer missing", ATOMIC_RESP, DROP, 0, 0, "ATOMIC-GAP"},
	{"a request twice", REQUEST, REPEAT, 0, 0, "RETX-SPURIOUS"},
	{"a READ response twice", RESPONSE, REPEAT, 0, 0, "READ-DUP"},
	{"an ACK twice", ACK, REPEAT, 0, 0, "ACK-DUP"},
	{"two requests in the wrong order", REQUEST, SWAP, 0, 0, "REORDERED"},
	{"two READ responses in the wrong order", RESPONSE, SWAP, 0, 0, "REORDERED"},
	{"a request late", REQUEST, LATE, 0, 0, "REORDERED"},
	{"a WRITE again with another address", WRITE_RETH, AGAIN, UR_BTH_LEN + 6, 0x01, "RETX-DIFFERS"},
	{"a READ again with another address", READ_REQ, AGAIN, UR_BTH_LEN + 6, 0x01, "RETX-DIFFERS"},
	{"a WRITE again with other data", WRITE, AGAIN, 0, 0x01, "RETX-DATA"},
	{"PSN of a request, low bit", REQUEST, BTH_BITS, 11, 0x01, NEAR_PSN},
	{"PSN of a request, bit 4", REQUEST, BTH_BITS, 11, 0x10, NEAR_PSN},
	{"PSN of a request, high bit", REQUEST, BTH_BITS, 9, 0x40, FAR_PSN},
	{"PSN of an ACK, eight more", ACK, BTH_ADD, 11, 8, "ACK-AHEAD ACK-OLD ACK-DUP MSN GAP RECORDER"},
	{"PSN of an ACK, high bit", ACK, BTH_BITS, 9, 0x40, "ACK-AHEAD ACK-OLD"},
	{"PSN of a READ response", RESPONSE, BTH_BITS, 11, 0x02, "READ-GAP READ-DUP READ-KIND ANSWER-KIND"},
	{"opcode of a packet within a message, first or not", INNER, BTH_BITS, 0, 0x01, "OPSEQ MTU RETH-LEN"},
	{"opcode of a packet within a message", INNER, BTH_BITS, 0, 0x06, "OPSEQ MTU"},
	{"opcode of a READ response", RESPONSE, BTH_BITS, 0, 0x1d, "READ-KIND LENGTH READ-SHORT READ-GAP"},
	{"opcode of an atomic answer", ATOMIC_RESP, BTH_BITS, 0, 0x03, "LENGTH ATOMIC-GAP"},
	{"opcode that does not exist", REQUEST, BTH_BITS, 0, 0x40, "OPCODE"},
	{"transport version", ANY, BTH_BITS, 1, 0x01, "OPCODE"},
	{"pad", WRITE, BTH_BITS, 1, 0x10, "LENGTH RETH-LEN MTU"},
	{"syndrome, reserved type", ACK, EXT_BITS, 0, 0x40, "SYNDROME"},
	{"syndrome, top bit", ACK, EXT_BITS, 0, 0x80, "SYNDROME"},
	{"syndrome, sequence NAK", ACK, EXT_BITS, 0, 0x7f, "NAK-SEQ NAK-NOGAP NAK-BACK"},
	{"syndrome, no receive buffer", ACK, EXT_SET, 0, 0x22, "RNR RNR-NONE ACK-AFTER-RNR"},
	{"syndrome, remote access error", ACK, EXT_SET, 0, 0x62, "NAK-FATAL"},
	{"syndrome of a READ response", RESPONSE_AETH, EXT_BITS, 0, 0x60, "SYNDROME"},
	{"MSN of an ACK, one more", ACK, EXT_ADD, 3, 1, "MSN"},
	{"MSN of an ACK, one less", ACK, EXT_ADD, 3, 0xff, "MSN"},
	{"MSN of an ACK, high bit", ACK, EXT_BITS, 1, 0x40, "MSN"},
	{"MSN of an atomic answer", ATOMIC_RESP, EXT_BITS, 1, 0x40, "MSN"},
	{"value of an atomic answer", ATOMIC_RESP, EXT_BITS, ATOMIC_VALUE, 0x40, "ATOMIC-VALUE"},
	{"MSN of a READ response", RESPONSE_AETH, EXT_BITS, 2, 0x40, "MSN"},
	{"length of a WRITE", WRITE_RETH, EXT_BITS, 15, 0x04, "RETH-LEN"},
	{"length of a READ, far more", READ_REQ, EXT_BITS, 13, 0x02, "READ-SHORT READ-LEN RETX-DIFFERS MSN MISSING REORDERED"},
	{"payload of a packet within a message, four bytes less", INNER, SHORTEN, 0, 4, "MTU"},
	{"payload of a READ response, four bytes less", RESPONSE, SHORTEN, 0, 4, "READ-LEN"},
	{"payload of a WRITE, four bytes less", WRITE, SHORTEN, 0, 4, "RETH-LEN MTU"},
	{"destination QP of a request", REQUEST, BTH_BITS, 6, 0x20, "GAP ONEWAY MISSING"},
	{"payload damaged", ANY, RAW, 0, 0x10, "ICRC"},
	{"ICRC, zero", ANY, ICRC, ICRC_ZERO, 0, "ICRC"},
	{"ICRC, bytes in the reverse order", ANY, ICRC, ICRC_REVERSED, 0, "ICRC"},
	{"ICRC, pad bytes left out", ANY, ICRC, ICRC_PADLESS, 0, "ICRC"},
	{"UDP length", ANY, UDP_LEN, 0, 4, "LENGTH"},
	{"IP length", ANY, IP_LEN, 0, 4, "LENGTH"},
	{"a REQ twice", MAD_REQ, REPEAT, 0, 0, "CM-RETRY"},
	{"starting PSN of a REQ", MAD_REQ, PAYLOAD_BITS, MSG(44), 0x40, "CM-PSN"},
	{"starting PSN of a REP", MAD_REP, PAYLOAD_BITS, MSG(20), 0x40, "CM-PSN"},
	{"QPN of a REQ", MAD_REQ, PAYLOAD_BITS, MSG(33), 0x10, "CM-QPN"},
	{"QPN of a REP", MAD_REP, PAYLOAD_BITS, MSG(13), 0x10, "CM-QPN"},
	{"path MTU of a REQ", MAD_REQ, PAYLOAD_BITS, REQ_MTU, 0x60, "MTU READ-LEN"},
	{"GID in a REQ", MAD_REQ, PAYLOAD_BITS, MSG(71), 0x04, "CM-GID"},
	{"source address in a REQ", MAD_REQ, PAYLOAD_BITS, REQ_PDATA + 19, 0x04, "CM-IPHDR"},
	{"destination address in a REQ", MAD_REQ, PAYLOAD_BITS, REQ_PDATA + 35, 0x04, "CM-IPHDR"},
	{"method of a MAD", MAD_REQ, PAYLOAD_BITS, 3, 0x40, "CM-FORM"},
	{"a congestion mark without a notification", REQUEST, MARK, 0, 3, "CE-NOCNP"},
};

bool ur_fault(unsigned fault, struct ur_fault *f)
{
	if (fault >= ur_array_size(rows))
		return false;
	*f = (struct ur_fault){rows[fault].name, rows[fault].rules};
	return true;
}

/* --- what is known of the packets --- */

struct known {
	struct ur_table_node node; /* of the newest packet that goes the same way, by `hash` */
	struct an_pkt p;
	uint32_t next; /* index of the next one of its flow that asks, or answers, like it; 0 for none */
	bool whole;
};

struct ur_mutator {
	const struct ur_recording *r;
	struct known *k;
	bool cm_first;
};

static bool same_way(const struct an_pkt *a, const struct an_pkt *b)
{
	return a->bth.dqpn == b->bth.dqpn && memcmp(&a->src, &b->src, 16) == 0 && memcmp(&a->dst, &b->dst, 16) == 0 &&
	       an_is_answer(a) == an_is_answer(b);
}

static bool connected(const struct an_pkt *p)
{
	const uint8_t service = p->bth.opcode & UR_SERVICE_MASK;

	return p->bth.dqpn != 1 && (service == UR_RC || service == UR_UC);
}

/* From the last packet to the first: the one of its kind that was found before is the next. */
static bool link_packets(struct ur_mutator *m)
{
	struct ur_table ways = {0};
	bool ok = true;

	for (uint32_t i = m->r->n; i-- > 0 && ok;) {
		struct known *k = &m->k[i];
		struct known *later;
		uint64_t hash;

		k->whole = ur_recording_pkt(m->r, i, &k->p);
		if (!k->whole)
			continue;
		hash = an_hash(&k->p.src, &k->p.dst, (uint64_t)k->p.bth.dqpn << 1 | an_is_answer(&k->p));
		ur_table_for_each (later, &ways, hash, node)
			if (same_way(&later->p, &k->p)) {
				k->next = (uint32_t)(later - m->k);
				ur_table_del(&ways, &later->node);
				break;
			}
		ok = ur_table_add(&ways, &k->node, hash);
	}
	ur_table_fini(&ways);
	return ok;
}

struct ur_mutator *ur_mutator_create(const struct ur_recording *r)
{
	struct ur_mutator *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->r = r;
	m->k = calloc((size_t)r->n + 1, sizeof(*m->k));
	if (!m->k || !link_packets(m)) {
		ur_mutator_destroy(m);
		return NULL;
	}
	m->cm_first = r->n && m->k[0].whole && m->k[0].p.bth.dqpn == 1;
	return m;
}

void ur_mutator_destroy(struct ur_mutator *m)
{
	if (!m)
		return;
	free(m->k);
	free(m);
}

/* --- which packets --- */

static bool is_mad(const struct an_pkt *p, uint8_t attr)
{
	return p->bth.dqpn == 1 && p->payload_len == UR_MAD_LEN && p->payload[17] == attr;
}

/* Does the host ask anything after packet `i`, within a message if that is wanted? */
static bool asks_later(const struct ur_mutator *m, uint32_t i, const struct ur_gid *from, bool inner)
{
	const uint32_t end = m->r->n - i > LOOK_AHEAD ? i + LOOK_AHEAD : m->r->n;

	for (; i < end; i++) {
		const struct an_pkt *p = &m->k[i].p;

		if (m->k[i].whole && connected(p) && !an_is_answer(p) && ur_gid_eq(&p->src, from) &&
		    (!inner || !(p->op->flags & UR_OPF_LAST)))
			return true;
	}
	return false;
}

/* The atomic that packet `i` answers; NULL when it is not here. */
static const struct an_pkt *atomic_of(const struct ur_mutator *m, uint32_t i)
{
	const struct an_pkt *p = &m->k[i].p;

	while (i-- > 0) {
		const struct an_pkt *q = &m->k[i].p;

		if (m->k[i].whole && q->op->flags & UR_OPF_ATOMIC && q->bth.psn == p->bth.psn && ur_gid_eq(&q->src, &p->dst) &&
		    ur_gid_eq(&q->dst, &p->src))
			return q;
	}
	return NULL;
}

/* Is the next answer, too, to an atomic on the same word? */
static bool is_chained(const struct ur_mutator *m, uint32_t i)
{
	const struct an_pkt *a = atomic_of(m, i), *b = m->k[i].next ? atomic_of(m, m->k[i].next) : NULL;

	return a && b && a->bth.dqpn == b->bth.dqpn && memcmp(a->ext + a->op->off_atomiceth, b->ext + b->op->off_atomiceth, WORD_LEN) == 0;
}

/* What nothing else in the recording could contradict is not asked for. */
static bool decidable(const struct row *row, const struct ur_mutator *m, uint32_t i)
{
	const struct an_pkt *p = &m->k[i].p;

	/* A host shows what it has understood of a MAD in what it asks; the path MTU, in packets within messages. */
	if (row->what == PAYLOAD_BITS && row->at == REQ_MTU)
		return asks_later(m, i, &p->src, true) || asks_later(m, i, &p->dst, true);
	if (row->what == PAYLOAD_BITS && row->at < REQ_MTU && row->at > 3)
		return asks_later(m, i, &p->dst, false);
	if (row->what == MARK)
		return (p->bth.opcode & UR_SERVICE_MASK) == UR_RC;
	if (row->what == ICRC && row->at == ICRC_PADLESS)
		return p->bth.pad;
	if (row->what == EXT_BITS && row->whom == ATOMIC_RESP && row->at == ATOMIC_VALUE)
		return is_chained(m, i);
	/* Without the CM the first count is not known, and many READs in flight leave it open for long. */
	if (row->what == EXT_BITS && (row->whom == ATOMIC_RESP || row->whom == RESPONSE_AETH) && row->at > 0)
		return m->cm_first;
	return true;
}

bool ur_mutation_fits(const struct ur_mutator *m, unsigned fault, uint32_t i)
{
	const struct row *row = &rows[fault];
	const struct known *k = &m->k[i];
	const struct an_pkt *p = &k->p;
	uint32_t f;

	if (!k->whole || (row->whom <= ACK && (!connected(p) || !k->next)) || !decidable(row, m, i))
		return false;
	f = p->op->flags;
	switch (row->whom) {
	case REQUEST: return !(f & UR_OPF_RESPONSE);
	case INNER: return !(f & (UR_OPF_RESPONSE | UR_OPF_LAST));
	case WRITE: return f & UR_OPF_WRITE && p->payload_len >= 8;
	case WRITE_RETH: return f & UR_OPF_WRITE && f & UR_OPF_RETH && f & UR_OPF_LAST;
	case READ_REQ: return f & UR_OPF_READ;
	case RESPONSE: return f & UR_OPF_RESPONSE && f & UR_OPF_PAYLOAD && p->payload_len >= 8;
	case RESPONSE_AETH: return f & UR_OPF_RESPONSE && f & UR_OPF_PAYLOAD && f & UR_OPF_AETH;
	case ATOMIC_RESP: return f & UR_OPF_ATOMICACKETH;
	case ACK: return p->bth.opcode == UR_OP_ACK;
	case MAD_REQ: return is_mad(p, UR_CM_REQ);
	case MAD_REP: return is_mad(p, UR_CM_REP);
	case ANY: return p->payload_len > 0;
	}
	return false;
}

/* --- how --- */

static bool move_later(const struct ur_mutator *m, const struct row *row, uint32_t i, struct ur_recording *c, uint32_t frames[2])
{
	uint32_t to = m->k[i].next;

	for (unsigned n = 0; row->what == LATE && to && n < 2; n++)
		to = m->k[to].next;
	if (!to || m->r->f[to].when - m->r->f[i].when > MOVE_MAX)
		return false;
	ur_recording_move(c, i, to);
	frames[0] = frames[1] = to + 1;
	return true;
}

static void wrong_icrc(const struct row *row, const struct an_pkt *p, uint8_t *ip)
{
	const uint32_t covered = p->ip_len - UR_ICRC_LEN;
	uint32_t v = ur_get_le32(ip + covered);

	if (row->at == ICRC_ZERO)
		v = 0;
	else if (row->at == ICRC_REVERSED)
		v = __builtin_bswap32(v);
	else
		v = an_icrc(ip, p->ip_version, covered - p->bth.pad);
	ur_put_le32(ip + covered, v);
}

static void wrong_length(const struct row *row, const struct an_pkt *p, uint8_t *ip)
{
	uint8_t *at = row->what == UDP_LEN ? ip + (p->l4 - p->ip) + 4 : ip + (p->ip_version == 4 ? 2 : 4);

	ur_put16(at, (uint16_t)(ur_get16(at) + row->by));
	if (p->ip_version == 4)
		an_checksum_ip4(ip, UR_IP4_LEN);
}

static void mark(const struct row *row, const struct an_pkt *p, uint8_t *ip)
{
	ip[1] |= p->ip_version == 4 ? row->by : (uint8_t)(row->by << 4);
	if (p->ip_version == 4)
		an_checksum_ip4(ip, UR_IP4_LEN);
}

bool ur_mutate(const struct ur_mutator *m, unsigned fault, uint32_t i, struct ur_recording *c, uint32_t frames[2])
{
	const struct row *row = &rows[fault];
	const struct an_pkt *p = &m->k[i].p;
	const uint32_t next = row->whom <= ACK ? m->k[i].next : 0;
	const size_t ip_at = (size_t)(p->ip - m->r->f[i].data), bth_at = (size_t)(p->bth_at - m->r->f[i].data);
	uint32_t at = i; /* whose bytes are changed */
	uint8_t *bth, *ip, *data;

	frames[0] = i + 1;
	frames[1] = next ? next + 1 : i + 1; /* where it may be missed */
	if (c->n != m->r->n)
		return false;
	if (row->what == SWAP || row->what == LATE)
		return move_later(m, row, i, c, frames);
	if (row->what == DROP) {
		ur_recording_remove(c, i);
		frames[0] = frames[1] = next;
		return true;
	}
	if (row->what == REPEAT || row->what == AGAIN) {
		frames[0] = frames[1] = i + 2;
		at = i + 1;
		if (!ur_recording_repeat(c, i))
			return false;
	}
	data = c->f[at].data;
	ip = data + ip_at;
	bth = data + bth_at;
	switch (row->what) {
	case DROP:
	case SWAP:
	case LATE: return false; /* done above */
	case REPEAT: return true;
	case AGAIN: bth[row->at ? row->at : p->payload - p->bth_at] ^= row->by; break;
	case BTH_BITS: bth[row->at] ^= row->by; break;
	case BTH_ADD: bth[row->at] = (uint8_t)(bth[row->at] + row->by); break;
	case EXT_BITS: bth[UR_BTH_LEN + row->at] ^= row->by; break;
	case EXT_ADD: bth[UR_BTH_LEN + row->at] = (uint8_t)(bth[UR_BTH_LEN + row->at] + row->by); break;
	case EXT_SET: bth[UR_BTH_LEN + row->at] = row->by; break;
	case PAYLOAD_BITS: bth[p->payload - p->bth_at + row->at] ^= row->by; break;
	case SHORTEN: ur_recording_fix_checksums(c, at, row->by); return true;
	case MARK: mark(row, p, ip); return true;
	case RAW: bth[p->payload - p->bth_at] ^= row->by; return true;
	case ICRC: wrong_icrc(row, p, ip); return true;
	case UDP_LEN:
	case IP_LEN: wrong_length(row, p, ip); return true;
	}
	ur_recording_fix_checksums(c, at, 0);
	return true;
}

/* Is `name` one of the words? */
static bool listed(const char *words, const char *name)
{
	const size_t len = strlen(name);

	for (const char *w = words; *w;) {
		const size_t n = strcspn(w, " ");

		if (n == len && memcmp(w, name, n) == 0)
			return true;
		w += n + (w[n] == ' ');
	}
	return false;
}

bool ur_mutation_named(unsigned fault, const uint32_t frames[2], const struct ur_finding *f)
{
	if (!listed(rows[fault].rules, ur_rules[f->rule].name))
		return false;
	for (unsigned k = 0; k < 2; k++)
		if (f->frame == frames[k] || (f->seen[0] == frames[k] && frames[k]))
			return true;
	return false;
}
