/* SPDX-License-Identifier: BSD-3-Clause */
/* uroce pcap plot: plot.c chooses and collects, svg.c and text.c draw. */
#ifndef UR_PLOT_DRAW_H
#define UR_PLOT_DRAW_H

#include <stdio.h>

#include "analyze/view/plot.h"
#include "base/psn.h"

struct ur_plot_picture {
	const char *file;
	uint8_t service;
	struct ur_an_half half;
	const struct ur_plot *p;
};

/* "RC requests of 10.0.0.1 to QP 0x11 of 10.0.0.2". */
void ur_plot_title(const struct ur_plot_picture *d, char to[200]);
/* Whether it happened to these requests: a QPN that is used again has another connection, with frames of its own. */
bool ur_plot_is_of(const struct ur_an_half *h, const struct ur_an_event *e);
/* The PSN of a value that is counted on beyond 24 bits. */
static inline uint32_t ur_plot_psn(uint64_t v)
{
	return (uint32_t)v & UR_PSN_MASK;
}
/* Bits each second, of an interval. */
double ur_plot_rate(const struct ur_bins *b, uint64_t bytes);
/* 1, 2 or 5 times a power of ten: at most `n` of them in `span`. */
double ur_plot_step(double span, unsigned n);
/* A value of an axis as text: bit/s, a number, a time in ns. */
void ur_plot_label_rate(double v, char to[24]);
void ur_plot_label_count(double v, char to[24]);
void ur_plot_label_time(double v, char to[24]);

void ur_plot_draw_svg(const struct ur_plot_picture *d, FILE *out);
void ur_plot_draw_text(const struct ur_plot_picture *d, FILE *out);

#endif
