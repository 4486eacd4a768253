/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/verbs against rdma-core: the layout that programs and providers' helpers rely on, and the functions without a device, which
 * must answer as the installed libibverbs does.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include "verbs_fixture.h"

void ur_suite_verbs_abi(void);

/* struct verbs_device, verbs_qp and verbs_mr of rdma-core's driver.h begin with the public struct and go on for no more than 48 bytes. */
#define PRIVATE_PEEK 48
#define CHECK_SLACK(type, public) \
	_Static_assert(offsetof(type, slack) >= sizeof(public) && offsetof(type, slack) < sizeof(public) + 8 && \
			       UV_SLACK >= PRIVATE_PEEK + 8, \
		       "zero bytes must follow " #public)

CHECK_SLACK(struct uv_device, struct ibv_device);
CHECK_SLACK(struct uv_pd, struct ibv_pd);
CHECK_SLACK(struct uv_mr, struct ibv_mr);
CHECK_SLACK(struct uv_cq, struct ibv_cq_ex);
CHECK_SLACK(struct uv_qp, struct ibv_qp_ex);
CHECK_SLACK(struct uv_srq, struct ibv_srq);
CHECK_SLACK(struct uv_channel, struct ibv_comp_channel);
_Static_assert(offsetof(struct verbs_context, context) == offsetof(struct verbs_context, sz) + sizeof(size_t),
	       "sz stands before the context");
_Static_assert(offsetof(struct uv_qp, qp) == 0 && offsetof(struct uv_cq, cq) == 0, "programs cast QPs and CQs to their extended structs");
_Static_assert(sizeof(struct ibv_port_attr) > offsetof(struct ibv_port_attr, flags), "the old port attributes are a prefix");

static void *real; /* the installed libibverbs */

static int init(void)
{
	real = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!real)
		fprintf(stderr, "verbs_abi: %s\n", dlerror());
	return verbs_fixture_init() || !real;
}

/* NULL names no function of the library: the caller's assertion says so. */
static void *real_fn(const char *name)
{
	void *fn = dlsym(real, name);

	if (!fn)
		fprintf(stderr, "verbs_abi: %s\n", dlerror());
	CU_ASSERT_PTR_NOT_NULL_FATAL(fn);
	return fn;
}

static void context__has_the_extended_layout(void)
{
	struct ibv_context *ctx = verbs_fixture_open();
	struct verbs_context *v = verbs_get_ctx(ctx);

	CU_ASSERT_PTR_NOT_NULL_FATAL(v);
	CU_ASSERT_EQUAL(v->sz, sizeof(struct verbs_context));
	CU_ASSERT_PTR_NOT_NULL(v->query_port);
	CU_ASSERT_PTR_NOT_NULL(v->create_qp_ex);
	CU_ASSERT_PTR_NOT_NULL(v->query_device_ex);
	CU_ASSERT_PTR_NOT_NULL(v->create_srq_ex);
	CU_ASSERT_PTR_NOT_NULL(v->open_xrcd);
	CU_ASSERT_PTR_NOT_NULL(v->open_qp);
	CU_ASSERT_PTR_NOT_NULL(ctx->ops.post_srq_recv);
	CU_ASSERT_PTR_NOT_NULL(ctx->ops.post_send);
	CU_ASSERT_PTR_NOT_NULL(ctx->ops.post_recv);
	CU_ASSERT_PTR_NOT_NULL(ctx->ops.poll_cq);
	CU_ASSERT_PTR_NOT_NULL(ctx->ops.req_notify_cq);
	CU_ASSERT_PTR_EQUAL(v->priv, NULL);
	CU_ASSERT_EQUAL(ibv_close_device(ctx), 0);
}

