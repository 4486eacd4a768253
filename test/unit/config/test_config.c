/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration: where values come from, which of them wins, and what is refused. */
#include <CUnit/CUnit.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "proc_harness.h"

void ur_suite_config(void);

#define VARS_MAX 32

static struct {
	char name[64];
	char *value; /* before the test, NULL when it was not set */
} vars[VARS_MAX];
static unsigned vars_n;
static char file[64];
static char err[512];

static void hide(const char *name)
{
	const char *value = getenv(name);

	snprintf(vars[vars_n].name, sizeof(vars[0].name), "%s", name);
	vars[vars_n++].value = value ? strdup(value) : NULL;
	unsetenv(name);
}

static void setup(void)
{
	vars_n = 0;
	hide("UROCE_CONF");
	for (unsigned i = 0; i < ur_config_knob_count && vars_n < VARS_MAX; i++) {
		char name[64];

		snprintf(name, sizeof(name), "UROCE_%s", ur_config_knobs[i].name);
		for (char *s = name; *s; s++)
			*s = (char)toupper((unsigned char)*s);
		hide(name);
	}
	file[0] = 0;
	err[0] = 0;
}

static void teardown(void)
{
	procs_end();
	for (unsigned i = 0; i < vars_n; i++) {
		if (vars[i].value)
			setenv(vars[i].name, vars[i].value, 1);
		else
			unsetenv(vars[i].name);
		free(vars[i].value);
	}
	if (file[0])
		unlink(file);
}

static void write_file(const char *text)
{
	int fd;

	if (file[0])
		unlink(file);
	strcpy(file, "/tmp/uroce-test-config-XXXXXX");
	fd = mkstemp(file);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	setenv("UROCE_CONF", file, 1);
}

static const struct ur_config_knob *knob(const char *name)
{
	for (unsigned i = 0; i < ur_config_knob_count; i++)
		if (!strcmp(ur_config_knobs[i].name, name))
			return &ur_config_knobs[i];
	return NULL;
}

static bool is(const struct ur_config *c, const char *name, const char *value, const char *source)
{
	const struct ur_config_knob *k = knob(name);
	char buf[UR_CONFIG_STR];

	return k && !strcmp(ur_config_text(c, k, buf, sizeof(buf)), value) && !strcmp(ur_config_source(k), source);
}

static void config_load__defaults(void)
{
	struct ur_config c;

	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_TRUE(ur_config_knob_count > 0);
	for (unsigned i = 0; i < ur_config_knob_count; i++) {
		const struct ur_config_knob *k = &ur_config_knobs[i];

		CU_ASSERT_TRUE(is(&c, k->name, k->def, "default"));
		CU_ASSERT_TRUE(strlen(k->help) > 0);
		CU_ASSERT_PTR_EQUAL(knob(k->name), k);
	}
	CU_ASSERT_STRING_EQUAL(c.log, "error");
	CU_ASSERT_STRING_EQUAL(c.dev, "");
	CU_ASSERT_EQUAL(c.mtu, 0);
	CU_ASSERT_EQUAL(c.spin_us, 100);
	CU_ASSERT_STRING_EQUAL(c.congestion, "auto");
}

