/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that links neither library and takes what it needs from the handles of dlopen(3), version by version, as NCCL does, and then
 * everything that the newest release of rdma-core has for programs. It says which device it found, and what came from another library than
 * it should.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

static const struct {
	const char *library, *symbol, *version, *home; /* a part of the name of the file that it should come from */
} t[] = {
	{"libibverbs.so.1", "ibv_get_device_list", "IBVERBS_1.1", "liburoce.so"},
	{"libibverbs.so.1", "ibv_query_gid_type", "IBVERBS_PRIVATE_34", "liburoce.so"}, /* of programs built with Debian 12's */
	{"libibverbs.so.1", "ibv_query_gid_type", "IBVERBS_PRIVATE_50", "liburoce.so"},
	{"libibverbs.so.1", "verbs_init_cq", "IBVERBS_PRIVATE_34", "libibverbs.so"}, /* a provider's: the real library's alone */
	{"librdmacm.so.1", "rsocket", "RDMACM_1.0", "librdmacm.so"},
};

/* Where such a symbol comes from. */
static void *look_up(const char *library, const char *symbol, const char *version, const char **from)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	void *at = handle ? dlvsym(handle, symbol, version) : NULL;
	Dl_info info = {.dli_fname = "nowhere"};

	if (at)
		dladdr(at, &info);
	*from = info.dli_fname;
	return at;
}

static bool comes_from(const char *library, const char *symbol, const char *version, const char *home)
{
	const char *from;

	look_up(library, symbol, version, &from);
	if (strstr(from, home))
		return true;
	printf("%s@%s: %s\n", symbol, version, from);
	return false;
}

/* Each line of the list is a version node and functions of it, all of which are liburoce.so's. How many there are; -1 when one is not. */
static int check_list(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512], *node, *name;
	int n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		node = strtok(line, " \n");
		if (!node || *node == '#')
			continue;
		while ((name = strtok(NULL, " \n")) != NULL && n >= 0)
			n = comes_from(*node == 'R' ? "librdmacm.so.1" : "libibverbs.so.1", name, node, "liburoce.so") ? n + 1 : -1;
	}
	if (f)
		fclose(f);
	return n;
}

/* dlopen LIST */
int main(int argc, char **argv)
{
	struct ibv_device **(*get_list)(int *) = NULL, **list;
	int n = 0, bad = 0, functions = argc == 2 ? check_list(argv[1]) : -1;
	const char *from;
	void *at;

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		bad |= !comes_from(t[i].library, t[i].symbol, t[i].version, t[i].home);
	at = look_up(t[0].library, t[0].symbol, t[0].version, &from);
	memcpy(&get_list, &at, sizeof(at));
	list = get_list ? get_list(&n) : NULL;
	printf("device: %s, functions: %d\n", n ? list[0]->name : "none", functions);
	return bad || !n || functions < 100;
}
