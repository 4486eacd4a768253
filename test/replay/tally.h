/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of test/replay share. */
#ifndef TALLY_H
#define TALLY_H

#include "replay/replay.h"

/* Lines of output so far; each ends in ok or not ok. */
struct tally {
	unsigned passed, failed, skipped;
};

void tally_line(struct tally *t, bool ok, const char *what);

/* Reads a pcap file. False, with the reason in *why, when it cannot be read; capture_free is needed even so. */
bool load(struct capture *c, const char *path, const char **why);

/* Falsifies recordings of a folder in many ways, one after the other, and says which are noticed where they are. */
void mutate_all(const char *folder, struct tally *t);

#endif
