/*
 * The view of a heap: answers of memscope heap, one page behind the other. A child has the copy of the heap and answers
 * lines ("census type", "retainers type:Session"), each by a JSON document that says what its columns are
 * (answer_describe()), so any question can be shown here.
 */
#ifndef MEMSCOPE_SCREEN_HEAP_H
#define MEMSCOPE_SCREEN_HEAP_H

#include "base/err.h"
#include "screen/view.h"

/* `title`: whose. -errno with a sentence. */
int heap_screen_new(int (*work)(void *ctx, int in, int out), void *ctx, const char *title, struct view **ret_view,
		    struct err *e);

/* --- for tests: without a child --- */

struct view *heap_screen_of(const char *title);
/* An answer has come to what was asked. -EBADMSG: it is none. */
int heap_screen_take(struct view *v, const char *question, const char *json, size_t bytes);

#endif
