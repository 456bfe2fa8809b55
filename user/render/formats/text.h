/*
 * Names on their way into a file. A name is whatever bytes a target put into its symbol table or
 * its comm; these functions make them valid UTF-8 that cannot break the format around them.
 *
 * Bytes that are not UTF-8 (RFC 3629: no overlong forms, no surrogates), control characters (C0,
 * DEL, C1), characters that change the direction of text, and code points that XML forbids all
 * become U+FFFD. The rest passes.
 */
#ifndef MEMSCOPE_RENDER_FORMATS_TEXT_H
#define MEMSCOPE_RENDER_FORMATS_TEXT_H

#include "base/strbuf.h"

#include <stdint.h>

/* Columns of a fixed-width font: wide characters take two. */
uint32_t text_columns(const char *s);

enum text_form {
	TEXT_XML,     /* escapes < > & " '                               */
	TEXT_JSON,    /* escapes " \ and, to lie inside XML, < > &       */
	TEXT_FOLDED,  /* a frame of a folded stack: `;` becomes `:`      */
	TEXT_PLAIN,   /* nothing                                         */
	TEXT_CSV,     /* between double quotes: `"` becomes `""`         */
	TEXT_DOT,     /* between double quotes: escapes " and \          */
	TEXT_MARKDOWN, /* within a line of CommonMark, behind a word of ours: escapes what could be markup */
};

/* Adds at most `max_columns` columns of `s`; a text cut short ends in "…". */
void text_add(struct strbuf *out, enum text_form form, const char *s, uint32_t max_columns);

/* A whole field of a CSV file, in quotes; what a spreadsheet would take for a formula gets a ' first. */
void text_add_csv(struct strbuf *out, const char *s);

#endif
