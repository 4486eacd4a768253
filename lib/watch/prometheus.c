/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters as Prometheus' text format. What mlx5 counts as well has the name under which node_exporter shows it (doc/prometheus.md), so
 * that what is drawn of hardware is drawn of uroce; the rest has names of its own.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

#define OWN "uroce_"

/* Names after the prefix; those that are missing here are OWN and the counter's, but where that would read as if it had a unit. */
static const char *const names[UR_C_COUNT] = {
	[UR_C_RX_PACKETS] = "port_packets_received_total",
	[UR_C_TX_PACKETS] = "port_packets_transmitted_total",
	[UR_C_RX_BYTES] = "port_data_received_bytes_total",
	[UR_C_TX_BYTES] = "port_data_transmitted_bytes_total",
	[UR_C_RX_MISSED] = "port_discards_received_total",
	[UR_C_TX_DROPPED] = "port_discards_transmitted_total",
	/* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): OWN is a prefix */
	[UR_C_RX_OTHER_HOST] = OWN "rx_other_host_total",
	[UR_C_ICRC] = "rx_icrc_encapsulated_errors_total",
	[UR_C_DROP_OUT_OF_SEQ] = "out_of_sequence_packets_received_total",
	[UR_C_DUPLICATE] = "duplicate_requests_packets_total",
	[UR_C_PACKET_SEQ_ERR] = "packet_sequence_errors_total",
	[UR_C_IMPLIED_NAK] = "implied_nak_seq_errors_total",
	[UR_C_ACK_TIMEOUT] = "local_ack_timeout_errors_total",
	[UR_C_RNR_NAK_SENT] = "out_of_buffer_drops_total",
	[UR_C_RNR_NAK_RCVD] = "rnr_nak_retry_packets_received_total",
	[UR_C_RX_WRITE] = "rx_write_requests_total",
	[UR_C_RX_READ] = "rx_read_requests_total",
	[UR_C_RX_ATOMIC] = "rx_atomic_requests_total",
	[UR_C_REMOTE_ACCESS] = "resp_remote_access_errors_total",
	[UR_C_REQ_CQE_ERR] = "req_cqes_errors_total",
	[UR_C_RESP_CQE_ERR] = "resp_cqes_errors_total",
	[UR_C_CE_MARKED] = "np_ecn_marked_roce_packets_received_total",
	[UR_C_CNP_SENT] = "np_cnp_packets_sent_total",
	[UR_C_CNP_HANDLED] = "rp_cnp_packets_handled_total",
	[UR_C_CNP_IGNORED] = "rp_cnp_ignored_packets_received_total",
};

void ur_watch_escape(const char *value, char *out)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"' || *value == '\n')
			*out++ = '\\';
		*out++ = *value == '\n' ? 'n' : *value;
	}
	*out = 0;
}

/* The labels of a process, without the closing brace, which more may precede. */
static void put_labels(FILE *f, const struct ur_watch_process *p)
{
	char device[2 * UR_STATUS_TEXT], interface[2 * UR_STATUS_TEXT], program[2 * UR_STATUS_TEXT];

	ur_watch_escape(p->status.device, device);
	ur_watch_escape(p->status.interface, interface);
	ur_watch_escape(p->program, program);
	fprintf(f, "{device=\"%s\",port=\"1\",interface=\"%s\",pid=\"%d\",program=\"%s\"", device, interface, p->pid, program);
}

static void put_head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_counter(FILE *f, const struct ur_watch_sample *sample, unsigned c, const char *prefix)
{
	char name[128];
	bool any = false;

	if (!names[c])
		snprintf(name, sizeof(name), OWN "%s_total", ur_counter_name((enum ur_counter)c));
	else if (strncmp(names[c], OWN, strlen(OWN)) == 0)
		snprintf(name, sizeof(name), "%s", names[c]);
	else
		snprintf(name, sizeof(name), "%s_%s", prefix, names[c]);
	for (unsigned i = 0; i < sample->count; i++) {
		const struct ur_watch_process *p = sample->process[i];

		if (p->unreadable || !p->status.has[c])
			continue;
		if (!any)
			put_head(f, name, "counter", ur_counter_help((enum ur_counter)c));
		any = true;
		fputs(name, f);
		put_labels(f, p);
		fprintf(f, "} %llu\n", (unsigned long long)p->status.counter[c]);
	}
}

static void put_qps(FILE *f, const struct ur_watch_process *p)
{
	unsigned n[IBV_QPS_ERR + 1] = {0};

	for (unsigned i = 0; i < p->status.count; i++)
		if (p->status.qp[i].state < ur_array_size(n))
			n[p->status.qp[i].state]++;
	for (unsigned s = 0; s < ur_array_size(n); s++) {
		fputs("uroce_qps", f);
		put_labels(f, p);
		fprintf(f, ",state=\"%s\"} %u\n", ur_watch_state_name(s), n[s]);
	}
}

static void put_info(FILE *f, const struct ur_watch_process *p)
{
	char version[2 * UR_STATUS_TEXT], kind[2 * UR_STATUS_TEXT];

	ur_watch_escape(p->status.version, version);
	ur_watch_escape(p->status.port, kind);
	fputs("uroce_info", f);
	put_labels(f, p);
	fprintf(f, ",kind=\"%s\",version=\"%s\"} 1\n", kind, version);
}

static void put_each(FILE *f, const struct ur_watch_sample *sample, const char *name, const char *help,
		     void (*put)(FILE *f, const struct ur_watch_process *p))
{
	bool any = false;

	for (unsigned i = 0; i < sample->count; i++) {
		if (sample->process[i]->unreadable)
			continue;
		if (!any)
			put_head(f, name, "gauge", help);
		any = true;
		put(f, sample->process[i]);
	}
}

char *ur_watch_prometheus(const struct ur_watch_sample *sample, const char *prefix)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	bool whole;

	if (!f)
		return NULL;
	put_head(f, "uroce_processes", "gauge", "processes of this host whose counters follow");
	fprintf(f, "uroce_processes %u\n", ur_watch_process_count(sample, false));
	put_each(f, sample, "uroce_info", "always 1: kind of port, and version, of the process", put_info);
	put_each(f, sample, "uroce_qps", "queue pairs of the process in each state; if more than 1024, only the first ones", put_qps);
	for (unsigned c = 0; c < UR_C_COUNT; c++)
		put_counter(f, sample, c, prefix);
	whole = !ferror(f);
	if (fclose(f) == 0 && whole)
		return text;
	free(text);
	return NULL;
}
