/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/watch: rates from two looks, order, choice, and lines of text. */
#include <CUnit/CUnit.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"
#include "wire/frame.h"

void ur_suite_watch(void);

#define S UR_NS_PER_S
#define NEAR(a, b) CU_ASSERT_DOUBLE_EQUAL(a, b, 1e-6 * (b) + 1e-9)

static struct ur_gid v4(uint8_t last)
{
	return (struct ur_gid){.raw = {[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = last}};
}

/* A process with up to four QPs. */
static struct ur_watch_process *process(int pid, const char *program, unsigned qps)
{
	struct ur_watch_process *p = calloc(1, sizeof(*p));

	p->pid = pid;
	p->born = 1;
	p->status.started = 1;
	p->status.count = p->status.total = qps;
	snprintf(p->program, sizeof(p->program), "%s", program);
	for (unsigned i = 0; i < qps; i++)
		p->status.qp[i] = (struct ur_status_qp){.qpn = (uint32_t)pid << 16 | i,
							.type = IBV_QPT_RC,
							.state = IBV_QPS_RTS,
							.connected = true,
							.peer = v4(1),
							.at = S};
	return p;
}

static struct ur_watch_sample *look_of(struct ur_watch_process *a, struct ur_watch_process *b)
{
	struct ur_watch_sample *l = calloc(1, sizeof(*l) + 2 * sizeof(l->process[0]));

