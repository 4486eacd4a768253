/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/pci/bind.h"

#include <arpa/inet.h>
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drivers/os/fail.h"

#define STEP_MS 10
#define DRIVER_TRIES 300 /* steps until a driver has come or gone */
#define IF_TRIES 500     /* until the kernel's driver has made the interface */
#define NAME_TRIES 200   /* until somebody has given it the name that it had */

struct job {
	const struct ur_pci_roots *r;
	const struct ur_pci_bind *b;
	struct ur_pci_nic nic;
	struct ur_pci_state state;
	int dir;
	bool had_state;
	char *err;
	size_t errlen;
};

extern char **environ;

static void report_step(const struct job *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void report_step(const struct job *j, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (j->b->say)
		j->b->say(text);
}

static void step(void)
{
	nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
}

/* --- what may not be --- */

static int read_nic(struct job *j)
{
	int rc = ur_pci_read_nic(j->r, j->b->addr, &j->nic);

	if (rc == ENOENT)
		return ur_port_fail(j->err, j->errlen, rc, "this host has no PCI device %s: 'uroce info --pci' lists the NICs", j->b->addr);
	if (rc)
		return ur_port_fail(j->err, j->errlen, rc, "%s is not a network device: 'uroce info --pci' lists the NICs", j->b->addr);
	return 0;
}

static int check_user(struct job *j)
{
	int pid = ur_pci_user(j->r, &j->nic);

	if (!pid)
		return 0;
	return ur_port_fail(j->err, j->errlen, EBUSY, "process %d uses %s: end it first", pid, j->nic.addr);
}

static int check_interface(struct job *j)
{
	if (j->nic.ifnames > 1)
		return ur_port_fail(j->err, j->errlen, EOPNOTSUPP,
				    "%s has several interfaces (%s, %s, ...), which uroce cannot bind: choose another NIC", j->nic.addr,
				    j->nic.ifname[0], j->nic.ifname[1]);
	if (j->nic.ifnames && !j->b->default_route && ur_pci_if_default_route(j->r, j->nic.ifname[0]))
		return ur_port_fail(
			j->err, j->errlen, EBUSY,
			"the default route uses %s (%s), and this host may be unreachable without it: add --default-route if you are sure",
			j->nic.ifname[0], j->nic.addr);
	return 0;
}

static const char *wanted_driver(const struct job *j)
{
	return j->b->driver ? j->b->driver : "vfio-pci";
}

static bool driver_there(const struct job *j)
{
	char path[UR_PCI_PATH];

	return ur_pci_path(path, j->r->sys, "/bus/pci/drivers/%s", wanted_driver(j)) && access(path, F_OK) == 0;
}

/* Modules carry the names of their drivers. */
static int load_driver(struct job *j)
{
	const char *driver = wanted_driver(j);
	char *const argv[] = {"modprobe", (char *)(uintptr_t)driver, NULL};
	int status = 0;
	pid_t pid;

	if (driver_there(j))
		return 0;
	report_step(j, "loads the kernel module %s", driver);
	if (j->b->dry)
		return 0;
	if (posix_spawn(&pid, "/sbin/modprobe", NULL, NULL, argv, environ) == 0)
		waitpid(pid, &status, 0);
	if (driver_there(j))
		return 0;
	return ur_port_fail(j->err, j->errlen, ENOENT,
			    "the kernel has no driver %s: install its module (in Debian it is in the package of the "
			    "kernel)",
			    driver);
}

static int check(struct job *j)
{
	int rc;

	if (!ur_pci_is_user_driver(wanted_driver(j)))
		return ur_port_fail(j->err, j->errlen, EINVAL,
				    "'%s' is not a driver that gives a NIC to programs: use vfio-pci, uio_pci_generic or igb_uio",
				    wanted_driver(j));
	rc = check_user(j);
	rc = rc ? rc : check_interface(j);
	rc = rc ? rc : ur_pci_obstacle(j->r, &j->nic, wanted_driver(j), j->err, j->errlen);
	return rc ? rc : load_driver(j);
}

/* --- huge pages --- */

static bool huge_path(const struct job *j, char path[UR_PCI_PATH], const char *file)
{
	return ur_pci_path(path, j->r->sys, "/kernel/mm/hugepages/hugepages-2048kB/%s", file);
}

static unsigned huge_pages(const struct job *j, const char *file)
{
	char path[UR_PCI_PATH], text[32] = "";

	return huge_path(j, path, file) && ur_pci_read(path, text, sizeof(text)) ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static unsigned set_huge_pages(const struct job *j, unsigned n)
{
	char path[UR_PCI_PATH], text[32];

	snprintf(text, sizeof(text), "%u", n);
	if (huge_path(j, path, "nr_hugepages"))
		ur_pci_write(path, text);
	return huge_pages(j, "nr_hugepages");
}

static void add_huge_pages(struct job *j)
{
	unsigned free_now = huge_pages(j, "free_hugepages"), all = huge_pages(j, "nr_hugepages"), got;

	if (free_now >= UR_PCI_HUGE_PAGES)
		return;
	report_step(j, "allocates %u huge page%s of 2 MB", UR_PCI_HUGE_PAGES - free_now, UR_PCI_HUGE_PAGES - free_now == 1 ? "" : "s");
	if (j->b->dry)
		return;
	got = set_huge_pages(j, all + UR_PCI_HUGE_PAGES - free_now);
	j->state.huge_pages += got > all ? got - all : 0;
	if (got < all + UR_PCI_HUGE_PAGES - free_now)
		report_step(
			j, "the kernel found memory for only %u of them: boot with hugepages=%u, or give programs --eal '--no-huge -m 128'",
			got > all ? got - all : 0, UR_PCI_HUGE_PAGES);
}

static void remove_huge_pages(struct job *j)
{
	unsigned all = huge_pages(j, "nr_hugepages"), n = j->state.huge_pages;

	if (!n)
		return;
	report_step(j, "frees %u huge page%s", n, n == 1 ? "" : "s");
	if (!j->b->dry)
		set_huge_pages(j, all > n ? all - n : 0);
}

/* --- moving --- */

static bool has_driver(const struct job *j, const char *driver)
{
	char path[UR_PCI_PATH], now[UR_PCI_DRIVER_TEXT] = "";

	if (ur_pci_path(path, j->r->sys, "/bus/pci/devices/%s/driver", j->nic.addr))
		ur_pci_link(path, now, sizeof(now));
	return !strcmp(now, driver);
}

static bool await_driver(const struct job *j, const char *driver)
{
	for (unsigned i = 0; i < DRIVER_TRIES; i++, step())
		if (has_driver(j, driver))
			return true;
	return false;
}

static int write_to(const struct job *j, const char *text, const char *file, bool of_device)
{
	char path[UR_PCI_PATH];

	if (!ur_pci_path(path, j->r->sys, "/bus/pci/%s%s%s%s", of_device ? "devices/" : "", of_device ? j->nic.addr : "",
			 of_device ? "/" : "", file))
		return ENAMETOOLONG;
	return ur_pci_write(path, text);
}

static int leave_driver(const struct job *j)
{
	char path[UR_PCI_PATH], now[UR_PCI_DRIVER_TEXT] = "";
	int rc;

	if (ur_pci_path(path, j->r->sys, "/bus/pci/devices/%s/driver", j->nic.addr))
		ur_pci_link(path, now, sizeof(now));
	if (!*now)
		return 0;
	rc = write_to(j, j->nic.addr, "driver/unbind", true);
	if (rc)
		return rc;
	return await_driver(j, "") ? 0 : ETIMEDOUT;
}

/* Binds the device to `driver`; with an empty name to the one that the kernel would choose, which is `expected` if that is not empty. */
static int move_to_driver(const struct job *j, const char *driver, const char *expected)
{
	int rc = write_to(j, *driver ? driver : "\n", "driver_override", true);

	rc = rc ? rc : leave_driver(j);
	rc = rc ? rc : write_to(j, j->nic.addr, "drivers_probe", false);
	if (rc || !*expected)
		return rc;
	return await_driver(j, expected) ? 0 : ETIMEDOUT;
}

/* The interface that has come back: the one of the old name if there is one soon. Empty: none. */
static void await_interface(struct job *j, char name[IF_NAMESIZE])
{
	unsigned tries = IF_TRIES;

	*name = 0;
	for (unsigned i = 0; i < tries; i++, step()) {
		if (ur_pci_read_nic(j->r, j->b->addr, &j->nic) || !j->nic.ifnames || !if_nametoindex(j->nic.ifname[0]))
			continue;
		if (!*name)
			tries = i + NAME_TRIES;
		strcpy(name, j->nic.ifname[0]);
		if (!strcmp(name, j->state.nif.name))
			return;
	}
	if (*name && !ur_pci_if_rename(name, j->state.nif.name))
		strcpy(name, j->state.nif.name);
}

static void give_back_interface(struct job *j)
{
	char name[IF_NAMESIZE];
	int rc;

	if (!*j->state.nif.name)
		return;
	await_interface(j, name);
	if (!*name) {
		report_step(j, "no interface has come back: 'dmesg' may say why");
		return;
	}
	rc = ur_pci_if_restore(name, &j->state.nif);
	if (rc)
		report_step(j, "not all settings of %s could be restored to %s (%s): compare with 'ip addr' and 'ip route'",
			    j->state.nif.name, name, strerror(rc));
}

/* --- bind --- */

static void say_interface(const struct job *j)
{
	const struct ur_pci_if *nif = &j->state.nif;
	char text[512] = "", ip[INET6_ADDRSTRLEN];
	size_t n = 0;

	for (unsigned i = 0; i < nif->naddr && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s/%u", i ? ", " : "", ur_pci_ip_text(&nif->addr[i].ip, ip),
				      nif->addr[i].len);
	report_step(j, "removes the interface %s (%s) from the kernel%s", nif->name, nif->naddr ? text : "no address",
		    !nif->naddr  ? ""
		    : j->b->keep ? "; programs on the NIC get its addresses"
				 : "; 'uroce unbind' restores its addresses");
}

static int read_old_state(struct job *j)
{
	int rc = ur_pci_state_read(j->dir, j->nic.addr, &j->state);

	j->had_state = !rc;
	if (rc && rc != ENOENT)
		return ur_port_fail(j->err, j->errlen, rc,
				    "the saved state of an earlier 'uroce bind' in %s/pci-%s cannot be trusted (%s): remove that file",
				    j->r->run, j->nic.addr, strerror(rc));
	return 0;
}

/* What there was before we came, even when this is the second time. */
static int note_state(struct job *j)
{
	int rc;

	j->state.keep = j->b->keep;
	if (j->had_state && (!*j->nic.driver || ur_pci_is_user_driver(j->nic.driver)))
		return 0;
	memset(&j->state.nif, 0, sizeof(j->state.nif));
	snprintf(j->state.driver, sizeof(j->state.driver), "%s", ur_pci_is_user_driver(j->nic.driver) ? "" : j->nic.driver);
	if (!j->nic.ifnames)
		return 0;
	rc = ur_pci_if_save(j->nic.ifname[0], &j->state.nif);
	if (rc)
		return ur_port_fail(j->err, j->errlen, rc, "cannot read the settings of %s (%s): bring it down and try again",
				    j->nic.ifname[0], strerror(rc));
	return 0;
}

static int bind_nic(struct job *j)
{
	const char *driver = wanted_driver(j);
	int rc;

	if (*j->state.nif.name && j->nic.ifnames)
		say_interface(j);
	add_huge_pages(j);
	report_step(j, "binds %s to %s instead of %s", j->nic.addr, driver, *j->nic.driver ? j->nic.driver : "no driver");
	if (j->b->dry)
		return 0;
	rc = ur_pci_state_write(j->dir, j->nic.addr, &j->state);
	if (rc) {
		remove_huge_pages(j);
		return ur_port_fail(j->err, j->errlen, rc, "cannot save the current state in %s (%s): nothing was bound", j->r->run,
				    strerror(rc));
	}
	rc = move_to_driver(j, driver, driver);
	if (!rc)
		return 0;
	ur_port_fail(j->err, j->errlen, rc, "the kernel cannot bind %s to %s (%s): 'dmesg' may say why; the old driver is back",
		     j->nic.addr, driver, strerror(rc));
	move_to_driver(j, ur_pci_is_user_driver(j->nic.driver) ? j->nic.driver : "", j->nic.driver);
	if (j->had_state)
		return rc;
	give_back_interface(j);
	remove_huge_pages(j);
	ur_pci_state_remove(j->dir, j->nic.addr);
	return rc;
}

static int bind_locked(struct job *j)
{
	int rc = check(j);

	rc = rc ? rc : read_old_state(j);
	if (!rc && !strcmp(j->nic.driver, wanted_driver(j)) && (!j->had_state || j->state.keep == j->b->keep)) {
		report_step(j, "%s is already bound to %s", j->nic.addr, j->nic.driver);
		add_huge_pages(j);
		return j->had_state && !j->b->dry ? ur_pci_state_write(j->dir, j->nic.addr, &j->state) : 0;
	}
	rc = rc ? rc : note_state(j);
	return rc ? rc : bind_nic(j);
}

static int locked(const struct ur_pci_roots *r, const struct ur_pci_bind *b, int (*work)(struct job *j), char *err, size_t errlen)
{
	struct job *j = calloc(1, sizeof(*j));
	int rc;

	if (!j)
		return ur_port_fail(err, errlen, ENOMEM, "out of memory");
	*j = (struct job){.r = r, .b = b, .err = err, .errlen = errlen};
	rc = read_nic(j);
	if (!rc)
		j->dir = ur_pci_state_lock(r, err, errlen);
	if (!rc && j->dir < 0)
		rc = EPERM;
	if (!rc) {
		rc = work(j);
		close(j->dir);
	}
	free(j);
	return rc;
}

int ur_pci_bind(const struct ur_pci_roots *r, const struct ur_pci_bind *b, char *err, size_t errlen)
{
	return locked(r, b, bind_locked, err, errlen);
}

/* --- unbind --- */

static void bring_to_standstill(const struct job *j)
{
	char why[UR_PCI_SENTENCE] = "";

	if (!j->b->still || !ur_pci_is_vfio(j->nic.driver))
		return;
	report_step(j, "opens and closes %s with DPDK's driver, which stops what a killed program has left running", j->nic.addr);
	if (!j->b->dry && !j->b->still(j->nic.addr, why, sizeof(why)))
		report_step(j, "could not do that (%s): if %s receives nothing now, bind it again, run a program on it and unbind it", why,
			    j->nic.addr);
}

static int unbind_locked(struct job *j)
{
	int rc = check_user(j);

	rc = rc ? rc : read_old_state(j);
	if (rc)
		return rc;
	if (!ur_pci_is_user_driver(j->nic.driver) && !j->had_state) {
		report_step(j, "%s is not bound to a driver for programs: nothing to do", j->nic.addr);
		return 0;
	}
	report_step(j, "gives %s back to %s", j->nic.addr, *j->state.driver ? j->state.driver : "the kernel");
	if (*j->state.nif.name)
		report_step(j, "restores the settings of %s: %u address%s and %u route%s", j->state.nif.name, j->state.nif.naddr,
			    j->state.nif.naddr == 1 ? "" : "es", j->state.nif.nroute, j->state.nif.nroute == 1 ? "" : "s");
	bring_to_standstill(j);
	if (!j->b->dry) {
		rc = move_to_driver(j, "", j->state.driver);
		if (rc)
			return ur_port_fail(j->err, j->errlen, rc, "the kernel cannot bind %s to %s (%s): 'dmesg' may say why", j->nic.addr,
					    *j->state.driver ? j->state.driver : "its own driver", strerror(rc));
		give_back_interface(j);
	}
	remove_huge_pages(j);
	if (!j->b->dry)
		ur_pci_state_remove(j->dir, j->nic.addr);
	return 0;
}

int ur_pci_unbind(const struct ur_pci_roots *r, const struct ur_pci_bind *b, char *err, size_t errlen)
{
	return locked(r, b, unbind_locked, err, errlen);
}
