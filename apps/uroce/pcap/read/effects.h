/* SPDX-License-Identifier: BSD-3-Clause */
/* What CNPs, congestion marks and pause frames did to the rate of a sender, as several subcommands say it. */
#ifndef UR_PCAP_EFFECTS_H
#define UR_PCAP_EFFECTS_H

#include "analyze/view/effect.h"
#include "apps/uroce/cli/json.h"

/* A line for each kind that came, which begins with `when`, such as "When"; `who` sent. Nothing for NULL. */
void ur_pcap_say_effects(const struct ur_effects *e, const char *when, const char *who, FILE *to);
json_t *ur_pcap_effects_json(const struct ur_effects *e);

#endif