	l->process[l->count++] = a;
	if (b)
		l->process[l->count++] = b;
	return l;
}

static void forget(struct ur_watch_sample *l)
{
	for (unsigned i = 0; i < l->count; i++)
		free(l->process[i]);
	free(l);
}

/* --- rates --- */

static void rates__by_hand(void)
{
	struct ur_status_qp was = {.at = S, .n = {.tx_bytes = 1000, .rx_bytes = 0, .tx_packets = 10, .rx_packets = 4, .retransmits = 1}};
	struct ur_status_qp is = {
		.at = S + S / 2,
		.n = {.tx_bytes = 2000, .rx_bytes = 500, .tx_packets = 20, .rx_packets = 5, .retransmits = 4, .cnp_handled = 1}};
	struct ur_watch_rates r = ur_watch_rates(&was, &is);

	CU_ASSERT_TRUE(r.known);
	NEAR(r.tx_bits, 16000);
	NEAR(r.rx_bits, 8000);
	NEAR(r.tx_packets, 20);
	NEAR(r.rx_packets, 2);
	NEAR(r.retransmits, 6);
	NEAR(r.cnps, 2);
}

/* A QP that was reset counts from 0; one that did nothing, or lies about the time, has no rate; the largest numbers are no trouble. */
static void rates__odd_samples(void)
{
	struct ur_status_qp was = {.at = S, .n = {.tx_packets = 1000, .tx_bytes = UINT64_MAX}}, is = {.at = 2 * S, .n = {.tx_packets = 30}};

	NEAR(ur_watch_rates(&was, &is).tx_packets, 30);
	NEAR(ur_watch_rates(&was, &is).tx_bits, 0);
	is.at = S;
	NEAR(ur_watch_rates(&was, &is).tx_packets, 0);
	is.at = S / 2;
	CU_ASSERT_TRUE(ur_watch_rates(&was, &is).known);
	NEAR(ur_watch_rates(&was, &is).tx_packets, 0);
	was = (struct ur_status_qp){.at = 0};
	is = (struct ur_status_qp){.at = 1, .n = {.tx_bytes = UINT64_MAX}};
	CU_ASSERT_TRUE(ur_watch_rates(&was, &is).tx_bits < 1e30);
}

/* Only what was there before, in the same process, has rates. */
static void rows__same_process(void)
{
	struct ur_watch_sample *before = look_of(process(1, "a", 1), process(2, "b", 1));
	struct ur_watch_sample *now = look_of(process(1, "a", 2), process(2, "b", 1));
	struct ur_watch_row rows[4];

	now->process[0]->status.qp[0].at = 2 * S;
	now->process[0]->status.qp[0].n.tx_packets = 5;
	CU_ASSERT_EQUAL(ur_watch_row_count(now), 3);
	CU_ASSERT_EQUAL_FATAL(ur_watch_rows(NULL, now, rows), 3);
	CU_ASSERT_FALSE(rows[0].rates.known);
	CU_ASSERT_EQUAL_FATAL(ur_watch_rows(before, now, rows), 3);
	CU_ASSERT_TRUE(rows[0].rates.known);
	NEAR(rows[0].rates.tx_packets, 5);
	CU_ASSERT_FALSE(rows[1].rates.known); /* a new QP */
	CU_ASSERT_TRUE(rows[2].rates.known);
	now->process[1]->born = 2; /* another process that got its number */
	CU_ASSERT_EQUAL(ur_watch_rows(before, now, rows), 3);
	CU_ASSERT_FALSE(rows[2].rates.known);
	now->process[1]->born = 1;
	now->process[1]->status.started = 9; /* the same after an exec */
	CU_ASSERT_EQUAL(ur_watch_rows(before, now, rows), 3);
	CU_ASSERT_FALSE(rows[2].rates.known);
	now->process[0]->unreadable = true;
	CU_ASSERT_EQUAL(ur_watch_row_count(now), 1);
	CU_ASSERT_EQUAL(ur_watch_rows(before, now, rows), 1);
	forget(before);
	forget(now);
}

/* A process with two devices publishes two, and each has its own past. */
static void find__by_interface(void)
{
	struct ur_watch_process *one = process(7, "a", 1), *two = process(7, "a", 1), *other = process(5, "b", 1);
	struct ur_watch_sample *l = look_of(one, two), *single = look_of(other, NULL);

	strcpy(one->status.interface, "eth0");
	strcpy(two->status.interface, "eth1");
	CU_ASSERT(ur_watch_process_compare(&one, &two) < 0 && ur_watch_process_compare(&two, &one) > 0);
	CU_ASSERT(ur_watch_process_compare(&other, &one) < 0 && ur_watch_process_compare(&one, &one) == 0);
	CU_ASSERT_PTR_EQUAL(ur_watch_process_find(l, 7, "eth1"), two);
	CU_ASSERT_PTR_EQUAL(ur_watch_process_find(l, 7, "eth0"), one);
	CU_ASSERT_PTR_NULL(ur_watch_process_find(l, 7, "eth2"));
	CU_ASSERT_PTR_NULL(ur_watch_process_find(single, 7, ""));
	CU_ASSERT_PTR_NULL(ur_watch_process_find(NULL, 7, "eth0"));
	CU_ASSERT_EQUAL(ur_watch_process_count(l, false), 1);
	CU_ASSERT_EQUAL(ur_watch_process_count(single, false), 1);
	other->unreadable = true;
	CU_ASSERT(ur_watch_process_count(single, false) == 0 && ur_watch_process_count(single, true) == 1);
	forget(l);
	forget(single);
}

/* --- order and choice --- */

static struct ur_watch_process *first, *second;
static struct ur_watch_row rows[4];

/* Two of each process, which differ in everything that can be sorted by. */
static struct ur_watch_sample *four(void)
{
	struct ur_watch_sample *l = look_of(first = process(10, "rping", 2), second = process(20, "ib_write_bw", 2));

