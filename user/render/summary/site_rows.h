/*
 * Tables of sites (analyse/sites.h) that several sections of the summary show.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_SITE_ROWS_H
#define MEMSCOPE_RENDER_SUMMARY_SITE_ROWS_H

#include "analyse/sites.h"
#include "base/sink.h"
#include "render/json_doc.h"

#include <stdint.h>

/* "[unknown]" where the site has no function. */
const char *site_name(const struct site_row *row);
/* Where no function of the program is on the stack, the kernel's says more than nothing. */
const char *site_name_or_leaf(const struct site_row *row);

/* Bytes, counts (headed `what`) and shares of `whole`; nothing when there are no rows. */
void site_rows_text(struct sink *out, const char *what, const char *title,
		    const struct site_row *rows, uint32_t n, uint64_t whole,
		    const char *(*name)(const struct site_row *row));
/* [{function, module, bytes, objects, low, high, samples}]; the last three only of estimates. */
void site_rows_json(struct json_doc *d, cJSON *in, const char *key, const struct site_row *rows,
		    uint32_t n);

#endif
