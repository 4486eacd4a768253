/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce top --json; the schema is in doc/top.md. */
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <time.h>

#include "apps/uroce/cli/json.h"
#include "apps/uroce/top/top.h"
#include "wire/frame.h"

static json_t *us_json(uint32_t ns)
{
	return ns ? json_real(ns / 1000.0) : json_null();
}

static json_t *address_json(const struct ur_status_qp *q, const struct ur_gid *gid)
{
	char text[UR_IP_TEXT];

	return q->connected ? json_string(ur_gid_ip(gid, text)) : json_null();
}

static json_t *rates_json(const struct ur_watch_rates *r)
{
	if (!r->known)
		return json_null();
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "tx_bits", r->tx_bits, "rx_bits", r->rx_bits, "tx_packets", r->tx_packets,
			 "rx_packets", r->rx_packets, "retransmits", r->retransmits, "cnps", r->cnps);
}

static json_t *counters_json(const struct ur_qp_counters *n)
{
	const uint64_t *values = &n->tx_packets;
	json_t *o = json_object();

	for (unsigned i = 0; i < UR_QP_COUNTER_COUNT; i++)
		json_object_set_new(o, ur_qp_counter_name(i), ur_json_uint(values[i]));
	return o;
}

static json_t *qp_json(const struct ur_watch_row *row)
{
	const struct ur_status_qp *q = row->qp;
	json_t *o = json_pack("{s:i, s:o, s:I, s:s, s:s, s:I}", "pid", row->process->pid, "program", ur_json_text(row->process->program),
			      "qp", (json_int_t)q->qpn, "type", ur_watch_type_name(q->type), "state", ur_watch_state_name(q->state), "mtu",
			      (json_int_t)q->mtu);

	json_object_set_new(o, "interface", json_string(row->process->status.interface));
	json_object_set_new(o, "local", address_json(q, &q->local));
	json_object_set_new(o, "peer", address_json(q, &q->peer));
	json_object_set_new(o, "peer_qp", q->connected ? json_integer(q->dqpn) : json_null());
	json_object_set_new(o, "rates", rates_json(&row->rates));
	json_object_set_new(o, "rtt_us", us_json(q->srtt));
	json_object_set_new(o, "rtt_deviation_us", us_json(q->rttvar));
	json_object_set_new(o, "rtt_min_us", us_json(q->rtt_min));
	json_object_set_new(o, "window", q->window ? json_integer(q->window) : json_null());
	json_object_set_new(o, "in_flight", q->window ? json_integer(q->in_flight) : json_null());
	json_object_set_new(o, "unfinished", json_integer(q->unfinished));
	json_object_set_new(o, "limit_bits", q->rate_kbps ? json_integer((json_int_t)q->rate_kbps * 1000) : json_null());
	json_object_set_new(o, "counters", counters_json(&q->n));
	return o;
}

static json_t *process_json(const struct ur_watch_process *p)
{
	json_t *o = json_pack("{s:i, s:I, s:o, s:b, s:b, s:s}", "pid", p->pid, "uid", (json_int_t)p->uid, "program",
			      ur_json_text(p->program), "stopped", p->stopped, "readable", !p->unreadable, "uroce", p->status.version);

	if (p->unreadable)
		return o;
	json_object_set_new(o, "device", json_string(p->status.device));
	json_object_set_new(o, "interface", json_string(p->status.interface));
	json_object_set_new(o, "port", json_string(p->status.port));
	json_object_set_new(o, "uses", json_string(p->status.uses));
	json_object_set_new(o, "qps", json_integer(p->status.total));
	return o;
}

void ur_top_print_json(const struct ur_top_view *v, const struct ur_top *t)
{
	json_t *root = json_object(), *processes = json_array(), *qps = json_array();
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (unsigned i = 0; i < v->now->count; i++)
		json_array_append_new(processes, process_json(v->now->process[i]));
	for (unsigned i = 0; i < v->count; i++)
		json_array_append_new(qps, qp_json(&v->rows[i]));
	json_object_set_new(root, "version", json_integer(1));
	json_object_set_new(root, "uroce", json_string(UR_VERSION));
	json_object_set_new(root, "time", json_real((double)now.tv_sec + (double)now.tv_nsec / 1e9));
	json_object_set_new(root, "interval", json_real(t->interval));
	json_object_set_new(root, "processes", processes);
	json_object_set_new(root, "qps", qps);
	json_dumpf(root, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(root);
}
