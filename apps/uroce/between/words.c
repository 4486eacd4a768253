/* SPDX-License-Identifier: BSD-3-Clause */
/* In words, what was done to a frame, what came of it, and how long that took: for text and JSON. */
#include <stdio.h>

#include "apps/uroce/between/between.h"

static const struct {
	const char *word, *key;
} did_names[UR_DID_KINDS] = {
	{"dropped", "dropped"},
	{"duplicated", "duplicated"},
	{"delayed", "delayed"},
	{"reordered", "reordered"},
	{"corrupted", "corrupted"},
	{"marked", "marked"},
	{"dropped by the full queue", "queue_dropped"},
	{"marked by the queue", "queue_marked"},
	{"dropped because this program can hold no more", "no_room"},
	{"trimmed", "trimmed"},
	{"held", "held"},
	{"corrupted with a right ICRC", "altered"},
};

const char *const ur_between_told_words[UR_TOLDS] = {
	[UR_TOLD_NOT] = "none", [UR_TOLD_NAK] = "NAK", [UR_TOLD_SACK] = "SACK", [UR_TOLD_ASKED] = "repeated READ request"};
const char *const ur_between_manner_words[UR_MANNERS] = {
	[UR_MANNER_OPEN] = "open",           [UR_MANNER_ALONE] = "nothing followed it",     [UR_MANNER_SELECTIVE] = "selective",
	[UR_MANNER_GO_BACK_N] = "go-back-N", [UR_MANNER_LATER] = "a later acknowledgement", [UR_MANNER_LOST] = "lost again"};

const char *ur_between_did_word(unsigned bit)
{
	return did_names[bit].word;
}

const char *ur_between_did_key(unsigned bit)
{
	return did_names[bit].key;
}

void ur_between_did_text(const struct ur_between_fate *fate, char *to, size_t room)
{
	size_t n = 0;

	*to = 0;
	for (unsigned i = 0; i < UR_DID_KINDS && n < room; i++)
		if (fate->did >> i & 1)
			n += (size_t)snprintf(to + n, room - n, "%s%s", n ? ", " : "", did_names[i].word);
	if (n && n < room && fate->rule)
		snprintf(to + n, room - n, " by rule %u", fate->rule);
}

const char *ur_between_time_text(ur_time ns, char to[UR_BETWEEN_TIME])
{
	if (ns < UR_NS_PER_MS)
		snprintf(to, UR_BETWEEN_TIME, "%.1f us", (double)ns / UR_NS_PER_US);
	else
		snprintf(to, UR_BETWEEN_TIME, "%.3f ms", (double)ns / UR_NS_PER_MS);
	return to;
}
