/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce pcap counters: what a ConnectX's counters should show for a capture, for each host, and what they did show. What a recording
 * cannot decide has a minimum and a maximum.
 *
 * What each counts is said by NVIDIA's page "Understanding mlx5 Linux Counters and Status Parameters", and by the commits of Linux that
 * brought them: 0ad17a8f7fa0 (requests, drops, sequence), 58dcb60a226e (completions with errors), d7fab916374c (adaptive retransmission)
 * and b339e0a39dc3 (limits exceeded). rnr_nak_retry_err, packet_seq_err and local_ack_timeout_err count what a retry followed: not the time
 * at which the limit was exceeded. out_of_sequence counts packets, not NAKs.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/read/read.h"
#include "wire/frame.h"

#define TEXT_MAX (1u << 16) /* bytes of names and values */
#define HOSTS 256

struct sums {                                             /* of one host */
	uint64_t none;                                    /* always 0 */
	uint64_t writes, reads, atomics;                  /* that it was asked for */
	uint64_t again_in, naks_sent, rnrs_sent, refuses; /* repeated requests to it; its refusals */
	uint64_t naks, rnrs, repeats, implied, implied_most, early;     /* as a requester */
	uint64_t refused, cnps_sent, cnps_got, marked, damaged;
	uint64_t failed; /* refused for good, or without an answer after several transmissions */
	uint64_t rnrs_retried, rnr_failed, timer_failed; /* RNR NAKs without those that may have exceeded the limit; what may have */
};

struct row {
	const char *name;
	size_t least, most; /* members of struct sums */
	const char *more;   /* what it means when the counter shows more */
	const char *less;   /* and less */
};

#define IS(m) offsetof(struct sums, m), offsetof(struct sums, m)
#define FROM_TO(a, b) offsetof(struct sums, a), offsetof(struct sums, b)
#define ELSEWHERE "other traffic of the same NIC is not in the file, or the recorder missed packets"

static const struct row rows[] = {
	{"rx_write_requests", IS(writes), ELSEWHERE, "WRITEs were lost after the recorder, or refused"},
	{"rx_read_requests", IS(reads), ELSEWHERE, "READs were lost after the recorder, or refused"},
	{"rx_atomic_requests", IS(atomics), ELSEWHERE, "atomics were lost after the recorder, or refused"},
	{"duplicate_request", FROM_TO(none, again_in), "requests that are not in the file were repeated", ""},
	{"out_of_sequence", FROM_TO(naks_sent, again_in), "requests came out of order after the recorder, or many after each gap",
	 "its NAKs come from another host"},
	{"packet_seq_err", IS(naks), ELSEWHERE, "NAKs were lost between the recorder and this host"},
	{"rnr_nak_retry_err", FROM_TO(rnrs_retried, rnrs), ELSEWHERE, "RNR NAKs were lost between the recorder and this host"},
	{"out_of_buffer", IS(rnrs_sent), "datagrams or other QPs had no receive buffers either",
	 "refusals came from another cause, such as page faults"},
	{"local_ack_timeout_err", FROM_TO(none, repeats), "requests that are not in the file timed out", ""},
	{"implied_nak_seq_err", FROM_TO(implied, implied_most), "responses were lost after the recorder",
	 "the NIC repeats READs for another reason"},
	{"roce_adp_retrans", FROM_TO(none, early), "retries earlier than the timer are not in the file", ""},
	{"np_ecn_marked_roce_packets", IS(marked), "packets were marked after the recorder", "marked packets were lost after the recorder"},
	{"np_cnp_sent", IS(cnps_sent), "notifications were lost before the recorder", ELSEWHERE},
	{"rp_cnp_handled", IS(cnps_got), ELSEWHERE,
	 "notifications were lost after the recorder, or ignored: is DCQCN on for this priority?"},
	{"rx_icrc_encapsulated", IS(damaged), "packets were damaged after the recorder", "the damage came at the recorder alone"},
	{"req_cqe_error", FROM_TO(refused, failed), "requests failed in other ways: 'uroce pcap why' shows those in the file", ""},
	{"req_rnr_retries_exceeded", FROM_TO(none, rnr_failed), "requests that are not in the file failed in this way", ""},
	{"req_transport_retries_exceeded", FROM_TO(none, timer_failed), "requests that are not in the file failed in this way", ""},
	{"resp_cqe_error", FROM_TO(none, refuses), "receives failed in other ways", ""},
};

