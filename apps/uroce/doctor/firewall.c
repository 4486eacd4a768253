/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce doctor: the rules of nftables. The kernel says whether there are any tables; nft prints their contents. Rules of the older
 * iptables (iptables-legacy) are not shown by nft; only their existence can be detected.
 */
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "apps/uroce/doctor/doctor.h"
#include "drivers/os/netlink.h"

static int count_table(const struct nlmsghdr *nlh, void *data)
{
	(void)nlh;
	++*(unsigned *)data;
	return MNL_CB_OK;
}

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

static void judge_tables(struct ur_doctor_facts *f)
{
	const bool of_peer = f->with_peer && f->peer.address[0];
	const struct ur_firewall_packet p = {.dev = f->dev, .v4 = of_peer ? !f->peer.v6 : f->v4, .v6 = of_peer ? f->peer.v6 : f->v6};
	FILE *nft = popen("export PATH=/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/bin; exec timeout 10 nft list ruleset 2>/dev/null", "re");
	char *text = NULL;
	size_t room = 0;
	const bool read = nft && getdelim(&text, &room, 0, nft) > 0;
	const int status = nft ? pclose(nft) : -1;

	if (read && status == 0)
		ur_firewall_judge(text, &p, &f->firewall);
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		unknown(f, "nftables has tables, but nft, which shows them, is not installed", "apt-get install nftables");
	else
		unknown(f, "'nft list ruleset' fails", "nft list ruleset");
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
		judge_tables(f);
	/* Any other error is a kernel without nftables. */
	if (f->firewall.verdict == UR_FIREWALL_PASSES && (has_line("/proc/net/ip_tables_names") || has_line("/proc/net/ip6_tables_names")))
		unknown(f, "there are tables of the older iptables, which nft does not show", "iptables-legacy -S; ip6tables-legacy -S");
}
