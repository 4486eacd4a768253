/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/observe/publish.c and lib/transport/qp_snapshot.c: what stands in the memory that others read, and when it is written. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nic/internal.h"
#include "nic_harness.h"
#include "observe/publish.h"
#include "observe/status.h"

void ur_suite_publish(void);

#define MANY 150 /* more than are written at a time, twice */

static struct nics h;
static struct ur_publisher *p;
static struct ur_status copy;
static struct ur_status_view v;
static struct nics_qp qp[MANY];
static char path[300]; /* of the memory, as others open it */

static bool find_path(void)
{
	DIR *d = opendir("/proc/self/fd");
	char link[64];
	struct dirent *e;
	ssize_t n;

	path[0] = 0;
	while (d && (e = readdir(d))) {
		n = readlinkat(dirfd(d), e->d_name, link, sizeof(link) - 1);
		if (n > 0 && !strncmp(link, "/memfd:" UR_STATUS_FILE, strlen("/memfd:" UR_STATUS_FILE)))
			snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
	}
	if (d)
		closedir(d);
	return path[0];
}

static void read_back(void)
{
	int fd = open(path, O_RDONLY);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL_FATAL(read(fd, &copy, sizeof(copy)), sizeof(copy));
	close(fd);
	CU_ASSERT_EQUAL_FATAL(ur_status_check(&copy, sizeof(copy), copy.changes, copy.changes, getpid(), &v), UR_STATUS_GOOD);
}

static void open_two(unsigned qps)
{
	nics_open(&h, 2);
	CU_ASSERT_EQUAL_FATAL(ur_publisher_open("uroce0", 0, "eth0", "udp", h.n[0].nic->port, h.now, &p), 0);
	CU_ASSERT_FATAL(find_path());
	for (unsigned i = 0; i < qps; i++)
		nics_qp_create(&h, 0, IBV_QPT_UC, &qp[i]);
}

static void close_two(unsigned qps)
{
	for (unsigned i = 0; i < qps; i++)
		nics_qp_destroy(&h, &qp[i]);
	ur_publisher_close(p);
	CU_ASSERT_FALSE(find_path());
	nics_close(&h);
}

static const struct ur_nic *nic(void)
{
	return h.n[0].nic;
}

static ur_time next(void)
{
	return ur_publisher_next(p, nic());
}

/* --- what --- */

