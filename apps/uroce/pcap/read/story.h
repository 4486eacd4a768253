/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sentences about one thing, for a person or for a program: as text they come out as they are printed; as JSON they are the member
 * `sentences` of an object whose other members have the same in numbers.
 */
#ifndef UR_PCAP_STORY_H
#define UR_PCAP_STORY_H

#include "apps/uroce/cli/json.h"
#include "apps/uroce/pcap/read/read.h"

struct ur_story {
	FILE *out;      /* where sentences are printed: one to a line, blanks at its beginning do not count */
	json_t *object; /* NULL for text */
	char *text;
	size_t len;
};

/* `kind`: the member of that name. */
void ur_story_begin(struct ur_story *s, bool json, const char *kind, const char *file);
/* One line of JSON; nothing more for text. */
void ur_story_end(struct ur_story *s);
/* A member; nothing for text. `value` is consumed. */
void ur_story_put(struct ur_story *s, const char *name, json_t *value);

/* A finding without its file; its time is in nanoseconds. */
json_t *ur_pcap_finding_json(const struct ur_pcap_finding *g);

#endif
