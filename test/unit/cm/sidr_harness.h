/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests of lookups: users of them on the two sides of cm_harness.h. Side 0 asks, side 1 answers. */
#ifndef SIDR_HARNESS_H
#define SIDR_HARNESS_H

#include <CUnit/CUnit.h>
#include <errno.h>
#include <string.h>

#include "cm_harness.h"

#define SERVICE 0x01110b0bull /* UDP port space, port 0x0b0b */
#define INTERVAL (4096 * HX_MS)
#define SENDS 16u

/* Whoever asks or answers. */
struct user {
	struct hx *h;
	struct ur_cm_sidr *s; /* the latest */
	unsigned got[3];
	struct ur_cm_sidr_event last;
	struct ur_cm_msg msg;
	uint8_t pdata[UR_CM_PDATA_MAX];
	/* manners */
	bool answer, destroy, ignore;
	uint8_t status;
	uint32_t qpn;
};

static inline int give(struct user *u)
{
	struct ur_cm_sidr_rep_param p = {.status = u->status,
					 .qpn = u->qpn,
					 .qkey = 0x01234567,
					 .vendor_id = 0xabcdef,
					 .ece_options = 0x600d,
					 .pdata = "welcome",
					 .pdata_len = 7};

	return ur_cm_sidr_answer(u->s, &p, u->h->now);
}

static inline void drop(struct user *u)
{
	struct ur_cm_sidr *s = u->s;

	u->s = NULL;
	ur_cm_sidr_destroy(s, u->h->now);
}

static inline void on_event(void *owner, struct ur_cm_sidr *s, const struct ur_cm_sidr_event *ev, ur_time now)
{
	struct user *u = owner;

	CU_ASSERT(now == u->h->now);
	u->s = s;
	u->got[ev->type]++;
	u->last = *ev;
	if (ev->msg)
		u->msg = *ev->msg;
	memset(u->pdata, 0, sizeof(u->pdata));
	if (ev->pdata.len)
		memcpy(u->pdata, ev->pdata.data, ev->pdata.len);
	if (u->answer && ev->type == UR_CM_SIDR_EV_REQ)
		CU_ASSERT_EQUAL(give(u), 0);
	if (u->ignore) {
		u->s = NULL;
		ur_cm_sidr_ignore(s);
	} else if (u->destroy) {
		drop(u);
	}
}

static inline struct ur_cm_listener *listen_at(struct hx *h, int side, uint64_t service, struct user *u)
{
	static const struct ur_gid any;
	struct ur_cm_listener *l = NULL;

	u->h = h;
	CU_ASSERT_EQUAL_FATAL(ur_cm_sidr_listen(h->side[side].cm, service, &any, u, on_event, &l), 0);
	return l;
}

static inline int ask_with(struct hx *h, struct user *u, uint64_t service, const struct ur_rdma_cm_hdr *hdr, unsigned pdata_len)
{
	static const uint8_t pdata[UR_CM_SIDR_REQ_PDATA + 1] = "hello";
	struct ur_cm_sidr_req_param p = {.addr = {.sgid = h->side[0].gid, .dgid = h->side[1].gid},
					 .service_id = service,
					 .hdr = hdr,
					 .pdata = pdata,
					 .pdata_len = pdata_len};

	u->h = h;
	if (!u->s)
		CU_ASSERT_EQUAL_FATAL(ur_cm_sidr_create(h->side[0].cm, u, on_event, &u->s), 0);
	return ur_cm_sidr_query(u->s, &p, h->now);
}

static inline void ask(struct hx *h, struct user *u)
{
	struct ur_rdma_cm_hdr hdr = hx_hdr(h, 0);

	CU_ASSERT_EQUAL(ask_with(h, u, SERVICE, &hdr, 5), 0);
}

/* A SIDR_REQ with a good header, as from side 0. */
static inline struct ur_cm_msg request(struct hx *h, uint32_t id, uint8_t *room)
{
	struct ur_cm_msg m = {.attr = UR_CM_SIDR_REQ, .mad.tid = id, .pdata = room, .pdata_len = UR_RDMA_CM_HDR_LEN};
	struct ur_rdma_cm_hdr hdr = hx_hdr(h, 0);

	ur_rdma_cm_hdr_put(room, &hdr);
	m.sidr_req.request_id = id;
	m.sidr_req.service_id = SERVICE;
	return m;
}

static inline void inject_request(struct hx *h, uint32_t id)
{
	uint8_t room[UR_RDMA_CM_HDR_LEN];
	struct ur_cm_msg m = request(h, id, room);

	hx_inject_msg(h, 1, &m);
}

static inline uint8_t sent_status(struct hx *h)
{
	struct ur_cm_msg m;

	CU_ASSERT_TRUE_FATAL(ur_cm_msg_parse(HX_LAST(h, 1, SIDR_REP), &m));
	return m.sidr_rep.status;
}

static inline bool nothing_left(const struct hx *h, int side)
{
	const struct ur_cm *cm = h->side[side].cm;

	return ur_list_empty(&cm->sidrs) && ur_list_empty(&cm->answered) && !cm->nanswered;
}

/* --- losses, for the harness's `fate` --- */

static inline unsigned lose_all(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)h, (void)side, (void)attr, (void)nth;
	return 0;
}

/* arg[0] of side 0's messages are lost, arg[1] of side 1's. */
static inline unsigned lose_first(struct hx *h, int side, unsigned attr, unsigned nth)
{
	(void)attr;
	return nth > h->arg[side];
}

#endif
