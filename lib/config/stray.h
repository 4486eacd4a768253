/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that are no settings, but may have been meant to be. */
#ifndef UR_STRAY_H
#define UR_STRAY_H

/* The setting with the most similar name, in upper or lower case; NULL when none is similar. */
const char *ur_nearest_knob(const char *name);

#endif
