/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce conform: io.c moves its packets, report.c writes the results, serve.c is the other side; file.c
 * judges a recording instead.
 */
#ifndef UR_APP_CONFORM_H
#define UR_APP_CONFORM_H

#include <stdio.h>

#include "conform/conform.h"

struct ur_conform {
	const char *peer;    /* as the command line has it */
	const char *dev;     /* NULL: that of the route */
	const char *capture; /* a pcapng file */
	const char *pattern; /* of rules; NULL: all */
	bool lengthy;        /* rules that take a minute or more, too */
	uint16_t port;
	uint32_t quiet_ms;
	char local_text[64], peer_text[64], ifname[64];
	uint32_t frames;
	struct ur_cf_run *run;
};

/* Plays the rules. 0, or the exit status after a message. */
int ur_conform_play(struct ur_conform *c);

void ur_conform_text(const struct ur_conform *c, FILE *out);
void ur_conform_json(const struct ur_conform *c, FILE *out);
void ur_conform_html(const struct ur_conform *c, FILE *out);
unsigned ur_conform_count(const struct ur_conform *c, enum ur_cf_verdict v);

struct ur_conform_file {
	const char *name;    /* "-": standard input */
	const char *host;    /* NULL: all of them */
	const char *pattern; /* of rules; NULL: all */
	bool json;
};

/* Judges the hosts of a recording, and prints. Returns the exit status. */
int ur_conform_file(const struct ur_conform_file *c);

/* Becomes the responder, on uroce, or on the system's own device. Returns after a message. */
int ur_conform_serve(const char *address, uint16_t port, bool system);

#endif
