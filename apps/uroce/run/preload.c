/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Can liburoce.so be preloaded into a program? ld.so does it, which the kernel starts if the program's ELF header names it, and it loads
 * only libraries of the program's own class and machine (ld.so(8)). For a script this depends on its interpreter, which is not checked
 * here.
 */
#include "apps/uroce/run/preload.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#if defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#elif defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#endif

static bool has_interpreter(int fd, const Elf64_Ehdr *h)
{
	Elf64_Phdr p;

	for (unsigned i = 0; i < h->e_phnum; i++) {
		off_t at = (off_t)(h->e_phoff + (Elf64_Off)i * h->e_phentsize);

		if (h->e_phentsize < sizeof(p) || pread(fd, &p, sizeof(p), at) != sizeof(p))
			return true; /* the kernel will complain */
		if (p.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static const char *obstacle(int fd)
{
	Elf64_Ehdr h;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return NULL;
	if (h.e_ident[EI_CLASS] == ELFCLASS32)
		return "a 32-bit program, into which no 64-bit library can be loaded";
#ifdef OUR_MACHINE
	if (h.e_machine != OUR_MACHINE)
		return "of another machine's architecture, into which this machine's libraries cannot be loaded";
#endif
	return has_interpreter(fd, &h) ? NULL : "statically linked, and libraries can be preloaded into dynamically linked programs only";
}

const char *ur_preload_obstacle(const char *program)
{
	int fd = open(program, O_RDONLY | O_CLOEXEC);
	const char *why = fd < 0 ? NULL : obstacle(fd);

	if (fd >= 0)
		close(fd);
	return why;
}
