/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce doctor: the rules of nftables. The kernel says whether there are any tables; nft prints their contents. Rules of the older
 * iptables (iptables-legacy) are not shown by nft; only their existence can be detected.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "doctor.h"
#include "drivers/os/netlink.h"
#include "host/clock.h"

#define NFT_SECONDS 10
#define NFT_BYTES (64u << 20)

extern char **environ;

/* --- how many tables --- */

static int count_table(const struct nlmsghdr *nlh, void *data)
{
	unsigned *n = data;

	(void)nlh;
	++*n;
	return MNL_CB_OK;
}

/* --- what nft prints --- */

static bool start_nft(int *out, pid_t *pid)
{
	static const char *const places[] = {"/usr/sbin/nft", "/sbin/nft", "/usr/local/sbin/nft", "/usr/bin/nft"};
	char *argv[] = {(char *)"nft", (char *)"-j", (char *)"list", (char *)"ruleset", NULL};
	posix_spawn_file_actions_t actions;
	int fds[2], err = ENOENT;

	if (pipe2(fds, O_CLOEXEC))
		return false;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	for (unsigned i = 0; err && i < ur_array_size(places); i++)
		err = posix_spawn(pid, places[i], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	*out = fds[0];
	if (err)
		close(fds[0]);
	return !err;
}

/* All that it prints, to be freed; NULL when that is too much or takes too long. */
static char *read_output(int fd, size_t *len)
{
	ur_time deadline = ur_clock_now() + NFT_SECONDS * UR_NS_PER_S;
	size_t room = 1u << 16, used = 0;
	char *text = malloc(room);

	while (text) {
		ur_time now = ur_clock_now();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n = -1;

		if (used == room) {
			char *more = room < NFT_BYTES ? realloc(text, room *= 2) : NULL;

			if (!more)
				break;
			text = more;
		}
		if (now < deadline && poll(&p, 1, (int)((deadline - now) / UR_NS_PER_MS) + 1) > 0)
			n = read(fd, text + used, room - used);
		if (n < 0)
			break;
		if (n == 0) {
			*len = used;
			return text;
		}
		used += (size_t)n;
	}
	free(text);
	return NULL;
}

static char *list_ruleset(bool *there, size_t *len)
{
	char *text;
	pid_t pid;
	int fd, status;

	*there = start_nft(&fd, &pid);
	if (!*there)
		return NULL;
	text = read_output(fd, len);
	close(fd);
	if (!text)
		kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return text;
	free(text);
	return NULL;
}

/* --- all of it --- */

/* `remedy`: "" where root can tell. */
static void unknown(struct ur_doctor_facts *f, const char *why, const char *remedy)
{
	f->firewall.verdict = UR_FIREWALL_UNKNOWN;
	snprintf(f->firewall.where, sizeof(f->firewall.where), "%s", why);
	snprintf(f->firewall.remedy, sizeof(f->firewall.remedy), "%s", remedy);
}

static bool has_line(const char *path)
{
	FILE *in = fopen(path, "re");
	bool any = in && fgetc(in) != EOF;

	if (in)
		fclose(in);
	return any;
}

static void judge_tables(struct ur_doctor_facts *f, unsigned tables)
{
	const struct ur_firewall_packet p = {
		.dev = f->dev,
		.v4 = f->with_peer && f->peer.address[0] ? !f->peer.v6 : f->v4,
		.v6 = f->with_peer && f->peer.address[0] ? f->peer.v6 : f->v6,
		.peer = f->with_peer && f->peer.address[0] ? f->peer.address : NULL,
	};
	bool there;
	size_t len;
	char *text = list_ruleset(&there, &len);
	char why[128];

	if (text) {
		ur_firewall_judge(text, len, &p, &f->firewall);
	} else if (there) {
		unknown(f, "'nft -j list ruleset' fails", "nft -j list ruleset");
	} else {
		snprintf(why, sizeof(why), "nftables has %u table%s, but nft, which shows %s, is not installed", tables, ur_plural(tables),
			 tables == 1 ? "it" : "them");
		unknown(f, why, "apt-get install nftables");
	}
	free(text);
}

void ur_doctor_read_firewall(struct ur_doctor_facts *f)
{
	unsigned tables = 0;
	const struct nfgenmsg any = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0};
	int err = ur_netlink_dump(NETLINK_NETFILTER, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE, &any, sizeof(any), count_table, &tables);

	f->firewall = (struct ur_firewall){.verdict = UR_FIREWALL_PASSES};
	if (err == EPERM)
		unknown(f, "only root may read the rules of nftables", "");
	else if (!err && tables)
		judge_tables(f, tables);
	/* Any other error is a kernel without nftables. */
	if (f->firewall.verdict == UR_FIREWALL_PASSES && (has_line("/proc/net/ip_tables_names") || has_line("/proc/net/ip6_tables_names")))
		unknown(f, "there are tables of the older iptables, which nft does not show", "iptables-legacy -S; ip6tables-legacy -S");
}
