/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/uroce/cli/screen.h"

#include <stdio.h>

static SCREEN *terminal;

bool ur_screen_open(void)
{
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return false;
	cbreak();
	noecho();
	keypad(stdscr, true);
	curs_set(0);
	set_escdelay(25);
	return true;
}

void ur_screen_close(void)
{
	endwin();
	delscreen(terminal);
}

void ur_screen_draw(int y, const char *text, attr_t attr)
{
	move(y, 0);
	clrtoeol();
	attrset(attr);
	addnstr(text, COLS);
	if (attr & A_REVERSE)
		for (int x = getcurx(stdscr); x < COLS && getcury(stdscr) == y && x; x++)
			addch(' ');
	attrset(A_NORMAL);
}
