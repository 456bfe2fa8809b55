/*
 * What a terminal can show.
 */
#ifndef MEMSCOPE_BASE_TERMINAL_H
#define MEMSCOPE_BASE_TERMINAL_H

#include <stdbool.h>

/*
 * Colour goes to a terminal only, and not where NO_COLOR is set and not empty (no-color.org) or TERM is
 * "dumb", empty or missing.
 */
bool terminal_takes_colour(int fd);

#endif