static void write__qp_and_peer(void)
{
	struct ur_gid a, b;

	open_two(0);
	nics_qp_create(&h, 0, IBV_QPT_RC, &qp[0]);
	nics_qp_create(&h, 1, IBV_QPT_RC, &qp[1]);
	nics_qp_connect(&h, &qp[0], &qp[1]);
	nics_qp_connect(&h, &qp[1], &qp[0]);
	CU_ASSERT_EQUAL(nics_post(&h, &qp[0], IBV_WR_RDMA_WRITE, 1, 0, 1000, 1, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	ur_publisher_write(p, nic(), h.now);
	read_back();
	a = nics_gid(&h, 0, false);
	b = nics_gid(&h, 1, false);
	CU_ASSERT_STRING_EQUAL(v.device, "uroce0");
	CU_ASSERT_EQUAL(v.at, h.now);
	CU_ASSERT_EQUAL(v.counter[UR_C_TX_ROCE], nic()->counters.v[UR_C_TX_ROCE]);
	CU_ASSERT_TRUE(v.counter[UR_C_TX_ROCE] >= 4);
	CU_ASSERT_EQUAL_FATAL(v.count, 1);
	CU_ASSERT_EQUAL(v.qp[0].qpn, ur_qp_num(qp[0].qp));
	CU_ASSERT_EQUAL(v.qp[0].dqpn, ur_qp_num(qp[1].qp));
	CU_ASSERT_EQUAL(v.qp[0].type, IBV_QPT_RC);
	CU_ASSERT_EQUAL(v.qp[0].state, IBV_QPS_RTS);
	CU_ASSERT_EQUAL(v.qp[0].mtu, 256);
	CU_ASSERT_TRUE(v.qp[0].connected && ur_gid_eq(&v.qp[0].local, &a) && ur_gid_eq(&v.qp[0].peer, &b));
	CU_ASSERT_EQUAL(v.qp[0].n.tx_packets, 4);
	CU_ASSERT_EQUAL(v.qp[0].n.tx_bytes, 1000);
	CU_ASSERT_TRUE(v.qp[0].srtt > 0 && v.qp[0].rtt_min > 0 && v.qp[0].window > 0);
	CU_ASSERT_EQUAL(v.qp[0].in_flight, 0);
	CU_ASSERT_EQUAL(v.qp[0].unfinished, 0);
	CU_ASSERT_EQUAL(v.qp[0].rate_kbps, 0);
	CU_ASSERT_EQUAL(v.qp[0].at, h.now);
	close_two(2);
}

/* What a QP waits for, while its peer is silent; and what the CNPs that it got limit it to. */
static void write__under_way(void)
{
	open_two(0);
	nics_qp_create(&h, 0, IBV_QPT_RC, &qp[0]);
	nics_qp_create(&h, 1, IBV_QPT_RC, &qp[1]);
	nics_qp_connect(&h, &qp[0], &qp[1]);
	nics_qp_connect(&h, &qp[1], &qp[0]);
	h.stopped = 1u << 1;
	CU_ASSERT_EQUAL(nics_post(&h, &qp[0], IBV_WR_RDMA_WRITE, 1, 0, 1000, 1, 0), 0);
	CU_ASSERT_EQUAL(nics_post(&h, &qp[0], IBV_WR_RDMA_WRITE, 2, 0, 100, 1, 0), 0);
	nics_run(&h, 10 * UR_NS_PER_US);
	ur_publisher_write(p, nic(), h.now);
	read_back();
	CU_ASSERT_EQUAL(v.qp[0].in_flight, 5);
	CU_ASSERT_EQUAL(v.qp[0].unfinished, 2);
	h.stopped = 0;
	nics_run(&h, 100 * UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	nics_expect(&h, 0, 2, IBV_WC_SUCCESS);
	close_two(2);
}

static void write__datagram_qp_has_no_peer(void)
{
	open_two(0);
	nics_qp_create(&h, 0, IBV_QPT_UD, &qp[0]);
	nics_qp_connect(&h, &qp[0], NULL);
	ur_publisher_write(p, nic(), h.now);
	read_back();
	CU_ASSERT_FALSE(v.qp[0].connected);
	CU_ASSERT_EQUAL(v.qp[0].type, IBV_QPT_UD);
	CU_ASSERT_EQUAL(v.qp[0].window, 0);
	close_two(1);
}

/* A part of them at a time, so that nobody waits for long; all within the time of one pass. A QP that is gone is gone with the next pass.
 */
static void write__many_in_parts(void)
{
	ur_time end;

	open_two(MANY);
	end = h.now + UR_STATUS_EVERY;
	ur_publisher_touch(p);
	ur_publisher_write(p, nic(), h.now);
	read_back();
	CU_ASSERT_EQUAL(v.count, 64);
	CU_ASSERT_EQUAL(v.total, MANY);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_TRUE(next() > h.now && next() <= end);
		h.now = next();
		ur_publisher_write(p, nic(), h.now);
	}
	read_back();
	CU_ASSERT_EQUAL(v.count, MANY);
	CU_ASSERT_TRUE(h.now < end);
	CU_ASSERT_EQUAL(next(), UR_TIME_NEVER);
	for (unsigned i = 0; i < MANY - 3; i++)
		nics_qp_destroy(&h, &qp[i]);
	ur_publisher_write(p, nic(), h.now);
	read_back();
	CU_ASSERT_EQUAL(v.count, 3);
	CU_ASSERT_EQUAL(v.total, 3);
	memmove(qp, qp + MANY - 3, 3 * sizeof(qp[0]));
	close_two(3);
}

/* --- when --- */

static void next__by_what_happens(void)
{
	open_two(0);
	CU_ASSERT_EQUAL(next(), 0); /* nothing has been written */
	ur_publisher_write(p, nic(), h.now);
	CU_ASSERT_EQUAL(next(), UR_TIME_NEVER); /* no QP: nothing can happen of itself */
	ur_publisher_touch(p);
	CU_ASSERT_EQUAL(next(), h.now + UR_STATUS_EVERY);
	nics_qp_create(&h, 0, IBV_QPT_RC, &qp[0]);
	nics_qp_create(&h, 1, IBV_QPT_RC, &qp[1]);
	nics_qp_connect(&h, &qp[0], &qp[1]);
	nics_qp_connect(&h, &qp[1], &qp[0]);
	ur_publisher_write(p, nic(), h.now);
	CU_ASSERT_EQUAL(next(), UR_TIME_NEVER); /* however many QPs there are, if nothing happens to them */
	ur_count(&h.n[0].nic->counters, UR_C_ACK_TIMEOUT);
	CU_ASSERT_EQUAL(next(), h.now + UR_STATUS_EVERY);
	ur_publisher_write(p, nic(), h.now);
	h.stopped = 1;
	CU_ASSERT_EQUAL(nics_post(&h, &qp[0], IBV_WR_RDMA_WRITE, 1, 0, 100, 1, 0), 0);
	ur_nic_drain_doorbells(h.n[0].nic);
	CU_ASSERT_EQUAL(next(), h.now + UR_STATUS_EVERY); /* a request that nothing has been sent of */
	h.stopped = 0;
	ur_publisher_write(p, nic(), h.now);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	ur_publisher_write(p, nic(), h.now);
	CU_ASSERT_EQUAL(next(), UR_TIME_NEVER);
	CU_ASSERT_EQUAL(nics_post(&h, &qp[0], IBV_WR_RDMA_WRITE, 1, 0, 100, 1, 0), 0);
	nics_run(&h, UR_NS_PER_MS);
	nics_expect(&h, 0, 1, IBV_WC_SUCCESS);
	CU_ASSERT_EQUAL(next(), h.now - UR_NS_PER_MS + UR_STATUS_EVERY);
	close_two(2);
}

/* --- who --- */

/* Others open it to read, and cannot write, change its size, or leave it to be written. */
/* What an onlooker makes of the lanes of a device. */
static void lanes__are_added_up(void)
{
	static struct ur_status_view one, two;
	static const uint32_t numbers[2][2] = {{3, 9}, {5, 1}};

	for (unsigned i = 0; i < 2; i++) {
		one.qp[i].qpn = numbers[0][i];
		two.qp[i].qpn = numbers[1][i];
	}
	one.count = two.count = 2;
	one.total = 2;
	two.total = 7;
	one.lanes = 1;
	two.lanes = 4;
	one.at = 50;
	two.at = 60;
	one.started = 5;
	two.started = 6;
	two.has[UR_C_RX_ROCE] = true;
	one.counter[UR_C_RX_ROCE] = 10;
	two.counter[UR_C_RX_ROCE] = 20;
	ur_status_add_lane(&one, &two);
	CU_ASSERT(one.count == 4 && one.total == 9 && one.lanes == 5 && one.at == 60 && one.started == 5);
	CU_ASSERT(one.qp[0].qpn == 1 && one.qp[1].qpn == 3 && one.qp[2].qpn == 5 && one.qp[3].qpn == 9);
	CU_ASSERT(one.has[UR_C_RX_ROCE] && one.counter[UR_C_RX_ROCE] == 30);
	one.count = UR_STATUS_QPS - 1;
	ur_status_add_lane(&one, &two);
	CU_ASSERT_EQUAL(one.count, UR_STATUS_QPS);
}

static void memory__is_read_only(void)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct stat st;
	void *m;
	int fd;

	open_two(0);
	fd = open(path, O_RDWR);
	CU_ASSERT_FATAL(fd >= 0 || geteuid()); /* root may, by the mode */
	if (fd < 0)
		fd = open(path, O_RDONLY);
	CU_ASSERT_EQUAL(fstat(fd, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0400);
	CU_ASSERT_EQUAL(st.st_size, sizeof(struct ur_status));
	CU_ASSERT_EQUAL(fcntl(fd, F_GET_SEALS) & seals, seals);
	CU_ASSERT_TRUE(write(fd, "x", 1) < 0);
	m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CU_ASSERT_PTR_EQUAL(m, MAP_FAILED);
	CU_ASSERT_TRUE(ftruncate(fd, 0) < 0);
	CU_ASSERT_EQUAL(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
	close(fd);
	close_two(0);
}

static int map(struct ur_port *port, void *addr, size_t len, struct ur_dma *dma, char *err, size_t errlen)
{
	(void)port, (void)addr, (void)len, (void)dma, (void)err, (void)errlen;
	return 0;
}

static void arm(struct ur_queue *q, bool on)
{
	(void)q, (void)on;
}

static void says_what_the_port_uses(const struct ur_port *port, const char *uses)
{
	CU_ASSERT_EQUAL_FATAL(ur_publisher_open("uroce0", 0, "0000:00:03.0", "dpdk", port, 1, &p), 0);
	CU_ASSERT_FATAL(find_path());
	read_back();
	CU_ASSERT_STRING_EQUAL(v.uses, uses);
	ur_publisher_close(p);
}

static void open__says_what_the_port_uses(void)
{
	struct ur_queue_ops queue_ops = {.rx = NULL};
	struct ur_port_ops ops = {.link_up = NULL};
	struct ur_queue queue = {.ops = &queue_ops, .train_pkts = 1};
	struct ur_port port = {.ops = &ops, .queue = &queue};

	says_what_the_port_uses(&port, "");
	queue.train_pkts = 2;
	says_what_the_port_uses(&port, "segmentation offload");
	ops.map = map;
	queue_ops.arm = arm;
	says_what_the_port_uses(&port, "segmentation offload, registered memory in place, receive interrupt");
	queue.train_pkts = 0;
	says_what_the_port_uses(&port, "registered memory in place, receive interrupt");
}

void ur_suite_publish(void)
{
	CU_pSuite s = CU_add_suite("publish", NULL, NULL);

	CU_ADD_TEST(s, write__qp_and_peer);
	CU_ADD_TEST(s, write__under_way);
	CU_ADD_TEST(s, write__datagram_qp_has_no_peer);
	CU_ADD_TEST(s, write__many_in_parts);
	CU_ADD_TEST(s, next__by_what_happens);
	CU_ADD_TEST(s, open__says_what_the_port_uses);
	CU_ADD_TEST(s, lanes__are_added_up);
	CU_ADD_TEST(s, memory__is_read_only);
}