	CU_ASSERT_EQUAL_FATAL(ur_watch_rows(NULL, l, rows), 4);
	for (unsigned i = 0; i < 4; i++) {
		struct ur_status_qp *q = i < 2 ? &first->status.qp[i] : &second->status.qp[i - 2];

		rows[i].rates = (struct ur_watch_rates){.known = true,
							.tx_bits = (i + 1) * 100.0,
							.rx_bits = (4 - i) * 1000.0,
							.tx_packets = i,
							.retransmits = (i * 7) % 4};
		q->srtt = 1000 * ((i + 2) % 4);
		q->in_flight = i;
		q->state = i == 2 ? IBV_QPS_ERR : IBV_QPS_RTS;
		q->type = i == 3 ? IBV_QPT_UD : IBV_QPT_RC;
		q->peer = v4((uint8_t)(4 - i));
		q->connected = i != 3;
		q->rate_kbps = i == 1 ? 500 : i == 2 ? 400 : 0;
	}
	return l;
}

/* The digits are the rows' places before. */
static bool sorted(const char *want, enum ur_watch_key key, bool reverse)
{
	struct ur_watch_row r[4];
	char got[5] = "";

	memcpy(r, rows, sizeof(r));
	ur_watch_sort(r, 4, key, reverse);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 4; k++)
			if (r[i].qp == rows[k].qp)
				got[i] = (char)('0' + k);
	if (strcmp(got, want) != 0)
		printf("\n    sorted by %s: %s and not %s\n", ur_watch_key_name(key), got, want);
	return strcmp(got, want) == 0;
}

static void sort__each_key(void)
{
	static const struct {
		enum ur_watch_key key;
		const char *want, *reversed;
	} t[] = {
		{UR_WATCH_TRAFFIC, "0123", "3210"}, {UR_WATCH_PID, "0123", "2301"},         {UR_WATCH_PROGRAM, "2301", "0123"},
		{UR_WATCH_QP, "0123", "3210"},      {UR_WATCH_TYPE, "0123", "3012"},        {UR_WATCH_STATE, "2013", "0132"},
		{UR_WATCH_PEER, "3210", "0123"},    {UR_WATCH_TX, "3210", "0123"},          {UR_WATCH_RX, "0123", "3210"},
		{UR_WATCH_PACKETS, "3210", "0123"}, {UR_WATCH_RETRANSMITS, "1230", "0321"}, {UR_WATCH_RTT, "1032", "2301"},
		{UR_WATCH_WINDOW, "3210", "0123"},  {UR_WATCH_LIMIT, "2103", "0312"},
	};
	struct ur_watch_sample *l = four();

	CU_ASSERT_EQUAL(ur_array_size(t), UR_WATCH_KEY_COUNT);
	for (unsigned i = 0; i < ur_array_size(t); i++) {
		CU_ASSERT_TRUE(sorted(t[i].want, t[i].key, false));
		CU_ASSERT_TRUE(sorted(t[i].reversed, t[i].key, true));
	}
	ur_watch_sort(NULL, 0, UR_WATCH_PID, false);
	forget(l);
}

static void keys__names(void)
{
	char all[256] = "";
	enum ur_watch_key key;

	for (unsigned i = 0; i < UR_WATCH_KEY_COUNT; i++) {
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "", ur_watch_key_name(i));
		CU_ASSERT_TRUE(ur_watch_key_find(ur_watch_key_name(i), &key) && key == (enum ur_watch_key)i);
	}
	CU_ASSERT_STRING_EQUAL(all, UR_WATCH_KEYS);
	CU_ASSERT_PTR_NULL(ur_watch_key_name(UR_WATCH_KEY_COUNT));
	CU_ASSERT_FALSE(ur_watch_key_find("", &key) || ur_watch_key_find("rt", &key));
}

static bool chosen(const struct ur_watch_filter *f, const char *want)
{
	struct ur_watch_row r[4];
	unsigned n;

	memcpy(r, rows, sizeof(r));
	n = ur_watch_select(r, 4, f);
	for (unsigned i = 0; i < n; i++)
		if (i >= strlen(want) || r[i].qp != rows[want[i] - '0'].qp)
			return false;
	return n == strlen(want);
}

