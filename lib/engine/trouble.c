/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/trouble.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/internal.h"
#include "wire/frame.h"
#include "wire/path.h"

/* --- once --- */

/* Which bit of `said` that is. */
static unsigned bit_of(const struct ur_cm_trouble *t)
{
	enum { SEEN = 1, WHY = 8, REASON = 11, REASONS = 40, STATUS = REASON + REASONS, STATUSES = 8 };

	if (!t->over)
		return 0;
	switch (t->seen) {
	case UR_CM_SEEN_ICMP: return WHY + t->why;
	case UR_CM_SEEN_REJ: return REASON + ur_min_u32(t->reason, REASONS - 1);
	case UR_CM_SEEN_SIDR_STATUS: return STATUS + ur_min_u32(t->reason, STATUSES - 1);
	default: return SEEN + t->seen;
	}
}

/* A program that rejects has its reasons, and programs that connect to each other at once reject as a matter of course. */
static bool is_the_programs(const struct ur_cm_trouble *t)
{
	return (t->seen == UR_CM_SEEN_REJ && t->reason == UR_CM_REJ_CONSUMER_DEFINED) ||
	       (t->seen == UR_CM_SEEN_SIDR_STATUS && t->reason == UR_CM_SIDR_REJECT);
}

bool ur_trouble_is_new(struct ur_troubles *s, enum ur_trouble_wish wish, const struct ur_cm_trouble *t)
{
	const uint64_t bit = UINT64_C(1) << bit_of(t);
	unsigned i = 0;

	if (wish == UR_TROUBLE_QUIET || (wish == UR_TROUBLE_FAILURES && is_the_programs(t)))
		return false;
	while (i < s->n && !ur_gid_eq(&s->at[i].gid, &t->dgid))
		i++;
	if (i == UR_TROUBLE_PEERS)
		return false;
	if (i == s->n) {
		s->at[i].gid = t->dgid;
		s->n++;
	}
	if (s->at[i].said & bit)
		return false;
	s->at[i].said |= bit;
	return true;
}

/* --- the sentence --- */

static unsigned bytes_of(uint8_t mtu)
{
	return 128u << mtu;
}

static unsigned seconds(const struct ur_cm_trouble *t)
{
	return (unsigned)(t->waited / UR_NS_PER_S);
}

/* Of a port of one of the RDMA CM's port spaces: " on port 7174"; other service ids say nothing to a human. */
static void put_port(const struct ur_cm_trouble *t, char *text, size_t len)
{
	text[0] = 0;
	if (ur_cm_is_ip_service(t->service_id))
		snprintf(text, len, " on port %u", (unsigned)(t->service_id & 0xffff));
}

static void put_icmp(const struct ur_cm_trouble *t, const char *peer, char *text, size_t len)
{
	const bool itself = ur_gid_eq(&t->from, &t->dgid);
	char ip[UR_IP_TEXT] = "a host that is not known";

	if (!ur_gid_is_zero(&t->from))
		ur_gid_ip(&t->from, ip);
	switch (t->why) {
	case UR_ICMP_NO_PORT:
		snprintf(text, len,
			 "%s reports by ICMP that UDP port 4791 is closed%s: no RoCE program runs there, or a firewall rejects it",
			 itself ? "it" : ip, itself ? "" : " there");
		break;
	case UR_ICMP_PROHIBITED: snprintf(text, len, "%s reports by ICMP that a firewall prohibits it", itself ? "it" : ip); break;
	case UR_ICMP_NO_WAY:
		snprintf(text, len, "%s reports by ICMP that %s cannot be reached", itself ? "it" : ip, itself ? "it" : peer);
		break;
	}
}

static void put_mtu(const struct ur_cm_trouble *t, char *text, size_t len)
{
	char there[64] = "there it is smaller";

	if (t->peer_mtu)
		snprintf(there, sizeof(there), "there at most %u", bytes_of(t->peer_mtu));
	snprintf(text, len,
		 "it refuses (REJ 26) because the path MTU differs: here %u, %s; give both interfaces the same MTU, at least %u for %u",
		 bytes_of(t->mtu), there, bytes_of(t->mtu) + UR_PATH_OVERHEAD, bytes_of(t->mtu));
}

