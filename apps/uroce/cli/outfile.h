/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that commands write. A file that replaces another appears under its name when it is complete: it is written beside it under an
 * unpredictable name, so links and pipes that somebody else has put there are not followed. A device, a pipe or a link that the user names
 * (/dev/stdout, /dev/full) is written to directly.
 */
#ifndef UR_OUTFILE_H
#define UR_OUTFILE_H

#include <stdbool.h>
#include <stdio.h>

struct ur_outfile {
	const char *name;
	char *part; /* what it is called until it is whole; NULL: nothing is to be renamed */
	FILE *f;    /* NULL when the caller has closed it */
};

/* "-" is standard output. `secret`: it holds others' data, and nobody else may read it. False after a message. `name` stays. */
bool ur_outfile_open(struct ur_outfile *o, const char *name, bool secret);
/* Closes it, and with `whole` gives it its name; what is not whole goes. False after a message when it could not be written to its end. */
bool ur_outfile_close(struct ur_outfile *o, bool whole);
/* Whether two names lead to one file that is there: to write the one would end the other. */
bool ur_outfile_is(const char *name, const char *other);
/* What is on standard output so far is written now: for reports without an end. False: ur_outfile_end will say why, so stop. */
bool ur_outfile_flush(void);
/* Whether a process has written all of standard output, to be asked at its end: `status`, or another one after a message. */
int ur_outfile_end(int status);
/* To be called first: where standard descriptors are closed, no file that is opened later takes their place. */
void ur_outfile_begin(void);

#endif
