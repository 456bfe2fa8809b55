/* The page of keys: made from key_rows, for the view that it is asked from. */
#ifndef MEMSCOPE_SCREEN_HELP_H
#define MEMSCOPE_SCREEN_HELP_H

#include "screen/view.h"

/* NULL when out of memory. */
struct view *help_new(const struct view *of);

#endif
