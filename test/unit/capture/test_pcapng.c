/* SPDX-License-Identifier: BSD-3-Clause */
/* The capture file: libpcap reads back what was written, and the block options are where the format has them. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/counters.h"
#include "capture/capture.h"
#include "host/clock.h"
#include "wire_samples.h"

void ur_suite_pcapng(void);

static char path[64];
static struct ur_capture *cap;
static pcap_t *pcap;

static void setup(void)
{
	int fd;

	strcpy(path, "/tmp/uroce-test-pcapng-XXXXXX");
	fd = mkstemp(path);
	if (fd >= 0)
		close(fd);
	cap = NULL;
	pcap = NULL;
}

static void teardown(void)
{
	uint64_t lost;

	if (cap)
		ur_capture_close(cap, &lost);
	if (pcap)
		pcap_close(pcap);
	unlink(path);
}

static void close_capture(void)
{
	uint64_t lost;

	CU_ASSERT_EQUAL(ur_capture_close(cap, &lost), 0);
	CU_ASSERT_EQUAL(lost, 0);
	cap = NULL;
}

static void read_back(void)
{
	char err[PCAP_ERRBUF_SIZE];

	pcap = pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, err);
	CU_ASSERT_PTR_NOT_NULL_FATAL(pcap);
	CU_ASSERT_EQUAL(pcap_datalink(pcap), DLT_EN10MB);
}

static uint64_t stamp(const struct pcap_pkthdr *h)
{
	return (uint64_t)h->ts.tv_sec * UR_NS_PER_S + (uint64_t)h->ts.tv_usec; /* nanoseconds at this precision */
}

static void fill(uint8_t *b, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(seed * 31 + i * 7 + i / 256);
}

static void capture_frame__bytes_and_stamps(void)
{
	const ur_time start = 5 * UR_NS_PER_S + 17;
	uint64_t before = ur_clock_wall(), after, first = 0;
	struct pcap_pkthdr *h;
	const u_char *got;
	uint8_t b[128];

	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", start, &cap), 0);
	after = ur_clock_wall();
	for (unsigned n = 60; n < 70; n++) { /* every padding */
		struct ur_pkt p = {.data = b, .len = n};

		fill(b, n, n);
		ur_capture_frame(cap, &p, start + (n - 60) * 1000000001ull, UR_CAPTURE_IN);
	}
	close_capture();
	read_back();
	for (unsigned n = 60; n < 70; n++) {
		CU_ASSERT_EQUAL_FATAL(pcap_next_ex(pcap, &h, &got), 1);
		fill(b, n, n);
		CU_ASSERT_EQUAL(h->len, n);
		CU_ASSERT_EQUAL_FATAL(h->caplen, n);
		CU_ASSERT_EQUAL(memcmp(got, b, n), 0);
		if (n == 60)
			first = stamp(h);
		CU_ASSERT_EQUAL(stamp(h), first + (n - 60) * 1000000001ull);
	}
	CU_ASSERT_TRUE(first >= before && first <= after);
	CU_ASSERT_EQUAL(pcap_next_ex(pcap, &h, &got), PCAP_ERROR_BREAK);
}

/*
 * With the clock read for each frame: what is sent has the present time, whatever `now` is, and what the kernel has stamped came then; a
 * stamp from before the clock was set, or from after now, is not believed.
 */
static void capture_frame__times_of_the_port(void)
{
	static const uint64_t waited[] = {0, 300 * UR_NS_PER_MS, 3600 * UR_NS_PER_S, -UR_NS_PER_S, UR_NS_PER_MS};
	uint64_t before[5], after[5];
	struct pcap_pkthdr *h;
	const u_char *got;
	uint8_t b[64] = {0};
	const ur_time start = ur_clock_now();

	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", start, &cap), 0);
	ur_capture_read_clock(cap);
	for (unsigned i = 0; i < 5; i++) {
		struct ur_pkt p = {.data = b, .len = sizeof(b)};

		usleep(2000);
		before[i] = ur_clock_wall();
		p.when = waited[i] ? before[i] - waited[i] : 0;
		ur_capture_frame(cap, &p, start, i == 4 ? UR_CAPTURE_OUT : UR_CAPTURE_IN);
		after[i] = ur_clock_wall();
	}
	close_capture();
	read_back();
	for (unsigned i = 0; i < 5; i++) {
		const uint64_t less = i == 1 ? waited[1] : 0;

		CU_ASSERT_EQUAL_FATAL(pcap_next_ex(pcap, &h, &got), 1);
		CU_ASSERT_TRUE(stamp(h) + UR_NS_PER_MS / 2 >= before[i] - less && stamp(h) <= after[i] - less + UR_NS_PER_MS / 2);
	}
}

