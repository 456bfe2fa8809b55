/* The view of all processes and containers, from which one is chosen. */
#ifndef MEMSCOPE_SCREEN_PICKER_H
#define MEMSCOPE_SCREEN_PICKER_H

#include "base/err.h"
#include "screen/processes.h"
#include "screen/view.h"

/* `delay_s`: between readings of /proc. With `wait`, runtimes are found before a row is shown, not beside it. */
int picker_new(double delay_s, bool wait, struct view **ret_view, struct err *e);

/* --- for tests: rows of processes that were read elsewhere; borrowed --- */

/* Without a reader: tick() does nothing. */
struct view *picker_of(struct processes *p);

#endif
