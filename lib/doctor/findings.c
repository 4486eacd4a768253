/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of findings, the report, and the order in which the facts are judged. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "doctor/internal.h"

#define ROW(id, name, severity, topic) {name, UR_DOCTOR_##severity, topic},
const struct ur_doctor_kind ur_doctor_kinds[UR_DOC_COUNT] = {UR_DOCTOR_FINDINGS(ROW)};

static ur_doctor_judge_fn *const host_judges[] = {
	ur_doctor_judge_device, ur_doctor_judge_port,  ur_doctor_judge_holder,   ur_doctor_judge_mtu,       ur_doctor_judge_kernel,
	ur_doctor_judge_buffer, ur_doctor_judge_merge, ur_doctor_judge_firewall, ur_doctor_judge_processes, ur_doctor_judge_memlock,
	ur_doctor_judge_cpu,    ur_doctor_judge_clock, ur_doctor_judge_copy,     ur_doctor_judge_settings,
};

static ur_doctor_judge_fn *const peer_judges[] = {
	ur_doctor_judge_peer, ur_doctor_judge_peer_mtu, ur_doctor_judge_cm, ur_doctor_judge_loss, ur_doctor_judge_gids,
};

const char *ur_doctor_severity_name(enum ur_doctor_severity s)
{
	static const char *const names[] = {"ok", "note", "unknown", "warning", "error"};

	return names[s];
}

struct ur_doctor_finding *ur_doctor_add(struct ur_doctor_report *r, enum ur_doctor_id id, const char *fmt, ...)
{
	static struct ur_doctor_finding forgotten;
	struct ur_doctor_finding *f = r->count < UR_DOCTOR_MAX ? &r->findings[r->count++] : &forgotten;
	va_list ap;

	f->id = id;
	f->remedy[0] = 0;
	va_start(ap, fmt);
	vsnprintf(f->sentence, sizeof(f->sentence), fmt, ap);
	va_end(ap);
	return f;
}

void ur_doctor_remedy(struct ur_doctor_finding *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->remedy, sizeof(f->remedy), fmt, ap);
	va_end(ap);
}

/* --- who runs a command --- */

void ur_doctor_as_root(struct ur_doctor_finding *x, const struct ur_doctor_facts *f)
{
	ur_doctor_remedy(x, "sudo uroce doctor%s%s%s%s", f->dev[0] ? " --dev " : "", f->dev, f->with_peer ? " " : "",
			 f->with_peer ? f->peer.name : "");
}

/* Those that need root. Judges leave out sudo before them, and write it before others that need root in their case. */
static const char *const for_root[] = {"ip link set ",      "ip address add ", "sysctl -w ", "ethtool -K ",      "nft ",
				       "rdma link delete ", "ss -Hulanp ",     "systemctl ", "apt-get install ", "iptables-legacy ",
				       "ip6tables-legacy ", "tcpdump "};

static bool needs_root(const char *command)
{
	for (unsigned i = 0; i < ur_array_size(for_root); i++)
		if (!strncmp(command, for_root[i], strlen(for_root[i])))
			return true;
	return false;
}

/* Puts sudo where it is needed in a list of commands with "; " between them, or takes it away from root. */
static void put_sudo(struct ur_doctor_finding *x, bool root)
{
	static const char sudo[] = "sudo ";
	char text[sizeof(x->remedy)];
	const char *from = x->remedy;
	size_t n = 0;

	while (*from && n < sizeof(text) - sizeof(sudo)) {
		if (from == x->remedy || (from - x->remedy > 1 && !strncmp(from - 2, "; ", 2))) {
			if (root && !strncmp(from, sudo, strlen(sudo)))
				from += strlen(sudo);
			else if (!root && needs_root(from))
				n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", sudo);
		}
		text[n++] = *from++;
	}
	text[n] = 0;
	strcpy(x->remedy, text);
}

/* --- texts from outside --- */

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("._:@%+-", c));
}

static void clean_name(char *s)
{
	for (; *s; s++)
		*s = is_name(*s) ? *s : '?';
}

static void clean_text(char *s)
{
	for (; *s; s++)
		*s = *s >= ' ' && *s <= '~' ? *s : '?';
}

void ur_doctor_clean(struct ur_doctor_facts *f)
{
	char *const names[] = {f->dev, f->rxe, f->port_setting, f->peer.name, f->peer.dev};
	char *const texts[] = {f->dev_why, f->release, f->clock, f->firewall.where, f->firewall.remedy, f->peer.cm_why, f->fault};

	for (unsigned i = 0; i < ur_array_size(names); i++)
		clean_name(names[i]);
	for (unsigned i = 0; i < ur_array_size(texts); i++)
		clean_text(texts[i]);
	for (unsigned i = 0; i < UR_DOCTOR_PORTS; i++)
		clean_text(f->ports[i].why);
	for (unsigned i = 0; i < f->holder_count; i++)
		clean_text(f->holders[i].name);
}

/* --- all of it --- */

void ur_doctor_judge(const struct ur_doctor_facts *f, struct ur_doctor_report *r)
{
	r->count = 0;
	for (unsigned i = 0; i < ur_array_size(host_judges); i++)
		host_judges[i](f, r);
	for (unsigned i = 0; f->with_peer && i < ur_array_size(peer_judges); i++)
		peer_judges[i](f, r);
	for (unsigned i = 0; i < r->count; i++)
		put_sudo(&r->findings[i], f->uid == 0);
}

unsigned ur_doctor_wrong(const struct ur_doctor_report *r)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->count; i++)
		n += ur_doctor_kinds[r->findings[i].id].severity >= UR_DOCTOR_WARNING;
	return n;
}
