/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_FILES_H
#define UR_FILES_H

/*
 * Moves this process into a mount namespace of its own and puts there the files in /sys/class/infiniband and /dev/infiniband that programs
 * may look for (host/device/sysfs.h). 0, or the exit status after a message.
 */
int ur_files_provide(void);

#endif
