/* SPDX-License-Identifier: BSD-3-Clause */
/* Inputs from inputs: bytes and runs of bytes changed, moved, repeated, left out, or taken from another one. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "driver.h"

#define FILE_MAX (64 * 1024)

static bool add_file(struct corpus *c, const char *path)
{
	static uint8_t room[FILE_MAX];
	FILE *in = fopen(path, "rb");
	struct seed *grown;
	size_t n;

	if (!in)
		return false;
	n = fread(room, 1, sizeof(room), in);
	fclose(in);
	grown = realloc(c->seed, (c->n + 1) * sizeof(*grown));
	if (!grown)
		return false;
	c->seed = grown;
	grown[c->n] = (struct seed){malloc(n ? n : 1), n};
	if (!grown[c->n].data)
		return false;
	memcpy(grown[c->n++].data, room, n);
	return true;
}

bool corpus_add(struct corpus *c, const char *path)
{
	struct dirent **names;
	struct stat st;
	bool ok = true;
	int n;

	if (stat(path, &st))
		return false;
	if (!S_ISDIR(st.st_mode))
		return add_file(c, path);
	n = scandir(path, &names, NULL, alphasort); /* in the same order everywhere */
	if (n < 0)
		return false;
	for (int i = 0; i < n; i++) {
		char file[4096];

		snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			ok &= add_file(c, file);
		free(names[i]);
	}
	free(names);
	return ok;
}

static uint32_t below(struct ur_rng *rng, size_t n)
{
	return n ? ur_rng_below(rng, (uint32_t)n) : 0;
}

/* Short runs are more likely than long ones. */
static size_t run(struct ur_rng *rng, size_t most)
{
	size_t n = 1 + below(rng, (size_t)1 << below(rng, 7));

	return n < most ? n : most;
}

static size_t random_bytes(struct ur_rng *rng, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)ur_rng_u32(rng);
	return n;
}

/* Opens a gap of n bytes at `at`, or closes it. */
static size_t insert(uint8_t *out, size_t size, size_t at, size_t n)
{
	memmove(out + at + n, out + at, size - at);
	return size + n;
}

static size_t cut(uint8_t *out, size_t size, size_t at, size_t n)
{
	memmove(out + at, out + at + n, size - at - n);
	return size - n;
}

static size_t from_other(const struct corpus *c, struct ur_rng *rng, uint8_t *out, size_t size, size_t max)
{
	const struct seed *s = &c->seed[below(rng, c->n)];
	size_t at = below(rng, size + 1), from = below(rng, s->size), n = run(rng, s->size - from);

	if (!s->size)
		return size;
	if (ur_rng_below(rng, 2)) { /* over what is there */
		n = n < max - at ? n : max - at;
		memcpy(out + at, s->data + from, n);
		return at + n > size ? at + n : size;
	}
	n = n < max - size ? n : max - size;
	size = insert(out, size, at, n);
	memcpy(out + at, s->data + from, n);
	return size;
}

static size_t change(const struct corpus *c, struct ur_rng *rng, uint8_t *out, size_t size, size_t max)
{
	static const uint8_t interesting[] = {0, 1, 2, 0x7f, 0x80, 0xfe, 0xff};
	size_t at = below(rng, size), n = run(rng, size - at);

	switch (ur_rng_below(rng, 9)) {
	case 0: /* a bit */
		out[at] ^= (uint8_t)(1u << ur_rng_below(rng, 8));
		return size;
	case 1: out[at] = (uint8_t)ur_rng_u32(rng); return size;
	case 2: out[at] = (uint8_t)(out[at] + ur_rng_below(rng, 17) - 8); return size;
	case 3: out[at] = interesting[ur_rng_below(rng, sizeof(interesting))]; return size;
	case 4: return size > n ? cut(out, size, at, n) : size;
	case 5: /* repeat a run */
		if (size + n > max)
			return size;
		size = insert(out, size, at + n, n);
		memcpy(out + at + n, out + at, n);
		return size;
	case 6:
		n = n < max - size ? n : max - size;
		size = insert(out, size, at, n);
		random_bytes(rng, out + at, n);
		return size;
	default: return c->n ? from_other(c, rng, out, size, max) : size;
	}
}

size_t mutate(const struct corpus *c, struct ur_rng *rng, uint8_t *out, size_t max)
{
	const struct seed *s = c->n ? &c->seed[below(rng, c->n)] : NULL;
	size_t size;

	if (!s || !s->size || !ur_rng_below(rng, 16))
		return random_bytes(rng, out, 1 + below(rng, 1u << (3 + below(rng, 7))) % max);
	size = s->size < max ? s->size : max;
	memcpy(out, s->data, size);
	for (unsigned n = 1 + ur_rng_below(rng, 1u << ur_rng_below(rng, 5)); n; n--)
		size = change(c, rng, out, size, max);
	return size;
}
