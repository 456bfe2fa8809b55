/* Parts of the JSON in a page (page_data.h): "<", ">" and "&" are escaped, so that nothing in it ends the element it is in. */
#ifndef MEMSCOPE_RENDER_HTML_PAGE_JSON_H
#define MEMSCOPE_RENDER_HTML_PAGE_JSON_H

#include "base/strbuf.h"
#include "render/html/page.h"

/* "key":"text"; NULL is null. */
void page_json_text(struct strbuf *out, const char *key, const char *text);
/* A member of `series`. Of long ones, stretches of rows become two points: the lowest and the highest of each column. */
void page_json_series(struct strbuf *out, const struct page_series *s, double started_s);
/* The member `marks`, of what the program of `p` marked; NULL: nothing. */
void page_json_marks(struct strbuf *out, const struct profile *p);
/* A whole document, as it is but for what is escaped. false: it is empty or not JSON, and nothing was added. */
bool page_json_document(struct strbuf *out, struct bytes json);

#endif
