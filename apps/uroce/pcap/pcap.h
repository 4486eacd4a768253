/* SPDX-License-Identifier: BSD-3-Clause */
/* The subcommands of uroce pcap. */
#ifndef UR_PCAP_H
#define UR_PCAP_H

#include "apps/uroce/cli/command.h"

/* Those that are subcommands of their own, and the one without a name. */
extern const struct ur_command ur_pcap_annotate, ur_pcap_check, ur_pcap_compare, ur_pcap_counters, ur_pcap_ladder, ur_pcap_list,
	ur_pcap_mutate, ur_pcap_plot, ur_pcap_replay, ur_pcap_report, ur_pcap_rewrite, ur_pcap_slow, ur_pcap_watch, ur_pcap_why;

#endif
