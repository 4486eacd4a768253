/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace: its table and the reference in doc/trace.md, what a lossy connection tells, and files that are slow, full or another's. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/output.h"
#include "observe/trace_file.h"
#include "observe/trace_text.h"
#include "tp_harness.h"

void ur_suite_trace(void);

#define RING_MORE 70000 /* more events than the ring holds */

/* --- the table --- */

static const char *const type_names[UR_TT_COUNT] = {
	[UR_TT_NUM] = "number",       [UR_TT_NS] = "ns",         [UR_TT_BOOL] = "bool",       [UR_TT_OPCODE] = "opcode",
	[UR_TT_QP_TYPE] = "QP type",  [UR_TT_QP_STATE] = "QP state", [UR_TT_STATUS] = "status", [UR_TT_WAIT] = "wait",
	[UR_TT_SYNDROME] = "syndrome", [UR_TT_REASON] = "reason", [UR_TT_CAUSE] = "cause",     [UR_TT_TIMER] = "timer",
	[UR_TT_CM_STATE] = "CM state", [UR_TT_PORT] = "port event",
};

static unsigned longest_name(enum ur_trace_type type)
{
	size_t n = 20; /* digits */

	for (unsigned v = 0; v < 256; v++) {
		const char *name = ur_trace_name(type, v);

		if (name && strlen(name) + 2 > n)
			n = strlen(name) + 2;
	}
	return (unsigned)n;
}

static void table__complete(void)
{
	for (unsigned i = 0; i < UR_TRACE_COUNT; i++) {
		const struct ur_trace_info *e = &ur_trace_events[i];
		size_t line = strlen("{\"time\":,\"event\":\"\"}\n") + 31 + strlen(e->name);

		CU_ASSERT_FATAL(e->name && e->help && e->n >= 1 && e->n <= UR_TRACE_FIELDS);
		for (unsigned k = 0; k < e->n; k++) {
			CU_ASSERT_FATAL(e->field[k].name != NULL);
			line += strlen(e->field[k].name) + 4 + longest_name(e->field[k].type);
		}
		CU_ASSERT(line < UR_TRACE_LINE);
		for (unsigned k = 0; k < i; k++)
			CU_ASSERT_STRING_NOT_EQUAL(e->name, ur_trace_events[k].name);
	}
}

static char *whole_file(const char *path)
{
	FILE *f = fopen(path, "r");
	struct stat st = {.st_size = 0};
	char *text;

	CU_ASSERT_FATAL(f && fstat(fileno(f), &st) == 0);
	text = calloc(1, (size_t)st.st_size + 1);
	CU_ASSERT_FATAL(text && fread(text, 1, (size_t)st.st_size, f) == (size_t)st.st_size);
	fclose(f);
	return text;
}

/* A row for each event, as the table has it, and no other rows. */
static void table__is_documented(void)
{
	char *doc = whole_file(UROCE_SOURCE_ROOT "/doc/trace.md"), *at = strstr(doc, "| event | fields |");
	unsigned rows = 0;

	CU_ASSERT_FATAL(at != NULL);
	for (unsigned i = 0; i < UR_TRACE_COUNT; i++) {
		const struct ur_trace_info *e = &ur_trace_events[i];
		char row[1024];
		int n = snprintf(row, sizeof(row), "\n| `%s` |", e->name);

		for (unsigned k = 0; k < e->n; k++)
			n += snprintf(row + n, sizeof(row) - (size_t)n, "%s `%s` %s", k ? "," : "", e->field[k].name,
				      type_names[e->field[k].type]);
		snprintf(row + n, sizeof(row) - (size_t)n, " | %s |\n", e->help);
		if (!strstr(at, row))
			fprintf(stderr, "doc/trace.md lacks this row:%s", row);
		CU_ASSERT_PTR_NOT_NULL(strstr(at, row));
	}
	for (at = strchr(at, '\n'); at && at[1] == '|'; at = strchr(at + 1, '\n'))
		rows++;
	CU_ASSERT_EQUAL(rows, UR_TRACE_COUNT + 1); /* and the line below the heading */
	free(doc);
}

