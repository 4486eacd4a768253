/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What losses cost, in virtual time: losstable [--tsv] [--congestion WORD] [PART...]. The parts are in the table below. Goodput is payload,
 * in percent of the line rate; two yardsticks stand beside it: selective repeat that never waits for a timer, 1 - p, and a go-back-N that
 * never waits for one, (1 - p) / (1 + p W) with W packets in a round trip. The same seed gives the same figures, whatever the machine does.
 */
#include <stdio.h>
#include <string.h>

#include "test/sim/loss/report.h"
#include "test/sim/loss/stream.h"

#define MTU 4096
#define FRAME (MTU + 58 + 24) /* headers, ICRC, FCS, preamble and gap of most packets */
#define PAYLOAD_SHARE ((double)MTU / FRAME)
#define US UR_NS_PER_US
#define MS UR_NS_PER_MS
#define GONE (-1.0) /* in place of a figure */

/* Who talks to whom, requester first. */
enum peers { OWN_OWN, OWN_STANDARD, STANDARD_OWN, PEERS };
static const char *const peers_name[PEERS] = {"own-own", "own-standard", "standard-own"};

static const double losses[] = {0, 0.01, 0.1, 1, 2, 5};

/*
 * Round trips, and what they are measured at. 100 Gbit/s over 10 ms would be 125 MB in flight, about as much as the 32768 PSNs of 4 KiB
 * that a connection can have open. So the third path has 10 Gbit/s, 12.5 MB or 3000 packets, and a window of 4096: 32768 PSNs are ten round
 * trips of the path, and a packet that is lost twice is there after three.
 */
static const struct path {
	ur_time rtt;
	uint32_t mbps, chunk;
	unsigned window;
	ur_time warm, span;
} paths[] = {
	{10 * US, 100000, 0, 0, 4 * MS, 32 * MS},
	{100 * US, 100000, 0, 0, 4 * MS, 32 * MS},
	{10 * MS, 10000, 1 << 20, 4096, 200 * MS, 1000 * MS},
};

static enum stream_congestion congestion;
static struct stream_result result;
static struct report report;

static uint32_t ppm(double percent)
{
	return (uint32_t)(percent * 10000 + 0.5);
}

static struct stream_opt options(const struct path *p, enum ibv_wr_opcode op, enum peers peers)
{
	struct stream_opt o = {.senders = 1,
			       .op = op,
			       .chunk = p->chunk,
			       .mbps = p->mbps,
			       .rtt = p->rtt,
			       .window = p->window,
			       .timeout = 14,
			       .congestion = congestion,
			       .warm = p->warm,
			       .span = p->span,
			       .seed = 1};

	o.standard[STREAM_SENDER] = peers == STANDARD_OWN;
	o.standard[STREAM_RECEIVER] = peers == OWN_STANDARD;
	return o;
}

static double goodput(const struct stream_opt *o)
{
	stream_run(o, &result);
	return result.lost ? GONE : 100 * stream_share(o, &result, -1);
}

/* What that share of the pings did not exceed, in `unit`; there may be none that was answered in time. */
static double ping(double share, ur_time unit)
{
	return result.npings ? (double)stream_ping(&result, share) / (double)unit : GONE;
}

/* Pings alone with the faults of `o`: three percentiles, in round trips of the empty path. */
static void latency(struct stream_opt o, double *v)
{
	static const double share[] = {0.5, 0.99, 0.999};

	o.senders = 0;
	o.pings = STREAM_PINGS;
	o.warm = 0;
	o.span = 100000 * UR_NS_PER_S;
	stream_run(&o, &result);
	for (unsigned i = 0; i < ur_array_size(share); i++)
		v[i] = result.lost ? GONE : ping(share[i], o.rtt);
}

/* --- goodput and latency against loss --- */

static double ideal_go_back_n(double p, const struct path *path)
{
	double w = 1 + (double)path->rtt * path->mbps / 8000 / FRAME;

	return (1 - p) / (1 + p * w);
}