static void config_load__file(void)
{
	struct ur_config c;

	write_file("dev = before any section\n"
		   "[other]\nmtu = 77\nnonsense\n"
		   "[uroce]\n# a comment\n; another\n\n"
		   "  dev\t=  eth7  \nmtu=4200\nip = 10.0.0.1/24, fd00::1/64\r\nvdev = net_pcap0,iface=eth0\nlog = info");
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_TRUE(is(&c, "dev", "eth7", "file"));
	CU_ASSERT_TRUE(is(&c, "mtu", "4200", "file"));
	CU_ASSERT_TRUE(is(&c, "ip", "10.0.0.1/24, fd00::1/64", "file"));
	CU_ASSERT_TRUE(is(&c, "vdev", "net_pcap0,iface=eth0", "file"));
	CU_ASSERT_TRUE(is(&c, "log", "info", "file"));
	CU_ASSERT_TRUE(is(&c, "spin_us", "100", "default"));
	setenv("UROCE_CONF", "", 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_TRUE(is(&c, "dev", "", "default"));
}

static void config_load__environment_over_file(void)
{
	struct ur_config c;

	write_file("[uroce]\ndev = eth7\nmtu = 4200\nspin_us = 5\n");
	setenv("UROCE_MTU", "9000", 1);
	setenv("UROCE_DEV", "", 1);
	setenv("UROCE_GW", "10.0.0.254", 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_TRUE(is(&c, "mtu", "9000", "environment"));
	CU_ASSERT_EQUAL(c.mtu, 9000);
	CU_ASSERT_TRUE(is(&c, "dev", "", "environment"));
	CU_ASSERT_TRUE(is(&c, "gw", "10.0.0.254", "environment"));
	CU_ASSERT_TRUE(is(&c, "spin_us", "5", "file"));
}

/* What a program sets stays for the life of the process, so a child does it. The answer is the first condition that failed, by line. */
#define MUST(condition) \
	do { \
		if (!(condition)) \
			return __LINE__; \
	} while (0)

static int program_conditions(void)
{
	struct ur_config c;

	MUST(!ur_config_set("mtu", "1234", err, sizeof(err)));
	MUST(!ur_config_set("dev", "eth3", err, sizeof(err)));
	MUST(!ur_config_load(&c, err, sizeof(err)));
	MUST(is(&c, "mtu", "1234", "program") && c.mtu == 1234);
	MUST(is(&c, "dev", "eth3", "program"));
	MUST(is(&c, "spin_us", "6", "environment"));
	MUST(is(&c, "log", "debug", "file"));
	MUST(is(&c, "gw", "", "default"));
	MUST(ur_config_set("mtu", "many", err, sizeof(err)) == EINVAL); /* and leaves what was set */
	MUST(!ur_config_set("dev", "", err, sizeof(err)));
	MUST(!ur_config_set("mtu", "1235", err, sizeof(err)));
	MUST(!ur_config_load(&c, err, sizeof(err)));
	MUST(is(&c, "mtu", "1235", "program"));
	MUST(is(&c, "dev", "", "program"));
	setenv("UROCE_MTU", "wrong", 1); /* nobody asks it */
	MUST(!ur_config_load(&c, err, sizeof(err)));
	return 0;
}

static int program_child(int fd, uint64_t arg)
{
	int line = program_conditions();

	(void)arg;
	return send(fd, &line, sizeof(line), MSG_NOSIGNAL) != sizeof(line);
}

static void config_set__program_over_environment(void)
{
	struct proc *p;
	int line = -1;

	write_file("[uroce]\nmtu = 4200\nspin_us = 5\nlog = debug\n");
	setenv("UROCE_MTU", "9000", 1);
	setenv("UROCE_SPIN_US", "6", 1);
	p = proc_start(program_child, 0);
	CU_ASSERT_EQUAL(recv(p->fd, &line, sizeof(line), 0), (ssize_t)sizeof(line));
	CU_ASSERT_EQUAL(line, 0);
	if (line)
		fprintf(stderr, "test_config.c:%d failed in the child\n", line);
	CU_ASSERT_EQUAL(proc_wait(p), 0);
}

static void config_set__refused(void)
{
	struct ur_config c;
	char big[UR_CONFIG_STR + 1];

	memset(big, 'x', sizeof(big) - 1);
	big[UR_CONFIG_STR] = 0;
	CU_ASSERT_EQUAL(ur_config_set("colour", "blue", err, sizeof(err)), ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "colour"));
	err[0] = 0;
	CU_ASSERT_EQUAL(ur_config_set("MTU", "1500", err, sizeof(err)), ENOENT);
	CU_ASSERT_TRUE(strlen(err) > 0);
	err[0] = 0;
	CU_ASSERT_EQUAL(ur_config_set("spin_us", "1000001", err, sizeof(err)), EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "spin_us"));
	err[0] = 0;
	CU_ASSERT_EQUAL(ur_config_set("vdev", big, err, sizeof(err)), EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "vdev"));
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_TRUE(is(&c, "spin_us", "100", "default"));
	CU_ASSERT_TRUE(is(&c, "vdev", "", "default"));
}

static void config_load__words(void)
{
	struct ur_config c;

	setenv("UROCE_LOG", "debug", 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_EQUAL(ur_config_set("log", "erro", err, sizeof(err)), EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "one of error info debug"));
	setenv("UROCE_LOG", "", 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), EINVAL);
	setenv("UROCE_LOG", "error", 1);
	setenv("UROCE_PORT", "udp packet", 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "port"));
}

/* Which of these variables are told of, and which setting is named. */
static void config_stray__names(void)
{
	static const struct {
		const char *name, *says; /* NULL: it is no stray */
	} t[] = {
		{"UROCE_DEVV", "mean UROCE_DEV:"},
		{"UROCE_CONTERS", "mean UROCE_COUNTERS:"},
		{"UROCE_SPIN", "settings"},
		{"UROCE_dev", "mean UROCE_DEV:"},
		{"UROCE_FOO", "ignored: "},
		{"UROCE_", "ignored: "},
		{"UROCE_CONF", NULL},
		{"UROCE_TEST_THIS", NULL},
		{"UROCE_RUN_PID", NULL},
		{"UROCE_PEER", NULL},
		{"UROCE_PEERS", "ignored: "},
		{"UROCE_TESTS", "ignored: "},
		{"UROCE_MTU", NULL},
		{"XUROCE_DEVV", NULL},
		{"UROCE_CAPTURES_ARE_WANTED_HERE_AND_NOW", "ignored: "},
	};
	char sentence[256];

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const char *const *v;

		setenv(t[i].name, "1500", 1);
		v = ur_config_stray(NULL, sentence, sizeof(sentence));
		CU_ASSERT_EQUAL(v != NULL, t[i].says != NULL);
		if (v && (!strstr(sentence, t[i].name) || !strstr(sentence, t[i].says)))
			CU_FAIL(t[i].name);
		if (v)
			CU_ASSERT_PTR_NULL(ur_config_stray(v, sentence, sizeof(sentence)));
		unsetenv(t[i].name);
	}
	CU_ASSERT_EQUAL(ur_config_set("devv", "eth0", err, sizeof(err)), ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "did you mean 'dev'"));
}

