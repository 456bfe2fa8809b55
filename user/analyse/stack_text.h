/*
 * A stack as lines of a log, in the form of strace -k, the innermost frame first:
 *
 *    > /usr/lib/x86_64-linux-gnu/libc.so.6(__openat) [0xf7104]     an image, a function, an address in the image
 *    > /usr/bin/busy() [0x1234]                                    a function without a name
 *    > worker.py:12(handle)                                        a function of a language
 *    > (incomplete: no table)                                      where it was not walked to its end, and why
 */
#ifndef MEMSCOPE_ANALYSE_STACK_TEXT_H
#define MEMSCOPE_ANALYSE_STACK_TEXT_H

#include "base/strbuf.h"
#include "model/dict.h"
#include "model/source.h"

/* Appends it: printable characters alone. Its locations have their names. */
void stack_text_put(const struct dict *d, stack_id stack, enum stack_verdict verdict,
		    struct strbuf *out);
/*
 * Appends the same as keys of a JSON object, with a comma before the first: "stack", an array of objects with "function" ("": no name),
 * "module" and "address" or "file" and "line"; "stack_incomplete", the reason, where there is one.
 */
void stack_text_json(const struct dict *d, stack_id stack, enum stack_verdict verdict,
		     struct strbuf *out);

#endif