static void select__each_filter(void)
{
	struct ur_watch_sample *l = four();

	CU_ASSERT_TRUE(chosen(&(struct ur_watch_filter){.pid = 0}, "0123"));
	CU_ASSERT_TRUE(chosen(&(struct ur_watch_filter){.pid = 20}, "23"));
	CU_ASSERT_TRUE(chosen(&(struct ur_watch_filter){.program = "ping"}, "01"));
	CU_ASSERT_TRUE(chosen(&(struct ur_watch_filter){.program = "PING"}, ""));
	CU_ASSERT_TRUE(chosen(&(struct ur_watch_filter){.has_peer = true, .peer = v4(3)}, "1"));
	CU_ASSERT_TRUE(chosen(&(struct ur_watch_filter){.has_peer = true, .peer = v4(1)}, "")); /* it has none: a datagram QP */
	CU_ASSERT_TRUE(chosen(&(struct ur_watch_filter){.active = true}, "123"));
	CU_ASSERT_TRUE(chosen(&(struct ur_watch_filter){.active = true, .pid = 10}, "1"));
	forget(l);
}

/* --- text --- */

static void short__numbers(void)
{
	static const struct {
		double value;
		const char *want;
	} t[] = {
		{0, "0"},         {0.04, "0"},   {0.3, "0.3"},   {1, "1"},        {1.25, "1.2"},    {9.94, "9.9"},
		{9.96, "10"},     {12, "12"},    {999.4, "999"}, {999.6, "1.0k"}, {1500, "1.5k"},   {99400, "99k"},
		{9.45e8, "945M"}, {1e9, "1.0G"}, {1e12, "1.0T"}, {1e15, "1.0P"},  {1.5e18, "1.5E"}, {1e25, "huge"},
	};
	char text[8];

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		CU_ASSERT_STRING_EQUAL(ur_watch_short(t[i].value, text), t[i].want);
		CU_ASSERT_TRUE(strlen(text) <= 4);
	}
}

static void names__of_nothing(void)
{
	CU_ASSERT_STRING_EQUAL(ur_watch_type_name(IBV_QPT_RC), "RC");
	CU_ASSERT_STRING_EQUAL(ur_watch_type_name(IBV_QPT_XRC_RECV), "XRC_R");
	CU_ASSERT_STRING_EQUAL(ur_watch_type_name(0), "?");
	CU_ASSERT_STRING_EQUAL(ur_watch_type_name(255), "?");
	CU_ASSERT_STRING_EQUAL(ur_watch_state_name(IBV_QPS_ERR), "ERR");
	CU_ASSERT_STRING_EQUAL(ur_watch_state_name(IBV_QPS_ERR + 1), "?");
	CU_ASSERT_STRING_EQUAL(ur_watch_state_name(255), "?");
}

static void line__whole(void)
{
	struct ur_watch_sample *l = look_of(process(4711, "ib_write_bw", 1), NULL);
	struct ur_status_qp *q = &l->process[0]->status.qp[0];
	char title[UR_WATCH_LINE], line[UR_WATCH_LINE];
	struct ur_watch_layout layout;

	*q = (struct ur_status_qp){.qpn = 0x12ab,
				   .dqpn = 0x34cd,
				   .type = IBV_QPT_RC,
				   .state = IBV_QPS_RTS,
				   .connected = true,
				   .peer = v4(1),
				   .srtt = 12345,
				   .window = 256,
				   .in_flight = 17,
				   .rate_kbps = 2500000};
	CU_ASSERT_EQUAL_FATAL(ur_watch_rows(NULL, l, rows), 1);
	layout = ur_watch_layout(rows, 1, 0);
	ur_watch_title(&layout, title);
	CU_ASSERT_STRING_EQUAL(
		title, "    PID PROGRAM     QP       TYPE  STATE PEER       PEER'S QP TX b/s RX b/s PKT/s RETX/s  RTT us    WINDOW LIMIT");
	ur_watch_line(&layout, rows, line);
	CU_ASSERT_STRING_EQUAL(
		line, "   4711 ib_write_bw 0x0012ab RC    RTS   192.0.2.1  0x0034cd       -      -     -      -    12.3    17/256  2.5G");
	rows[0].rates = (struct ur_watch_rates){.known = true, .tx_bits = 9.4e9, .tx_packets = 3e5, .retransmits = 12};
	l->process[0]->stopped = true;
	*q = (struct ur_status_qp){.qpn = 1, .type = IBV_QPT_UD, .state = IBV_QPS_ERR, .srtt = 123456789};
	layout = ur_watch_layout(rows, 1, 0);
	ur_watch_line(&layout, rows, line);
	CU_ASSERT_STRING_EQUAL(line, "   4711 ib_write_bw (stopped) 0x000001 UD    ERR   -          -           9.4G      0  300k     12  "
				     "123457         -     -");
	forget(l);
}