static void capture_frame__segments_and_tail(void)
{
	uint8_t head[58], a[1], b[1000], c[3], all[sizeof(head) + sizeof(a) + sizeof(b) + sizeof(c) + 6];
	struct ur_pkt p = {.data = head, .len = sizeof(head), .nseg = 3, .tail_len = 6, .tail = {1, 2, 3, 4, 5, 6, 99, 99}};
	struct pcap_pkthdr *h;
	const u_char *got;

	fill(all, sizeof(all), 3);
	memcpy(head, all, 58);
	memcpy(a, all + 58, 1);
	memcpy(b, all + 59, 1000);
	memcpy(c, all + 1059, 3);
	memcpy(all + 1062, p.tail, 6);
	p.seg[0] = (struct ur_seg){.data = a, .len = sizeof(a)};
	p.seg[1] = (struct ur_seg){.data = b, .len = sizeof(b)};
	p.seg[2] = (struct ur_seg){.data = c, .len = sizeof(c)};
	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", 0, &cap), 0);
	ur_capture_frame(cap, &p, 0, UR_CAPTURE_OUT);
	close_capture();
	read_back();
	CU_ASSERT_EQUAL_FATAL(pcap_next_ex(pcap, &h, &got), 1);
	CU_ASSERT_EQUAL_FATAL(h->caplen, sizeof(all));
	CU_ASSERT_EQUAL(h->len, sizeof(all));
	CU_ASSERT_EQUAL(memcmp(got, all, sizeof(all)), 0);
	CU_ASSERT_EQUAL(pcap_next_ex(pcap, &h, &got), PCAP_ERROR_BREAK);
}

/* A packet without headers is written with the ones that it had, as far as they are known: also what stands in the buffer unparsed. */
static void capture_frame__bare(void)
{
	for (unsigned six = 0; six < 2; six++) {
		const uint8_t *sample = six ? sample_send6 : sample_send4;
		size_t len = six ? sizeof(sample_send6) : sizeof(sample_send4), at = six ? 62 : 42;
		struct ur_counters c = {.v = {0}};
		struct pcap_pkthdr *h;
		struct ur_pkt p, whole;
		const u_char *got;

		sample_load(&whole, sample, len);
		CU_ASSERT_TRUE(ur_frame_parse(&whole, &c));
		sample_load(&p, sample + at, len - at);
		ur_pkt_copy_fields(&p, &whole); /* with the offsets of another packet in them */
		p.flags = UR_PKT_BARE;
		CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", 0, &cap), 0);
		ur_capture_frame(cap, &p, 0, UR_CAPTURE_IN);
		close_capture();
		read_back();
		CU_ASSERT_EQUAL_FATAL(pcap_next_ex(pcap, &h, &got), 1);
		CU_ASSERT_EQUAL_FATAL(h->caplen, len);
		CU_ASSERT_EQUAL(memcmp(got + at, sample + at, len - at), 0);
		CU_ASSERT_EQUAL(memcmp(got + at - 8, sample + at - 8, 6), 0); /* UDP, without its checksum */
		CU_ASSERT_EQUAL(memcmp(got + 12, sample + 12, 6), 0);         /* up to the total length */
		CU_ASSERT_EQUAL(pcap_next_ex(pcap, &h, &got), PCAP_ERROR_BREAK);
		pcap_close(pcap);
		pcap = NULL;
		sample_free(&p);
		sample_free(&whole);
	}
}

/* More than any buffer holds: what is written early and late comes out in order. */
static void capture_frame__many(void)
{
	static uint8_t b[UR_PKT_ROOM];
	struct pcap_pkthdr *h;
	const u_char *got;

	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", 0, &cap), 0);
	for (unsigned i = 0; i < 300; i++) {
		struct ur_pkt p = {.data = b, .len = UR_PKT_ROOM - i};

		fill(b, p.len, i);
		ur_capture_frame(cap, &p, i, UR_CAPTURE_OUT);
	}
	close_capture();
	read_back();
	for (unsigned i = 0; i < 300; i++) {
		CU_ASSERT_EQUAL_FATAL(pcap_next_ex(pcap, &h, &got), 1);
		CU_ASSERT_EQUAL_FATAL(h->caplen, UR_PKT_ROOM - i);
		fill(b, h->caplen, i);
		CU_ASSERT_EQUAL(memcmp(got, b, h->caplen), 0);
	}
	CU_ASSERT_EQUAL(pcap_next_ex(pcap, &h, &got), PCAP_ERROR_BREAK);
}

