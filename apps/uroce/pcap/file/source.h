/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a file, or of an interface: unpack.c makes streams of files, reader.c and source.c frames of streams. */
#ifndef UR_PCAP_SOURCE_H
#define UR_PCAP_SOURCE_H

#include <stdio.h>

#include "analyze/frame/gather.h"
#include "apps/uroce/pcap/file/reader.h"

#define UR_PCAP_ROOM 65536
/*
 * A file ("-": standard input), unpacked when it is compressed. `room`: UR_PCAP_ROOM bytes to buffer it with until it is closed, or NULL.
 * NULL with errno; what is wrong with it later on stands in `fault`.
 */
FILE *ur_pcap_stream(const char *name, char *room, const char **fault);

struct ur_pcap_source {
	const char *name;
	struct ur_pcap_reader reader;
	struct ur_gatherer *gatherer;
	char *room; /* of the stream */
	const char *fault;
	const char *why;                 /* it cannot be read to its end; NULL when it can */
	uint32_t strange[UR_AN_STRANGE]; /* frames so far, before the first RoCEv2 packet */
	uint64_t parts;                  /* IP fragments so far that did not complete a packet */
	bool roce;                       /* a frame so far had a RoCEv2 packet */
	struct ur_an_frame frame;        /* the newest; its bytes are good until the next */
};

/* From now on SIGINT and SIGTERM end what is read, as the end of a file does. */
void ur_pcap_until_interrupted(void);
bool ur_pcap_interrupted(void);
/* False after a sentence on stderr. */
bool ur_pcap_source_open(struct ur_pcap_source *s, const char *name);
bool ur_pcap_source_next(struct ur_pcap_source *s);
/* After the last frame. False after a sentence on stderr: the file was read to its end and holds no RoCEv2 packet. */
bool ur_pcap_source_has_roce(const struct ur_pcap_source *s);
void ur_pcap_source_close(struct ur_pcap_source *s);

/* --- frames of an interface --- */

struct ur_pcap_live;
/* NULL after a sentence on stderr. */
struct ur_pcap_live *ur_pcap_live_open(const char *interface);
/* 1: a frame; 0: none for now; -1: no more, after a sentence on stderr. `number` is counted from 1. */
int ur_pcap_live_next(struct ur_pcap_live *l, struct ur_an_frame *f);
/* Frames that the kernel had no room for, so far. */
uint64_t ur_pcap_live_lost(struct ur_pcap_live *l);
void ur_pcap_live_close(struct ur_pcap_live *l);

#endif
