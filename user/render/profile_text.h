/* A profile's functions, largest first, as text and as JSON. */
#ifndef MEMSCOPE_RENDER_PROFILE_TEXT_H
#define MEMSCOPE_RENDER_PROFILE_TEXT_H

#include "base/err.h"
#include "base/sink.h"
#include "model/profile.h"

/* `type`: index of the value type, -1 to choose (shown.h); at most `rows` functions a table. */
int profile_text_write(const struct profile *p, int type, uint32_t rows, struct sink *out,
		       struct err *e);
/*
 * {"type", "unit", "total", "samples", "duration_ns", "by_self": [{"function", "module", "self",
 * "total"}, …], "by_total": […]}
 */
int profile_json_write(const struct profile *p, int type, uint32_t rows, struct sink *out,
		       struct err *e);

#endif