static void capture_flush__readable_while_open(void)
{
	uint8_t b[64] = {1};
	struct ur_pkt p = {.data = b, .len = sizeof(b)};
	struct pcap_pkthdr *h;
	const u_char *got;

	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", 0, &cap), 0);
	ur_capture_frame(cap, &p, 1, UR_CAPTURE_IN);
	ur_capture_flush(cap);
	ur_capture_flush(cap);
	read_back();
	CU_ASSERT_EQUAL_FATAL(pcap_next_ex(pcap, &h, &got), 1);
	CU_ASSERT_EQUAL(memcmp(got, b, sizeof(b)), 0);
	CU_ASSERT_EQUAL(pcap_next_ex(pcap, &h, &got), PCAP_ERROR_BREAK);
}

static uint32_t word(const uint8_t *b)
{
	uint32_t v;

	memcpy(&v, b, sizeof(v));
	return v;
}

/* The value of an option in the list from `at`, and its length; NULL when it is not there. */
static const uint8_t *option(const uint8_t *at, const uint8_t *end, uint16_t code, uint16_t *len)
{
	while (at + 4 <= end && (word(at) & 0xffff) != 0) {
		*len = (uint16_t)(word(at) >> 16);
		if ((word(at) & 0xffff) == code)
			return at + 4;
		at += 4 + (*len + 3u) / 4 * 4;
	}
	return NULL;
}

static void capture_open__options(void)
{
	static const uint32_t types[] = {0x0a0d0d0a, 1, 6, 6};
	uint8_t frame[61] = {0}, raw[1024];
	struct ur_pkt p = {.data = frame, .len = sizeof(frame)};
	const uint8_t *at = raw, *end, *o;
	uint16_t len = 0;
	FILE *f;

	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "veth17", 0, &cap), 0);
	ur_capture_frame(cap, &p, 0, UR_CAPTURE_IN);
	ur_capture_frame(cap, &p, 0, UR_CAPTURE_OUT);
	close_capture();
	f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	end = raw + fread(raw, 1, sizeof(raw), f);
	fclose(f);
	for (unsigned i = 0; i < ur_array_size(types); i++) {
		uint32_t total = end - at >= 12 ? word(at + 4) : 0;

		CU_ASSERT_FATAL(total >= 12 && total % 4 == 0 && total <= (size_t)(end - at));
		CU_ASSERT_EQUAL(word(at), types[i]);
		CU_ASSERT_EQUAL(word(at + total - 4), total);
		if (types[i] == 1) {
			o = option(at + 16, at + total - 4, 2, &len);
			CU_ASSERT_TRUE(o && len == 6 && !memcmp(o, "veth17", 6));
			o = option(at + 16, at + total - 4, 9, &len);
			CU_ASSERT_TRUE(o && len == 1 && *o == 9);
		}
		if (types[i] == 6) {
			o = option(at + 28 + 64, at + total - 4, 2, &len);
			CU_ASSERT_TRUE(o && len == 4 && word(o) == (i == 2 ? 1u : 2u));
		}
		at += total;
	}
	CU_ASSERT_PTR_EQUAL(at, end);
}

static void capture_open__unwritable(void)
{
	CU_ASSERT_EQUAL(ur_capture_open("/nonexistent/uroce.pcapng", "eth0", 0, &cap), ENOENT);
	CU_ASSERT_EQUAL(ur_capture_open("/tmp", "eth0", 0, &cap), EISDIR);
	CU_ASSERT_PTR_NULL(cap);
}

static mode_t mode_of(const char *file)
{
	struct stat st;

	return stat(file, &st) ? 0 : st.st_mode & 07777;
}

/* What was there before, and whatever the umask is, nobody else can read it. */
static void capture_open__for_its_owner_alone(void)
{
	mode_t mask = umask(0);

	CU_ASSERT_EQUAL(chmod(path, 0666), 0);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", 0, &cap), 0);
		close_capture();
		CU_ASSERT_EQUAL(mode_of(path), 0600);
		unlink(path);
	}
	umask(mask);
}

