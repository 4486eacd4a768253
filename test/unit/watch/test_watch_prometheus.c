/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/watch/prometheus.c: the text format, and the names that doc/prometheus.md promises. */
#include <CUnit/CUnit.h>
#include <ctype.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "watch/watch.h"

void ur_suite_watch_prometheus(void);

static struct ur_watch_process a, b;
static struct ur_watch_sample *two;

static void fill(struct ur_watch_process *p, int pid, const char *program)
{
	*p = (struct ur_watch_process){.pid = pid};
	strcpy(p->program, program);
	strcpy(p->status.device, "uroce0");
	strcpy(p->status.interface, "eth0");
	strcpy(p->status.port, "udp");
	strcpy(p->status.version, "0.1.0");
	p->status.count = p->status.total = 1;
	p->status.qp[0] = (struct ur_status_qp){.qpn = 1, .state = IBV_QPS_RTS};
	for (unsigned i = 0; i < UR_C_COUNT; i++) {
		p->status.has[i] = true;
		p->status.counter[i] = (uint64_t)pid * 1000 + i;
	}
}

static char *text_of_two(void)
{
	fill(&a, 1, "rping");
	fill(&b, 2, "ib_write_bw");
	two->count = 2;
	two->process[0] = &a;
	two->process[1] = &b;
	return ur_watch_prometheus(two, "node_infiniband");
}

static bool has_line(const char *text, const char *line)
{
	size_t n = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at++)
		if ((at == text || at[-1] == '\n') && at[n] == '\n')
			return true;
	printf("\n    there is no line '%s'\n", line);
	return false;
}

static void format__lines(void)
{
	char *text = text_of_two(), line[512];

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_TRUE(has_line(text, "uroce_processes 2"));
	CU_ASSERT_TRUE(has_line(text, "# TYPE node_infiniband_port_data_transmitted_bytes_total counter"));
	snprintf(line, sizeof(line),
		 "node_infiniband_port_data_transmitted_bytes_total{device=\"uroce0\",port=\"1\",interface=\"eth0\",pid=\"2\","
		 "program=\"ib_write_bw\"} %u",
		 2000 + UR_C_TX_BYTES);
	CU_ASSERT_TRUE(has_line(text, line));
	snprintf(line, sizeof(line),
		 "uroce_tx_retransmits_total{device=\"uroce0\",port=\"1\",interface=\"eth0\",pid=\"1\",program=\"rping\"} %u",
		 1000 + UR_C_RETRANSMIT);
	CU_ASSERT_TRUE(has_line(text, line));
	CU_ASSERT_TRUE(
		has_line(text, "uroce_qps{device=\"uroce0\",port=\"1\",interface=\"eth0\",pid=\"1\",program=\"rping\",state=\"RTS\"} 1"));
	CU_ASSERT_TRUE(
		has_line(text, "uroce_qps{device=\"uroce0\",port=\"1\",interface=\"eth0\",pid=\"1\",program=\"rping\",state=\"ERR\"} 0"));
	free(text);
}

/* What promtool refuses in a name: an abbreviation of a unit between underscores. */
static bool has_unit(const char *name)
{
	static const char *const units[] = {"_s_", "_ms_", "_us_", "_ns_", "_sec_", "_b_", "_kb_", "_mb_", "_gb_", "_m_", "_h_", "_d_"};

	for (unsigned i = 0; i < ur_array_size(units); i++)
		if (strstr(name, units[i]))
			return true;
	return false;
}

/*
 * As a parser takes it: a HELP and a TYPE line once before the samples of a name, these in one group; counters end with _total and nothing
 * else does.
 */
static void format__grammar(void)
{
	char *text = text_of_two(), *rest = text, *line, name[128] = "", type[16] = "", seen[UR_C_COUNT + 8][128], word[128];
	unsigned names = 0, samples = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_EQUAL(text[strlen(text) - 1], '\n');
	while ((line = strsep(&rest, "\n")) && *line) {
		size_t n = strcspn(line, "{ ");

		if (sscanf(line, "# HELP %127s", word) == 1) {
			for (unsigned i = 0; i < names; i++)
				CU_ASSERT_STRING_NOT_EQUAL(seen[i], word);
			CU_ASSERT_FATAL(names < ur_array_size(seen));
			strcpy(seen[names++], word);
			strcpy(name, word);
			CU_ASSERT_FALSE(has_unit(word));
			CU_ASSERT_TRUE(strlen(line) > strlen("# HELP ") + strlen(word) + 3);
			type[0] = 0;
			continue;
		}
		if (sscanf(line, "# TYPE %127s %15s", word, type) == 2) {
			CU_ASSERT_STRING_EQUAL(word, name);
			CU_ASSERT_EQUAL(!strcmp(type, "counter"), strlen(word) > 6 && !strcmp(word + strlen(word) - 6, "_total"));
			continue;
		}
		CU_ASSERT_TRUE(n == strlen(name) && !strncmp(line, name, n) && type[0]);
		CU_ASSERT_TRUE(isdigit((unsigned char)line[strlen(line) - 1]));
		samples++;
	}
	CU_ASSERT_EQUAL(names, UR_C_COUNT + 3);
	CU_ASSERT_EQUAL(samples, 2 * UR_C_COUNT + 1 + 2 + 2 * (IBV_QPS_ERR + 1));
	free(text);
}

