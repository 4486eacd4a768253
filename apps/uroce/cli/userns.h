/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_USERNS_H
#define UR_USERNS_H

/*
 * Puts this process, which has one thread, into a user namespace of its own, and into the others that `flags` name (CLONE_NEWNS, ...). It
 * has all capabilities there until it executes a program; user and group are the same as outside. 0, or an errno; *file is the file that
 * could not be written, or NULL when the kernel refuses the namespace.
 */
int ur_userns_enter(int flags, const char **file);

#endif