static void put_seen(const struct ur_cm_trouble *t, const char *peer, char *text, size_t len)
{
	char port[32];

	put_port(t, port, sizeof(port));
	switch (t->seen) {
	case UR_CM_SEEN_NOTHING:
		snprintf(text, len, "nothing came back in %u s: it is down, or a firewall or cloud security group drops UDP port 4791",
			 seconds(t));
		break;
	case UR_CM_SEEN_PATIENCE:
		snprintf(text, len, "it asked for more time (MRA), and did not answer in %u s: its program%s is stopped or busy",
			 seconds(t), port);
		break;
	case UR_CM_SEEN_NO_NEIGHBOUR:
		snprintf(text, len, "no host has this address, or the router to it is down: ARP or neighbour discovery gets no answer");
		break;
	case UR_CM_SEEN_ICMP: put_icmp(t, peer, text, len); break;
	case UR_CM_SEEN_SIDR_STATUS:
		snprintf(text, len, "it refuses (SIDR status %u): %s%s", t->reason,
			 t->reason == UR_CM_SIDR_UNSUPPORTED ? "no datagram service listens there" : "the program there rejects it", port);
		break;
	case UR_CM_SEEN_REJ:
		if (t->reason == UR_CM_REJ_INVALID_MTU)
			put_mtu(t, text, len);
		else
			snprintf(text, len, "it refuses (REJ %u): %s%s", t->reason, ur_cm_rej_text(t->reason),
				 t->reason == UR_CM_REJ_INVALID_SERVICE_ID ? port : "");
		break;
	}
}

static bool is_link_local(const struct ur_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

const char *ur_trouble_text(const struct ur_cm_trouble *t, const char *dev, char text[UR_TROUBLE_TEXT])
{
	char peer[UR_IP_TEXT], seen[300] = "", more[160] = "";

	ur_gid_ip(&t->dgid, peer);
	if (dev)
		snprintf(more, sizeof(more), "; 'uroce doctor --dev %s %s%s%s' finds out more", dev, peer,
			 is_link_local(&t->dgid) ? "%" : "", is_link_local(&t->dgid) ? dev : "");
	put_seen(t, peer, seen, sizeof(seen));
	if (t->over)
		snprintf(text, UR_TROUBLE_TEXT, "no connection to %s: %s%s", peer, seen, more);
	else
		snprintf(text, UR_TROUBLE_TEXT, "%s has not answered for %u s, and will be asked again for about a minute%s", peer,
			 seconds(t), more);
	return text;
}

/* --- of the engine --- */

/* Who sets the level has decided; otherwise a terminal means that a human reads. */
static enum ur_trouble_wish wish(const struct ur_engine *e)
{
	if (strcmp(e->cfg.log, "error"))
		return UR_TROUBLE_ALL;
	return !e->log_chosen && e->stderr_is_terminal ? UR_TROUBLE_FAILURES : UR_TROUBLE_QUIET;
}

void ur_engine_trouble(struct ur_engine *e, const struct ur_cm_trouble *t)
{
	struct ur_cm_trouble told = *t;
	char text[UR_TROUBLE_TEXT];

	/* The kernel reports to the sender, as from the sender, that a neighbour does not answer. */
	if (t->seen == UR_CM_SEEN_ICMP && t->why == UR_ICMP_NO_WAY && ur_net_gid_find(e->nic->net, &t->from) >= 0)
		told.seen = UR_CM_SEEN_NO_NEIGHBOUR;
	if (ur_trouble_is_new(&e->troubles, wish(e), &told))
		fprintf(stderr, "uroce: %s\n", ur_trouble_text(&told, e->info.owned ? NULL : e->hostif.name, text));
}
