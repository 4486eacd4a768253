/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every frame of every capture in pcaps/ (or the directory that UROCE_PCAPS names): it parses without a drop, and each RoCEv2 packet,
 * CM message, ARP and neighbour discovery message is built again, byte for byte, from nothing but what was parsed.
 */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <pcap/pcap.h>
#include <stdio.h>

#include "wire/msg/arp.h"
#include "wire/msg/cm_msg.h"
#include "wire/msg/gmp.h"
#include "wire/msg/icmp.h"
#include "wire_samples.h"

void ur_suite_capture(void);

static struct {
	unsigned files, frames, roce, cm, cm_hdr, gmp, arp, nd;
} seen;

static void fail(const char *file, unsigned number, const char *what)
{
	char text[512];

	snprintf(text, sizeof(text), "%s, frame %u: %s", file, number, what);
	fprintf(stderr, "%s\n", text);
	CU_FAIL(text);
}

/* Rebuilds the extended headers one by one through their structs. */
static void copy_ext(uint8_t *to, const uint8_t *from, const struct ur_opcode_info *op)
{
	struct ur_deth deth;
	struct ur_feth feth;
	struct ur_reth reth;
	struct ur_atomiceth atomic;
	struct ur_aeth aeth;

	if (op->flags & UR_OPF_XRCETH)
		ur_xrceth_put(to, ur_xrceth_get(from));
	if (op->flags & UR_OPF_DETH) {
		ur_deth_get(from + op->off_deth, &deth);
		ur_deth_put(to + op->off_deth, &deth);
	}
	if (op->flags & UR_OPF_FETH) {
		ur_feth_get(from + op->off_feth, &feth);
		ur_feth_put(to + op->off_feth, &feth);
	}
	if (op->flags & UR_OPF_RETH) {
		ur_reth_get(from + op->off_reth, &reth);
		ur_reth_put(to + op->off_reth, &reth);
	}
	if (op->flags & UR_OPF_ATOMICETH) {
		ur_atomiceth_get(from + op->off_atomiceth, &atomic);
		ur_atomiceth_put(to + op->off_atomiceth, &atomic);
	}
	if (op->flags & UR_OPF_AETH) {
		ur_aeth_get(from + op->off_aeth, &aeth);
		ur_aeth_put(to + op->off_aeth, &aeth);
	}
	if (op->flags & UR_OPF_ATOMICACKETH)
		ur_put64(to + op->off_atomicacketh, ur_get64(from + op->off_atomicacketh));
	if (op->flags & UR_OPF_IMM)
		ur_put32(to + op->off_imm, ur_get32(from + op->off_imm));
	if (op->flags & UR_OPF_IETH)
		ur_put32(to + op->off_ieth, ur_get32(from + op->off_ieth));
}

static bool rebuild_roce(const struct ur_pkt *in)
{
	const struct ur_opcode_info *op = ur_opcode(in->bth.opcode);
	struct ur_path path = {0};
	struct ur_mac dmac, smac;
	struct ur_pkt p;
	uint32_t at;
	bool same;

	memcpy(dmac.b, in->data, 6);
	memcpy(smac.b, in->data + 6, 6);
	ur_path_build(&path, &smac, &dmac, in->vlan, &in->src, &in->dst, in->tos, in->ttl, in->flow_label, in->sport);
	if (in->ip_version == 4) { /* the kernel numbers its datagrams, and gives those that it cuts out of a train their checksum */
		memcpy(path.hdr + path.l3_off + 4, in->data + in->l3_off + 4, 2);
		memcpy(path.hdr + path.hdr_len - 2, in->data + in->bth_off - 2, 2);
	}
	sample_room(&p, UR_PKT_ROOM);
	memcpy(p.data, path.hdr, path.hdr_len);
	p.l3_off = path.l3_off;
	p.bth_off = path.hdr_len;
	p.ip_version = path.ip_version;
	ur_bth_put(p.data + p.bth_off, &in->bth);
	copy_ext(p.data + p.bth_off + UR_BTH_LEN, in->data + in->bth_off + UR_BTH_LEN, op);
	p.len = p.bth_off + UR_BTH_LEN + (uint32_t)op->ext_len;
	p.seg[0] = (struct ur_seg){.data = in->data + in->payload_off, .len = in->payload_len};
	p.nseg = in->payload_len != 0;
	ur_frame_finish(&p, in->bth.pad);
	at = p.len + in->payload_len;
	same = ur_pkt_frame_len(&p) == in->len && memcmp(p.data, in->data, p.len) == 0 && memcmp(p.tail, in->data + at, p.tail_len) == 0;
	sample_free(&p);
	return same;
}

