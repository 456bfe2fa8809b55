/* A line of a source file on its way into a report: tabs as far as the next column of eight, the rest as text.h says. */
#ifndef MEMSCOPE_RENDER_FORMATS_SOURCE_LINE_H
#define MEMSCOPE_RENDER_FORMATS_SOURCE_LINE_H

#include "render/formats/text.h"

enum { SOURCE_LINE_COLUMNS = 240 }; /* longer ones are cut */

void source_line_add(struct strbuf *out, enum text_form form, const char *line);

#endif