static void escape__labels(void)
{
	char out[64], *text;

	ur_watch_escape("a\\b\"c\nd", out);
	CU_ASSERT_STRING_EQUAL(out, "a\\\\b\\\"c\\nd");
	ur_watch_escape("", out);
	CU_ASSERT_STRING_EQUAL(out, "");
	free(text_of_two());
	strcpy(a.program, "\"}\\ 1");
	memset(a.status.device, '"', UR_STATUS_TEXT - 1);
	text = ur_watch_prometheus(two, "node_infiniband");
	CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(text, "program=\"\\\"}\\\\ 1\"} "));
	free(text);
}

/* A counter that a process of another version does not have; a process that cannot be read; nobody. */
static void look__partial(void)
{
	char *text;

	free(text_of_two());
	a.status.has[UR_C_PROBE] = b.status.has[UR_C_PROBE] = a.status.has[UR_C_RETRANSMIT] = false;
	text = ur_watch_prometheus(two, "roce");
	CU_ASSERT_PTR_NULL(strstr(text, "uroce_tx_probes_total"));
	CU_ASSERT_PTR_NULL(strstr(text, "uroce_tx_retransmits_total{device=\"uroce0\",port=\"1\",interface=\"eth0\",pid=\"1\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "uroce_tx_retransmits_total{device=\"uroce0\",port=\"1\",interface=\"eth0\",pid=\"2\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nroce_port_packets_received_total{"));
	CU_ASSERT_PTR_NULL(strstr(text, "node_infiniband"));
	free(text);
	b.unreadable = true;
	text = ur_watch_prometheus(two, "roce");
	CU_ASSERT_TRUE(has_line(text, "uroce_processes 1"));
	CU_ASSERT_PTR_NULL(strstr(text, "pid=\"2\""));
	free(text);
	two->count = 0;
	text = ur_watch_prometheus(two, "roce");
	CU_ASSERT_STRING_EQUAL(strchr(strchr(text, '\n') + 1, '\n') + 1, "uroce_processes 0\n");
	free(text);
}

/* Every name that comes from node_exporter is a row of the table there. */
static void names__are_documented(void)
{
	char *text = text_of_two(), *rest = text, *line, doc[65536], word[128], cell[160];
	FILE *f = fopen(UROCE_SOURCE_ROOT "/doc/prometheus.md", "r");
	size_t n;

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	n = fread(doc, 1, sizeof(doc) - 1, f);
	doc[n] = 0;
	fclose(f);
	while ((line = strsep(&rest, "\n")) && *line) {
		if (sscanf(line, "# TYPE node_infiniband_%127s", word) != 1)
			continue;
		snprintf(cell, sizeof(cell), "| `%s` |", word);
		if (!strstr(doc, cell))
			printf("\n    doc/prometheus.md has no row %s\n", cell);
		CU_ASSERT_PTR_NOT_NULL(strstr(doc, cell));
	}
	free(text);
}

static int make_two(void)
{
	two = calloc(1, sizeof(*two) + 2 * sizeof(two->process[0]));
	return two ? CUE_SUCCESS : CUE_SINIT_FAILED;
}

static int forget_two(void)
{
	free(two);
	return CUE_SUCCESS;
}

void ur_suite_watch_prometheus(void)
{
	CU_pSuite s = CU_add_suite("watch_prometheus", make_two, forget_two);

	CU_ADD_TEST(s, format__lines);
	CU_ADD_TEST(s, format__grammar);
	CU_ADD_TEST(s, escape__labels);
	CU_ADD_TEST(s, look__partial);
	CU_ADD_TEST(s, names__are_documented);
}
