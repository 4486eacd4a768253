/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/rule.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "wire/frame.h"

/* --- the text of a rule --- */

static bool is_word(const char *word, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(word, name, len) == 0;
}

static bool parse_action(const char *word, size_t len, enum ur_fault_action *to)
{
	static const char *const names[] = {[UR_FAULT_DROP] = "drop",
					    [UR_FAULT_DUPLICATE] = "dup",
					    [UR_FAULT_DELAY] = "delay",
					    [UR_FAULT_CORRUPT] = "corrupt",
					    [UR_FAULT_MARK] = "mark"};

	for (unsigned i = 0; i < ur_array_size(names); i++) {
		if (!is_word(word, len, names[i]))
			continue;
		*to = (enum ur_fault_action)i;
		return true;
	}
	return false;
}

static bool parse_dir(const char *word, size_t len, unsigned *dir)
{
	if (is_word(word, len, "tx"))
		*dir = UR_FAULT_TX;
	else if (is_word(word, len, "rx"))
		*dir = UR_FAULT_RX;
	else if (is_word(word, len, "both"))
		*dir = UR_FAULT_TX | UR_FAULT_RX;
	else
		return false;
	return true;
}

/* Decimal or with 0x, all of the word except for what `rest` gets. */
static bool parse_number(const char *v, size_t len, uint64_t most, uint64_t *to, const char **rest)
{
	char *end;

	if (!len || !isdigit((unsigned char)*v))
		return false;
	errno = 0;
	*to = strtoull(v, &end, 0);
	if (errno || *to > most || end > v + len)
		return false;
	*rest = end;
	return true;
}

static bool parse_plain(const char *v, size_t len, uint64_t most, uint64_t *to)
{
	const char *rest;

	return parse_number(v, len, most, to, &rest) && rest == v + len;
}

static bool parse_time(const char *v, size_t len, ur_time *to)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"us", UR_NS_PER_US}, {"ms", UR_NS_PER_MS}, {"s", UR_NS_PER_S}};
	const char *rest;
	uint64_t n;

	if (!parse_number(v, len, 1000000, &n, &rest))
		return false;
	for (unsigned i = 0; i < ur_array_size(units); i++) {
		if (!is_word(rest, (size_t)(v + len - rest), units[i].unit))
			continue;
		*to = n * units[i].ns;
		return true;
	}
	return false;
}

/* By its whole name, or without the service: then it is that of any. */
static bool parse_opcode(const char *v, size_t len, struct ur_fault_rule *r)
{
	uint64_t number;

	r->any_service = false;
	if (parse_plain(v, len, 255, &number)) {
		r->opcode = (int)number;
		return true;
	}
	for (unsigned i = 0; i < 256; i++) {
		const char *name = ur_opcode((uint8_t)i)->name, *service = name ? strchr(name, '_') : NULL;

		if (!name)
			continue;
		r->any_service = service && is_word(v, len, service + 1);
		if (!r->any_service && !is_word(v, len, name))
			continue;
		r->opcode = (int)i;
		return true;
	}
	return false;
}

static bool parse_condition(const char *word, size_t len, struct ur_fault_rule *r)
{
	const char *eq = memchr(word, '=', len), *v;
	size_t key, rest;
	uint64_t n;

	if (!eq)
		return false;
	v = eq + 1;
	key = (size_t)(eq - word);
	rest = len - key - 1;
	if (is_word(word, key, "opcode"))
		return parse_opcode(v, rest, r);
	if (is_word(word, key, "delay"))
		return parse_time(v, rest, &r->delay);
	if (!parse_plain(v, rest, UINT32_MAX, &n))
		return false;
	if (is_word(word, key, "qpn") && n && n <= 0xffffff)
		r->qpn = (uint32_t)n;
	else if (is_word(word, key, "psn") && n <= 0xffffff)
		r->psn = (int64_t)n;
	else if (is_word(word, key, "nth") && n)
		r->nth = (unsigned)n;
	else if (is_word(word, key, "times") && n)
		r->times = (unsigned)n;
	else
		return false;
	return true;
}

