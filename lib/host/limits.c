/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/limits.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"

static const struct {
	int err;
	const char *reason;
} reasons[] = {
	{EMFILE, "no file descriptors are left: raise the limit with 'ulimit -n'"},
	{EFBIG, "files may not be long enough: raise the limit with 'ulimit -f' to 11 MiB or more"},
	{ENOMEM, "memory or address space is short: free some, or raise the limit with 'ulimit -v'"},
	{EAGAIN, "no further thread can be started: raise the limit with 'ulimit -u', or that of the container"},
	{ENOSYS, "the system call memfd_create is not available: permit it in the seccomp filter of the container"},
};

const char *ur_limit_reason(int err)
{
	for (unsigned i = 0; i < ur_array_size(reasons); i++)
		if (reasons[i].err == err)
			return reasons[i].reason;
	return strerror(err);
}
