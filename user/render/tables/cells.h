/*
 * Text in columns, counted in characters and not in bytes, and made harmless for a terminal: names are
 * other people's bytes.
 */
#ifndef MEMSCOPE_RENDER_TABLES_CELLS_H
#define MEMSCOPE_RENDER_TABLES_CELLS_H

#include "base/sink.h"

#include <stdbool.h>
#include <stddef.h>

#define CELLS_WIDTH       98 /* of a line                       */
#define CELLS_LABEL_WIDTH 16 /* of the words at the left edge   */

void cells_spaces(struct sink *out, size_t n);
/*
 * A column: `text` at its right or left edge. Columns never touch: two spaces at least stand before
 * text at the right edge and behind text at the left edge, and a text that is too long for that makes its
 * column wider.
 */
void cells_right(struct sink *out, const char *text, size_t width);
void cells_left(struct sink *out, const char *text, size_t width);
/* A name, shortened where it is too long; `pad`: filled up to `width`. */
void cells_name(struct sink *out, const char *name, size_t width, bool pad);
/* A function and its image, to the end of the line. */
void cells_in_image(struct sink *out, const char *name, size_t name_width, const char *module,
		    size_t module_width);
/* A sentence, broken between words, its lines indented. Names in it are cleaned. */
void cells_wrapped(struct sink *out, const char *text, size_t indent, bool hang);
/* A word at the left edge; what follows on the line begins in one column for all of them. */
void cells_line(struct sink *out, const char *label);
/* The same behind an empty line; and with a sentence beside it. */
void cells_label(struct sink *out, const char *label);
void cells_labelled(struct sink *out, const char *label, const char *sentence);

#endif
