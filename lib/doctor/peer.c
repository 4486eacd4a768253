/* SPDX-License-Identifier: BSD-3-Clause */
/* The path to the peer, and the peer's answers. */
#include <stdio.h>
#include <string.h>

#include "doctor/internal.h"

static bool is_there(const struct ur_doctor_peer *p)
{
	return p->address[0] && p->routed;
}

static void judge_ping(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	const struct ur_doctor_peer *p = &f->peer;
	bool there = p->cm == UR_DOCTOR_CM_ANSWERS; /* whatever ICMP says */

	switch (p->ping == UR_DOCTOR_PING_UNREACHABLE && there ? UR_DOCTOR_PING_SILENT : p->ping) {
	case UR_DOCTOR_PING_ANSWERS:
		ur_doctor_add(r, UR_DOC_PING_OK, "%s answers ping in %u us%s%s", p->address, p->ping_us, p->via[0] ? ", by router " : "",
			      p->via);
		break;
	case UR_DOCTOR_PING_SILENT:
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PING_SILENT, "%s does not answer ping%s", p->address,
					       there ? ", but its RDMA CM answers" : ": it is down, or it or a firewall drops ping"),
				 "ping -c 3 -I %s %s", f->dev, p->address);
		break;
	case UR_DOCTOR_PING_UNREACHABLE:
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PING_UNREACHABLE, "%s cannot be reached: %s", p->address,
					       p->via[0] ? "a router says so" : "no host on the link has this address"),
				 "ip neighbour show dev %s; ping -c 3 %s", f->dev, p->address);
		break;
	case UR_DOCTOR_PING_DENIED:
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PING_UNKNOWN, "cannot try ping: this user may not open ICMP sockets"),
				 "sysctl -w net.ipv4.ping_group_range='0 2147483647'");
		break;
	case UR_DOCTOR_PING_UNSENT:
		ur_doctor_remedy(
			ur_doctor_add(r, UR_DOC_PING_UNKNOWN, "cannot try ping: this host does not send it (%s)", strerror(p->ping_error)),
			"nft list ruleset; ping -c 3 %s", p->address);
		break;
	}
}

void ur_doctor_judge_peer(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	const struct ur_doctor_peer *p = &f->peer;

	if (!p->address[0]) {
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PEER_NAME, "cannot resolve '%s'", p->name), "getent ahosts '%s'", p->name);
		return;
	}
	if (!p->routed) {
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PEER_ROUTE, "no route leads to %s", p->address), "ip route get %s", p->address);
		return;
	}
	if (p->self)
		ur_doctor_add(r, UR_DOC_PEER_SELF, "%s is this host: nothing of what follows uses a cable", p->address);
	else if (f->dev[0] && strcmp(p->dev, f->dev))
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PEER_OTHER_DEV, "the kernel reaches %s through %s and not through %s", p->address,
					       p->dev, f->dev),
				 "uroce doctor --dev %s %s", p->dev, p->name);
	judge_ping(f, r);
}

/* What came back was as long as what was asked with, so the way carries it in both directions. */
void ur_doctor_judge_peer_mtu(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	const struct ur_doctor_peer *p = &f->peer;
	unsigned here = ur_doctor_path_mtu(f->mtu), there = ur_doctor_path_mtu(p->bytes);

	if (!is_there(p) || !f->dev[0] || (p->ping == UR_DOCTOR_PING_UNREACHABLE && p->cm != UR_DOCTOR_CM_ANSWERS))
		return;
	if (!p->sized || !p->bytes)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PEER_MTU_UNKNOWN, "cannot determine the path MTU to %s, because %s", p->address,
					       p->ping == UR_DOCTOR_PING_ANSWERS || p->ping == UR_DOCTOR_PING_SILENT ||
							       p->ping == UR_DOCTOR_PING_UNREACHABLE
						       ? "it does not answer ping of that length"
						       : "ping could not be tried"),
				 "tracepath -n %s", p->address);
	else if (there < here)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PEER_MTU,
					       "packets for RoCE path MTU %u, which %s with MTU %u would use, do not come back "
					       "from %s; those for %u do",
					       here, f->dev, f->mtu, p->address, there),
				 "ip link set dev %s mtu %u", f->dev, ur_doctor_ip_bytes(there) <= 1500 ? 1500 : ur_doctor_ip_bytes(there));
	else
		ur_doctor_add(r, UR_DOC_PEER_MTU_OK, "RoCE path MTU %u in both directions", there);
}