static bool rebuild_cm_hdr(const struct ur_cm_msg *m)
{
	uint8_t p[UR_RDMA_CM_HDR_LEN];
	struct ur_rdma_cm_hdr h;

	if (!ur_rdma_cm_hdr_get(m->pdata, m->pdata_len, &h))
		return false;
	ur_rdma_cm_hdr_put(p, &h);
	seen.cm_hdr++;
	return memcmp(p, m->pdata, sizeof(p)) == 0;
}

static bool rebuild_cm(const struct ur_pkt *in)
{
	uint8_t mad[UR_MAD_LEN];
	struct ur_cm_msg m;

	if (in->payload_len != UR_MAD_LEN || !ur_cm_msg_parse(in->data + in->payload_off, &m) || !ur_cm_msg_build(mad, &m))
		return false;
	seen.cm++;
	if ((m.attr == UR_CM_REQ || m.attr == UR_CM_SIDR_REQ) && !rebuild_cm_hdr(&m))
		return false;
	return memcmp(mad, in->data + in->payload_off, UR_MAD_LEN) == 0;
}

static bool rebuild_arp(const struct ur_pkt *in)
{
	struct ur_mac dst, src;
	struct ur_arp a;
	struct ur_pkt p;
	bool same;

	if (!ur_arp_parse(in, &a))
		return false;
	memcpy(dst.b, in->data, 6);
	memcpy(src.b, in->data + 6, 6);
	sample_room(&p, UR_PKT_ROOM);
	ur_arp_build(&p, &src, &dst, in->vlan, &a);
	same = p.len <= in->len && memcmp(p.data, in->data, p.len) == 0;
	sample_free(&p);
	seen.arp++;
	return same;
}

static bool rebuild_icmp(const struct ur_pkt *in)
{
	struct ur_mac dst, src;
	struct ur_icmp m;
	struct ur_pkt p;
	bool same;

	if (!ur_icmp_parse(in, &m))
		return false;
	if (m.kind != UR_ICMP_NS && m.kind != UR_ICMP_NA)
		return true;
	memcpy(dst.b, in->data, 6);
	memcpy(src.b, in->data + 6, 6);
	sample_room(&p, UR_PKT_ROOM);
	ur_nd_build(&p, m.kind, &src, &dst, in->vlan, &in->src, &in->dst, &m.nd);
	same = p.len == in->len && memcmp(p.data, in->data, p.len) == 0;
	sample_free(&p);
	seen.nd++;
	return same;
}

static void build_gmp(struct ur_pkt *p, const struct ur_gmp_to *to, struct ur_gmp *m)
{
	struct ur_gmp_record r;

	if (m->kind != UR_GMP_RECORDS) {
		ur_gmp_build(p, to, m);
		for (unsigned i = 0; i < m->count; i++) {
			struct ur_gid s = ur_gmp_source(m->at, m->v4, i);

			ur_gmp_add_source(p, &s);
		}
		return;
	}
	ur_gmp_report_begin(p, to);
	while (ur_gmp_next(m, &r)) {
		struct ur_gid s[64];

		for (unsigned i = 0; i < r.nsources && i < 64; i++)
			s[i] = ur_gmp_source(r.sources, m->v4, i);
		ur_gmp_report_add(p, r.type, &r.group, s, r.nsources, 1500);
	}
	ur_gmp_report_end(p);
}

/* All but what an IPv4 header may hold of its own: identification, flags and with them the checksum. */
static bool same_gmp(struct ur_pkt *a, const struct ur_pkt *b)
{
	if (a->len != b->len)
		return false;
	if (b->ip_version == 4) {
		memcpy(a->data + a->l3_off + 4, b->data + b->l3_off + 4, 4);
		memcpy(a->data + a->l3_off + 10, b->data + b->l3_off + 10, 2);
	}
	return memcmp(a->data, b->data, a->len) == 0;
}

static bool rebuild_gmp(const struct ur_pkt *in)
{
	struct ur_gmp_to to = {.vlan = in->vlan, .src = in->src, .dst = in->dst};
	struct ur_gmp m;
	struct ur_pkt p;
	bool same;

	if (!ur_gmp_parse(in, &m) || m.kind == UR_GMP_OTHER)
		return false;
	memcpy(to.smac.b, in->data + 6, 6);
	sample_room(&p, UR_PKT_ROOM);
	build_gmp(&p, &to, &m);
	same = same_gmp(&p, in);
	sample_free(&p);
	seen.gmp++;
	return same;
}

