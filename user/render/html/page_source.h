/* Source lines and instructions, as page_data.h has them. */
#ifndef MEMSCOPE_RENDER_HTML_PAGE_SOURCE_H
#define MEMSCOPE_RENDER_HTML_PAGE_SOURCE_H

#include "base/strbuf.h"
#include "render/html/page.h"
#include "render/html/page_profile.h"

enum {
	PAGE_SOURCE_BYTES = 2 << 20, /* of the JSON, before it is compressed to about a sixth */
	PAGE_SOURCE_LINES = 8,       /* around a line with cost                              */
	PAGE_SOURCE_CODE = 24,       /* instructions around one with cost                    */
};

/* An instruction in the page: their order there is that of their numbers. */
struct page_instruction {
	uint32_t code, instruction; /* of code_sources, and of its code_text, from 0 */
};

struct page_instructions {
	struct page_instruction *at; /* by code and instruction */
	uint32_t n;
};
void page_instructions_fini(struct page_instructions *list);

/* Element "source". *ret_shown: the instructions that are in it. 0 or -ENOMEM. */
int page_source_json(const struct page_run *run, struct strbuf *out, struct page_instructions *ret_shown);

/* Element "source-ID" of one of the run's profiles: `rows` are those of page_profile_encode(). 0 or -ENOMEM. */
int page_source_rows(const struct page_run *run, const struct page_profile *pp, const struct page_row *rows,
		     const struct page_instructions *shown, struct strbuf *out);

#endif