static unsigned columns(const struct ur_watch_layout *l)
{
	return (unsigned)__builtin_popcount(l->columns);
}

/* What does not fit goes, column by column; pid, QP, state, peer, traffic and retransmissions stay. */
static void layout__narrow(void)
{
	struct ur_watch_sample *l = look_of(process(1, "p", 1), NULL);
	char line[UR_WATCH_LINE], title[UR_WATCH_LINE];
	unsigned before = UINT32_MAX;

	l->process[0]->status.qp[0].peer = (struct ur_gid){.raw = {0x20, 1, 0xd, 0xb8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0x11}};
	CU_ASSERT_EQUAL_FATAL(ur_watch_rows(NULL, l, rows), 1);
	for (unsigned width = 200; width; width--) {
		struct ur_watch_layout layout = ur_watch_layout(rows, 1, width);

		ur_watch_title(&layout, title);
		ur_watch_line(&layout, rows, line);
		CU_ASSERT_TRUE(columns(&layout) <= before);
		before = columns(&layout);
		CU_ASSERT_TRUE(before == 7 || (strlen(line) <= width && strlen(title) <= width));
	}
	CU_ASSERT_EQUAL(before, 7);
	CU_ASSERT_PTR_NOT_NULL(strstr(title, "PID"));
	CU_ASSERT_PTR_NOT_NULL(strstr(title, "RETX/s"));
	CU_ASSERT_PTR_NOT_NULL(strstr(line, "2001:db8:101:101:101:101:101:111"));
	forget(l);
}

/* The largest of everything stays in its column. */
static void line__extremes(void)
{
	struct ur_watch_sample *l = look_of(process(INT32_MAX, "0123456789012345678901234567890", 1), NULL);
	char line[UR_WATCH_LINE];
	struct ur_watch_layout layout;

	memset(&l->process[0]->status.qp[0], 0xff, sizeof(struct ur_status_qp));
	l->process[0]->stopped = true;
	CU_ASSERT_EQUAL_FATAL(ur_watch_rows(NULL, l, rows), 1);
	rows[0].rates = (struct ur_watch_rates){.known = true, .tx_bits = 1e30, .rx_bits = 1e30, .tx_packets = 1e30, .retransmits = 1e30};
	layout = ur_watch_layout(rows, 1, 0);
	ur_watch_line(&layout, rows, line);
	CU_ASSERT_TRUE(strlen(line) <= 160);
	CU_ASSERT_PTR_NOT_NULL(strstr(line, " huge "));
	forget(l);
}

void ur_suite_watch(void)
{
	CU_pSuite s = CU_add_suite("watch", NULL, NULL);

	CU_ADD_TEST(s, rates__by_hand);
	CU_ADD_TEST(s, rates__odd_samples);
	CU_ADD_TEST(s, rows__same_process);
	CU_ADD_TEST(s, find__by_interface);
	CU_ADD_TEST(s, sort__each_key);
	CU_ADD_TEST(s, keys__names);
	CU_ADD_TEST(s, select__each_filter);
	CU_ADD_TEST(s, short__numbers);
	CU_ADD_TEST(s, names__of_nothing);
	CU_ADD_TEST(s, line__whole);
	CU_ADD_TEST(s, layout__narrow);
	CU_ADD_TEST(s, line__extremes);
}
