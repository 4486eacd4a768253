/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A plain program of librdmacm that offers and uses a datagram service by endpoints, for what udaddy does not do: private data both ways,
 * requests that are refused, rdma_post_ud_send.
 *
 *   datagrams PORT           the server, until a client tells it to end
 *   datagrams PORT ADDR [l]  a client: is refused once, accepted once; with l, tells the server to end
 */
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASKED 180 /* bytes of private data, the most that there is room for */
#define ANSWERED 136
#define SIZE 1000
#define GRH 40

static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static struct {
	uint8_t in[GRH + SIZE], out[SIZE];
} buf;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "datagrams: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* What a side says about `subject`: nothing that another side or subject would say. */
static const uint8_t *words(int subject, int server, unsigned len)
{
	static uint8_t w[SIZE];

	memset(w, 0, sizeof(w));
	for (unsigned i = 0; i < len; i++)
		w[i] = (uint8_t)(subject + 7 * i + 100 * server);
	w[0] = (uint8_t)subject;
	return w;
}

static struct rdma_conn_param saying(int subject, int server, unsigned len)
{
	return (struct rdma_conn_param){.private_data = words(subject, server, len), .private_data_len = (uint8_t)len};
}

/* The private data of the event that the id holds. */
static int heard(int subject, int server, unsigned len)
{
	const struct rdma_ud_param *p = &id->event->param.ud;

	return p->private_data && p->private_data_len == len && !memcmp(p->private_data, words(subject, server, len), len);
}

static struct rdma_cm_id *endpoint(const char *addr, const char *port)
{
	struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_UDP, .ai_flags = addr ? 0 : RAI_PASSIVE}, *ai;
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_UD, .cap = {4, 4, 1, 1, 0}};
	struct rdma_cm_id *ep;

	need(!rdma_getaddrinfo(addr ? addr : "::", port, &hints, &ai), "rdma_getaddrinfo");
	need(!rdma_create_ep(&ep, ai, NULL, &attr), "rdma_create_ep");
	rdma_freeaddrinfo(ai);
	return ep;
}

static void prepare(void)
{
	mr = rdma_reg_msgs(id, &buf, sizeof(buf));
	need(mr != NULL, "rdma_reg_msgs");
	need(!rdma_post_recv(id, &buf, buf.in, sizeof(buf.in), mr), "rdma_post_recv");
}

static void finish(void)
{
	need(!mr || !rdma_dereg_mr(mr), "rdma_dereg_mr");
	mr = NULL;
	rdma_destroy_ep(id);
}

static void send_words(int subject, int server, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_wc wc;

	need(ah != NULL, "address handle");
	memcpy(buf.out, words(subject, server, SIZE), SIZE);
	need(!rdma_post_ud_send(id, &wc, buf.out, SIZE, mr, IBV_SEND_SIGNALED, ah, qpn), "rdma_post_ud_send");
	need(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS && wc.wr_id == (uintptr_t)&wc, "send completion");
	need(!ibv_destroy_ah(ah), "ibv_destroy_ah");
}

static struct ibv_wc receive_words(int subject, int server)
{
	struct ibv_wc wc;

	need(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS, "receive");
	need(wc.byte_len == sizeof(buf.in) && wc.wc_flags & IBV_WC_GRH && wc.wr_id == (uintptr_t)&buf, "completion of a receive");
	need(!memcmp(buf.in + GRH, words(subject, server, SIZE), SIZE), "what was received");
	return wc;
}

/* --- the server --- */

static int serve_one(struct rdma_cm_id *listener)
{
	struct rdma_conn_param p;
	struct ibv_wc wc;
	int subject;

	need(!rdma_get_request(listener, &id), "rdma_get_request");
	subject = *(const uint8_t *)id->event->param.ud.private_data;
	need(heard(subject, 0, ASKED), "private data of a request");
	if (subject == 'r') {
		need(!rdma_reject(id, words('r', 1, ANSWERED), ANSWERED), "rdma_reject");
	} else {
		prepare();
		p = saying(subject, 1, ANSWERED);
		need(!rdma_accept(id, &p), "rdma_accept");
		need(rdma_accept(id, &p) == -1 && errno == EINVAL, "a second rdma_accept");
		wc = receive_words(subject, 0);
		send_words(subject, 1, ibv_create_ah_from_wc(id->pd, &wc, (struct ibv_grh *)buf.in, id->port_num), wc.src_qp);
	}
	finish();
	return subject;
}

static void serve(const char *port)
{
	struct rdma_cm_id *listener = endpoint(NULL, port);

	need(!rdma_listen(listener, 8), "rdma_listen");
	while (serve_one(listener) != 'l')
		;
	rdma_destroy_ep(listener);
}

/* --- the client --- */

static void be_refused(const char *addr, const char *port)
{
	struct rdma_conn_param p = saying('r', 0, ASKED);

	id = endpoint(addr, port);
	need(rdma_connect(id, &p) == -1 && id->event && id->event->event == RDMA_CM_EVENT_UNREACHABLE, "a refused rdma_connect");
	need(id->event->status == 2 && heard('r', 1, ANSWERED), "how it was refused");
	finish();
	printf("refused\n");
}

static void be_accepted(const char *addr, const char *port, int subject)
{
	struct rdma_conn_param p = saying(subject, 0, ASKED);
	struct rdma_ud_param *ud;

	id = endpoint(addr, port);
	prepare();
	need(!rdma_connect(id, &p) && id->event->event == RDMA_CM_EVENT_ESTABLISHED, "rdma_connect");
	need(heard(subject, 1, ANSWERED), "private data of the answer");
	ud = &id->event->param.ud;
	need(ud->qkey == RDMA_UDP_QKEY && ud->qp_num, "QPN and Q_Key");
	send_words(subject, 0, ibv_create_ah(id->pd, &ud->ah_attr), ud->qp_num);
	need(receive_words(subject, 1).src_qp == ud->qp_num, "the sender");
	finish();
	printf("accepted\n");
}

int main(int argc, char **argv)
{
	if (argc < 2 || argc > 4)
		return 2;
	if (argc == 2) {
		serve(argv[1]);
		return 0;
	}
	be_refused(argv[2], argv[1]);
	be_accepted(argv[2], argv[1], argc == 4 ? *argv[3] : 'a');
	return 0;
}