/* Anybody can put a link, or a file of his own, into a directory such as /tmp. What it leads to stays as it is. */
static void capture_open__not_where_others_want_it(void)
{
	char link_path[80], text[8] = "";
	FILE *f = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	CU_ASSERT_TRUE(fputs("secret", f) >= 0 && !fclose(f));
	snprintf(link_path, sizeof(link_path), "%s-link", path);
	CU_ASSERT_EQUAL_FATAL(symlink(path, link_path), 0);
	if (!geteuid()) {
		CU_ASSERT_EQUAL(lchown(link_path, 65534, 65534), 0);
		CU_ASSERT_EQUAL(ur_capture_open(link_path, "eth0", 0, &cap), ELOOP);
	}
	unlink(link_path);
	CU_ASSERT_EQUAL_FATAL(link(path, link_path), 0);
	CU_ASSERT_EQUAL(ur_capture_open(link_path, "eth0", 0, &cap), EPERM);
	unlink(link_path);
	if (!geteuid()) {
		CU_ASSERT_EQUAL(chown(path, 65534, 65534), 0);
		CU_ASSERT_EQUAL(ur_capture_open(path, "eth0", 0, &cap), EPERM);
	}
	CU_ASSERT_EQUAL(ur_capture_open("/tmp", "eth0", 0, &cap), EISDIR);
	f = fopen(path, "r");
	CU_ASSERT_FATAL(f && fgets(text, sizeof(text), f) && !fclose(f));
	CU_ASSERT_STRING_EQUAL(text, "secret");
}

/* A link of one's own leads where one means it to: /dev/stdout is such a name. */
static void capture_open__by_a_link_of_its_own(void)
{
	char link_path[80];
	FILE *f = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fclose(f);
	snprintf(link_path, sizeof(link_path), "%s-link", path);
	CU_ASSERT_EQUAL_FATAL(symlink(path, link_path), 0);
	CU_ASSERT_EQUAL_FATAL(ur_capture_open(link_path, "eth0", 0, &cap), 0);
	close_capture();
	CU_ASSERT_EQUAL(mode_of(path), 0600);
	unlink(path);
	CU_ASSERT_EQUAL(ur_capture_open(link_path, "eth0", 0, &cap), ENOENT); /* nothing is made behind a link */
	unlink(link_path);
}

static void capture_open__full_disk(void)
{
	struct ur_capture *c;
	struct stat st;

	if (stat("/dev/full", &st) || (st.st_uid && st.st_uid != geteuid()))
		return; /* an ordinary user in a user namespace: there is no superuser in it, whose device it had to be */
	CU_ASSERT_EQUAL(ur_capture_open("/dev/full", "eth0", 0, &c), ENOSPC);
}

static void capture_close__disk_that_fills(void)
{
	struct rlimit before, small;
	uint8_t b[64] = {0};
	struct ur_pkt p = {.data = b, .len = sizeof(b)};
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	struct ur_capture *c;
	uint64_t lost;

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){.rlim_cur = 4096, .rlim_max = before.rlim_max};
	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", 0, &c), 0);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (unsigned i = 0; i < 10000; i++) /* beyond the buffer: nothing may overflow after the failure */
		ur_capture_frame(c, &p, i, UR_CAPTURE_IN);
	CU_ASSERT_EQUAL(ur_capture_close(c, &lost), EFBIG);
	CU_ASSERT_TRUE(lost >= 10000 - 4096 / 64 && lost < 10000); /* a few fitted */
	setrlimit(RLIMIT_FSIZE, &before);
	signal(SIGXFSZ, handler);
	unlink(path);
}

/* --- more than the file takes --- */

#define BIG 60000
#define MORE 1500 /* frames of that size, more than the ring holds */

static struct ur_capture *open_pipe(int *fd)
{
	struct ur_capture *c;

	unlink(path);
	CU_ASSERT_EQUAL_FATAL(mkfifo(path, 0600), 0);
	*fd = open(path, O_RDONLY | O_NONBLOCK);
	CU_ASSERT_FATAL(*fd >= 0);
	CU_ASSERT_EQUAL_FATAL(ur_capture_open(path, "eth0", 0, &c), 0);
	return c;
}

/* Nobody reads: capturing does not wait, and closing not for ever. */
static void capture_frame__waits_for_nobody(void)
{
	static uint8_t b[BIG];
	struct ur_pkt p = {.data = b, .len = sizeof(b)};
	struct ur_counters counters = {{0}};
	struct ur_capture *c;
	uint64_t lost;
	int fd;

	c = open_pipe(&fd);
	ur_capture_count(c, &counters);
	for (unsigned i = 0; i < MORE; i++)
		ur_capture_frame(c, &p, i, UR_CAPTURE_IN);
	CU_ASSERT_TRUE(counters.v[UR_C_CAPTURE_LOST] >= MORE - (64u << 20) / BIG - 2);
	CU_ASSERT_EQUAL(ur_capture_close(c, &lost), ETIMEDOUT);
	CU_ASSERT_TRUE(lost >= counters.v[UR_C_CAPTURE_LOST]);
	close(fd); /* which ends the thread: its writes fail */
}

