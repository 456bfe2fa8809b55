/*
 * What a terminal can show.
 */
#ifndef MEMSCOPE_BASE_TERMINAL_H
#define MEMSCOPE_BASE_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Colour goes to a terminal only, and not where NO_COLOR is set and not empty (no-color.org) or TERM is
 * "dumb", empty or missing.
 */
bool terminal_takes_colour(int fd);
/* 0: it is no terminal, or does not say. */
uint32_t terminal_columns(int fd);

#endif