/* --- what the recording shows --- */

static void add_half(struct sums *s, const struct ur_gid *host, const struct ur_an_half *h)
{
	if (ur_gid_eq(host, &h->to)) {
		s->writes += h->writes;
		s->reads += h->reads;
		s->atomics += h->atomics;
		for (unsigned i = 0; i < UR_AN_CAUSES; i++)
			s->again_in += h->repeated[i];
		s->naks_sent += h->naks_seq;
		s->rnrs_sent += h->naks_rnr;
		s->marked += h->marked;
		s->cnps_sent += h->cnps;
		s->damaged += h->damaged;
		s->refuses += h->naks_fatal;
	}
	if (ur_gid_eq(host, &h->from)) {
		s->naks += h->naks_seq;
		s->rnrs += h->naks_rnr;
		s->rnr_failed += h->unanswered && h->rnr_tries;
		s->timer_failed += h->unanswered && !h->rnr_tries && h->open_tries > 1;
		s->rnrs_retried += h->naks_rnr - (h->unanswered && h->rnr_tries);
		s->repeats += h->repairs[UR_AN_TIMEOUT] + h->repairs[UR_AN_SPURIOUS] + h->repairs[UR_AN_IMPLIED];
		s->implied += h->repairs[UR_AN_IMPLIED];
		s->implied_most += h->repairs[UR_AN_IMPLIED] + h->repairs[UR_AN_SACK]; /* uroce counts what SACKs show as well */
		s->early += h->early;
		s->cnps_got += h->cnps;
		s->refused += h->naks_fatal;
		s->failed += h->naks_fatal + (h->unanswered && (h->open_tries > 1 || h->rnr_tries));
	}
}

/* --- what the NIC shows: words, each with a number after it --- */

struct reading {
	const char *path; /* a file of names and values, or a folder of files with a value each; NULL: none */
	char *text;
};

static bool number_in(const char *path, uint64_t *value)
{
	FILE *f = fopen(path, "re");
	bool ok = f && fscanf(f, "%" SCNu64, value) == 1;

	if (f)
		fclose(f);
	return ok;
}

static bool load(struct reading *r)
{
	FILE *f = fopen(r->path, "re");
	size_t n;

	r->text = f ? calloc(1, TEXT_MAX + 1) : NULL;
	if (!r->text) {
		if (f)
			fclose(f);
		ur_cmd_fail(0, "cannot read %s: %s", r->path, strerror(errno));
		return false;
	}
	n = fread(r->text, 1, TEXT_MAX, f); /* none of a folder */
	r->text[n] = 0;
	fclose(f);
	return true;
}

static bool look_up(const struct reading *r, const char *name, uint64_t *value)
{
	const size_t len = strlen(name);
	char path[4096];

	for (const char *at = r->text; (at = strstr(at, name)); at += len) {
		const bool begins = at == r->text || strchr(" \t\n,", at[-1]);

		if (begins && at[len] && strchr(" \t:=", at[len]) && sscanf(at + len, "%*[ \t:=]%" SCNu64, value) == 1)
			return true;
	}
	return snprintf(path, sizeof(path), "%s/%s", r->path, name) < (int)sizeof(path) && number_in(path, value);
}

/* --- both, side by side --- */

struct job {
	const char *file, *host;
	struct reading before, after;
};

static bool show_row(const struct job *j, const struct row *row, const struct sums *s)
{
	const uint64_t least = *(const uint64_t *)((const char *)s + row->least), most = *(const uint64_t *)((const char *)s + row->most);
	uint64_t before = 0, after;
	const char *why;
	char range[48];

	snprintf(range, sizeof(range), least == most ? "%" PRIu64 : "%" PRIu64 " to %" PRIu64, least, most);
	if (!j->after.path || !look_up(&j->after, row->name, &after)) {
		if (most)
			printf("   %-27s %16s\n", row->name, range);
		return false;
	}
	if (j->before.path)
		look_up(&j->before, row->name, &before);
	if (after < before) {
		printf("   %-27s %16s %12s  it decreased: was the driver reloaded?\n", row->name, range, "?");
		return true;
	}
	after -= before;
	why = after > most ? row->more : after < least ? row->less : "";
	if (most || after)
		printf("   %-27s %16s %12" PRIu64 "%s%s\n", row->name, range, after, *why ? "  differs: " : "", why);
	return *why;
}

