/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/pci/pci.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASS_NETWORK 0x02
#define DOMAIN_DIGITS 8

const struct ur_pci_roots ur_pci_system = {.sys = "/sys", .dev = "/dev", .proc = "/proc", .share = "/usr/share", .run = "/run/uroce"};

/* --- small files --- */

bool ur_pci_path(char out[UR_PCI_PATH], const char *root, const char *fmt, ...)
{
	int n = snprintf(out, UR_PCI_PATH, "%s", root), m;
	va_list ap;

	if (n < 0 || n >= UR_PCI_PATH)
		return false;
	va_start(ap, fmt);
	m = vsnprintf(out + n, (size_t)(UR_PCI_PATH - n), fmt, ap);
	va_end(ap);
	return m >= 0 && m < UR_PCI_PATH - n;
}

bool ur_pci_read(const char *path, char *out, size_t len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, len - 1);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = 0;
	out[strcspn(out, "\n")] = 0;
	return n > 0;
}

int ur_pci_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC), err = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		err = errno ? errno : EIO;
	close(fd);
	return err;
}

void ur_pci_link(const char *path, char *out, size_t len)
{
	char target[UR_PCI_PATH];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	const char *slash;

	target[n > 0 ? n : 0] = 0;
	slash = strrchr(target, '/');
	snprintf(out, len, "%s", slash ? slash + 1 : target);
}

/* --- addresses --- */

/* Reads between `least` and `most` hexadecimal digits. NULL when there are fewer or more. */
static const char *hex(const char *p, unsigned least, unsigned most, uint32_t *value)
{
	unsigned n = 0;

	for (*value = 0; isxdigit((unsigned char)*p); p++, n++) {
		if (n == most)
			return NULL;
		*value = *value << 4 | (uint32_t)(isdigit((unsigned char)*p) ? *p - '0' : tolower((unsigned char)*p) - 'a' + 10);
	}
	return n < least ? NULL : p;
}

bool ur_pci_addr(const char *text, char out[UR_PCI_ADDR_TEXT])
{
	uint32_t domain = 0, bus, slot, function;
	const char *p = strchr(text, ':'), *second = p ? strchr(p + 1, ':') : NULL;

	p = text;
	if (second) {
		p = hex(p, 1, DOMAIN_DIGITS, &domain);
		if (!p || *p++ != ':')
			return false;
	}
	p = hex(p, 1, 2, &bus);
	if (!p || *p++ != ':')
		return false;
	p = hex(p, 1, 2, &slot);
	if (!p || *p++ != '.' || slot > 0x1f)
		return false;
	p = hex(p, 1, 1, &function);
	if (!p || *p || function > 7)
		return false;
	return snprintf(out, UR_PCI_ADDR_TEXT, "%04x:%02x:%02x.%x", domain, bus, slot, function) < UR_PCI_ADDR_TEXT;
}

/* --- devices --- */

static bool device_path(const struct ur_pci_roots *r, char out[UR_PCI_PATH], const char *addr, const char *file)
{
	return ur_pci_path(out, r->sys, "/bus/pci/devices/%s%s%s", addr, *file ? "/" : "", file);
}

static uint32_t device_number(const struct ur_pci_roots *r, const char *addr, const char *file)
{
	char path[UR_PCI_PATH], text[32];

	return device_path(r, path, addr, file) && ur_pci_read(path, text, sizeof(text)) ? (uint32_t)strtoul(text, NULL, 16) : 0;
}

static void find_interfaces(const char *path, struct ur_pci_nic *nic)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)) && nic->ifnames < UR_PCI_IFS)
		if (e->d_name[0] != '.' && strlen(e->d_name) < IF_NAMESIZE)
			strcpy(nic->ifname[nic->ifnames++], e->d_name);
	if (d)
		closedir(d);
}

#define VIRTIO_F_ACCESS_PLATFORM 33 /* virtio 1.1, 6: the device's memory accesses are translated by the platform */

/* A virtio NIC's interface hangs below a virtio device of its own, whose file `features` has a digit for each bit. */
static void look_at_virtio(const struct ur_pci_roots *r, const char *name, struct ur_pci_nic *nic)
{
	char path[UR_PCI_PATH], bits[128];

	if (ur_pci_path(path, r->sys, "/bus/pci/devices/%s/%s/features", nic->addr, name) && ur_pci_read(path, bits, sizeof(bits)))
		nic->bypass = strlen(bits) > VIRTIO_F_ACCESS_PLATFORM && bits[VIRTIO_F_ACCESS_PLATFORM] == '0';
	if (ur_pci_path(path, r->sys, "/bus/pci/devices/%s/%s/net", nic->addr, name))
		find_interfaces(path, nic);
}