static void text__names_and_numbers(void)
{
	const uint64_t v[UR_TRACE_FIELDS] = {17, IBV_QPS_RTR, IBV_QPS_RTS, 99, 0xffffff, 1};
	char line[UR_TRACE_LINE];
	unsigned n = ur_trace_json(line, 1234567890000000042ull, UR_TRACE_QP_STATE, v);

	line[n] = 0;
	CU_ASSERT_STRING_EQUAL(line, "{\"time\":1234567890.000000042,\"event\":\"qp_state\",\"qpn\":17,\"from\":\"RTR\",\"to\":\"RTS\","
				     "\"dqpn\":99,\"sq_psn\":16777215,\"rq_psn\":1}\n");
	ur_trace_line(line, UR_TRACE_REFUSED, (const uint64_t[UR_TRACE_FIELDS]){3, UR_C_DROP_PKEY});
	CU_ASSERT_STRING_EQUAL(line, "refused qpn=3 reason=drop_pkey");
	n = ur_trace_json(line, 1, UR_TRACE_RX, (const uint64_t[UR_TRACE_FIELDS]){UINT64_MAX, 0xff, 1, 2, 1, 0});
	line[n] = 0;
	CU_ASSERT_STRING_EQUAL(line, "{\"time\":0.000000001,\"event\":\"rx\",\"qpn\":18446744073709551615,\"opcode\":255,\"psn\":1,"
				     "\"len\":2,\"ackreq\":true,\"ce\":false}\n");
}

/* --- what is told --- */

static struct {
	struct ur_trace trace;
	unsigned count[UR_TRACE_COUNT], n;
	struct {
		enum ur_trace_id id;
		uint64_t v[UR_TRACE_FIELDS];
	} seen[4096];
} told;

static void tell(struct ur_trace *t, enum ur_trace_id id, const uint64_t v[UR_TRACE_FIELDS])
{
	CU_ASSERT_PTR_EQUAL_FATAL(t, &told.trace);
	told.count[id]++;
	if (told.n == ur_array_size(told.seen))
		return;
	told.seen[told.n].id = id;
	memcpy(told.seen[told.n++].v, v, sizeof(told.seen[0].v));
}

static void listen_to(struct th *h, unsigned node)
{
	memset(&told, 0, sizeof(told));
	told.trace.event = tell;
	ur_tp_set_trace(h->n[node].tp, &told.trace);
}

/* The first event of a kind; all zero when there is none. */
static const uint64_t *first(enum ur_trace_id id)
{
	static const uint64_t none[UR_TRACE_FIELDS];

	for (unsigned i = 0; i < told.n; i++)
		if (told.seen[i].id == id)
			return told.seen[i].v;
	return none;
}

static void tells__packets_of_a_send(void)
{
	struct th h;

	th_open(&h, &th_default);
	listen_to(&h, 0);
	th_recv(&h, 1, 1, 0, 4096);
	th_post(&h, 0, IBV_WR_SEND, 2, 0, 2000, 0, IBV_SEND_SIGNALED);
	th_run(&h, UR_NS_PER_S);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_TX], 2);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_RX], 1);
	CU_ASSERT_EQUAL(first(UR_TRACE_TX)[0], ur_qp_num(h.n[0].qp));
	CU_ASSERT_EQUAL(first(UR_TRACE_TX)[2], UR_OP_SEND_FIRST);
	CU_ASSERT_EQUAL(first(UR_TRACE_TX)[4], 1024);
	CU_ASSERT_EQUAL(first(UR_TRACE_RX)[1], UR_OP_ACK);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_REFUSED] + told.count[UR_TRACE_REWIND] + told.count[UR_TRACE_FAILED], 0);
	th_close(&h);
}

/* A SEND of two packets, of which the first is lost; told of by one of the two nodes. */
static void send_with_a_loss(unsigned node)
{
	uint64_t lost[2] = {1};
	struct th h;

	th_open(&h, &th_default);
	h.lose = th_lose_mask;
	h.arg = lost;
	listen_to(&h, node);
	th_recv(&h, 1, 1, 0, 4096);
	th_post(&h, 0, IBV_WR_SEND, 2, 0, 2000, 0, IBV_SEND_SIGNALED);
	th_run(&h, UR_NS_PER_S);
	th_close(&h);
}

