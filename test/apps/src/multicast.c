/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of librdmacm that is a member of multicast groups, and does what mckey does not.
 *
 *   multicast SOURCE GROUP exit      joins, and ends by exit() without leaving
 *   multicast SOURCE GROUP events    joins, and prints every further event with its status; ends with the first MULTICAST_ERROR after it
 * has left and, from SOURCE2, joined again: multicast SOURCE GROUP events SOURCE2 multicast SOURCE GROUP own COUNT takes COUNT messages on
 * a QP of its own making, which it attaches by ibv_attach_mcast
 *
 * Says "joined" when it is a member.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRH 40
#define SLOT 4096
#define SLOTS 128

static struct rdma_event_channel *channel;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static struct sockaddr *address(const char *text)
{
	static struct sockaddr_storage ss[2];
	static unsigned i;
	struct sockaddr_in *v4 = (void *)&ss[i % 2];
	struct sockaddr_in6 *v6 = (void *)&ss[i++ % 2];

	memset(v4, 0, sizeof(ss[0]));
	v4->sin_family = AF_INET;
	if (inet_pton(AF_INET, text, &v4->sin_addr) != 1) {
		v6->sin6_family = AF_INET6;
		need(inet_pton(AF_INET6, text, &v6->sin6_addr) == 1, text);
	}
	return (struct sockaddr *)v4;
}

static struct rdma_cm_event *next_event(void)
{
	struct rdma_cm_event *ev;

	need(!rdma_get_cm_event(channel, &ev), "rdma_get_cm_event");
	return ev;
}

static struct rdma_cm_id *join(const char *source, const char *group, struct rdma_ud_param *ud)
{
	struct rdma_cm_event *ev;
	struct rdma_cm_id *id;

	need(!rdma_create_id(channel, &id, NULL, RDMA_PS_UDP), "rdma_create_id");
	need(!rdma_bind_addr(id, address(source)), "rdma_bind_addr");
	need(!rdma_join_multicast(id, address(group), NULL), "rdma_join_multicast");
	ev = next_event();
	need(ev->event == RDMA_CM_EVENT_MULTICAST_JOIN && ev->status == 0, rdma_event_str(ev->event));
	*ud = ev->param.ud;
	need(!rdma_ack_cm_event(ev), "rdma_ack_cm_event");
	return id;
}

static void joined(void)
{
	puts("joined");
	fflush(stdout);
}

static void print_events(struct rdma_cm_id *id, const char *group, const char *source2)
{
	struct rdma_cm_event *ev = next_event();
	struct rdma_ud_param ud;

	printf("%s %d\n", rdma_event_str(ev->event), ev->status);
	fflush(stdout);
	need(!rdma_ack_cm_event(ev), "rdma_ack_cm_event");
	need(!rdma_leave_multicast(id, address(group)), "rdma_leave_multicast");
	need(!rdma_destroy_id(id), "rdma_destroy_id");
	id = join(source2, group, &ud);
	puts("joined again");
	need(!rdma_leave_multicast(id, address(group)) && !rdma_destroy_id(id), "the second id");
}

static void receive(struct rdma_cm_id *id, struct rdma_ud_param *ud, unsigned count)
{
	static uint8_t mem[SLOTS][SLOT];
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .cap = {1, SLOTS, 1, 1, 0}};
	struct ibv_mr *mr;
	struct ibv_wc wc;

	need(!rdma_create_qp(id, NULL, &attr), "rdma_create_qp"); /* after the event: it is attached to nothing */
	need((mr = rdma_reg_msgs(id, mem, sizeof(mem))) != NULL, "rdma_reg_msgs");
	for (unsigned i = 0; i < SLOTS; i++)
		need(!rdma_post_recv(id, NULL, mem[i], SLOT, mr), "rdma_post_recv");
	need(!ibv_attach_mcast(id->qp, &ud->ah_attr.grh.dgid, ud->ah_attr.dlid), "ibv_attach_mcast");
	joined();
	for (unsigned i = 0; i < count; i++)
		need(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.byte_len > GRH, "rdma_get_recv_comp");
	need(!ibv_detach_mcast(id->qp, &ud->ah_attr.grh.dgid, ud->ah_attr.dlid), "ibv_detach_mcast");
	rdma_destroy_qp(id);
	need(!rdma_dereg_mr(mr), "rdma_dereg_mr");
	puts("received");
}

int main(int argc, char **argv)
{
	struct rdma_ud_param ud;
	struct rdma_cm_id *id;

	if (argc < 4)
		return 2;
	need((channel = rdma_create_event_channel()) != NULL, "rdma_create_event_channel");
	id = join(argv[1], argv[2], &ud);
	if (!strcmp(argv[3], "own")) {
		receive(id, &ud, (unsigned)atoi(argv[4]));
		need(!rdma_destroy_id(id), "rdma_destroy_id");
		return 0;
	}
	joined();
	if (!strcmp(argv[3], "events"))
		print_events(id, argv[2], argv[4]);
	return 0;
}
