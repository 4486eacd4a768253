/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap annotate: a copy of a capture with findings as comments of packets, which Wireshark shows. */
#include <errno.h>
#include <string.h>

#include "apps/uroce/cli/cmd.h"
#include "apps/uroce/cli/outfile.h"
#include "apps/uroce/pcap/file/source.h"
#include "apps/uroce/pcap/read/read.h"

static int annotate(const struct ur_pcap_file *f, const char *to)
{
	struct ur_pcap_copy c = {0};
	FILE *in = ur_pcap_stream(f->name, NULL, &c.fault);
	struct ur_outfile out;
	int rc;

	if (!in)
		return ur_cmd_fail(UR_EXIT_USAGE, "cannot read %s: %s", f->name, strerror(errno));
	if (!ur_outfile_open(&out, to, true)) {
		fclose(in);
		return UR_EXIT_FAIL;
	}
	ur_pcap_put_comments(in, out.f, f, &c);
	fclose(in);
	if (!ur_outfile_close(&out, true))
		return UR_EXIT_FAIL;
	if (c.wrong)
		rc = ur_cmd_fail(UR_EXIT_USAGE, "%s cannot be read after frame %u: %s", f->name, c.frames, c.wrong);
	else
		rc = ur_pcap_status(f->name, &f->end, 0);
	fprintf(strcmp(to, "-") == 0 ? stderr : stdout, "%s: %u frame%s, %llu comment%s\n", to, c.frames, ur_plural(c.frames),
		(unsigned long long)c.comments, ur_plural(c.comments));
	return rc;
}

static const struct ur_example examples[] = {
	{"uroce pcap annotate ping.pcapng notes.pcapng", "A copy for Wireshark, with the findings as comments."},
	{"uroce pcap annotate ping.pcapng - | wireshark -k -i -", "In Wireshark at once, without a file."},
	{0},
};

static int run_pcap_annotate(int argc, char **argv)
{
	struct ur_pcap_file f;
	int rc = UR_EXIT_USAGE;

	(void)argc;
	if (strcmp(argv[0], "-") == 0)
		return ur_cmd_fail(rc, "annotate reads its input twice: save it in a file first");
	if (ur_outfile_is(argv[0], argv[1]))
		return ur_cmd_fail(rc, "%s and %s are the same file: write the copy elsewhere", argv[0], argv[1]);
	if (ur_pcap_open(&f, argv[0]))
		rc = annotate(&f, argv[1]);
	ur_pcap_close(&f);
	return rc;
}

const struct ur_command ur_pcap_annotate = {
	.name = "annotate",
	.operands = "IN OUT",
	.complete = UR_COMPLETE_FILE,
	.summary = "write a copy with findings as comments, which Wireshark shows",
	.text = "OUT is pcapng. Every finding is a comment of its packet there; Wireshark's display filter is `frame.comment`. Blocks of a "
		"pcapng file are copied as they are. IN is read twice, so it cannot be standard input.\n\n"
		"With the plugin `uroce.lua`, which is installed for Wireshark, findings stand in the packet list, too, and `uroce.rule`, "
		"`uroce.severity` and `uroce.finding` are fields of display filters.",
	.status = "0; 1 when OUT cannot be written, " UR_PCAP_STATUS_UNREADABLE,
	.examples = examples,
	.run = run_pcap_annotate,
};
