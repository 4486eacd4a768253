/* SPDX-License-Identifier: BSD-3-Clause */
/* The device, the kinds of port that are available on it, and the owner of UDP port 4791. */
#include <stdio.h>
#include <string.h>

#include "doctor/internal.h"

const char *const ur_doctor_port_names[UR_DOCTOR_PORTS] = {"udp", "packet", "dpdk"};

enum ur_doctor_port_index ur_doctor_port_of(const struct ur_doctor_facts *f)
{
	for (unsigned i = 0; i < UR_DOCTOR_PORTS; i++)
		if (f->ports[i].works && (!strcmp(f->port_setting, "auto") || !strcmp(f->port_setting, ur_doctor_port_names[i])))
			return i;
	return UR_DOCTOR_PORTS;
}

void ur_doctor_judge_device(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	if (!f->dev[0]) {
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_DEVICE_NONE, "no device: %s", f->dev_why), "ip -brief address");
		return;
	}
	if (!f->up)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_DEVICE_DOWN, "interface %s is down", f->dev), "ip link set dev %s up", f->dev);
	else if (!f->carrier)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_DEVICE_NO_CARRIER,
					       "interface %s is up but has no carrier: the other end of its cable is down or not connected",
					       f->dev),
				 "ethtool %s", f->dev);
	if (!f->addresses)
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_DEVICE_NO_ADDRESS, "interface %s has no IP address, and so no GID", f->dev),
				 "ip address add ADDRESS/LENGTH dev %s", f->dev);
	else if (f->up && f->carrier)
		ur_doctor_add(r, UR_DOC_DEVICE_OK, "%s is up and has %u address%s, GID 0 is %s", f->dev, f->addresses,
			      f->addresses == 1 ? "" : "es", f->address);
}

/* --- ports --- */

static bool is_held(const struct ur_doctor_facts *f)
{
	return f->rxe[0] || f->holder_count;
}

/* What it takes to have that kind of port. */
static void suggest_port(const struct ur_doctor_facts *f, enum ur_doctor_port_index i, struct ur_doctor_finding *x)
{
	if (i != UR_DOCTOR_UDP && !f->net_raw && !f->uid)
		ur_doctor_remedy(x, "docker run --cap-add NET_RAW    # or whatever else removed root's capabilities");
	else if (i != UR_DOCTOR_UDP && !f->net_raw)
		ur_doctor_remedy(x, "sudo uroce run --dev %s --port %s -- PROGRAM", f->dev, ur_doctor_port_names[i]);
	else if (i == UR_DOCTOR_UDP && is_held(f))
		ur_doctor_remedy(x, "ss -Hulanp 'sport = :4791'; rdma link");
	else
		ur_doctor_remedy(x, "UROCE_LOG=debug uroce run --dev %s --port %s -- ibv_devinfo", f->dev, ur_doctor_port_names[i]);
}

static void port_list(const struct ur_doctor_facts *f, char *text, size_t len)
{
	text[0] = 0;
	for (unsigned i = 0; i < UR_DOCTOR_PORTS; i++) {
		size_t n = strlen(text);

		if (f->ports[i].works)
			snprintf(text + n, len - n, "%s%s", n ? ", " : "", ur_doctor_port_names[i]);
	}
}

static void judge_choice(const struct ur_doctor_facts *f, struct ur_doctor_report *r, const char *list)
{
	enum ur_doctor_port_index got = ur_doctor_port_of(f);

	if (got < UR_DOCTOR_PORTS)
		ur_doctor_add(r, UR_DOC_PORT_OK, "available ports: %s; --port %s takes %s", list, f->port_setting,
			      ur_doctor_port_names[got]);
	else
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_PORT_CHOSEN,
					       "the port %s that the settings ask for is not available; available: %s", f->port_setting,
					       list),
				 "uroce run --dev %s --port auto -- PROGRAM", f->dev);
}

/* Why the others are not available is said whether or not they are needed. */
void ur_doctor_judge_port(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	char list[64];

	if (!f->dev[0])
		return;
	port_list(f, list, sizeof(list));
	if (list[0])
		judge_choice(f, r, list);
	else
		suggest_port(
			f, f->net_raw ? UR_DOCTOR_UDP : UR_DOCTOR_PACKET,
			ur_doctor_add(r, UR_DOC_PORT_NONE, "no kind of port is available on %s: programs cannot use uroce there", f->dev));
	for (unsigned i = 0; i < UR_DOCTOR_PORTS; i++)
		if (!f->ports[i].works)
			suggest_port(f, i, ur_doctor_add(r, UR_DOC_PORT_REFUSED, "port %s: %s", ur_doctor_port_names[i], f->ports[i].why));
}

/* --- UDP port 4791 --- */

static void judge_one(const struct ur_doctor_facts *f, const struct ur_doctor_holder *h, struct ur_doctor_report *r)
{
	struct ur_doctor_finding *x;

	if (h->kernel && f->rxe[0])
		return; /* told already */
	if (h->kernel) {
		x = ur_doctor_add(r, UR_DOC_HOLDER_OTHER,
				  "UDP port 4791 belongs to user %u, but its process is not visible: a process of another user or "
				  "container, or a kernel socket such as rdma_rxe's",
				  (unsigned)h->uid);
		ur_doctor_remedy(x, "ss -Hulanp 'sport = :4791'; rdma link");
		return;
	}
	x = ur_doctor_add(r, UR_DOC_HOLDER_OTHER, "UDP port 4791 belongs to process %d (%s) of user %u%s", (int)h->pid, h->name,
			  (unsigned)h->uid, h->uroce ? ", which uses uroce: an interface serves one user at a time" : "");
	ur_doctor_remedy(x, h->uid == f->uid ? "kill %d" : "sudo kill %d", (int)h->pid);
}

/* A uroce of our own shares the port with us. One that listens with us although it is another's does no harm to who has CAP_NET_RAW. */
static bool is_in_the_way(const struct ur_doctor_facts *f, const struct ur_doctor_holder *h)
{
	return !(h->uroce && h->uid == f->uid) && !f->ports[UR_DOCTOR_UDP].works;
}

void ur_doctor_judge_holder(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	unsigned before = r->count;

	if (!f->dev[0])
		return;
	if (f->rxe[0])
		ur_doctor_remedy(ur_doctor_add(r, UR_DOC_HOLDER_RXE,
					       "rdma_rxe's device %s on %s answers for UDP port 4791: only one of the two can be used",
					       f->rxe, f->dev),
				 "rdma link delete %s", f->rxe);
	for (unsigned i = 0; i < f->holder_count; i++)
		if (is_in_the_way(f, &f->holders[i]))
			judge_one(f, &f->holders[i], r);
	if (r->count == before && !f->holders_known)
		ur_doctor_remedy(
			ur_doctor_add(r, UR_DOC_HOLDER_UNKNOWN, "cannot determine who has UDP port 4791: /proc/net/udp cannot be read"),
			"ss -Hulanp 'sport = :4791'");
	else if (r->count == before)
		ur_doctor_add(r, UR_DOC_HOLDER_OK, "UDP port 4791 is %s", f->holder_count ? "shared with uroce's other processes" : "free");
}