static void config_load__numbers(void)
{
	static const struct {
		const char *text;
		bool good;
	} t[] = {
		{"0", true},    {"9600", true},  {"0068", true},  {"9601", false}, {"-1", false},
		{"", false},    {" 68", false},  {"68 ", false},  {"68k", false},  {"0x44", false},
		{"+5", false},  {"1.5", false},  {"18446744073709551616", false},  {"99999999999999999999999", false},
	};

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct ur_config c;

		err[0] = 0;
		setenv("UROCE_MTU", t[i].text, 1);
		CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), t[i].good ? 0 : EINVAL);
		if (t[i].good)
			CU_ASSERT_EQUAL(c.mtu, strtoull(t[i].text, NULL, 10));
		CU_ASSERT_EQUAL(strstr(err, "mtu") != NULL, !t[i].good);
	}
}

/* Without a keeper nobody must believe that there is one. */
static void config_load__keeper_as_built(void)
{
#ifdef UR_HAVE_KEEPER
	const bool built = true;
#else
	const bool built = false;
#endif
	struct ur_config c;

	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_EQUAL(c.keeper, built);
	setenv("UROCE_KEEPER", "0", 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_EQUAL(c.keeper, 0);
	err[0] = 0;
	setenv("UROCE_KEEPER", "1", 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), built ? 0 : EINVAL);
	CU_ASSERT_EQUAL(strstr(err, "keeper") != NULL, !built);
}

static void config_load__string_length(void)
{
	char text[UR_CONFIG_STR + 1];
	struct ur_config c;

	memset(text, 'x', UR_CONFIG_STR);
	text[UR_CONFIG_STR] = 0;
	setenv("UROCE_EAL", text, 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "eal"));
	text[UR_CONFIG_STR - 1] = 0;
	setenv("UROCE_EAL", text, 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_STRING_EQUAL(c.eal, text);
}

static void config_load__bad_files(void)
{
	static const struct {
		const char *text, *says;
	} t[] = {
		{"[uroce]\ncolour = blue\n", "line 2"},
		{"[uroce]\n\nmtu\n", "line 3"},
		{"[uroce]\n= 5\n", "line 2"},
		{"[uroce]\nUROCE_MTU = 5\n", "line 2"},
		{"[uroce]\nmtu = wide\n", "mtu"},
		{"[uroce]\nmtu =\n", "mtu"},
	};
	struct ur_config c;

	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		write_file(t[i].text);
		err[0] = 0;
		CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(err, t[i].says));
	}
	setenv("UROCE_CONF", "/nonexistent/uroce.conf", 1);
	err[0] = 0;
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "/nonexistent/uroce.conf"));
}

static void config_text__cuts(void)
{
	struct ur_config c;
	char buf[4];

	setenv("UROCE_DEV", "enp0s31f6", 1);
	setenv("UROCE_SPIN_US", "123456", 1);
	CU_ASSERT_EQUAL(ur_config_load(&c, err, sizeof(err)), 0);
	CU_ASSERT_STRING_EQUAL(ur_config_text(&c, knob("dev"), buf, sizeof(buf)), "enp");
	CU_ASSERT_STRING_EQUAL(ur_config_text(&c, knob("spin_us"), buf, sizeof(buf)), "123");
}

void ur_suite_config(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("config", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, config_load__defaults);
	CU_ADD_TEST(s, config_load__file);
	CU_ADD_TEST(s, config_load__environment_over_file);
	CU_ADD_TEST(s, config_set__program_over_environment);
	CU_ADD_TEST(s, config_set__refused);
	CU_ADD_TEST(s, config_load__words);
	CU_ADD_TEST(s, config_stray__names);
	CU_ADD_TEST(s, config_load__numbers);
	CU_ADD_TEST(s, config_load__keeper_as_built);
	CU_ADD_TEST(s, config_load__string_length);
	CU_ADD_TEST(s, config_load__bad_files);
	CU_ADD_TEST(s, config_text__cuts);
}
