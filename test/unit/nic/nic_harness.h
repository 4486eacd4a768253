/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole NICs on a perfect fabric in virtual time, each with a protection domain, a completion queue and memory. NIC i has slot i + 1 and
 * the addresses 10.0.0.(i + 1) and fd00::(i + 1).
 */
#ifndef UR_NIC_HARNESS_H
#define UR_NIC_HARNESS_H

#include <CUnit/CUnit.h>

#include "nic/nic.h"
#include "test/port/sim.h"
#include "wire/frame.h"

#define NICS_MAX 4
#define NICS_MEM 65536
#define NICS_QKEY 0x1ee7u

struct nics_qp {
	struct ur_qp *qp;
	struct ur_net_path path;
	unsigned nic;
	enum ibv_qp_type type;
};

struct nics_node {
	struct ur_nic *nic;
	struct ur_pd *pd;
	struct ur_cq *cq; /* of sends and receives */
	struct ur_mr *mr;
	uint8_t mem[NICS_MEM];
};

struct nics {
	struct ur_sim *sim;
	struct nics_node n[NICS_MAX];
	unsigned nics;
	unsigned sharers; /* the first of them have the addresses and the MAC of NIC 0: processes of one device */
	unsigned stopped; /* NICs that nobody polls, a bit each */
	ur_time step;     /* how long what is due and cannot be done is left alone; 0: a nanosecond, or with stopped NICs a microsecond */
	ur_time now;
};

/*
 * The other processes of a device: NIC i is the one with slot i + 1, and its mailbox a queue that the others send into. nics_mail_open
 * sets `inbox` and `sibling` of a NIC's configuration; a test may unset one.
 */
struct nics_mailbox {
	struct ur_queue queue;
	struct ur_loop loop;
	unsigned waiting, room, sent;
};
extern struct nics_mailbox nics_mail[NICS_MAX];
void nics_mail_open(struct nics *h, unsigned room);
/* From now on each copies the payload of bulk packets from the others; every nics_fetch_fails-th time it cannot (0: it always can). */
void nics_mail_fetch(struct nics *h);
extern enum ur_fetched_by nics_fetched_by; /* what a copy that succeeds says */
extern unsigned nics_fetch_fails, nics_fetched;
/* Gives back what waits, and cuts the NICs off. */
void nics_mail_close(struct nics *h);

void nics_open(struct nics *h, unsigned nics);
/* The same with trains of up to 16 packets, and the first `bare` of the ports bare, which know the IPv4 addresses alone. */
void nics_open_bare(struct nics *h, unsigned nics, unsigned bare);
void nics_open_host(struct nics *h, unsigned nics);
/* As nics_open_bare, all of them bare, and the first `sharers` processes of one device. */
void nics_open_bare_host(struct nics *h, unsigned nics, unsigned sharers);
/* Destroys everything and checks that every packet has come back. */
void nics_close(struct nics *h);
/* Lets everything happen that happens until `d` from now. */
void nics_run(struct nics *h, ur_time d);
/* That counter of all NICs together. */
uint64_t nics_sum(const struct nics *h, enum ur_counter c);

struct ur_gid nics_gid(const struct nics *h, unsigned nic, bool v6);
/* Index 0 is the IPv4 address. */
struct ibv_ah_attr nics_route(const struct ur_gid *to, uint8_t sgid_index);

void nics_qp_create(struct nics *h, unsigned nic, enum ibv_qp_type type, struct nics_qp *q);
/* To RTS; RC and UC to the peer, which may be the QP itself. 256 bytes MTU. */
void nics_qp_connect(struct nics *h, struct nics_qp *q, const struct nics_qp *peer);
void nics_qp_destroy(struct nics *h, struct nics_qp *q);

/* `len` bytes from `off`; writes go to `roff` of the memory of NIC `peer`; datagrams to ah. */
int nics_post(struct nics *h, struct nics_qp *q, enum ibv_wr_opcode op, uint64_t wr_id, uint32_t off, uint32_t len, unsigned peer,
	      uint32_t roff);
int nics_post_ud(struct nics *h, struct nics_qp *q, struct ur_ah *ah, uint32_t qpn, uint64_t wr_id, uint32_t off, uint32_t len);
void nics_recv(struct nics *h, struct nics_qp *q, uint64_t wr_id, uint32_t off, uint32_t len);
/* Takes the next completion of the NIC and checks wr_id and status. */
struct ibv_wc nics_expect(struct nics *h, unsigned nic, uint64_t wr_id, enum ibv_wc_status status);
void nics_expect_none(struct nics *h, unsigned nic);

#endif
