/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who would have to wait for this process's keeper (keeper_start.h). It outlives the process, so no parent of its own can do so: the kernel
 * gives it to the nearest subreaper (PR_SET_CHILD_SUBREAPER), or to process 1 of the pid namespace.
 */
#ifndef UR_ADOPTER_H
#define UR_ADOPTER_H

/*
 * NULL, or why there should be no keeper, to follow "because": this process would find it among its children, or process 1 of a container
 * would never collect it. Reads /proc.
 */
const char *ur_adopter_objects(void);

#endif