static void tells__lost_request(void)
{
	send_with_a_loss(0);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_NAK_RCVD], 1);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_REWIND], 1);
	CU_ASSERT_EQUAL(first(UR_TRACE_REWIND)[2], UR_TRACE_CAUSE_SEQ_NAK);
	CU_ASSERT_EQUAL(first(UR_TRACE_NAK_RCVD)[1], first(UR_TRACE_REWIND)[1]);
}

static void tells__refusal(void)
{
	send_with_a_loss(1);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_REFUSED], 1);
	CU_ASSERT_EQUAL(first(UR_TRACE_REFUSED)[1], UR_C_DROP_OUT_OF_SEQ);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_NAK_SENT], 1);
}

static void tells__lost_response(void)
{
	uint64_t lost[2] = {0, 2};
	struct th h;

	th_open(&h, &th_default);
	h.lose = th_lose_mask;
	h.arg = lost;
	listen_to(&h, 0);
	th_post(&h, 0, IBV_WR_RDMA_READ, 2, 0, 4096, 0, IBV_SEND_SIGNALED);
	th_run(&h, UR_NS_PER_S);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_LOST_ANSWER], 1);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_REREAD], 1);
	CU_ASSERT_EQUAL(first(UR_TRACE_REREAD)[2], 1);
	CU_ASSERT_EQUAL(first(UR_TRACE_REREAD)[1], first(UR_TRACE_LOST_ANSWER)[1]);
	th_close(&h);
}

static void tells__silence_until_the_end(void)
{
	uint64_t lost[2] = {UINT64_MAX};
	struct th_opt o = th_default;
	struct th h;

	o.retry_cnt = 2;
	th_open(&h, &o);
	h.lose = th_lose_mask;
	h.arg = lost;
	listen_to(&h, 0);
	th_post(&h, 0, IBV_WR_RDMA_WRITE, 2, 0, 100, 0, IBV_SEND_SIGNALED);
	th_run(&h, UR_NS_PER_S);
	CU_ASSERT(told.count[UR_TRACE_TIMER_ARMED] >= 1);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_TIMER_EXPIRED], 3);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_REWIND], 2);
	CU_ASSERT_EQUAL(told.count[UR_TRACE_FAILED], 1);
	CU_ASSERT_EQUAL(first(UR_TRACE_FAILED)[2], IBV_WC_RETRY_EXC_ERR);
	CU_ASSERT_EQUAL(first(UR_TRACE_QP_STATE)[1], IBV_QPS_RTS);
	CU_ASSERT_EQUAL(first(UR_TRACE_QP_STATE)[2], IBV_QPS_ERR);
	th_close(&h);
}

/* --- files --- */

static char dir[] = "/tmp/uroce-trace-XXXXXX";
static char path[64];

static void setup(void)
{
	strcpy(strrchr(dir, '-') + 1, "XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/t", dir);
}

static void teardown(void)
{
	unlink(path);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

static struct ur_trace_file *open_file(void)
{
	struct ur_trace_file *f;

	CU_ASSERT_EQUAL_FATAL(ur_trace_file_open(path, 1000, &f), 0);
	return f;
}

static void put(struct ur_trace_file *f, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		ur_trace_file_put(f, 1000 + i, UR_TRACE_WINDOW, (const uint64_t[UR_TRACE_FIELDS]){i, 64});
}

/* The lines of the file; each begins and ends as an object does. *lost: what trace_lost says. */
static uint64_t check_lines(uint64_t *lost)
{
	char *text = whole_file(path), *save, *line;
	uint64_t n = 0;

	*lost = 0;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *at = strstr(line, "\"event\":\"trace_lost\",\"events\":");

		CU_ASSERT(!strncmp(line, "{\"time\":", 8) && line[strlen(line) - 1] == '}');
		*lost += at ? strtoull(strrchr(at, ':') + 1, NULL, 10) : 0;
		n += !at;
	}
	free(text);
	return n;
}

