/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce run: which package has the RDMA program that a page named and that is not installed. */
#include "apps/uroce/run/packages.h"

#include <fnmatch.h>
#include <stddef.h>

#include "base/base.h"

#define RDMACM "rdmacm-utils", "librdmacm-utils"
#define IBVERBS "ibverbs-utils", "libibverbs-utils"
#define PERFTEST "perftest", "perftest"

static const struct ur_package packages[] = {
	{"rping", RDMACM},
	{"rdma_client", RDMACM},
	{"rdma_server", RDMACM},
	{"rdma_xclient", RDMACM},
	{"rdma_xserver", RDMACM},
	{"ucmatose", RDMACM},
	{"udaddy", RDMACM},
	{"udpong", RDMACM},
	{"mckey", RDMACM},
	{"cmtime", RDMACM},
	{"rcopy", RDMACM},
	{"rstream", RDMACM},
	{"riostream", RDMACM},
	{"ibv_asyncwatch", IBVERBS},
	{"ibv_devices", IBVERBS},
	{"ibv_devinfo", IBVERBS},
	{"ibv_*_pingpong", IBVERBS},
	{"ib_atomic_*", PERFTEST},
	{"ib_read_*", PERFTEST},
	{"ib_send_*", PERFTEST},
	{"ib_write_*", PERFTEST},
	{"raw_ethernet_*", PERFTEST},
	{"ucx_info", "ucx-utils", "ucx"},
	{"ucx_perftest", "ucx-utils", "ucx"},
	{"fi_info", "libfabric-bin", "libfabric"},
	{"fi_pingpong", "libfabric-bin", "libfabric"},
	{"mpirun", "openmpi-bin", "openmpi"},
	{"mpiexec", "openmpi-bin", "openmpi"},
};

const struct ur_package *ur_package_of(const char *program)
{
	for (size_t i = 0; i < ur_array_size(packages); i++)
		if (!fnmatch(packages[i].program, program, 0))
			return &packages[i];
	return NULL;
}