static void look_below(const struct ur_pci_roots *r, struct ur_pci_nic *nic)
{
	char path[UR_PCI_PATH];
	struct dirent *e;
	DIR *d;

	if (!device_path(r, path, nic->addr, "") || !(d = opendir(path)))
		return;
	while ((e = readdir(d))) {
		if (!strncmp(e->d_name, "virtio", 6))
			look_at_virtio(r, e->d_name, nic);
		else if (!strcmp(e->d_name, "net") && device_path(r, path, nic->addr, "net"))
			find_interfaces(path, nic);
	}
	closedir(d);
}

int ur_pci_read_nic(const struct ur_pci_roots *r, const char *addr, struct ur_pci_nic *nic)
{
	char path[UR_PCI_PATH], text[32];

	memset(nic, 0, sizeof(*nic));
	nic->group = -1;
	snprintf(nic->addr, sizeof(nic->addr), "%s", addr);
	if (!device_path(r, path, addr, "class") || access(path, R_OK))
		return ENOENT;
	if (device_number(r, addr, "class") >> 16 != CLASS_NETWORK)
		return ENODEV;
	nic->vendor = (uint16_t)device_number(r, addr, "vendor");
	nic->device = (uint16_t)device_number(r, addr, "device");
	if (device_path(r, path, addr, "driver"))
		ur_pci_link(path, nic->driver, sizeof(nic->driver));
	if (device_path(r, path, addr, "iommu_group")) {
		ur_pci_link(path, text, sizeof(text));
		nic->group = isdigit((unsigned char)*text) ? atoi(text) : -1;
	}
	look_below(r, nic);
	return 0;
}

static int by_addr(const void *a, const void *b)
{
	return strcmp(((const struct ur_pci_nic *)a)->addr, ((const struct ur_pci_nic *)b)->addr);
}

unsigned ur_pci_list(const struct ur_pci_roots *r, struct ur_pci_nic *nics, unsigned max)
{
	char path[UR_PCI_PATH], addr[UR_PCI_ADDR_TEXT];
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	if (!ur_pci_path(path, r->sys, "/bus/pci/devices") || !(d = opendir(path)))
		return 0;
	while (n < max && (e = readdir(d)))
		if (ur_pci_addr(e->d_name, addr) && !ur_pci_read_nic(r, e->d_name, &nics[n]))
			n++;
	closedir(d);
	qsort(nics, n, sizeof(*nics), by_addr);
	return n;
}

/* The link leads to the PCI device, or for virtio to a device below it. */
bool ur_pci_of_interface(const struct ur_pci_roots *r, const char *ifname, char addr[UR_PCI_ADDR_TEXT])
{
	char path[UR_PCI_PATH], *real, *slash;
	bool found = false;

	if (strchr(ifname, '/') || !ur_pci_path(path, r->sys, "/class/net/%s/device", ifname) || !(real = realpath(path, NULL)))
		return false;
	for (unsigned i = 0; i < 2 && !found && (slash = strrchr(real, '/')); i++) {
		found = ur_pci_addr(slash + 1, addr);
		*slash = 0;
	}
	free(real);
	return found;
}

/* --- names --- */

/* The words after the hexadecimal id at the start of a line of pci.ids, or NULL when it is another's line. */
static const char *id_line(const char *line, unsigned tabs, uint16_t id)
{
	uint32_t value;
	const char *p;

	for (; tabs; tabs--)
		if (*line++ != '\t')
			return NULL;
	p = hex(line, 4, 4, &value);
	if (!p || value != id || strncmp(p, "  ", 2))
		return NULL;
	return p + 2;
}

/* Vendors stand at the start of a line and their devices below them, after a tab. */
static bool name_in(FILE *f, const struct ur_pci_nic *nic, char *out, size_t len)
{
	char line[512], vendor[128] = "";
	const char *name;

	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (*vendor && isxdigit((unsigned char)*line))
			break;
		if (!*vendor && (name = id_line(line, 0, nic->vendor)))
			snprintf(vendor, sizeof(vendor), "%s", name);
		else if (*vendor && (name = id_line(line, 1, nic->device)))
			return snprintf(out, len, "%s %s", vendor, name) > 0;
	}
	if (*vendor)
		snprintf(out, len, "%s %04x", vendor, nic->device);
	return *vendor;
}

void ur_pci_name(const struct ur_pci_roots *r, const struct ur_pci_nic *nic, char *out, size_t len)
{
	static const char *const places[] = {"/misc/pci.ids", "/hwdata/pci.ids"};
	char path[UR_PCI_PATH];
	bool found = false;

	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]) && !found; i++) {
		FILE *f = ur_pci_path(path, r->share, "%s", places[i]) ? fopen(path, "re") : NULL;

		if (!f)
			continue;
		found = name_in(f, nic, out, len);
		fclose(f);
	}
	if (!found)
		snprintf(out, len, "%04x:%04x", nic->vendor, nic->device);
}
