/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration table and where its values come from. */
#include "config/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/cpus.h"
#include "config/stray.h"

#define KNOB_STR(field, def, help)                                                                                                         \
	{                                                                                                                                  \
#field, UR_CONFIG_STRING, offsetof(struct ur_config, field), def, 0, 0, NULL, help                                         \
	}
#define KNOB_WORD(field, def, words, help)                                                                                                 \
	{                                                                                                                                  \
#field, UR_CONFIG_STRING, offsetof(struct ur_config, field), def, 0, 0, words, help                                        \
	}
#define KNOB_UINT(field, def, min, max, help)                                                                                              \
	{                                                                                                                                  \
#field, UR_CONFIG_UINT, offsetof(struct ur_config, field), def, min, max, NULL, help                                       \
	}

const struct ur_config_knob ur_config_knobs[] = {
	KNOB_STR(dev, "",
		 "kernel interface to share: its name (eth0), an address of it (10.0.0.1), their network (10.0.0.0/16), or a pattern "
		 "(eth*); all that are in the network or fit the pattern, and several that commas separate, are a device each"),
	KNOB_WORD(port, "auto", "auto udp packet dpdk",
		  "how an interface is shared: udp (sockets, no privilege), packet (packet sockets), dpdk (DPDK's), auto"),
	KNOB_STR(vdev, "", "DPDK virtual device and its arguments, such as net_memif0,role=client, owned by uroce alone; needs `--ip`"),
	KNOB_STR(pci, "", "PCI address of a NIC that `uroce bind` has bound, such as 0000:03:00.0, owned by uroce alone; needs `--ip`"),
	KNOB_STR(eal, "", "further arguments for DPDK's EAL, as one word, separated by blanks"),
	KNOB_STR(ip, "", "addresses of an owned port, ADDR/LEN, in a VLAN ADDR/LEN@VLAN; several are separated by commas"),
	KNOB_STR(gw, "", "default gateway of an owned port; one for IPv4 and one for IPv6, separated by a comma"),
	KNOB_STR(capture, "", "pcapng file to write every frame to"),
	KNOB_STR(trace, "", "file to write the engine's events to, one JSON event per line; doc/trace.md (package uroce-doc) lists them"),
	KNOB_STR(fault, "", "faults to inject: drop=1%,dup=1%,reorder=1%,corrupt=1%,dir=tx|rx|both,seed=N, or drop tx opcode=ACK nth=3"),
	KNOB_STR(counters, "", "file to write the counters to, four times a second and at the end; - is standard error, only at the end"),
	KNOB_WORD(log, "error", "error info debug", "messages on standard error: error, info or debug"),
	KNOB_WORD(congestion, "auto", "auto window dcqcn off",
		  "congestion control: auto (as dcqcn, but as window between uroce hosts that lose packets), dcqcn (a rate that follows "
		  "notifications), window (follows round trips, losses and marks), off"),
#ifdef UR_HAVE_KEEPER
	KNOB_UINT(keeper, "1", 0, 1,
		  "1 starts a small process that tells the peers and leaves the groups when this one is killed; 0 does not"),
#else
	KNOB_UINT(keeper, "0", 0, 0, "0: this build has no keeper, the small process that tells the peers when this one is killed"),
#endif
	KNOB_UINT(mtu, "0", 0, 9600, "IP MTU of an owned port in bytes; 0 uses the port's own"),
	KNOB_UINT(one_copy, "1", 0, 1,
		  "1: processes of one host copy long messages straight from one another's memory; 0: they exchange packets"),
	KNOB_UINT(selective_repeat, "1", 0, 1,
		  "1 keeps packets that arrive beyond a lost one, and exchanges selective acknowledgements with uroce peers; 0 does not"),
	KNOB_UINT(lanes, "1", 1, 16,
		  "lanes of a device: parts of it, each with its own QPs, lock, socket and thread, so that as many CPUs can work at once"),
	KNOB_WORD(spread, "thread", "thread cq vector",
		  "the lane of a QP whose CQs are new: thread (by the thread that creates it), cq (the next one), vector (by comp_vector)"),
	{"cpus", UR_CONFIG_CPUS, offsetof(struct ur_config, cpus), "", 0, 0, NULL,
	 "CPUs that uroce's own threads may run on, such as 2,6-7; by default all that the process was given when it started"},
	KNOB_UINT(spin_us, "100", 0, 1000000,
		  "maximum time in microseconds that the progress thread spins after a packet, where spinning helps"),
};
const unsigned ur_config_knob_count = sizeof(ur_config_knobs) / sizeof(ur_config_knobs[0]);