/* mlx5dv_is_supported() compares a pointer behind struct ibv_device with its own operations. */
static void device__has_zeroes_behind(void)
{
	static const uint8_t zero[UV_SLACK];
	struct ibv_device **list = ibv_get_device_list(NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(list[0]);
	CU_ASSERT_EQUAL(memcmp(list[0] + 1, zero, PRIVATE_PEEK), 0);
	ibv_free_device_list(list);
}

static void names__as_libibverbs_says(void)
{
	const char *(*wc)(enum ibv_wc_status) = real_fn("ibv_wc_status_str");
	const char *(*ev)(enum ibv_event_type) = real_fn("ibv_event_type_str");
	const char *(*node)(enum ibv_node_type) = real_fn("ibv_node_type_str");
	const char *(*port)(enum ibv_port_state) = real_fn("ibv_port_state_str");

	for (int i = -2; i < 64; i++) {
		CU_ASSERT_STRING_EQUAL(ibv_wc_status_str(i), wc(i));
		CU_ASSERT_STRING_EQUAL(ibv_event_type_str(i), ev(i));
		CU_ASSERT_STRING_EQUAL(ibv_node_type_str(i), node(i));
		CU_ASSERT_STRING_EQUAL(ibv_port_state_str(i), port(i));
	}
	CU_ASSERT_STRING_EQUAL(ibv_wc_status_str(IBV_WC_WR_FLUSH_ERR), "Work Request Flushed Error");
}

static void rates__as_libibverbs_says(void)
{
	int (*to_mult)(enum ibv_rate) = real_fn("ibv_rate_to_mult");
	int (*to_mbps)(enum ibv_rate) = real_fn("ibv_rate_to_mbps");
	enum ibv_rate (*from_mult)(int) = real_fn("mult_to_ibv_rate");
	enum ibv_rate (*from_mbps)(int) = real_fn("mbps_to_ibv_rate");
	int differ = 0;

	for (int i = -2; i < 64; i++) {
		CU_ASSERT_EQUAL(ibv_rate_to_mult(i), to_mult(i));
		CU_ASSERT_EQUAL(ibv_rate_to_mbps(i), to_mbps(i));
	}
	for (int i = -2; i < 600; i++)
		differ += mult_to_ibv_rate(i) != from_mult(i);
	for (int i = -2; i < 1300000; i++)
		differ += mbps_to_ibv_rate(i) != from_mbps(i);
	CU_ASSERT_EQUAL(differ, 0);
	CU_ASSERT_EQUAL(ibv_rate_to_mbps(IBV_RATE_100_GBPS), 103125);
}

/* Random bytes through both libraries. */
#define SAME_CONVERSION(name, dst_type, src_type) \
	do { \
		void (*theirs)(dst_type *, src_type *) = real_fn(#name); \
		dst_type a, b; \
		src_type src; \
		for (size_t i = 0; i < sizeof(src); i++) \
			((uint8_t *)&src)[i] = (uint8_t)(i * 37 + 11); \
		memset(&a, 0, sizeof(a)); \
		memset(&b, 0, sizeof(b)); \
		name(&a, &src); \
		theirs(&b, &src); \
		CU_ASSERT_EQUAL(memcmp(&a, &b, sizeof(a)), 0); \
	} while (0)

static void conversions__as_libibverbs_does(void)
{
	SAME_CONVERSION(ibv_copy_ah_attr_from_kern, struct ibv_ah_attr, struct ib_uverbs_ah_attr);
	SAME_CONVERSION(ibv_copy_qp_attr_from_kern, struct ibv_qp_attr, struct ib_uverbs_qp_attr);
	SAME_CONVERSION(ibv_copy_path_rec_from_kern, struct ibv_sa_path_rec, struct ib_user_path_rec);
	SAME_CONVERSION(ibv_copy_path_rec_to_kern, struct ib_user_path_rec, struct ibv_sa_path_rec);
}

static void read_sysfs_file__cases(void)
{
	static const struct {
		const char *content;
		size_t size;
		int result;
		const char *text;
	} cases[] = {
		{"4: ACTIVE\n", 64, 9, "4: ACTIVE"}, {"bare", 64, 4, "bare"}, {"", 64, 0, ""},
		{"full\n", 5, 4, "full"}, {"full", 4, -1, NULL},
	};
	char name[] = "/tmp/uroce_sysfs_XXXXXX", buf[64];
	int fd = mkstemp(name);

	CU_ASSERT_FATAL(fd >= 0);
	for (unsigned i = 0; i < ur_array_size(cases); i++) {
		size_t n = strlen(cases[i].content);

		CU_ASSERT_EQUAL_FATAL(ftruncate(fd, 0), 0);
		CU_ASSERT_EQUAL_FATAL(pwrite(fd, cases[i].content, n, 0), (ssize_t)n);
		memset(buf, 'x', sizeof(buf));
		CU_ASSERT_EQUAL(ibv_read_sysfs_file("/tmp", name + 5, buf, cases[i].size), cases[i].result);
		if (cases[i].text)
			CU_ASSERT_STRING_EQUAL(buf, cases[i].text);
		CU_ASSERT_EQUAL(buf[cases[i].size == 64 ? 63 : cases[i].size], 'x');
	}
	close(fd);
	unlink(name);
	CU_ASSERT_EQUAL(ibv_read_sysfs_file("/tmp", name + 5, buf, sizeof(buf)), -1);
	CU_ASSERT_EQUAL(errno, ENOENT);
	CU_ASSERT_STRING_EQUAL(ibv_get_sysfs_path(), "/sys");
}

static void fork_support__needs_nothing(void)
{
	char page[16];

	CU_ASSERT_EQUAL(ibv_fork_init(), 0);
	CU_ASSERT_EQUAL(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	CU_ASSERT_EQUAL(ibv_dontfork_range(page, sizeof(page)), 0);
	CU_ASSERT_EQUAL(ibv_dofork_range(page, sizeof(page)), 0);
}

/* errno must say EOPNOTSUPP: suites take any other value for a failure. */
#define REFUSES(call, result) \
	do { \
		errno = 0; \
		CU_ASSERT_TRUE((call) == (result)); \
		CU_ASSERT_EQUAL(errno, EOPNOTSUPP); \
	} while (0)

static void unsupported__says_so(void)
{
	struct ibv_ece ece = {.vendor_id = 1};
	struct verbs_fixture f;

	verbs_fixture_make(&f);
	REFUSES(ibv_set_ece(f.qp, &ece), EOPNOTSUPP);
	REFUSES(ibv_query_ece(f.qp, &ece), EOPNOTSUPP);
	REFUSES(ibv_import_device(0), NULL); /* a descriptor of something else */
	REFUSES(ibv_reg_dmabuf_mr(f.pd, 0, 1, 0, 0, 0), NULL);
	CU_ASSERT_EQUAL(ibv_query_qp_data_in_order(f.qp, IBV_WR_SEND, 0), 0);
	verbs_fixture_unmake(&f);
}

void ur_suite_verbs_abi(void)
{
	CU_pSuite s = CU_add_suite("verbs_abi", init, NULL);

	CU_add_test(s, "context__has_the_extended_layout", context__has_the_extended_layout);
	CU_add_test(s, "device__has_zeroes_behind", device__has_zeroes_behind);
	CU_add_test(s, "names__as_libibverbs_says", names__as_libibverbs_says);
	CU_add_test(s, "rates__as_libibverbs_says", rates__as_libibverbs_says);
	CU_add_test(s, "conversions__as_libibverbs_does", conversions__as_libibverbs_does);
	CU_add_test(s, "read_sysfs_file__cases", read_sysfs_file__cases);
	CU_add_test(s, "fork_support__needs_nothing", fork_support__needs_nothing);
	CU_add_test(s, "unsupported__says_so", unsupported__says_so);
}