void ur_doctor_judge_cm(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	const struct ur_doctor_peer *p = &f->peer;
	enum ur_doctor_port_index port = ur_doctor_port_of(f); /* the same as a moment before */
	struct ur_doctor_finding *x;

	if (!is_there(p) || (p->ping == UR_DOCTOR_PING_UNREACHABLE && p->cm != UR_DOCTOR_CM_ANSWERS))
		return;
	switch (p->cm) {
	case UR_DOCTOR_CM_UNTESTED:
		x = ur_doctor_add(r, UR_DOC_CM_UNTESTED, "cannot test whether %s speaks RoCE: %s", p->address, p->cm_why);
		ur_doctor_as_root(x, f);
		break;
	case UR_DOCTOR_CM_ANSWERS:
		ur_doctor_add(r, UR_DOC_CM_OK,
			      "UDP port 4791 passes both ways and %s speaks the RDMA CM: RTT %u us (%u to %u) over port %s", p->address,
			      p->rtt_median_us, p->rtt_min_us, p->rtt_max_us, port < UR_DOCTOR_PORTS ? ur_doctor_port_names[port] : "auto");
		break;
	case UR_DOCTOR_CM_REFUSED:
		x = ur_doctor_add(r, UR_DOC_CM_REFUSED,
				  "%s reports by ICMP that its UDP port 4791 is closed: no RoCE program runs, or a firewall rejects it",
				  p->address);
		ur_doctor_remedy(x, "uroce run --dev IFACE -- rping -s    # there");
		break;
	case UR_DOCTOR_CM_PROHIBITED:
		x = ur_doctor_add(r, UR_DOC_CM_PROHIBITED, "a firewall on the way to %s forbids UDP port 4791 by ICMP", p->address);
		ur_doctor_remedy(x, "uroce doctor    # there, and on routers: nft list ruleset");
		break;
	case UR_DOCTOR_CM_SILENT:
		x = ur_doctor_add(r, UR_DOC_CM_SILENT,
				  "%s answers no message of the RDMA CM%s: a firewall or cloud security group drops UDP port 4791, or the "
				  "program that has the port there does not speak CM",
				  p->address, p->ping == UR_DOCTOR_PING_ANSWERS ? ", though it answers ping" : "");
		ur_doctor_remedy(x, "uroce doctor; tcpdump -ni IFACE udp port 4791    # there");
		break;
	}
}

void ur_doctor_judge_loss(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	const struct ur_doctor_peer *p = &f->peer;
	unsigned lost = p->sent - p->answered;

	if (!is_there(p) || p->cm != UR_DOCTOR_CM_ANSWERS || !p->sent)
		return;
	if (!lost)
		ur_doctor_add(r, UR_DOC_LOSS_OK, "no request or answer was lost (%u sent)", p->sent);
	else
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_LOSS, "%u of %u requests or their answers were lost (%.1f%%)", lost, p->sent,
					       100.0 * lost / p->sent),
				 "ip -s link show dev %s; ethtool -S %s | grep -i drop", f->dev, f->dev);
}

static void list_gids(const struct ur_doctor_peer *p, bool answers, char *text, size_t len)
{
	text[0] = 0;
	for (unsigned i = 0; i < p->gid_count; i++) {
		size_t n = strlen(text);

		if (p->gids[i].answers == answers)
			snprintf(text + n, len - n, "%s%s%s", n ? ", " : "",
				 strchr(p->gids[i].address, ':') ? "" : "::ffff:", p->gids[i].address);
	}
}

void ur_doctor_judge_gids(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	const struct ur_doctor_peer *p = &f->peer;
	char text[UR_DOCTOR_TEXT];

	if (!is_there(p) || p->cm != UR_DOCTOR_CM_ANSWERS)
		return;
	list_gids(p, true, text, sizeof(text));
	if (text[0])
		ur_doctor_add(r, UR_DOC_GIDS_OK, "GIDs that answer: %s", text);
	list_gids(p, false, text, sizeof(text));
	if (text[0])
		ur_doctor_remedy(
			ur_doctor_add(r, UR_DOC_GIDS_SILENT, "addresses of the same host that are not GIDs of its device: %s", text),
			"uroce info --dev IFACE    # there");
}
