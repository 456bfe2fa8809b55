/* The strings of an element of the page, numbered as they come: page_data.h's n_strings and what follows it. */
#ifndef MEMSCOPE_RENDER_HTML_PAGE_NAMES_H
#define MEMSCOPE_RENDER_HTML_PAGE_NAMES_H

#include "base/strbuf.h"

#include <stdbool.h>
#include <stdint.h>

struct page_name;

/* Begins zeroed. */
struct page_names {
	struct page_name *by_text;
	struct strbuf bytes; /* of all, as packed_name() writes them */
	uint32_t n;
	bool oom;
};

/* By the bytes: modules are parts of paths, which have no id. 0 where memory is out, which sticks in `oom`. */
uint32_t page_name_number(struct page_names *names, const char *text);
void page_names_fini(struct page_names *names);

#endif