static const char *check_frame(struct ur_pkt *p)
{
	struct ur_counters c = {0};

	if (!ur_frame_parse(p, &c)) {
		for (unsigned i = 0; i < UR_C_COUNT; i++)
			if (c.v[i])
				return ur_counter_name((enum ur_counter)i);
		return "dropped without a counter";
	}
	if (sample_drops(&c) != 0)
		return "a counter was raised for a good frame";
	if (p->kind == UR_PKT_ARP && !rebuild_arp(p))
		return "ARP differs when built again";
	if ((p->kind == UR_PKT_ICMP4 || p->kind == UR_PKT_ICMP6) && !rebuild_icmp(p))
		return "ICMP differs when built again";
	if (p->kind == UR_PKT_GMP && !rebuild_gmp(p))
		return "IGMP or MLD differs when built again";
	if (p->kind != UR_PKT_ROCE)
		return NULL;
	seen.roce++;
	if (!rebuild_roce(p))
		return "packet differs when built again";
	if (p->bth.dqpn == 1 && !rebuild_cm(p))
		return "CM message differs when built again";
	return NULL;
}

static void check_file(const char *file)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *cap = pcap_open_offline(file, err);
	struct pcap_pkthdr *h;
	const u_char *bytes;
	unsigned number = 0;

	if (!cap) {
		fail(file, 0, err);
		return;
	}
	seen.files++;
	while (pcap_next_ex(cap, &h, &bytes) == 1) {
		const char *what;
		struct ur_pkt p;

		number++;
		seen.frames++;
		sample_load(&p, bytes, h->caplen);
		what = check_frame(&p);
		if (what)
			fail(file, number, what);
		sample_free(&p);
	}
	pcap_close(cap);
}

static void capture__every_frame_parses_and_is_built_again(void)
{
	const char *dir = getenv("UROCE_PCAPS");
	struct dirent *e;
	char file[1024];
	DIR *d;

	if (!dir)
		dir = UROCE_SOURCE_ROOT "/pcaps";
	memset(&seen, 0, sizeof(seen));
	d = opendir(dir);
	CU_ASSERT_PTR_NOT_NULL_FATAL(d);
	while ((e = readdir(d))) {
		size_t n = strlen(e->d_name);

		if (n < 5 || strcmp(e->d_name + n - 5, ".pcap") != 0)
			continue;
		snprintf(file, sizeof(file), "%s/%s", dir, e->d_name);
		check_file(file);
	}
	closedir(d);
	CU_ASSERT_TRUE(seen.files > 0);
	CU_ASSERT_TRUE(seen.roce > 0);
	CU_ASSERT_TRUE(seen.cm > 0);
	CU_ASSERT_TRUE(seen.cm_hdr > 0);
	CU_ASSERT_TRUE(seen.gmp > 0);
}

/* QPs that a REQ or REP of a capture named, and the PSN at which it asked the peer to begin. */
struct begin {
	uint32_t qpn, psn;
	struct ur_gid host;
};

static void note_begin(struct begin *b, unsigned *n, const struct ur_pkt *p)
{
	struct ur_cm_msg m;

	if (*n == 4 || !ur_cm_msg_parse(p->data + p->payload_off, &m))
		return;
	if (m.attr == UR_CM_REQ)
		b[(*n)++] = (struct begin){m.req.local_qpn, m.req.starting_psn, p->src};
	else if (m.attr == UR_CM_REP)
		b[(*n)++] = (struct begin){m.rep.local_qpn, m.rep.starting_psn, p->src};
}

/* The first request to a QP carries the PSN that the QP's own side asked for, not the one that the sender announced. */
static void capture__data_begins_where_the_receiver_asked(void)
{
	char err[PCAP_ERRBUF_SIZE];
	pcap_t *cap = pcap_open_offline(UROCE_SOURCE_ROOT "/pcaps/rping-rc.pcap", err);
	struct pcap_pkthdr *h;
	const u_char *bytes;
	struct begin b[4];
	unsigned n = 0, checked = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(cap);
	while (pcap_next_ex(cap, &h, &bytes) == 1) {
		struct ur_counters c = {.v = {0}};
		struct ur_pkt p;

		sample_load(&p, bytes, h->caplen);
		if (ur_frame_parse(&p, &c) && p.kind == UR_PKT_ROCE && p.bth.dqpn == 1)
			note_begin(b, &n, &p);
		for (unsigned i = 0; p.kind == UR_PKT_ROCE && i < n; i++) {
			if (b[i].qpn != p.bth.dqpn || !ur_gid_eq(&b[i].host, &p.dst) || ur_opcode(p.bth.opcode)->flags & UR_OPF_RESPONSE)
				continue;
			CU_ASSERT_EQUAL(p.bth.psn, b[i].psn);
			b[i].qpn = 0; /* its first request only */
			checked++;
		}
		sample_free(&p);
	}
	pcap_close(cap);
	CU_ASSERT_EQUAL(checked, 2); /* one in each direction */
}

void ur_suite_capture(void)
{
	CU_pSuite s = CU_add_suite("capture", NULL, NULL);

	CU_ADD_TEST(s, capture__every_frame_parses_and_is_built_again);
	CU_ADD_TEST(s, capture__data_begins_where_the_receiver_asked);
}
