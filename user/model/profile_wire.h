/*
 * A profile with its dict as bytes, between memscope and a cell that reads others' files (base/cells.h): everything that a reader can
 * find, which no file format has together: errors, times, rows, figures and marks over time.
 *
 * All numbers as in memory, of one machine. Reading checks each: a text is as long as what is left, an id is of something that came
 * before. What is read is interned into a dict that may have much in it already.
 */
#ifndef MEMSCOPE_MODEL_PROFILE_WIRE_H
#define MEMSCOPE_MODEL_PROFILE_WIRE_H

#include "base/bytes.h"
#include "base/strbuf.h"
#include "model/profile.h"

/* Behind what is in `out` (strbuf_oom() tells at the end). */
void profile_wire_write(const struct profile *p, struct strbuf *out);

/* Takes one from the front of `b`. -EBADMSG: it does not add up; -ENOMEM. */
int profile_wire_read(struct dict *d, struct bytes *b, struct profile **ret_profile);

#endif
