/* SPDX-License-Identifier: BSD-3-Clause */
/* lib/verbs/sysfs.c and lib/host/device/sysfs.c: what stands for the device's files. An owned port with 10.0.0.1/24 and fd00::1/64. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "host/device/sysfs.h"
#include "verbs_fixture.h"

void ur_suite_verbs_sysfs(void);

static void read_own__cases(void)
{
	static const struct {
		const char *file;
		size_t size;
		const char *text;
		int err;
	} t[] = {
		{"ports/1/link_layer", 64, "Ethernet", 0},
		{"ports/1/link_layer", 9, "Ethernet", 0},
		{"ports/1/link_layer", 8, NULL, EOVERFLOW},
		{"ports/1/link_layer", 0, NULL, EOVERFLOW},
		{"node_type", 64, "1: CA", 0},
		{"ports/1/gids/0", 64, "0000:0000:0000:0000:0000:ffff:0a00:0001", 0},
		{"ports/1/gids/1", 64, "fd00:0000:0000:0000:0000:0000:0000:0001", 0},
		{"ports/1/gid_attrs/types/1", 64, "RoCE v2", 0},
		{"ports/1/gid_attrs/ndevs/0", 64, NULL, ENOENT}, /* no kernel interface */
		{"ports/1/gids/2", 64, NULL, ENOENT},
		{"ports/2/state", 64, NULL, ENOENT},
		{"ports", 64, NULL, ENOENT},
		{"", 64, NULL, ENOENT},
		{"../uroce0/node_type", 64, NULL, ENOENT},
	};
	struct ibv_context *ctx = verbs_fixture_open();
	const char *dir = ctx->device->ibdev_path;
	char buf[64];

	for (unsigned i = 0; i < ur_array_size(t); i++) {
		int n;

		memset(buf, 'x', sizeof(buf));
		errno = 0;
		n = ibv_read_sysfs_file(dir, t[i].file, buf, t[i].size);
		if (t[i].text) {
			CU_ASSERT_EQUAL(n, (int)strlen(t[i].text));
			CU_ASSERT_STRING_EQUAL(buf, t[i].text);
		} else {
			CU_ASSERT_EQUAL(n, -1);
			CU_ASSERT_EQUAL(errno, t[i].err);
			CU_ASSERT_EQUAL(buf[0], 'x');
		}
	}
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* A device whose name ours begins, or that begins with ours, is another. */
static void read_own__other_devices(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	char dir[PATH_MAX], buf[64];

	snprintf(dir, sizeof(dir), "%s1", ctx->device->ibdev_path);
	CU_ASSERT_EQUAL(ibv_read_sysfs_file(dir, "node_type", buf, sizeof(buf)), -1);
	snprintf(dir, sizeof(dir), "%.*s", (int)strlen(ctx->device->ibdev_path) - 1, ctx->device->ibdev_path);
	CU_ASSERT_EQUAL(ibv_read_sysfs_file(dir, "node_type", buf, sizeof(buf)), -1);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

static int nth(void *arg, const char *path, const char *text)
{
	int *left = arg;

	CU_ASSERT(path[0] != '/' && text[0] != 0 && !strchr(text, '\n'));
	return --*left ? 0 : 77;
}

static void each__ends_early(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct ur_engine *e = ur_engine_current();
	struct ur_device_info d;
	const struct ur_net *net;
	int all = 0, left;

	ur_engine_info(e, &d);
	net = ur_engine_lock(e)->net;
	CU_ASSERT_EQUAL(ur_sysfs_each(&d, net, nth, &all), 0);
	CU_ASSERT(all < -10);
	for (int i = 1; i <= -all; i++) {
		left = i;
		CU_ASSERT_EQUAL(ur_sysfs_each(&d, net, nth, &left), 77);
		CU_ASSERT_EQUAL(left, 0);
	}
	ur_engine_unlock(e);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

void ur_suite_verbs_sysfs(void)
{
	CU_pSuite s = CU_add_suite("verbs_sysfs", verbs_fixture_init, NULL);

	CU_add_test(s, "read_own__cases", read_own__cases);
	CU_add_test(s, "read_own__other_devices", read_own__other_devices);
	CU_add_test(s, "each__ends_early", each__ends_early);
}
