/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading ends when the user says so. */
#include <signal.h>

#include "apps/uroce/pcap/file/source.h"

static volatile sig_atomic_t interrupted;

static void interrupt(int number)
{
	interrupted = number;
}

void ur_pcap_until_interrupted(void)
{
	/* Reading is not taken up again; and a second signal ends the process. */
	const struct sigaction act = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND};

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

bool ur_pcap_interrupted(void)
{
	return interrupted;
}
