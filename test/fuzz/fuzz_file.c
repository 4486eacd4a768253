/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target: the bytes of a file that somebody sent. It is analysed, and copied with comments; the copy must have
 * the same frames. Its frames are compared with those frames of them that a second recorder might have seen.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../apps/uroce/cli/cmd.h"
#include "../../apps/uroce/pcap/pcap.h"
#include "analyze/compare/compare.h"
#include "apps/uroce/pcap/file/source.h"
#include "apps/uroce/pcap/read/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COPY_MAX (8u << 20)
#define INPUT_MAX (1u << 15)

/* In place of the command's, which prints. */
int ur_cmd_fail(int status, const char *fmt, ...)
{
	(void)fmt;
	return status;
}

/* In place of the command's, which starts other programs. */
FILE *ur_pcap_stream(const char *name, char *room, const char **fault)
{
	(void)room;
	*fault = NULL;
	return fopen(name, "r");
}

/* --- files, which are in memory: the kernel's took most of the time. The linker (--wrap) brings every call of fopen here --- */

static const char input_name[] = "the input", copy_name[] = "the copy";

static struct content {
	const uint8_t *data;
	size_t size;
} input, copy;
static uint8_t copied[COPY_MAX];

struct cursor {
	const struct content *of;
	size_t at;
};

static ssize_t read_content(void *cookie, char *to, size_t n)
{
	struct cursor *c = cookie;
	const size_t left = c->of->size - c->at;

	n = n < left ? n : left;
	memcpy(to, c->of->data + c->at, n);
	c->at += n;
	return (ssize_t)n;
}

static ssize_t write_copy(void *cookie, const char *from, size_t n)
{
	(void)cookie;
	if (n > sizeof(copied) - copy.size)
		abort();
	memcpy(copied + copy.size, from, n);
	copy.size += n;
	return (ssize_t)n;
}

static int close_cursor(void *cookie)
{
	free(cookie);
	return 0;
}

FILE *__real_fopen64(const char *name, const char *mode);
FILE *__wrap_fopen64(const char *name, const char *mode);

FILE *__wrap_fopen64(const char *name, const char *mode)
{
	struct cursor *c;

	if (name == copy_name && *mode == 'w') {
		copy = (struct content){copied, 0};
		return fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_copy});
	}
	if (name != input_name && name != copy_name)
		return __real_fopen64(name, mode);
	c = malloc(sizeof(*c));
	*c = (struct cursor){.of = name == input_name ? &input : &copy};
	return fopencookie(c, "r", (cookie_io_functions_t){.read = read_content, .close = close_cursor});
}

struct both {
	struct ur_compare *c;
	uint64_t told;
	uint32_t frames;
};

static void told(void *ctx, const struct ur_cmp_event *e)
{
	struct both *b = ctx;

	if (e->kind >= UR_CMP_KINDS || (!e->frame[0] && !e->frame[1]))
		abort();
	b->told++;
}

/* The second recorder misses some, has some twice, and has a clock of its own. */
static void give(void *ctx, const struct ur_an_frame *f)
{
	struct both *b = ctx;
	struct ur_an_frame g = *f;

	b->frames++;
	ur_compare_frame(b->c, 0, f);
	g.when += 5 * UR_NS_PER_S + (f->number % 3) * UR_NS_PER_MS;
	for (unsigned i = 0; i < (f->number % 7 == 3 ? 0 : 1 + (f->number % 5 == 4)); i++)
		ur_compare_frame(b->c, 1, &g);
}

static void compare_it(const char *path)
{
	struct both b = {0};
	const struct ur_cmp_flow *f;
	struct ur_cmp_totals t;
	uint64_t sum = 0, both = 0;
	struct ur_pcap_end end = {0};

	b.c = ur_compare_create(UR_NS_PER_MS, told, &b, 1);
	if (b.c && ur_pcap_each(path, give, &b, &end)) {
		ur_compare_end(b.c, 0);
		ur_compare_end(b.c, 1);
		ur_compare_totals(b.c, &t);
		for (uint32_t i = 0; (f = ur_compare_flow(b.c, i)); i++) {
			for (unsigned k = 0; k < UR_CMP_KINDS; k++)
				sum += f->n[k];
			both += f->both;
			if (f->both > f->seen[0] || f->both > f->seen[1])
				abort();
		}
		if (sum != b.told || both != t.both || t.frames[0] != b.frames)
			abort();
	}
	free(end.unreadable);
	ur_compare_destroy(b.c);
}

static uint64_t frames_of(const struct ur_pcap_file *f)
{
	struct ur_an_totals t;

	ur_analysis_totals(f->analysis, &t);
	return t.frames;
}

/* A file that could be read to its end has a copy that can, too, with as many frames. */
static void annotate_it(const char *path)
{
	struct ur_pcap_file f, g;
	struct ur_pcap_copy c = {0};
	FILE *in, *out;

	if (ur_pcap_open(&f, path) && (in = ur_pcap_stream(path, NULL, &c.fault))) {
		out = fopen(copy_name, "w");
		if (!out)
			abort();
		ur_pcap_put_comments(in, out, &f, &c);
		fclose(in);
		fclose(out);
		if (!f.end.unreadable && !c.wrong && frames_of(&f)) {
			if (!ur_pcap_open(&g, copy_name) || frames_of(&g) != frames_of(&f) || c.frames != frames_of(&f))
				abort();
			ur_pcap_close(&g);
		}
	}
	ur_pcap_close(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || size > INPUT_MAX)
		return 0;
	input = (struct content){data, size};
	annotate_it(input_name);
	compare_it(input_name);
	return 0;
}
