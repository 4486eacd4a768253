/* SPDX-License-Identifier: BSD-3-Clause */
#include "fault/conns.h"

#include <stdlib.h>

#include "base/hash.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"
#include "wire/opcode.h"

#define ASKED 256
#define SETS 256 /* a power of two */
#define WAYS 4
#define DETH_LEN 8
#define MAD_OFF (UR_BTH_LEN + DETH_LEN)

/* A REQ that no REP has answered. */
struct asked {
	struct ur_gid src, dst;
	uint32_t comm_id, qpn;
	uint64_t service; /* 0: free */
};

struct known {
	struct ur_gid host;
	uint32_t qpn;
	uint64_t service; /* 0: free */
};

struct ur_fault_conns {
	unsigned next_asked;
	uint8_t next_way[SETS];
	struct asked asked[ASKED];
	struct known known[SETS][WAYS];
};

struct ur_fault_conns *ur_fault_conns_create(void)
{
	return calloc(1, sizeof(struct ur_fault_conns));
}

void ur_fault_conns_destroy(struct ur_fault_conns *c)
{
	free(c);
}

static unsigned set_of(const struct ur_gid *host, uint32_t qpn)
{
	return (unsigned)(ur_hash_bytes(UR_HASH_BEGIN ^ qpn, host->raw, sizeof(host->raw)) >> 20) & (SETS - 1);
}

uint64_t ur_fault_conns_service(const struct ur_fault_conns *c, const struct ur_gid *dst, uint32_t qpn)
{
	const struct known *k = c->known[set_of(dst, qpn)];

	for (unsigned i = 0; i < WAYS; i++)
		if (k[i].service && k[i].qpn == qpn && ur_gid_eq(&k[i].host, dst))
			return k[i].service;
	return 0;
}

static void learn(struct ur_fault_conns *c, const struct ur_gid *host, uint32_t qpn, uint64_t service)
{
	const unsigned set = set_of(host, qpn);
	unsigned way = c->next_way[set];

	for (unsigned i = 0; i < WAYS; i++)
		if (c->known[set][i].service && c->known[set][i].qpn == qpn && ur_gid_eq(&c->known[set][i].host, host))
			way = i;
	if (way == c->next_way[set])
		c->next_way[set] = (uint8_t)((way + 1) % WAYS);
	c->known[set][way] = (struct known){.host = *host, .qpn = qpn, .service = service};
}

/* What waits for an answer of that host. */
static struct asked *find_asked(struct ur_fault_conns *c, const struct ur_gid *src, const struct ur_gid *dst, uint32_t comm_id)
{
	for (unsigned i = 0; i < ASKED; i++) {
		struct asked *a = &c->asked[i];

		if (a->service && a->comm_id == comm_id && ur_gid_eq(&a->src, src) && ur_gid_eq(&a->dst, dst))
			return a;
	}
	return NULL;
}

static void hear_req(struct ur_fault_conns *c, const struct ur_fault_frame *f, const struct ur_cm_req *req)
{
	struct asked *a = find_asked(c, &f->src, &f->dst, req->local_comm_id);

	if (!a)
		a = &c->asked[c->next_asked++ % ASKED];
	*a = (struct asked){.src = f->src, .dst = f->dst, .comm_id = req->local_comm_id, .qpn = req->local_qpn, .service = req->service_id};
}

static void hear_rep(struct ur_fault_conns *c, const struct ur_fault_frame *f, const struct ur_cm_rep *rep)
{
	struct asked *a = find_asked(c, &f->dst, &f->src, rep->remote_comm_id);

	if (!a)
		return;
	learn(c, &f->src, rep->local_qpn, a->service);
	learn(c, &f->dst, a->qpn, a->service);
}

void ur_fault_conns_see(struct ur_fault_conns *c, const uint8_t *frame, const struct ur_fault_frame *f)
{
	struct ur_cm_msg m;

	if (f->bth.dqpn != 1 || f->bth.opcode != (UR_UD | UR_OP_SEND_ONLY) || f->payload < UR_MAD_LEN ||
	    !ur_cm_msg_parse(frame + f->bth_off + MAD_OFF, &m))
		return;
	if (m.attr == UR_CM_REQ)
		hear_req(c, f, &m.req);
	else if (m.attr == UR_CM_REP)
		hear_rep(c, f, &m.rep);
}
