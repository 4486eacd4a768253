/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that a kernel has in /sys/class/infiniband/<device> for a device of its own, made from the state of ours (Linux,
 * Documentation/ABI/stable/sysfs-class-infiniband). No kernel knows the device, so they exist only where somebody puts them:
 * ibv_read_sysfs_file answers from them, and `uroce run --files` writes them out.
 */
#ifndef UR_SYSFS_H
#define UR_SYSFS_H

#include "host/device/info.h"
#include "net/net.h"

#define UR_SYSFS_CLASS "/sys/class/infiniband"
#define UR_DEV_DIR "/dev/infiniband"
/* Of ibv_device.dev_name; programs look for a device node of that name in UR_DEV_DIR. */
#define UR_DEV_PREFIX "uverbs-"

/*
 * Calls fn(arg, path, text) for each file until one returns other than 0, which is then returned; 0 at the end. `path` is relative to the
 * device's directory, "ports/1/state"; `text` has no newline.
 */
typedef int ur_sysfs_fn(void *arg, const char *path, const char *text);
int ur_sysfs_each(const struct ur_device_info *d, const struct ur_net *net, ur_sysfs_fn *fn, void *arg);

#endif
