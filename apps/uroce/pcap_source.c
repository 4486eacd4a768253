/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of a capture, one after the other: pcap or pcapng by libpcap, compressed or not. */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "pcap.h"
#include "wire/frame.h"

static bool link_of(int dlt, enum ur_an_link *link)
{
	static const struct {
		int dlt;
		enum ur_an_link link;
	} links[] = {{DLT_EN10MB, UR_AN_ETHERNET}, {DLT_RAW, UR_AN_RAW_IP},    {DLT_IPV4, UR_AN_RAW_IP},
		     {DLT_IPV6, UR_AN_RAW_IP},     {DLT_LINUX_SLL, UR_AN_SLL}, {DLT_LINUX_SLL2, UR_AN_SLL2}};

	for (unsigned i = 0; i < ur_array_size(links); i++) {
		if (links[i].dlt != dlt)
			continue;
		*link = links[i].link;
		return true;
	}
	return false;
}

static bool cannot(const char *name, const char *why)
{
	ur_cmd_fail(0, "cannot read %s: %s", name, why);
	return false;
}

static bool open_stream(struct ur_pcap_source *s, FILE *in)
{
	char err[PCAP_ERRBUF_SIZE];
	const char *kind;

	s->cap = pcap_fopen_offline_with_tstamp_precision(in, PCAP_TSTAMP_PRECISION_NANO, err);
	if (!s->cap) {
		cannot(s->name, s->fault ? s->fault : err);
		if (in != stdin)
			fclose(in);
		return false;
	}
	if (link_of(pcap_datalink(s->cap), &s->frame.link))
		return true;
	kind = pcap_datalink_val_to_name(pcap_datalink(s->cap));
	ur_cmd_fail(0, "cannot read %s: its frames are of type %s; Ethernet, raw IP and Linux cooked captures can be read", s->name,
		    kind ? kind : "unknown");
	ur_pcap_source_close(s);
	return false;
}

bool ur_pcap_source_open(struct ur_pcap_source *s, const char *name)
{
	FILE *in;

	memset(s, 0, sizeof(*s));
	s->name = name;
	in = ur_pcap_stream(name, &s->fault);
	return in ? open_stream(s, in) : cannot(name, strerror(errno));
}

/* Its packets have an EtherType of their own, and no IP header. */
static bool is_v1(const struct ur_an_frame *f)
{
	return f->link == UR_AN_ETHERNET && f->have >= UR_ETH_LEN && ur_get16(f->data + 12) == UR_ETHERTYPE_ROCE_V1;
}

bool ur_pcap_source_next(struct ur_pcap_source *s)
{
	struct pcap_pkthdr *h;
	const u_char *bytes;
	int rc = s->why ? PCAP_ERROR_BREAK : pcap_next_ex(s->cap, &h, &bytes);

	if (rc == PCAP_ERROR)
		s->why = s->fault ? s->fault : pcap_geterr(s->cap);
	if (rc != 1)
		return false;
	s->frame.number++;
	s->frame.when = (ur_time)h->ts.tv_sec * UR_NS_PER_S + (ur_time)h->ts.tv_usec; /* nanoseconds, as asked for */
	s->frame.data = bytes;
	s->frame.have = h->caplen;
	s->frame.len = h->len;
	s->roce = s->roce || ur_an_has_packet(&s->frame);
	s->v1 += !s->roce && is_v1(&s->frame);
	return true;
}

bool ur_pcap_source_has_roce(const struct ur_pcap_source *s)
{
	if (s->roce || s->why)
		return true;
	if (!s->frame.number)
		ur_cmd_fail(0, "%s is empty: it holds no frame", s->name);
	else if (s->v1)
		ur_cmd_fail(0,
			    "%s holds no RoCEv2 packet, but %u frame%s of RoCEv1: a GID of type RoCE v1 was chosen, whose packets no "
			    "router and "
			    "no RoCEv2 device takes; choose one of type RoCE v2",
			    s->name, s->v1, ur_plural(s->v1));
	else
		ur_cmd_fail(0, "%s holds no RoCEv2 packet (UDP port %u)", s->name, UR_ROCE_PORT);
	return false;
}

void ur_pcap_source_close(struct ur_pcap_source *s)
{
	if (s->cap)
		pcap_close(s->cap);
	s->cap = NULL;
}