/* A standard requester waits for its ACK timer of 67 ms: of these waits a good number have to pass. */
static ur_time patient(const struct path *path, enum peers peers, double loss)
{
	const ur_time long_enough = 500 * MS;

	return peers == STANDARD_OWN && loss > 0 && path->span < long_enough ? long_enough : path->span;
}

static void part_goodput(void)
{
	static const struct report_column c[] = {
		{"WRITE", "own-own", "goodput"},      {"SEND", "own-own", "goodput"},      {"READ", "own-own", "goodput"},
		{"WRITE", "own-standard", "goodput"}, {"SEND", "own-standard", "goodput"}, {"READ", "own-standard", "goodput"},
		{"WRITE", "standard-own", "goodput"}, {"SEND", "standard-own", "goodput"}, {"READ", "standard-own", "goodput"},
		{"-", "selective", "goodput"},        {"-", "go-back-N", "goodput"},
	};
	static const enum ibv_wr_opcode op[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ};

	report_begin(&report, "goodput", "one QP, loss in either direction, % of the line rate", c, ur_array_size(c));
	for (const struct path *path = paths; path < paths + ur_array_size(paths); path++)
		for (unsigned l = 0; l < ur_array_size(losses); l++) {
			double v[ur_array_size(c)], p = losses[l] / 100;

			for (unsigned k = 0; k < 9; k++) {
				struct stream_opt o = options(path, op[k % 3], k / 3);

				o.faults.loss = ppm(losses[l]);
				o.span = patient(path, k / 3, losses[l]);
				v[k] = goodput(&o);
			}
			v[9] = 100 * PAYLOAD_SHARE * (1 - p);
			v[10] = 100 * PAYLOAD_SHARE * ideal_go_back_n(p, path);
			report_row(&report, path->rtt, losses[l], "-", v);
		}
}

static void part_latency(void)
{
	struct report_column c[3 * PEERS];

	for (unsigned k = 0; k < PEERS; k++) {
		c[3 * k] = (struct report_column){"SEND", peers_name[k], "p50"};
		c[3 * k + 1] = (struct report_column){"SEND", peers_name[k], "p99"};
		c[3 * k + 2] = (struct report_column){"SEND", peers_name[k], "p99.9"};
	}
	report_begin(&report, "latency", "a SEND of 64 bytes and its answer, loss in either direction, in round trips of the path", c,
		     ur_array_size(c));
	for (const struct path *path = paths; path < paths + ur_array_size(paths); path++)
		for (unsigned l = 0; l < ur_array_size(losses); l++) {
			double v[ur_array_size(c)];

			for (unsigned k = 0; k < PEERS; k++) {
				struct stream_opt o = options(path, IBV_WR_SEND, k);

				o.faults.loss = ppm(losses[l]);
				latency(o, v + 3 * k);
			}
			report_row(&report, path->rtt, losses[l], "-", v);
		}
}

/* --- reordering, jitter and bursts --- */

static const struct report_column fault_column[] = {
	{"WRITE", "own-own", "goodput"},      {"SEND", "own-own", "goodput"}, {"READ", "own-own", "goodput"},
	{"WRITE", "standard-own", "goodput"}, {"SEND", "own-own", "p50"},     {"SEND", "own-own", "p99"},
	{"SEND", "own-own", "p99.9"},
};

/* Goodput, and then pings alone, with these faults. */
static void fault_row(const struct path *path, double loss, const char *variant, const struct ur_sim_link *faults)
{
	static const enum ibv_wr_opcode op[] = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE};
	double v[ur_array_size(fault_column)];
	struct stream_opt o;

	for (unsigned k = 0; k < 4; k++) {
		enum peers peers = k == 3 ? STANDARD_OWN : OWN_OWN;

		o = options(path, op[k], peers);
		o.faults = *faults;
		o.span = patient(path, peers, 1);
		v[k] = goodput(&o);
	}
	o = options(path, IBV_WR_SEND, OWN_OWN);
	o.faults = *faults;
	latency(o, v + 4);
	report_row(&report, path->rtt, loss, variant, v);
}