static void file__holds_all(void)
{
	struct ur_trace_file *f = open_file();
	struct stat st;
	uint64_t lost;
	int err;

	put(f, 3000);
	CU_ASSERT_EQUAL(ur_trace_file_close(f, &err), 0);
	CU_ASSERT_EQUAL(err, 0);
	CU_ASSERT_EQUAL(check_lines(&lost), 3000);
	CU_ASSERT_EQUAL(lost, 0);
	CU_ASSERT(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
}

/* However fast they come: what is not there is counted. */
static void file__counts_what_it_lacks(void)
{
	struct ur_trace_file *f = open_file();
	uint64_t lines, said, lost;
	int err;

	put(f, 10 * RING_MORE);
	lost = ur_trace_file_close(f, &err);
	lines = check_lines(&said);
	CU_ASSERT_EQUAL(lines + said + lost, 10 * RING_MORE);
}

/* Another user's. */
static void file__no_links(void)
{
	char link[80];
	struct ur_trace_file *f;

	snprintf(link, sizeof(link), "%s/l", dir);
	CU_ASSERT_EQUAL_FATAL(symlink(path, link), 0);
	if (!geteuid()) {
		CU_ASSERT_EQUAL(lchown(link, 65534, 65534), 0);
		CU_ASSERT_EQUAL(ur_trace_file_open(link, 0, &f), ELOOP);
	}
	unlink(link);
}

static void file__another_has_it(void)
{
	struct ur_trace_file *a = open_file(), *b = open_file();
	char own[80];
	uint64_t lost;
	int err;

	snprintf(own, sizeof(own), "%s.%d", path, (int)getpid());
	put(a, 5);
	put(b, 1);
	ur_trace_file_close(b, &err);
	ur_trace_file_close(a, &err);
	CU_ASSERT_EQUAL(check_lines(&lost), 5);
	CU_ASSERT_EQUAL(unlink(own), 0);
}

static void file__full_disk(void)
{
	struct ur_trace_file *f;
	int err;

	CU_ASSERT_EQUAL_FATAL(ur_trace_file_open("/dev/full", 0, &f), 0);
	put(f, 100);
	CU_ASSERT_EQUAL(ur_trace_file_close(f, &err), 100);
	CU_ASSERT_EQUAL(err, ENOSPC);
}

/* Nobody reads: putting does not wait, and closing not for ever. */
static void file__stuck_pipe(void)
{
	struct ur_trace_file *f;
	uint64_t lost;
	int fd, err;

	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	f = open_file();
	put(f, 3 * RING_MORE);
	lost = ur_trace_file_close(f, &err);
	CU_ASSERT_EQUAL(err, ETIMEDOUT);
	CU_ASSERT(lost > RING_MORE);
	close(fd); /* which ends the thread: its writes fail */
}

static void file__reader_that_leaves(void)
{
	struct ur_trace_file *f;
	int fd, err;

	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	f = open_file();
	close(fd);
	put(f, 10);
	CU_ASSERT_EQUAL(ur_trace_file_close(f, &err), 10); /* and no SIGPIPE */
	CU_ASSERT_EQUAL(err, EPIPE);
}

static void file__forked_child(void)
{
	struct ur_trace_file *f = open_file();
	uint64_t lost;
	int status = -1, err;
	pid_t pid;

	put(f, 10);
	pid = fork();
	if (!pid) {
		ur_trace_file_forget(f);
		put(f, RING_MORE);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	put(f, 10);
	CU_ASSERT_EQUAL(ur_trace_file_close(f, &err), 0);
	CU_ASSERT_EQUAL(check_lines(&lost), 20);
}

void ur_suite_trace(void)
{
	CU_pSuite s = CU_add_suite("trace", NULL, NULL);
	CU_pSuite files = CU_add_suite_with_setup_and_teardown("trace_file", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, table__complete);
	CU_ADD_TEST(s, table__is_documented);
	CU_ADD_TEST(s, text__names_and_numbers);
	CU_ADD_TEST(s, tells__packets_of_a_send);
	CU_ADD_TEST(s, tells__lost_request);
	CU_ADD_TEST(s, tells__refusal);
	CU_ADD_TEST(s, tells__lost_response);
	CU_ADD_TEST(s, tells__silence_until_the_end);
	CU_ADD_TEST(files, file__holds_all);
	CU_ADD_TEST(files, file__counts_what_it_lacks);
	CU_ADD_TEST(files, file__no_links);
	CU_ADD_TEST(files, file__another_has_it);
	CU_ADD_TEST(files, file__full_disk);
	CU_ADD_TEST(files, file__stuck_pipe);
	CU_ADD_TEST(files, file__reader_that_leaves);
	CU_ADD_TEST(files, file__forked_child);
}