static size_t read_all(int fd, uint8_t *to, size_t room, size_t enough)
{
	size_t n = 0;

	while (n < enough) {
		ssize_t got = read(fd, to + n, room - n);

		if (got == 0)
			break;
		if (got < 0)
			usleep(100);
		else
			n += (size_t)got;
	}
	return n;
}

static void *read_pipe(void *arg)
{
	static uint8_t all[96 << 20];
	int fd = *(int *)arg;

	read_all(fd, all, sizeof(all), sizeof(all));
	return all;
}

/* The frame after a gap says how many are missing before it, and the end how many in all. */
static void capture_frame__says_what_is_missing(void)
{
	static uint8_t b[BIG];
	struct ur_pkt p = {.data = b, .len = sizeof(b)};
	uint64_t lost, missing = 0, drops = 0, frames = 0;
	struct ur_counters counters = {{0}};
	const uint8_t *at, *o;
	struct ur_capture *c;
	pthread_t reader;
	void *all;
	uint16_t len;
	int fd;

	c = open_pipe(&fd);
	ur_capture_count(c, &counters);
	for (unsigned i = 0; i < MORE; i++)
		ur_capture_frame(c, &p, i, UR_CAPTURE_IN);
	lost = counters.v[UR_C_CAPTURE_LOST];
	CU_ASSERT_TRUE(lost > 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&reader, NULL, read_pipe, &fd), 0);
	ur_capture_flush(c);
	ur_capture_frame(c, &p, MORE, UR_CAPTURE_IN);
	CU_ASSERT_EQUAL(counters.v[UR_C_CAPTURE_LOST], lost);
	CU_ASSERT_EQUAL(ur_capture_close(c, &missing), ENOBUFS);
	CU_ASSERT_EQUAL(missing, lost);
	pthread_join(reader, &all);
	close(fd);
	for (at = all; word(at + 4) != 0; at += word(at + 4)) {
		const uint8_t *end = at + word(at + 4) - 4;

		frames += word(at) == 6;
		if (word(at) == 6 && frames == MORE - lost + 1) { /* the last one */
			o = option(at + 28 + BIG, end, 4, &len);
			CU_ASSERT_FATAL(o && len == 8);
			memcpy(&drops, o, 8);
			CU_ASSERT_EQUAL(drops, lost);
			o = option(at + 28 + BIG, end, 1, &len);
			CU_ASSERT_FATAL(o != NULL);
			CU_ASSERT_EQUAL(strtoull((const char *)o, NULL, 10), lost);
		} else if (word(at) == 6) {
			CU_ASSERT_PTR_NULL(option(at + 28 + BIG, end, 4, &len));
		} else if (word(at) == 5) {
			o = option(at + 20, end, 5, &len);
			CU_ASSERT_FATAL(o && len == 8);
			memcpy(&missing, o, 8);
		}
	}
	CU_ASSERT_EQUAL(frames, MORE - lost + 1);
	CU_ASSERT_EQUAL(missing, lost);
}

void ur_suite_pcapng(void)
{
	CU_pSuite s = CU_add_suite_with_setup_and_teardown("pcapng", NULL, NULL, setup, teardown);

	CU_ADD_TEST(s, capture_frame__bytes_and_stamps);
	CU_ADD_TEST(s, capture_frame__times_of_the_port);
	CU_ADD_TEST(s, capture_frame__segments_and_tail);
	CU_ADD_TEST(s, capture_frame__bare);
	CU_ADD_TEST(s, capture_frame__many);
	CU_ADD_TEST(s, capture_flush__readable_while_open);
	CU_ADD_TEST(s, capture_open__options);
	CU_ADD_TEST(s, capture_open__unwritable);
	CU_ADD_TEST(s, capture_open__for_its_owner_alone);
	CU_ADD_TEST(s, capture_open__not_where_others_want_it);
	CU_ADD_TEST(s, capture_open__by_a_link_of_its_own);
	CU_ADD_TEST(s, capture_open__full_disk);
	CU_ADD_TEST(s, capture_close__disk_that_fills);
	CU_ADD_TEST(s, capture_frame__waits_for_nobody);
	CU_ADD_TEST(s, capture_frame__says_what_is_missing);
}
