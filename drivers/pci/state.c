/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file that says how a NIC was before it was bound: lines of a word and its values. It leads to changes that only root may make, so it
 * is believed only when nobody else can have written it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/os/fail.h"
#include "drivers/pci/bind.h"

#define FIRST_LINE "uroce-pci 1\n"
#define FILE_MAX 8192

/* --- the directory --- */

static bool ours_alone(int fd, mode_t others)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & others);
}

static int open_directory(const struct ur_pci_roots *r)
{
	int fd = open(r->run, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && !ours_alone(fd, 022)) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

int ur_pci_state_lock(const struct ur_pci_roots *r, char *err, size_t errlen)
{
	int fd;

	if (mkdir(r->run, 0700) && errno != EEXIST)
		fd = -1;
	else
		fd = open_directory(r);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		ur_port_fail(err, errlen, EBUSY, "another 'uroce bind' or 'uroce unbind' is running: try again when it has ended");
		return -1;
	}
	if (fd < 0)
		ur_port_fail(err, errlen, errno,
			     "the directory %s, where the earlier state is saved, cannot be used (%s): it must be a directory that only "
			     "root can write to",
			     r->run, strerror(errno));
	return fd;
}

/* --- reading --- */

const char *ur_pci_ip_text(const struct ur_pci_ip *ip, char *out)
{
	return ip->family ? inet_ntop(ip->family, ip->raw, out, INET6_ADDRSTRLEN) : strcpy(out, "-");
}

static bool read_ip(const char *text, struct ur_pci_ip *ip)
{
	memset(ip, 0, sizeof(*ip));
	if (!strcmp(text, "-"))
		return true;
	ip->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	return inet_pton(ip->family, text, ip->raw) == 1;
}

static bool read_interface(const char *line, struct ur_pci_if *nif)
{
	unsigned up;
	uint8_t *m = nif->mac;

	_Static_assert(IF_NAMESIZE == 16, "the width of the name in the format");
	if (sscanf(line, "interface %15s %hhx:%hhx:%hhx:%hhx:%hhx:%hhx %u %u", nif->name, &m[0], &m[1], &m[2], &m[3], &m[4], &m[5],
		   &nif->mtu, &up) != 9)
		return false;
	nif->up = up != 0;
	return true;
}

static bool read_address(const char *line, struct ur_pci_if *nif)
{
	char ip[64];

	if (nif->naddr == UR_PCI_IF_ADDRS || sscanf(line, "address %63s %u", ip, &nif->addr[nif->naddr].len) != 2)
		return false;
	return read_ip(ip, &nif->addr[nif->naddr++].ip);
}

static bool read_route(const char *line, struct ur_pci_if *nif)
{
	char dst[64], gateway[64], src[64];
	unsigned n = nif->nroute;

	if (n == UR_PCI_IF_ROUTES ||
	    sscanf(line, "route %63s %u %63s %63s %u", dst, &nif->route[n].len, gateway, src, &nif->route[n].metric) != 5)
		return false;
	nif->nroute++;
	return read_ip(dst, &nif->route[n].dst) && read_ip(gateway, &nif->route[n].gateway) && read_ip(src, &nif->route[n].src);
}

static bool read_line(const char *line, struct ur_pci_state *s)
{
	unsigned keep;

	if (!strncmp(line, "driver ", 7))
		return sscanf(line, "driver %31s", s->driver) == 1;
	if (!strncmp(line, "huge_pages ", 11))
		return sscanf(line, "huge_pages %u", &s->huge_pages) == 1;
	if (!strncmp(line, "interface ", 10))
		return read_interface(line, &s->nif);
	if (!strncmp(line, "address ", 8))
		return read_address(line, &s->nif);
	if (!strncmp(line, "route ", 6))
		return read_route(line, &s->nif);
	if (sscanf(line, "keep %u", &keep) != 1)
		return false;
	s->keep = keep != 0;
	return true;
}

static int parse(char *text, struct ur_pci_state *s)
{
	char *save, *line;

	memset(s, 0, sizeof(*s));
	if (strncmp(text, FIRST_LINE, strlen(FIRST_LINE)))
		return EINVAL;
	for (line = strtok_r(text + strlen(FIRST_LINE), "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!read_line(line, s))
			return EINVAL;
	return 0;
}

static void file_name(char out[64], const char *addr, const char *ending)
{
	snprintf(out, 64, "pci-%s%s", addr, ending);
}

int ur_pci_state_read(int dir, const char *addr, struct ur_pci_state *s)
{
	char name[64], text[FILE_MAX];
	struct stat st;
	ssize_t n;
	int fd;

	file_name(name, addr, "");
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP ? EPERM : errno;
	if (!ours_alone(fd, 077) || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return EPERM;
	}
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return EIO;
	text[n] = 0;
	return parse(text, s);
}

int ur_pci_state_view(const struct ur_pci_roots *r, const char *addr, struct ur_pci_state *s)
{
	int dir = open_directory(r), rc;

	if (dir < 0)
		return errno;
	rc = ur_pci_state_read(dir, addr, s);
	close(dir);
	return rc;
}

/* --- writing --- */

static void print_interface(FILE *f, const struct ur_pci_if *nif)
{
	char a[INET6_ADDRSTRLEN], b[INET6_ADDRSTRLEN], c[INET6_ADDRSTRLEN];
	const uint8_t *m = nif->mac;

	fprintf(f, "interface %s %02x:%02x:%02x:%02x:%02x:%02x %u %d\n", nif->name, m[0], m[1], m[2], m[3], m[4], m[5], nif->mtu, nif->up);
	for (unsigned i = 0; i < nif->naddr; i++)
		fprintf(f, "address %s %u\n", ur_pci_ip_text(&nif->addr[i].ip, a), nif->addr[i].len);
	for (unsigned i = 0; i < nif->nroute; i++)
		fprintf(f, "route %s %u %s %s %u\n", ur_pci_ip_text(&nif->route[i].dst, a), nif->route[i].len,
			ur_pci_ip_text(&nif->route[i].gateway, b), ur_pci_ip_text(&nif->route[i].src, c), nif->route[i].metric);
}

static int print_state(int fd, const struct ur_pci_state *s)
{
	FILE *f = fdopen(fd, "w");

	if (!f) {
		close(fd);
		return errno;
	}
	fputs(FIRST_LINE, f);
	if (*s->driver)
		fprintf(f, "driver %s\n", s->driver);
	fprintf(f, "huge_pages %u\nkeep %d\n", s->huge_pages, s->keep);
	if (*s->nif.name)
		print_interface(f, &s->nif);
	return fclose(f) ? errno : 0;
}

int ur_pci_state_write(int dir, const char *addr, const struct ur_pci_state *s)
{
	char fresh[64], name[64];
	int fd, rc;

	file_name(fresh, addr, ".new");
	file_name(name, addr, "");
	unlinkat(dir, fresh, 0);
	fd = openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	rc = print_state(fd, s);
	if (!rc && renameat(dir, fresh, dir, name))
		rc = errno;
	if (rc)
		unlinkat(dir, fresh, 0);
	return rc;
}

void ur_pci_state_remove(int dir, const char *addr)
{
	char name[64];

	file_name(name, addr, "");
	unlinkat(dir, name, 0);
}
