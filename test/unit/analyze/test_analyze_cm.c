/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules that need a whole connection, or very many: recordings with one thing changed. */
#include <CUnit/CUnit.h>

#include "analyze_harness.h"
#include "wire/frame.h"
#include "wire/msg/cm_msg.h"

void ur_suite_analyze_cm(void);

#define MSG UR_MAD_HDR_LEN /* where a MAD's message begins */

static struct ur_recording r;
static struct findings f;

static void load(const char *name)
{
	const struct ur_recording *all = analyze_recordings();

	while (all->n && strcmp(all->name, name) != 0)
		all++;
	CU_ASSERT_TRUE_FATAL(all->n > 0);
	r = ur_recording_copy(all);
}

static void teardown(void)
{
	findings_free(&f);
	ur_recording_free(&r);
	memset(&f, 0, sizeof(f));
	memset(&r, 0, sizeof(r));
}

/* The first frame with a MAD of this kind, from `i` on. */
static unsigned mad(enum ur_cm_attr attr)
{
	struct an_pkt p;

	for (unsigned i = 0; i < r.n; i++)
		if (ur_recording_pkt(&r, i, &p) && p.bth.dqpn == 1 && p.payload_len == UR_MAD_LEN && p.payload[17] == attr)
			return i;
	CU_FAIL_FATAL("no such message");
	return 0;
}

/* Changes a byte of a MAD, which begins after BTH and DETH. */
static void change(unsigned i, unsigned at, uint8_t value)
{
	ur_recording_bth(&r, i)[UR_BTH_LEN + 8 + at] = value;
	ur_recording_fix_checksums(&r, i, 0);
}

static void later(unsigned from, ur_time by)
{
	for (unsigned i = from; i < r.n; i++)
		r.f[i].when += by;
}

static void norep__and_retry(void)
{
	unsigned req, rep;

	load("rdma-client.pcap");
	req = mad(UR_CM_REQ);
	ur_recording_repeat(&r, req);
	later(req + 1, 3 * UR_NS_PER_S);
	rep = mad(UR_CM_REP);
	while (r.n > rep)
		ur_recording_remove(&r, r.n - 1);
	ur_recording_repeat(&r, req + 1);
	later(req + 2, 3 * UR_NS_PER_S);
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CM_RETRY, req + 2), 1);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CM_RETRY, req + 3), 1);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CM_NOREP, 0), 0); /* nobody waited after the last one */
	findings_free(&f);
	ur_recording_repeat(&r, req + 2);
	later(req + 3, 3 * UR_NS_PER_S);
	r.f[req + 3].data[23] = 1; /* of another protocol */
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CM_NOREP, req + 1), 1);
}

/* A keeper disconnects for a program that was killed, and says so several times, heard or not. */
static void dreq__again_though_answered(void)
{
	unsigned dreq, drep;

	load("ucmatose.pcap");
	dreq = mad(UR_CM_DREQ);
	drep = mad(UR_CM_DREP);
	CU_ASSERT_TRUE_FATAL(dreq < drep);
	ur_recording_repeat(&r, dreq);
	ur_recording_move(&r, dreq + 1, drep + 1);
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CM_AGAIN, drep + 2), 1);
	CU_ASSERT_EQUAL(findings_worse(&f, UR_WARNING), 0);
}

/* A REQ that comes again makes a second connection. */
static void rep__another_id(void)
{
	unsigned req, rep;

	load("rdma-client.pcap");
	req = mad(UR_CM_REQ);
	ur_recording_repeat(&r, req);
	rep = mad(UR_CM_REP);
	ur_recording_repeat(&r, rep);
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CM_REP, 0), 0);
	findings_free(&f);
	change(rep + 1, MSG + 3, (uint8_t)(ur_recording_bth(&r, rep + 1)[UR_BTH_LEN + 8 + MSG + 3] ^ 1));
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CM_REP, rep + 2), 1);
}

static void rej__reason(void)
{
	char text[256];

	load("cm-reject.pcap");
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL_FATAL(findings_of(&f, UR_RULE_CM_REJ, 2), 1);
	ur_finding_text(&f.f[0], text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "10.99.0.2 rejects the connection: nobody listens there (reason 8)");
}

static void rej__all_reasons(void)
{
	for (uint16_t i = 1; i <= 35; i++)
		for (uint16_t k = 0; k < i; k++)
			CU_ASSERT_STRING_NOT_EQUAL(ur_cm_rej_text(i), ur_cm_rej_text(k));
	CU_ASSERT_STRING_EQUAL(ur_cm_rej_text(36), ur_cm_rej_text(0));
}

/* The REP grants one atomic at a time where the recording has several. */
static void depth__agreed_on(void)
{
	unsigned n = 0;

	load("atomic_bw-cm.pcap");
	for (unsigned i = 0; i < r.n; i++) {
		struct an_pkt p;

		if (!ur_recording_pkt(&r, i, &p) || p.bth.dqpn != 1 || p.payload[17] != UR_CM_REP)
			continue;
		change(i, MSG + 24, 1);
		n++;
	}
	CU_ASSERT_TRUE(n > 0);
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_DEPTH, 0), 1);
}

/* The REQ allows one retry, and the SEND comes three times without an answer. */
static void retry_limit(void)
{
	struct an_pkt p;
	unsigned i, req;

	load("rdma-client.pcap");
	req = mad(UR_CM_REQ);
	change(req, MSG + 47, (ur_recording_bth(&r, req)[UR_BTH_LEN + 8 + MSG + 47] & 0xf8) | 1);
	for (i = 0; i < r.n && !(ur_recording_pkt(&r, i, &p) && p.bth.opcode == UR_OP_SEND_ONLY); i++)
		;
	while (r.n > i + 1)
		ur_recording_remove(&r, r.n - 1);
	for (unsigned k = 0; k < 2; k++) {
		ur_recording_repeat(&r, i + k);
		r.f[i + k + 1].when += 5 * UR_NS_PER_S;
	}
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_RETX, 0), 2);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_RETRY_LIMIT, i + 3), 1);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_RETRY_LIMIT, 0), 1);
}