enum source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_PROGRAM };
static const char *const source_names[] = {"default", "file", "environment", "program"};

/* Per knob: where its value came from at the last load, and what the program set. */
static enum source sources[sizeof(ur_config_knobs) / sizeof(ur_config_knobs[0])];
static char *program[sizeof(ur_config_knobs) / sizeof(ur_config_knobs[0])];

static const struct ur_config_knob *find_knob(const char *name)
{
	for (unsigned i = 0; i < ur_config_knob_count; i++)
		if (!strcmp(ur_config_knobs[i].name, name))
			return &ur_config_knobs[i];
	return NULL;
}

static int set_uint(uint64_t *field, const struct ur_config_knob *k, const char *value, char *err, size_t errlen)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(value, &end, 10);
	if (!isdigit((unsigned char)value[0]) || *end || errno || v < k->min || v > k->max) {
		if (k->min == k->max)
			snprintf(err, errlen, "setting %s is '%s': this build supports only %llu", k->name, value,
				 (unsigned long long)k->min);
		else
			snprintf(err, errlen, "setting %s is '%s': it must be a number from %llu to %llu", k->name, value,
				 (unsigned long long)k->min, (unsigned long long)k->max);
		return EINVAL;
	}
	*field = v;
	return 0;
}

static bool is_word(const char *words, const char *value)
{
	size_t len = strlen(value), n;

	for (const char *w = words; *w; w += n + strspn(w + n, " ")) {
		n = strcspn(w, " ");
		if (n == len && !strncmp(w, value, n))
			return true;
	}
	return false;
}

static int set_knob(struct ur_config *c, const struct ur_config_knob *k, const char *value, char *err, size_t errlen)
{
	char *field = (char *)c + k->offset;
	cpu_set_t cpus;

	if (k->type == UR_CONFIG_UINT)
		return set_uint((uint64_t *)(void *)field, k, value, err, errlen);
	if (strlen(value) >= UR_CONFIG_STR) {
		snprintf(err, errlen, "setting %s is longer than %d characters", k->name, UR_CONFIG_STR - 1);
		return EINVAL;
	}
	if (k->type == UR_CONFIG_CPUS && !ur_cpus_parse(value, &cpus)) {
		snprintf(err, errlen, "setting %s is '%s': it must be numbers of CPUs, such as 2,6-7", k->name, value);
		return EINVAL;
	}
	if (k->words && !is_word(k->words, value)) {
		snprintf(err, errlen, "setting %s is '%s': it must be one of %s", k->name, value, k->words);
		return EINVAL;
	}
	strcpy(field, value);
	return 0;
}

static char *trim(char *s)
{
	char *end = s + strlen(s);

	while (isspace((unsigned char)*s))
		s++;
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = 0;
	return s;
}

static int load_line(struct ur_config *c, char *line, bool *ours, const char *path, unsigned no, char *err, size_t errlen)
{
	const struct ur_config_knob *k;
	char *eq;

	line = trim(line);
	if (!*line || *line == '#' || *line == ';')
		return 0;
	if (*line == '[') {
		*ours = !strcmp(line, "[uroce]");
		return 0;
	}
	if (!*ours)
		return 0;
	eq = strchr(line, '=');
	if (eq)
		*eq = 0;
	k = eq ? find_knob(trim(line)) : NULL;
	if (!k) {
		snprintf(err, errlen, "%s line %u is not NAME = VALUE with a name that 'uroce info --config' lists", path, no);
		return EINVAL;
	}
	sources[k - ur_config_knobs] = FROM_FILE;
	return set_knob(c, k, trim(eq + 1), err, errlen);
}

