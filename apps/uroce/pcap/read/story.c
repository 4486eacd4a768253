/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/pcap/read/read.h"
#include "apps/uroce/pcap/read/story.h"

#include <stdlib.h>
#include <string.h>

void ur_story_begin(struct ur_story *s, bool json, const char *kind, const char *file)
{
	*s = (struct ur_story){.out = stdout};
	if (!json)
		return;
	s->out = open_memstream(&s->text, &s->len);
	if (!s->out)
		s->out = stdout;
	s->object = json_pack("{s:s, s:o}", "kind", kind, "file", ur_json_text(file));
}

void ur_story_put(struct ur_story *s, const char *name, json_t *value)
{
	if (s->object)
		json_object_set_new(s->object, name, value);
	else
		json_decref(value);
}

static json_t *lines(char *text)
{
	json_t *all = json_array();
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		line += strspn(line, " ");
		if (*line)
			json_array_append_new(all, ur_json_text(line));
	}
	return all;
}

void ur_story_end(struct ur_story *s)
{
	if (!s->object)
		return;
	if (s->out != stdout)
		fclose(s->out);
	if (s->text && s->len)
		json_object_set_new(s->object, "sentences", lines(s->text));
	ur_json_line(s->object, stdout);
	free(s->text);
}

json_t *ur_pcap_finding_json(const struct ur_pcap_finding *g)
{
	return json_pack("{s:I, s:s, s:s, s:I, s:o, s:o, s:s}", "frame", (json_int_t)g->frame, "severity", ur_pcap_severity(g->severity),
			 "rule", ur_rules[g->rule].name, "qpn", (json_int_t)g->qpn, "time_ns", ur_json_uint(g->when), "sentence",
			 ur_json_text(g->text), "clause", ur_rules[g->rule].clause);
}