/* The SEND of who connects, without an answer and again after some time: against the timer of the REQ. */
static void timer__agreed_on(void)
{
	static const struct {
		unsigned quarters; /* of the timer */
		unsigned early, late;
	} rows[] = {{1, 1, 0}, {3, 0, 0}, {5, 0, 0}, {31, 0, 0}, {40, 0, 1}};
	const ur_time timer = 4096ull << 14;

	for (unsigned n = 0; n < ur_array_size(rows); n++) {
		struct ur_an_conn c;
		struct an_pkt p;
		unsigned i, req;

		load("rdma-client.pcap");
		req = mad(UR_CM_REQ);
		change(req, MSG + 95, 14 << 3);
		for (i = 0; i < r.n && !(ur_recording_pkt(&r, i, &p) && p.bth.opcode == UR_OP_SEND_ONLY); i++)
			;
		while (r.n > i + 1)
			ur_recording_remove(&r, r.n - 1);
		ur_recording_repeat(&r, i);
		r.f[i + 1].when += timer * rows[n].quarters / 4;
		analyze_run(&r, &f);
		CU_ASSERT_TRUE_FATAL(ur_analysis_conn(f.a, 0, &c));
		CU_ASSERT_EQUAL(c.ack_timeout, 14);
		CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_TIMER_EARLY, i + 2), rows[n].early);
		CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_TIMER_LATE, i + 2), rows[n].late);
		CU_ASSERT_EQUAL(c.half[0].early + c.half[1].early, rows[n].early);
		teardown();
	}
}

static void snap__said_once(void)
{
	load("rping-rc.pcap");
	for (unsigned i = 0; i < r.n; i++)
		r.f[i].have = r.f[i].have < 70 ? r.f[i].have : 70;
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_SNAP, 0), 1);
	CU_ASSERT_EQUAL(findings_worse(&f, UR_WARNING), 0);
}

/* One flow more than are followed: it is said once, and what is known stays right. */
static void limit__said_once(void)
{
	struct ur_an_frame frame = {0};
	struct an_pkt p;
	unsigned i;

	load("rdma-client.pcap");
	for (i = 0; i < r.n && !(ur_recording_pkt(&r, i, &p) && p.bth.opcode == UR_OP_SEND_ONLY); i++)
		;
	analyze_run(&(struct ur_recording){.name = "none"}, &f);
	for (uint32_t qp = 0; qp < UR_AN_FLOWS + 5; qp++) {
		ur_put24(ur_recording_bth(&r, i) + 5, qp + 2);
		ur_recording_fix_checksums(&r, i, 0);
		frame = (struct ur_an_frame){.number = qp + 1, .data = r.f[i].data, .have = r.f[i].have, .len = r.f[i].len};
		ur_analysis_frame(f.a, &frame);
	}
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_LIMIT, 0), 1);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_LIMIT, UR_AN_FLOWS + 1), 1);
	ur_analysis_finish(f.a);
}

static void congestion__answered(void)
{
	load("rping-rc.pcap");
	for (unsigned i = 0; i < r.n; i++) {
		struct an_pkt p;

		if (ur_recording_pkt(&r, i, &p) && p.bth.dqpn != 1)
			r.f[i].data[UR_ETH_LEN + 1] |= 3;
	}
	analyze_run(&r, &f);
	CU_ASSERT_EQUAL(findings_of(&f, UR_RULE_CE_NOCNP, 0), 2); /* each way */
}

static void conn__facts(void)
{
	struct ur_an_conn c;

	load("rping-rc.pcap");
	analyze_run(&r, &f);
	CU_ASSERT_TRUE_FATAL(ur_analysis_conn(f.a, 0, &c));
	CU_ASSERT_FALSE(ur_analysis_conn(f.a, 1, &c));
	CU_ASSERT_TRUE(c.cm && c.service == UR_RC && c.mtu == 1024 && !c.oneway);
	CU_ASSERT_EQUAL(c.half[0].sends, 20);
	CU_ASSERT_EQUAL(c.half[1].reads, 10);
	CU_ASSERT_EQUAL(c.half[1].writes, 10);
	CU_ASSERT_EQUAL(c.ending, UR_AN_DISCONNECTED);
	CU_ASSERT_EQUAL(c.half[0].unanswered + c.half[1].unanswered, 0);
	CU_ASSERT_TRUE(c.half[0].rtt.n == 20 && c.half[0].rtt.min > 0);
}

void ur_suite_analyze_cm(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("analyze_cm", NULL, NULL, NULL, teardown);

	CU_add_test(s, "no answer, and retries", norep__and_retry);
	CU_add_test(s, "rej: all reasons have names", rej__all_reasons);
	CU_add_test(s, "dreq: again, though answered", dreq__again_though_answered);
	CU_add_test(s, "REP: of another id", rep__another_id);
	CU_add_test(s, "rejected: the reason", rej__reason);
	CU_add_test(s, "depth that was agreed on", depth__agreed_on);
	CU_add_test(s, "retries that were agreed on", retry_limit);
	CU_add_test(s, "the timer that was agreed on", timer__agreed_on);
	CU_add_test(s, "cut frames: said once", snap__said_once);
	CU_add_test(s, "too many flows: said once", limit__said_once);
	CU_add_test(s, "congestion without notification", congestion__answered);
	CU_add_test(s, "connection: facts", conn__facts);
}
