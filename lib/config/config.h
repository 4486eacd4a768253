/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every setting (knob), one table. Values come from `uroce run` options (which it passes on as UROCE_* variables), the environment
 * (UROCE_*), and the INI file that UROCE_CONF names (section [uroce]), in that order of precedence; then the defaults.
 */
#ifndef UR_CONFIG_H
#define UR_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UR_CONFIG_STR 256

struct ur_config {
	char dev[UR_CONFIG_STR];        /* UROCE_DEV: interfaces of the kernel, shared with it, comma separated */
	char port[UR_CONFIG_STR];       /* UROCE_PORT: auto, or the kind of port for a shared interface (lib/engine/port.c) */
	char vdev[UR_CONFIG_STR];       /* UROCE_VDEV: a DPDK virtual device and its arguments, owned */
	char pci[UR_CONFIG_STR];        /* UROCE_PCI: PCI address of a NIC and arguments for its driver, owned */
	char eal[UR_CONFIG_STR];        /* UROCE_EAL: further EAL arguments, blank separated */
	char ip[UR_CONFIG_STR];         /* UROCE_IP: addresses of the owned port, ADDR/LEN, comma separated */
	char gw[UR_CONFIG_STR];         /* UROCE_GW: default gateways of the owned port, comma separated */
	char capture[UR_CONFIG_STR];    /* UROCE_CAPTURE: pcapng file to write */
	char trace[UR_CONFIG_STR];      /* UROCE_TRACE: file of events to write */
	char fault[UR_CONFIG_STR];      /* UROCE_FAULT: faults to inject, "drop=1%,dir=both,seed=7", and rules (fault/spec.h) */
	char counters[UR_CONFIG_STR];   /* UROCE_COUNTERS: file for the counters, renewed while the process runs; "-": stderr, at the end */
	char log[UR_CONFIG_STR];        /* UROCE_LOG: error, info or debug */
	char congestion[UR_CONFIG_STR]; /* UROCE_CONGESTION: congestion control: auto, window, dcqcn or off */
	uint64_t mtu;                   /* UROCE_MTU: IP MTU of the owned port, 0: the port's own */
	uint64_t keeper;           /* UROCE_KEEPER: a keeper speaks for a process that is killed (lib/siblings/farewells.h), 1 on, 0 off */
	uint64_t one_copy;         /* UROCE_ONE_COPY: bulk packets between processes of this host (wire/bulk.h), 1 on, 0 off */
	uint64_t selective_repeat; /* UROCE_SELECTIVE_REPEAT: keeping what is beyond a loss, and SACKs (wire/sack.h), 1 on, 0 off */
	uint64_t lanes;            /* UROCE_LANES: how many lanes a device may have (engine/lane.c) */
	char spread[UR_CONFIG_STR]; /* UROCE_SPREAD: the lane of a new QP, "thread", "cq" or "vector" (verbs/lane.c) */
	char cpus[UR_CONFIG_STR];  /* UROCE_CPUS: CPUs that our threads run on (config/cpus.h); "": all that the process was given */
	uint64_t spin_us;          /* UROCE_SPIN_US: how long the progress thread spins after a packet at most (engine/policy/poller.h) */
};

enum ur_config_type { UR_CONFIG_STRING, UR_CONFIG_UINT, UR_CONFIG_CPUS };

struct ur_config_knob {
	const char *name; /* in the INI file; the variable is UROCE_ and the name in capitals */
	enum ur_config_type type;
	size_t offset; /* in struct ur_config */
	const char *def;
	uint64_t min, max; /* of numbers */
	const char *words; /* of a string: the only values, separated by blanks; NULL: any */
	const char *help;
};

extern const struct ur_config_knob ur_config_knobs[];
extern const unsigned ur_config_knob_count;

/* Fills *c. 0, or an errno and one sentence in err. */
int ur_config_load(struct ur_config *c, char *err, size_t errlen);
/*
 * One sentence for each variable of the environment that begins with UROCE_ and is no setting. `last` is what the call before returned,
 * NULL at first; NULL when there are no more.
 */
const char *const *ur_config_stray(const char *const *last, char *sentence, size_t len);
/* Prints these sentences on stderr, once in a process. */
void ur_config_warn(void);
/* Overrides one knob before the engine is opened (uroce.h). ENOENT, EINVAL. */
int ur_config_set(const char *name, const char *value, char *err, size_t errlen);
/* The value of a knob as text, and where it came from: "default", "file", "environment" or "program". */
const char *ur_config_text(const struct ur_config *c, const struct ur_config_knob *k, char *buf, size_t len);
const char *ur_config_source(const struct ur_config_knob *k);
/* Somebody gave this setting its value: it is not the default. */
bool ur_config_chosen(const char *name);

#endif
