/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the frames of a port to a pcapng file (draft-ietf-opsawg-pcapng), with direction and nanosecond time stamps. */
#ifndef UR_CAPTURE_H
#define UR_CAPTURE_H

#include "wire/pkt.h"

struct ur_capture;

enum ur_capture_dir { UR_CAPTURE_IN = 1, UR_CAPTURE_OUT = 2 }; /* as epb_flags has them */

/*
 * `ifname` goes into the interface block. `now` is the current time of the clock that stamps the frames. The file is created or replaced,
 * with mode 0600. 0 or an errno, as ur_output_open.
 */
int ur_capture_open(const char *path, const char *ifname, ur_time now, struct ur_capture **out);
void ur_capture_frame(struct ur_capture *c, const struct ur_pkt *p, ur_time now, enum ur_capture_dir dir);
/* Writes out what is buffered; cheap when there is nothing. */
void ur_capture_flush(struct ur_capture *c);
/* 0, or the errno of the first write that failed: what came after it is missing. */
int ur_capture_close(struct ur_capture *c);

#endif
