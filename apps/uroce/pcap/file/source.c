/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of a capture, one after the other, compressed or not; IP fragments are put together. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/pcap/file/source.h"
#include "wire/frame.h"

#define FRAMES_MAX 4000000000u /* they are numbered by 32 bits */

static bool cannot(const char *name, const char *why)
{
	ur_cmd_fail(0, "cannot read %s: %s", name, why);
	return false;
}

static bool open_stream(struct ur_pcap_source *s, FILE *in)
{
	const char *why = "out of memory";
	struct ur_ng_frame none;

	s->gatherer = ur_gatherer_create();
	if (ur_pcap_reader_open(&s->reader, in) && s->gatherer && ur_pcap_reader_piece(&s->reader, &none, &why) == UR_NG_OTHER)
		return true;
	cannot(s->name, s->fault ? s->fault : why);
	ur_pcap_source_close(s);
	return false;
}

bool ur_pcap_source_open(struct ur_pcap_source *s, const char *name)
{
	FILE *in;

	memset(s, 0, sizeof(*s));
	s->name = name;
	s->room = malloc(UR_PCAP_ROOM); /* without it the library's buffer does */
	in = ur_pcap_stream(name, s->room, &s->fault);
	if (in)
		return open_stream(s, in);
	cannot(name, strerror(errno));
	ur_pcap_source_close(s);
	return false;
}

bool ur_pcap_source_next(struct ur_pcap_source *s)
{
	const char *why = NULL;

	if (ur_unlikely(s->frame.number == FRAMES_MAX))
		s->why = "it has more frames than are numbered";
	if (s->why || ur_pcap_interrupted() || !ur_pcap_reader_next(&s->reader, &s->frame, &why)) {
		s->why = s->why || ur_pcap_interrupted() ? s->why : s->fault ? s->fault : why;
		return false;
	}
	s->frame.number++;
	if (ur_gather(s->gatherer, &s->frame))
		s->parts++;
	if (ur_unlikely(!s->roce)) {
		enum ur_an_strange what;

		s->roce = ur_an_has_packet(&s->frame, &what);
		s->strange[what]++;
	}
	return true;
}

/* What it has instead, most of all; NOT_STRANGE when that is nothing with a name. */
static enum ur_an_strange most_of(const struct ur_pcap_source *s)
{
	unsigned most = UR_AN_NOT_STRANGE;

	for (unsigned i = 1; i < UR_AN_STRANGE; i++)
		if (s->strange[i] && (!most || s->strange[i] > s->strange[most]))
			most = i;
	return (enum ur_an_strange)most;
}

bool ur_pcap_source_has_roce(const struct ur_pcap_source *s)
{
	const enum ur_an_strange what = most_of(s);
	char list[256] = "";

	if (s->roce || s->why || ur_pcap_interrupted())
		return true;
	for (unsigned i = 1, n = 0; i < UR_AN_STRANGE; i++)
		if (s->strange[i])
			n += (unsigned)snprintf(list + n, sizeof(list) - n, "%s%u frame%s of %s", n ? ", " : "", s->strange[i],
						ur_plural(s->strange[i]), ur_an_strange[i].name);
	if (what == UR_AN_UNREAD_LINK)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), " (%u)", s->reader.link);
	if (!s->frame.number)
		ur_cmd_fail(0, "%s is empty: it holds no frame", s->name);
	else if (what)
		ur_cmd_fail(0, "%s holds no RoCEv2 packet, but %s: %s", s->name, list, ur_an_strange[what].advice);
	else
		ur_cmd_fail(0, "%s holds no RoCEv2 packet (UDP port %u)", s->name, UR_ROCE_PORT);
	return false;
}

void ur_pcap_source_close(struct ur_pcap_source *s)
{
	if (s->reader.in && s->reader.in != stdin)
		fclose(s->reader.in);
	ur_pcap_reader_close(&s->reader);
	ur_gatherer_destroy(s->gatherer);
	free(s->room);
	s->gatherer = NULL;
	s->room = NULL;
}