static void part_reorder(void)
{
	static const double share[] = {0.1, 1, 10};
	char variant[32];

	report_begin(&report, "reorder", "so many packets are late by up to half a round trip, or by up to two of them", fault_column,
		     ur_array_size(fault_column));
	for (const struct path *path = paths; path < paths + 2; path++)
		for (unsigned k = 0; k < 6; k++) {
			ur_time by = k % 2 ? 2 * path->rtt : path->rtt / 2;
			struct ur_sim_link faults = {.reorder = ppm(share[k / 2]), .reorder_by = by};

			snprintf(variant, sizeof(variant), "%g%%, %g RTT", share[k / 2], (double)by / (double)path->rtt);
			fault_row(path, 0, variant, &faults);
		}
}

static void part_jitter(void)
{
	static const double loss[] = {0, 1};
	char variant[32];

	report_begin(&report, "jitter", "each packet takes up to so much longer; the order stays", fault_column,
		     ur_array_size(fault_column));
	for (const struct path *path = paths; path < paths + 2; path++)
		for (unsigned k = 0; k < 4; k++) {
			ur_time by = k % 2 ? 2 * path->rtt : path->rtt / 2;
			struct ur_sim_link faults = {.jitter = by, .loss = ppm(loss[k / 2])};

			snprintf(variant, sizeof(variant), "%g RTT", (double)by / (double)path->rtt);
			fault_row(path, loss[k / 2], variant, &faults);
		}
}

/* Gilbert's model: as many losses as packets by themselves would have, in bursts of `mean` packets. */
static void part_burst(void)
{
	static const unsigned mean[] = {1, 3, 10, 30};
	static const double loss[] = {0.1, 1};
	char variant[32];

	report_begin(&report, "burst", "losses in bursts of so many packets on average (Gilbert and Elliott)", fault_column,
		     ur_array_size(fault_column));
	for (const struct path *path = paths; path < paths + 2; path++)
		for (unsigned k = 0; k < ur_array_size(loss) * ur_array_size(mean); k++) {
			unsigned n = mean[k % ur_array_size(mean)];
			double p = loss[k / ur_array_size(mean)], leave = 1.0 / n, enter = leave * p / (100 - p);
			struct ur_sim_link faults = {.bad_enter = (uint32_t)(enter * UR_SIM_PPM + 0.5),
						     .bad_leave = (uint32_t)(leave * UR_SIM_PPM + 0.5),
						     .bad_loss = UR_SIM_PPM};

			snprintf(variant, sizeof(variant), "%u", n);
			fault_row(path, p, variant, &faults);
		}
}

/* --- many senders, and a receiver that rests --- */

static void incast_row(unsigned senders, bool ecn, double *v)
{
	struct stream_opt o = options(&paths[0], IBV_WR_RDMA_WRITE, OWN_OWN);

	o.senders = senders;
	o.pings = STREAM_PINGS;
	o.queue_bytes = 1000000;
	o.mark_bytes = ecn ? 200000 : 0;
	o.warm = 100 * MS; /* longer than the ACK timer */
	o.span = 200 * MS;
	stream_run(&o, &result);
	v[0] = 100 * stream_share(&o, &result, -1);
	v[1] = stream_fairness(&o, &result);
	v[2] = ping(0.99, US);
	v[3] = (double)result.queue_drops;
	v[4] = result.lost;
}

static void part_incast(void)
{
	static const struct report_column c[] = {{"WRITE", "own-own", "goodput"},
						 {"WRITE", "own-own", "fairness"},
						 {"SEND", "own-own", "p99-us"},
						 {"WRITE", "own-own", "dropped"},
						 {"WRITE", "own-own", "broken"}};
	char variant[32];

	report_begin(&report, "incast", "senders into one port of 100 Gbit/s with a buffer of 1 MB, and a ping of 64 bytes beside them", c,
		     ur_array_size(c));
	for (unsigned ecn = 0; ecn < 2; ecn++)
		for (unsigned n = 2; n <= STREAM_SENDERS; n *= 2) {
			double v[ur_array_size(c)];

			incast_row(n, ecn, v);
			snprintf(variant, sizeof(variant), "%u%s", n, ecn ? ", ECN" : "");
			report_row(&report, paths[0].rtt, 0, variant, v);
		}
}

