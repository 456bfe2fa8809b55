/* memscope record -e list: the events that are there. */
#ifndef MEMSCOPE_CMD_EVENT_LIST_H
#define MEMSCOPE_CMD_EVENT_LIST_H

#include "base/err.h"
#include "base/opt.h"

#include <stdbool.h>

/* Is "list" among the words? */
bool event_list_asked(const struct opt_list *events);
/* Prints them to stdout: a line each, what cannot be had on this machine with the reason. 0 or -errno. */
int event_list_print(struct err *e);

#endif