const char *ur_fault_rule_parse(const char *text, struct ur_fault_rule *r, unsigned *at)
{
	const char *p = text;
	bool first = true;

	*r = (struct ur_fault_rule){.opcode = -1, .psn = -1};
	for (;;) {
		size_t len;

		p += strspn(p, " ");
		*at = (unsigned)(p - text);
		len = strcspn(p, " ");
		if (!len)
			break;
		if (first && !parse_action(p, len, &r->action))
			return "a rule begins with drop, dup, delay, corrupt or mark";
		if (!first && !parse_dir(p, len, &r->dir) && !parse_condition(p, len, r))
			return "tx, rx or both and opcode=, qpn=, psn=, nth=, times= and delay= (with us, ms or s)";
		first = false;
		p += len;
	}
	*at = 0;
	if (first)
		return "a rule begins with drop, dup, delay, corrupt or mark";
	/* The one that is named alone is one. */
	if (r->nth && !r->times)
		r->times = 1;
	if (r->action == UR_FAULT_DELAY && !r->delay)
		return "a delay needs its length, such as delay=5ms";
	return NULL;
}

/* --- packets --- */

static bool matches(const struct ur_fault_rule *r, enum ur_fault_dir dir, const struct ur_bth *bth)
{
	uint8_t differs;

	if (r->dir && !(r->dir & dir))
		return false;
	if (!bth)
		return r->opcode < 0 && r->psn < 0 && !r->qpn;
	differs = (uint8_t)(bth->opcode ^ (unsigned)r->opcode);
	if (r->opcode >= 0 && differs & (r->any_service ? UR_OP_MASK : 0xff))
		return false;
	return (r->psn < 0 || bth->psn == r->psn) && (!r->qpn || bth->dqpn == r->qpn);
}

bool ur_fault_row_acts(struct ur_fault_row *row, enum ur_fault_dir dir, const struct ur_bth *bth)
{
	const struct ur_fault_rule *r = &row->rule;
	unsigned nth = r->nth ? r->nth : 1;

	if (!matches(r, dir, bth))
		return false;
	row->seen++;
	if (row->seen < nth || (r->times && row->seen - nth >= r->times))
		return false;
	row->hits++;
	return true;
}

/* Offset of the IP header and its version, past one VLAN tag; false when the frame is not IP. */
static bool find_ip(const uint8_t *f, uint32_t len, uint32_t *l3, unsigned *version)
{
	uint32_t off = UR_ETH_LEN;

	if (len < off)
		return false;
	if (ur_get16(f + 12) == UR_ETHERTYPE_VLAN)
		off += UR_VLAN_LEN;
	if (len < off + UR_IP4_LEN)
		return false;
	*l3 = off;
	*version = f[off] >> 4;
	return (ur_get16(f + off - 2) == UR_ETHERTYPE_IP4 && *version == 4) ||
	       (ur_get16(f + off - 2) == UR_ETHERTYPE_IP6 && *version == 6 && len >= off + UR_IP6_LEN);
}

bool ur_fault_find_bth(const uint8_t *f, uint32_t len, struct ur_bth *bth)
{
	unsigned version;
	uint32_t off;

	if (!find_ip(f, len, &off, &version) || f[off + (version == 4 ? 9 : 6)] != 17)
		return false;
	off += version == 4 ? (f[off] & 15u) * 4 : UR_IP6_LEN;
	if (len < off + UR_UDP_LEN + UR_BTH_LEN || ur_get16(f + off + 2) != UR_ROCE_PORT)
		return false;
	ur_bth_get(f + off + UR_UDP_LEN, bth);
	return true;
}

/* RFC 3168: 11 is CE, 00 is not ECN-capable. The IPv4 checksum follows (RFC 1624, equation 3). */
bool ur_fault_set_ce(uint8_t *f, uint32_t len, bool any)
{
	unsigned version;
	uint32_t off, sum;
	uint8_t *ip, tos;

	if (!find_ip(f, len, &off, &version))
		return false;
	ip = f + off;
	tos = version == 4 ? ip[1] : (uint8_t)(ip[0] << 4 | ip[1] >> 4);
	if (!(tos & UR_ECN_MASK) && !any)
		return false;
	if (version == 6) {
		ip[1] |= UR_ECN_CE << 4;
		return true;
	}
	sum = (uint16_t)~ur_get16(ip + 10) + (uint32_t)(uint16_t)~ur_get16(ip);
	ip[1] |= UR_ECN_CE;
	sum += ur_get16(ip);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ur_put16(ip + 10, (uint16_t)~sum);
	return true;
}
