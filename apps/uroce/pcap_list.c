/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap list: a line for each direction of each connection, from one table of columns, as text, CSV or JSON lines. */
#include <inttypes.h>
#include <string.h>

#include "cmd.h"
#include "pcap.h"
#include "wire/frame.h"

enum format { TEXT, CSV, JSON };

struct row {
	uint32_t number;
	const struct ur_an_conn *c;
	const struct ur_an_half *h;
};

static uint64_t mean(const struct ur_an_times *t)
{
	return t->n ? t->sum / t->n : 0;
}

static uint64_t total(const uint64_t *v, unsigned n)
{
	uint64_t sum = 0;

	while (n--)
		sum += v[n];
	return sum;
}

static uint64_t goodput(const struct ur_an_half *h)
{
	ur_time end = h->last_answer > h->last ? h->last_answer : h->last;

	return end > h->first ? (uint64_t)((double)h->bytes * 8e9 / (double)(end - h->first)) : 0;
}

/* Times in ns, goodput in bit/s. Lost: request packets between sender and recorder, and behind it. */
#define COLUMNS(X)                                                                                                                         \
	X(messages, 8, h->messages)                                                                                                        \
	X(sends, 8, h->sends)                                                                                                              \
	X(writes, 8, h->writes)                                                                                                            \
	X(reads, 8, h->reads)                                                                                                              \
	X(atomics, 8, h->atomics)                                                                                                          \
	X(bytes, 12, h->bytes)                                                                                                             \
	X(goodput, 12, goodput(h))                                                                                                         \
	X(packets, 9, h->packets)                                                                                                          \
	X(answers, 9, h->answers)                                                                                                          \
	X(lost_before, 11, h->lost[UR_AN_BEFORE])                                                                                          \
	X(lost_behind, 11, h->lost[UR_AN_BEHIND])                                                                                          \
	X(again, 8, total(h->repeated, UR_AN_CAUSES))                                                                                      \
	X(again_nak, 9, h->repeated[UR_AN_SEQ_NAK])                                                                                        \
	X(again_rnr, 9, h->repeated[UR_AN_RNR])                                                                                            \
	X(again_timeout, 13, h->repeated[UR_AN_TIMEOUT])                                                                                   \
	X(again_response, 14, h->repeated[UR_AN_IMPLIED])                                                                                  \
	X(again_needless, 14, h->repeated[UR_AN_SPURIOUS])                                                                                 \
	X(naks, 6, h->naks_seq)                                                                                                            \
	X(rnrs, 6, h->naks_rnr)                                                                                                            \
	X(reaction, 10, mean(&h->nak_reaction))                                                                                            \
	X(rtt_min, 10, h->rtt.min)                                                                                                         \
	X(rtt_mean, 10, mean(&h->rtt))                                                                                                     \
	X(rtt_max, 10, h->rtt.max)                                                                                                         \
	X(depth, 6, h->depth)                                                                                                              \
	X(depth_psns, 10, h->depth_psns)

static void head(enum format f)
{
	static const char *const separators[] = {[TEXT] = " ", [CSV] = ",", [JSON] = ""};

	if (f == JSON)
		return;
	printf(f == CSV ? "connection,service,from,to,qp" : "%4s %-4s %-15s %-15s %-8s", "no", "svc", "from", "to", "qp");
#define HEAD(name, width, value) printf("%s%*s", separators[f], f == TEXT ? width : 0, #name);
	COLUMNS(HEAD)
#undef HEAD
	putchar('\n');
}

static void line(enum format f, const struct row *r)
{
	static const char *const formats[] = {[TEXT] = "%4u %-4s %-15s %-15s 0x%-6x",
					      [CSV] = "%u,%s,%s,%s,0x%x",
					      [JSON] = "{\"connection\":%u,\"service\":\"%s\",\"from\":\"%s\",\"to\":\"%s\",\"qp\":%u"};
	const struct ur_an_half *h = r->h;
	char a[UR_IP_TEXT], b[UR_IP_TEXT];

	printf(formats[f], r->number, ur_pcap_service(r->c->service), ur_gid_ip(&h->from, a), ur_gid_ip(&h->to, b), h->dqpn);
#define CELL(name, width, value)                                                                                                           \
	if (f == JSON)                                                                                                                     \
		printf(",\"" #name "\":%" PRIu64, (uint64_t)(value));                                                                      \
	else                                                                                                                               \
		printf("%s%*" PRIu64, f == CSV ? "," : " ", f == TEXT ? width : 0, (uint64_t)(value));
	COLUMNS(CELL)
#undef CELL
	puts(f == JSON ? "}" : "");
}

static int list(const char *name, enum format format)
{
	struct ur_pcap_file f;
	struct ur_an_conn c;
	int rc = UR_EXIT_USAGE;

	if (ur_pcap_open(&f, name)) {
		head(format);
		for (uint32_t i = 0; ur_analysis_conn(f.analysis, i, &c); i++)
			for (unsigned k = 0; k < 2; k++)
				if (c.half[k].packets)
					line(format, &(struct row){i + 1, &c, &c.half[k]});
		rc = ur_pcap_status(name, &f.end, 0);
	}
	ur_pcap_close(&f);
	return rc;
}

static bool json, csv;
static const struct ur_option options[] = {
	{"json", .set = &json, .help = "one JSON object for each line"},
	{"csv", .set = &csv, .help = "values separated by commas, with a line of names"},
	{0},
};

static int run_pcap_list(int argc, char **argv)
{
	(void)argc;
	if (json && csv)
		return ur_cmd_fail(UR_EXIT_USAGE, "--json and --csv exclude one another: give one of them");
	return list(argv[0], json ? JSON : csv ? CSV : TEXT);
}

const struct ur_command ur_pcap_list = {
	.name = "list",
	.operands = "FILE",
	.complete = UR_COMPLETE_FILE,
	.summary = "print statistics of every connection, one line for each direction",
	.text = "Times are in nanoseconds, goodput in bit/s.",
	.status = "0; " UR_PCAP_STATUS_UNREADABLE,
	.options = options,
	.run = run_pcap_list,
};
