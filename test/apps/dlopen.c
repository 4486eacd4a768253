/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that links neither library and takes what it needs from the handles of dlopen(3), version by version, as NCCL does. It says
 * which device it found, and which library each symbol came from.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

static const struct {
	const char *library, *symbol, *version, *home; /* a part of the name of the file that it should come from */
} t[] = {
	{"libibverbs.so.1", "ibv_get_device_list", "IBVERBS_1.1", "liburoce.so"},
	{"libibverbs.so.1", "ibv_reg_mr_iova2", "IBVERBS_1.8", "liburoce.so"},
	{"libibverbs.so.1", "ibv_query_qp_data_in_order", "IBVERBS_1.14", "liburoce.so"},
	{"libibverbs.so.1", "ibv_reg_mr_ex", "IBVERBS_1.15", "liburoce.so"}, /* and newer than Debian 12's */
	{"libibverbs.so.1", "ibv_query_port_speed", "IBVERBS_1.16", "liburoce.so"},
	{"libibverbs.so.1", "ibv_alloc_buf", "IBVERBS_1.17", "liburoce.so"},
	{"libibverbs.so.1", "ibv_read_comp_cntr", "IBVERBS_1.18", "liburoce.so"},
	{"libibverbs.so.1", "verbs_init_cq", "IBVERBS_PRIVATE_34", "libibverbs.so"}, /* a provider's: the real library's alone */
	{"librdmacm.so.1", "rdma_create_id", "RDMACM_1.0", "liburoce.so"},
	{"librdmacm.so.1", "rdma_set_local_ece", "RDMACM_1.3", "liburoce.so"},
	{"librdmacm.so.1", "rdma_write_cm_event", "RDMACM_1.4", "liburoce.so"},
	{"librdmacm.so.1", "rsocket", "RDMACM_1.0", "librdmacm.so"},
};

int main(void)
{
	struct ibv_device **(*get_list)(int *) = NULL, **list;
	int n = 0, bad = 0;

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		void *handle = dlopen(t[i].library, RTLD_NOW | RTLD_LOCAL);
		void *at = handle ? dlvsym(handle, t[i].symbol, t[i].version) : NULL;
		Dl_info info = {.dli_fname = "nowhere"};

		if (at)
			dladdr(at, &info);
		printf("%s@%s: %s\n", t[i].symbol, t[i].version, info.dli_fname);
		bad |= !strstr(info.dli_fname, t[i].home);
		if (!i)
			memcpy(&get_list, &at, sizeof(at));
	}
	list = get_list ? get_list(&n) : NULL;
	printf("device: %s\n", n ? list[0]->name : "none");
	return bad || !n;
}