static bool show_host(const struct job *j, const struct ur_pcap_file *f, const struct ur_gid *host)
{
	struct ur_an_conn c;
	struct sums s = {0};
	bool differs = false;
	char a[UR_IP_TEXT];

	if (j->host && strcmp(j->host, ur_gid_ip(host, a)) != 0)
		return false;
	for (uint32_t i = 0; ur_analysis_conn(f->analysis, i, &c); i++)
		for (unsigned k = 0; k < 2; k++)
			add_half(&s, host, &c.half[k]);
	printf("%s\n   %-27s %16s%s\n", ur_gid_ip(host, a), "counter", "recording shows", j->after.path ? "      counted" : "");
	for (unsigned i = 0; i < ur_array_size(rows); i++)
		differs |= show_row(j, &rows[i], &s);
	return differs;
}

/* Each host once: its number among `seen`, of which there are `n`. */
static bool is_new(const struct ur_gid *seen, unsigned n, const struct ur_gid *host)
{
	while (n--)
		if (ur_gid_eq(&seen[n], host))
			return false;
	return true;
}

static int counters(const struct job *j)
{
	struct ur_gid seen[HOSTS];
	struct ur_pcap_file f;
	struct ur_an_conn c;
	unsigned n = 0, shown = 0;
	int rc = UR_EXIT_USAGE;
	char a[UR_IP_TEXT];

	if (ur_pcap_open(&f, j->file)) {
		rc = 0;
		for (uint32_t i = 0; ur_analysis_conn(f.analysis, i, &c); i++)
			for (unsigned k = 0; k < 2 && n < HOSTS; k++) {
				if (!is_new(seen, n, &c.half[k].from))
					continue;
				seen[n++] = c.half[k].from;
				shown += !j->host || strcmp(j->host, ur_gid_ip(&c.half[k].from, a)) == 0;
				rc |= show_host(j, &f, &c.half[k].from);
			}
		if (!shown)
			rc = ur_cmd_fail(UR_EXIT_USAGE, "no connection of %s is in %s: 'uroce pcap list %s' shows all",
					 j->host ? j->host : "any host", j->file, j->file);
		rc = ur_pcap_status(j->file, &f.end, rc);
	}
	ur_pcap_close(&f);
	return rc;
}

static struct job job;
static const struct ur_option options[] = {
	{"host", "ADDRESS", .value = &job.host, .help = "only this host"},
	{"after", "FILE", UR_COMPLETE_FILE, .value = &job.after.path,
	 .help = "its counters after the traffic, to compare with; needs `--host`"},
	{"before", "FILE", UR_COMPLETE_FILE, .value = &job.before.path,
	 .help = "its counters before the traffic (by default they started at 0)"},
	{0},
};

static const struct ur_example examples[] = {
	{"uroce pcap counters ping.pcap", "What NICs should have counted."},
	{"uroce pcap counters --host 192.0.2.1 --before before --after after ping.pcap", "Compared with what one of them did count."},
	{0},
};

static int run_pcap_counters(int argc, char **argv)
{
	int rc = UR_EXIT_USAGE;

	(void)argc;
	job.file = argv[0];
	if (job.before.path && !job.after.path)
		return ur_cmd_fail(rc, "--before needs --after: the counters after the traffic");
	if (job.after.path && !job.host)
		return ur_cmd_fail(rc, "--after needs --host: the address of the host whose counters these are");
	if ((!job.before.path || load(&job.before)) && (!job.after.path || load(&job.after)))
		rc = counters(&job);
	free(job.before.text);
	free(job.after.text);
	return rc;
}

const struct ur_command ur_pcap_counters = {
	.name = "counters",
	.operands = "FILE",
	.complete = UR_COMPLETE_FILE,
	.summary = "compare a NIC's counters with what the capture shows",
	.text = "For each host, what a ConnectX there should have counted; two numbers are the minimum and the maximum, where the capture "
		"cannot tell. Counters are a folder of files with a value each, such as "
		"`/sys/class/infiniband/mlx5_0/ports/1/hw_counters`, or a file with the output of `rdma statistic show link mlx5_0/1`.",
	.status = "0; 1 when a counter differs, 2 when a file cannot be read to its end or holds no RoCEv2 packet or no connection of the "
		  "host.",
	.options = options,
	.examples = examples,
	.run = run_pcap_counters,
};
