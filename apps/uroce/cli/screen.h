/* SPDX-License-Identifier: BSD-3-Clause */
/* The terminal as a screen, which ncurses draws: what `uroce top` and `uroce between --live` share. */
#ifndef UR_SCREEN_H
#define UR_SCREEN_H

#include <curses.h>
#include <stdbool.h>

/* False when the terminal cannot be a screen. Keys come one by one and are not shown. */
bool ur_screen_open(void);
void ur_screen_close(void);
/* A line, and nothing else in it; one that is reversed goes from side to side. */
void ur_screen_draw(int y, const char *text, attr_t attr);

#endif
