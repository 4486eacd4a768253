/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce doctor: findings as one screen, and as JSON (the schema is in doc/doctor.md). */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "apps/uroce/doctor/doctor.h"

#define WIDTH 110
#define INDENT 11 /* "warning  " and what stands before */

/* Breaks at blanks; a word that is longer than a line stays whole. */
static void print_wrapped(const char *text)
{
	size_t column = INDENT;

	while (*text) {
		size_t n = strcspn(text, " ");

		if (column > INDENT && column + 1 + n > WIDTH) {
			printf("\n%*s", INDENT, "");
			column = INDENT;
		} else if (column > INDENT) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)n, text);
		column += n;
		text += n;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static bool is_of_peer(const struct ur_doctor_finding *f)
{
	return f->id >= UR_DOC_PEER_NAME;
}

static void print_finding(const struct ur_doctor_finding *f)
{
	printf("  %-*s", INDENT - 2, ur_doctor_severity_name(ur_doctor_kinds[f->id].severity));
	print_wrapped(f->sentence);
	if (f->remedy[0])
		printf("%*s-> %s\n", INDENT, "", f->remedy);
}

static void print_part(const struct ur_doctor_report *r, bool peer)
{
	for (unsigned i = 0; i < r->count; i++)
		if (is_of_peer(&r->findings[i]) == peer)
			print_finding(&r->findings[i]);
}

void ur_doctor_print(const struct ur_doctor_facts *f, const struct ur_doctor_report *r)
{
	unsigned wrong = ur_doctor_wrong(r);

	printf("uroce %s on Linux %s%s%s\n", UR_VERSION, f->release, f->dev[0] ? ", interface " : "", f->dev);
	print_part(r, false);
	if (f->with_peer) {
		printf("\npeer %s\n", f->peer.name);
		print_part(r, true);
	}
	if (wrong)
		printf("\n%u finding%s to fix\n", wrong, ur_plural(wrong));
	else
		puts("\nnothing is wrong");
}

/* --- JSON --- */

static json_t *ports_json(const struct ur_doctor_facts *f)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < UR_DOCTOR_PORTS; i++)
		json_array_append_new(list, json_pack("{s:s, s:b, s:s*}", "kind", ur_doctor_port_names[i], "available", f->ports[i].works,
						      "reason", f->ports[i].works ? NULL : f->ports[i].why));
	return list;
}

static json_t *device_json(const struct ur_doctor_facts *f)
{
	enum ur_doctor_port_index port = ur_doctor_port_of(f);

	if (!f->dev[0])
		return json_null();
	return json_pack("{s:s, s:i, s:i, s:i, s:o, s:s?}", "interface", f->dev, "mtu", (int)f->mtu, "path_mtu",
			 (int)ur_doctor_path_mtu(f->mtu), "addresses", (int)f->addresses, "ports", ports_json(f), "port",
			 port < UR_DOCTOR_PORTS ? ur_doctor_port_names[port] : NULL);
}

static json_t *gids_json(const struct ur_doctor_peer *p)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < p->gid_count; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:b}", "gid", p->gids[i].text, "address", p->gids[i].address, "answers",
						      p->gids[i].answers));
	return list;
}

static json_t *rtt_json(const struct ur_doctor_peer *p)
{
	if (p->cm != UR_DOCTOR_CM_ANSWERS)
		return json_null();
	return json_pack("{s:i, s:i, s:i}", "min", (int)p->rtt_min_us, "median", (int)p->rtt_median_us, "max", (int)p->rtt_max_us);
}

static json_t *peer_json(const struct ur_doctor_facts *f)
{
	const struct ur_doctor_peer *p = &f->peer;

	if (!f->with_peer)
		return json_null();
	return json_pack("{s:s, s:s?, s:s?, s:s?, s:b, s:b, s:i, s:o, s:i, s:i, s:o}", "name", p->name, "address",
			 p->address[0] ? p->address : NULL, "interface", p->dev[0] ? p->dev : NULL, "router", p->via[0] ? p->via : NULL,
			 "ping", p->ping == UR_DOCTOR_PING_ANSWERS, "cm", p->cm == UR_DOCTOR_CM_ANSWERS, "path_mtu",
			 (int)ur_doctor_path_mtu(p->bytes), "rtt_us", rtt_json(p), "sent", (int)p->sent, "answered", (int)p->answered,
			 "gids", gids_json(p));
}

static json_t *findings_json(const struct ur_doctor_report *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < r->count; i++) {
		const struct ur_doctor_finding *f = &r->findings[i];
		const struct ur_doctor_kind *k = &ur_doctor_kinds[f->id];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s*}", "name", k->name, "topic", k->topic, "severity",
						      ur_doctor_severity_name(k->severity), "sentence", f->sentence, "command",
						      f->remedy[0] ? f->remedy : NULL));
	}
	return list;
}

void ur_doctor_print_json(const struct ur_doctor_facts *f, const struct ur_doctor_report *r)
{
	json_t *root = json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:i}", "version", 1, "uroce", UR_VERSION, "kernel", f->release, "device",
				 device_json(f), "peer", peer_json(f), "findings", findings_json(r), "wrong", (int)ur_doctor_wrong(r));

	json_dumpf(root, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(root);
}
