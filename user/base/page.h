/*
 * A page of help as plain text, for a terminal and for man(1): both from one source.
 *
 *	a line that says what the page is about
 *
 *	# A heading
 *	A paragraph, with `words to type` in it. Lines are joined and wrapped again.
 *	    four spaces: as it stands
 *	- an item of a list
 *	= a term
 *	and what it means
 *
 * An empty line ends what is being joined. Nothing else is special.
 */
#ifndef MEMSCOPE_BASE_PAGE_H
#define MEMSCOPE_BASE_PAGE_H

#include <stdbool.h>
#include <stdio.h>

/* The first line, as a string of `len` bytes that is not terminated. */
const char *page_summary(const char *text, int *ret_len);

/* For a terminal of `width` columns (40 at least); `bold`: headings and words to type stand out. */
void page_print_text(const char *text, FILE *f, int width, bool bold);

/* As memscope-NAME(7). */
void page_print_man(const char *name, const char *text, FILE *f);

#endif
