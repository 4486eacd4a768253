/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes the frames of a port to a pcapng file (draft-ietf-opsawg-pcapng), with direction and nanosecond time stamps: what is sent has the
 * time just before the port gets it, what came the time that the kernel tells, else the one at which it is handled. So a frame that waited
 * for us may be older than the ones before it in the file, which has frames in the order in which they were handled. Whoever has the NIC
 * puts frames into a ring and never waits; a thread writes (host/spool.h). Frames that find no room, or a file that takes nothing any more,
 * are counted: the next frame in the file says how many are missing before it, and the end of the file how many in all.
 */
#ifndef UR_CAPTURE_H
#define UR_CAPTURE_H

#include "wire/pkt.h"

struct ur_capture;
struct ur_counters; /* base/counters.h */

enum ur_capture_dir { UR_CAPTURE_IN = 1, UR_CAPTURE_OUT = 2 }; /* as epb_flags has them */

/*
 * `ifname` goes into the interface block. `now` is the current time of the clock that stamps the frames. The file is created or replaced,
 * with mode 0600. 0 or an errno, as ur_output_open, and those of a thread.
 */
int ur_capture_open(const char *path, const char *ifname, ur_time now, struct ur_capture **out);
/*
 * From now on the clock, CLOCK_MONOTONIC, is read for each frame: `now` of a whole round of the NIC is not the time at which a frame came
 * or leaves. Not in virtual time.
 */
void ur_capture_read_clock(struct ur_capture *c);
/* Has missing frames counted there as well, by whoever calls ur_capture_frame. */
void ur_capture_count(struct ur_capture *c, struct ur_counters *counters);
/* From any of the lanes that record into it. */
void ur_capture_frame(struct ur_capture *c, const struct ur_pkt *p, ur_time now, enum ur_capture_dir dir);
/* The writer lags, perhaps because it waits for our CPU: it should get it once the NIC is given up. Asked as ur_capture_frame is called. */
bool ur_capture_gives_way(struct ur_capture *c);
/* Waits until the file has all frames, but not for one that takes nothing for a second. */
void ur_capture_flush(struct ur_capture *c);
/*
 * 0, or what the file lacks frames for: the errno of the first write that failed, ETIMEDOUT for a file that takes nothing any more, ENOBUFS
 * when it did not take them as fast as they came. *lost is the number of these frames, as far as it is known.
 */
int ur_capture_close(struct ur_capture *c, uint64_t *lost);

#endif