static void silent_row(const struct path *path, double loss, ur_time silent, double *v)
{
	struct stream_opt o = options(path, IBV_WR_RDMA_WRITE, OWN_OWN);

	o.faults.loss = ppm(loss);
	o.silent = silent;
	stream_run(&o, &result);
	v[0] = 100 * stream_share(&o, &result, -1);
	v[1] = 100 * stream_share_after(&o, &result);
	v[2] = result.lost;
	v[3] = (double)result.repeats;
	v[4] = result.woken == UR_TIME_NEVER ? GONE : (double)result.woken / MS;
}

static void part_silent(void)
{
	static const struct report_column c[] = {{"WRITE", "own-own", "before"},
						 {"WRITE", "own-own", "after"},
						 {"WRITE", "own-own", "broken"},
						 {"WRITE", "own-own", "repeats"},
						 {"WRITE", "own-own", "woken-ms"}};
	static const unsigned ms[] = {10, 100, 1000};
	static const double loss[] = {0, 1};
	char variant[32];

	report_begin(&report, "silent", "the receiver does nothing for so long, as a process that is not scheduled", c, ur_array_size(c));
	for (const struct path *path = paths; path < paths + 2; path++)
		for (unsigned k = 0; k < 6; k++) {
			double v[ur_array_size(c)];

			silent_row(path, loss[k / 3], ms[k % 3] * MS, v);
			snprintf(variant, sizeof(variant), "%u ms", ms[k % 3]);
			report_row(&report, path->rtt, loss[k / 3], variant, v);
		}
}

/* --- the parts --- */

static const struct part {
	const char *name;
	void (*print)(void);
} parts[] = {
	{"goodput", part_goodput}, {"latency", part_latency}, {"reorder", part_reorder}, {"jitter", part_jitter},
	{"burst", part_burst},     {"incast", part_incast},   {"silent", part_silent},
};

static const struct part *find_part(const char *name)
{
	for (unsigned i = 0; i < ur_array_size(parts); i++)
		if (!strcmp(parts[i].name, name))
			return &parts[i];
	return NULL;
}

static int usage(void)
{
	fprintf(stderr, "usage: losstable [--tsv] [--congestion WORD] [PART...]; the parts are");
	for (unsigned i = 0; i < ur_array_size(parts); i++)
		fprintf(stderr, " %s", parts[i].name);
	fprintf(stderr, ", the words");
	for (unsigned i = 0; i < STREAM_CONGESTIONS; i++)
		fprintf(stderr, " %s", stream_congestion_name[i]);
	fprintf(stderr, "\n");
	return 2;
}

static bool set_congestion(const char *word)
{
	for (unsigned i = 0; i < STREAM_CONGESTIONS; i++)
		if (word && !strcmp(stream_congestion_name[i], word)) {
			congestion = (enum stream_congestion)i;
			return true;
		}
	return false;
}

int main(int argc, char **argv)
{
	int first = 1;

	for (; first < argc && !strncmp(argv[first], "--", 2); first++) {
		if (!strcmp(argv[first], "--tsv"))
			report.tsv = true;
		else if (strcmp(argv[first], "--congestion") || !set_congestion(argv[++first]))
			return usage();
	}
	for (int i = first; i < argc; i++)
		if (!find_part(argv[i]))
			return usage();
	for (int i = first; i < argc; i++)
		find_part(argv[i])->print();
	for (unsigned i = 0; i < ur_array_size(parts) && first == argc; i++)
		parts[i].print();
	return 0;
}
