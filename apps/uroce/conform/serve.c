/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce conform --serve: finds the responder, an ordinary program of librdmacm, and executes it, under `uroce run` or directly. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/conform/conform.h"

#define RESPONDER "uroce-responder"

/* Relative to this program: in the build tree, and installed. */
static const char *const places[] = {"../responder/" RESPONDER, "../" UROCE_LIBEXECDIR "/uroce/" RESPONDER};

static bool find_responder(char *self, char *responder)
{
	ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
	char path[2 * PATH_MAX];

	if (n <= 0)
		return false;
	self[n] = 0;
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int folder = (int)(strrchr(self, '/') + 1 - self);

		snprintf(path, sizeof(path), "%.*s%s", folder, self, places[i]);
		if (realpath(path, responder) && access(responder, X_OK) == 0)
			return true;
	}
	return false;
}

int ur_conform_serve(const char *address, uint16_t port, bool system)
{
	char self[PATH_MAX], responder[PATH_MAX], port_text[8], any[] = "::", run[] = "run", dashes[] = "--";
	char *where = address ? strdup(address) : any;
	char *words[] = {self, run, dashes, responder, where, port_text, NULL};

	snprintf(port_text, sizeof(port_text), "%u", port);
	if (!where)
		return ur_cmd_fail(UR_EXIT_FAIL, "out of memory: the responder cannot be started");
	if (!find_responder(self, responder))
		return ur_cmd_fail(UR_EXIT_FAIL,
				   RESPONDER " was not found beside this program: build it with 'ninja -C build' or install it");
	if (system)
		execv(responder, words + 3);
	else
		execv(self, words);
	return ur_cmd_fail(UR_EXIT_FAIL, "'%s' could not be started: %s", system ? responder : self, strerror(errno));
}
