/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of the processes that share the port gets a datagram: a classic BPF program (filter.txt of the kernel's documentation), whose
 * result is the place of a socket in the group. A packet is for the slot in the top byte of its destination QPN; a CM message, to QP 1, for
 * the slot in the top byte of the communication id that its receiver chose; a request that carries none yet for who listens on its port.
 */
#include <errno.h>
#include <linux/filter.h>

#include "drivers/udp/internal.h"
#include "wire/msg/cm_msg.h"

/* Bytes of the datagram: BTH, DETH (20 in all), MAD header (24), CM message. */
#define QPN_TOP 5
#define ATTRIBUTE_ID (20 + 16)
#define LOCAL_ID_TOP (20 + 24)     /* for a SIDR_REP: the id of the request */
#define REMOTE_ID_TOP (20 + 24 + 4)
#define SERVICE_PORT (20 + 24 + 14) /* the service id's last two bytes */

#define MAX_LEN (3 * 2 * 256 + 2 * UR_PORT_LISTENS + 24) /* the slots three times, the ports, and the rest */
_Static_assert(MAX_LEN <= BPF_MAXINSNS, "the kernel takes no longer program");

struct program {
	struct sock_filter f[MAX_LEN];
	uint32_t len;
};

static void add_statement(struct program *p, uint16_t code, uint32_t k)
{
	p->f[p->len++] = (struct sock_filter)BPF_STMT(code, k);
}

static void load(struct program *p, uint16_t size, uint32_t at)
{
	add_statement(p, BPF_LD | size | BPF_ABS, at);
}

/* Unless what was loaded is `value`, the next instruction is passed over. */
static void if_is(struct program *p, uint32_t value)
{
	p->f[p->len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
}

/* A jump whose target is not there yet; land() lets it lead to the next instruction. */
static uint32_t jump(struct program *p)
{
	add_statement(p, BPF_JMP | BPF_JA, 0);
	return p->len - 1;
}

static void land(struct program *p, uint32_t from)
{
	p->f[from].k = p->len - from - 1;
}

static void to_slots(struct program *p, const struct ur_port_sharing *s)
{
	for (unsigned i = 0; i < s->sharers; i++) {
		if_is(p, s->slot[i]);
		add_statement(p, BPF_RET | BPF_K, i);
	}
}

static void to_listeners(struct program *p, const struct ur_port_sharing *s)
{
	load(p, BPF_H, SERVICE_PORT);
	for (unsigned i = 0; i < s->listens; i++) {
		if_is(p, s->listen[i].port);
		add_statement(p, BPF_RET | BPF_K, s->listen[i].sharer);
	}
}

/* The top byte of the QPN was 0, which no process has, and which QP 1 has. A load beyond the end of a datagram ends the program with 0. */
static void management(struct program *p, const struct ur_port_sharing *s)
{
	uint32_t mad, request, lookup, answer, unknown, others;

	if_is(p, 0);
	mad = jump(p);
	others = jump(p);
	land(p, mad);
	load(p, BPF_H, ATTRIBUTE_ID);
	if_is(p, UR_CM_REQ);
	request = jump(p);
	if_is(p, UR_CM_SIDR_REQ);
	lookup = jump(p);
	if_is(p, UR_CM_SIDR_REP);
	answer = jump(p);
	load(p, BPF_B, REMOTE_ID_TOP);
	to_slots(p, s);
	unknown = jump(p);
	land(p, answer);
	load(p, BPF_B, LOCAL_ID_TOP);
	to_slots(p, s);
	land(p, request);
	land(p, lookup);
	to_listeners(p, s);
	land(p, unknown);
	land(p, others);
}

/*
 * What is for none of them goes to any, who passes it on; by chance and not by the kernel's hash, with which each repetition would meet the
 * same process, and in vain if that one is stopped.
 */
static void by_chance(struct program *p, unsigned sharers)
{
	load(p, BPF_W, (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM));
	if (sharers)
		add_statement(p, BPF_ALU | BPF_MOD | BPF_K, sharers);
	add_statement(p, BPF_RET | BPF_A, 0); /* beyond the group: the kernel's hash decides */
}

int ur_udp_steer(struct ur_port *p, const struct ur_port_sharing *s)
{
	struct program program = {.len = 0};
	struct sock_fprog prog = {.filter = program.f};

	if (s->sharers > UR_PORT_SHARERS || s->listens > UR_PORT_LISTENS)
		return EINVAL;
	load(&program, BPF_B, QPN_TOP);
	to_slots(&program, s);
	management(&program, s);
	by_chance(&program, s->sharers);
	prog.len = (unsigned short)program.len;
	return setsockopt(ur_udp_of(p)->fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog, sizeof(prog)) ? errno : 0;
}
