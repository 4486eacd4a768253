/* SPDX-License-Identifier: BSD-3-Clause */
/* Titles, labels and steps of axes. */
#include <stdio.h>

#include "apps/uroce/pcap/plot/plot.h"
#include "apps/uroce/pcap/read/read.h"
#include "wire/frame.h"

void ur_plot_title(const struct ur_plot_picture *d, char to[200])
{
	char a[UR_IP_TEXT], b[UR_IP_TEXT];

	snprintf(to, 200, "%s requests of %s to QP 0x%x of %s", ur_pcap_service(d->service), ur_gid_ip(&d->half.from, a), d->half.dqpn,
		 ur_gid_ip(&d->half.to, b));
}

double ur_plot_rate(const struct ur_bins *b, uint64_t bytes)
{
	return (double)bytes * 8e9 / (double)(b->width ? b->width : 1);
}

double ur_plot_step(double span, unsigned n)
{
	double step = 1;

	while (span / step > n)
		step *= 10;
	if (span / (step / 5) <= n && step > 1)
		return step / 5;
	if (span / (step / 2) <= n && step > 1)
		return step / 2;
	return step;
}

void ur_plot_label_rate(double v, char to[24])
{
	ur_pcap_amount((uint64_t)v, "bit/s", to);
}

void ur_plot_label_count(double v, char to[24])
{
	snprintf(to, 24, "%.0f", v);
}

void ur_plot_label_time(double v, char to[24])
{
	ur_pcap_time((uint64_t)v, to);
}