static int load_file(struct ur_config *c, const char *path, char *err, size_t errlen)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	bool ours = false;
	unsigned no = 0;
	int r = 0;

	if (!f) {
		r = errno;
		snprintf(err, errlen, "cannot read the configuration file '%s' that UROCE_CONF names: %s", path, strerror(r));
		return r;
	}
	errno = 0;
	while (!r && getline(&line, &room, f) >= 0)
		r = load_line(c, line, &ours, path, ++no, err, errlen);
	if (!r && ferror(f)) {
		r = errno ? errno : EIO;
		snprintf(err, errlen, "cannot read the configuration file '%s' that UROCE_CONF names: %s", path, strerror(r));
	}
	free(line);
	fclose(f);
	return r;
}

static const char *knob_env(const struct ur_config_knob *k)
{
	char var[64] = "UROCE_";
	size_t n = 6;

	for (const char *s = k->name; *s && n < sizeof(var) - 1; s++)
		var[n++] = (char)toupper((unsigned char)*s);
	var[n] = 0;
	return secure_getenv(var);
}

int ur_config_load(struct ur_config *c, char *err, size_t errlen)
{
	const char *path = secure_getenv("UROCE_CONF");
	int r = 0;

	memset(c, 0, sizeof(*c));
	for (unsigned i = 0; i < ur_config_knob_count; i++) {
		sources[i] = FROM_DEFAULT;
		set_knob(c, &ur_config_knobs[i], ur_config_knobs[i].def, err, errlen);
	}
	if (path && *path)
		r = load_file(c, path, err, errlen);
	for (unsigned i = 0; !r && i < ur_config_knob_count; i++) {
		const char *env = knob_env(&ur_config_knobs[i]);
		const char *value = program[i] ? program[i] : env;

		if (!value)
			continue;
		sources[i] = program[i] ? FROM_PROGRAM : FROM_ENVIRONMENT;
		r = set_knob(c, &ur_config_knobs[i], value, err, errlen);
	}
	return r;
}

int ur_config_set(const char *name, const char *value, char *err, size_t errlen)
{
	const struct ur_config_knob *k = find_knob(name);
	struct ur_config scratch;
	char *copy;
	int r;

	if (!k) {
		const char *other = ur_nearest_knob(name);

		snprintf(err, errlen, "there is no setting '%s'%s%s%s: 'uroce info --config' lists them", name,
			 other ? "; did you mean '" : "", other ? other : "", other ? "'" : "");
		return ENOENT;
	}
	r = set_knob(&scratch, k, value, err, errlen);
	if (r)
		return r;
	copy = strdup(value);
	if (!copy) {
		snprintf(err, errlen, "out of memory: setting %s was ignored", name);
		return ENOMEM;
	}
	free(program[k - ur_config_knobs]);
	program[k - ur_config_knobs] = copy;
	return 0;
}

const char *ur_config_text(const struct ur_config *c, const struct ur_config_knob *k, char *buf, size_t len)
{
	const char *field = (const char *)c + k->offset;

	if (k->type != UR_CONFIG_UINT)
		snprintf(buf, len, "%s", field);
	else
		snprintf(buf, len, "%llu", (unsigned long long)*(const uint64_t *)(const void *)field);
	return buf;
}

const char *ur_config_source(const struct ur_config_knob *k)
{
	return source_names[sources[k - ur_config_knobs]];
}

bool ur_config_chosen(const char *name)
{
	const struct ur_config_knob *k = find_knob(name);

	return k && sources[k - ur_config_knobs] != FROM_DEFAULT;
}
