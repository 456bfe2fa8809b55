/*
 * The parts of the summary's JSON that are about memory; their keys are in summary_json.h.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_JSON_MEMORY_H
#define MEMSCOPE_RENDER_SUMMARY_JSON_MEMORY_H

#include "analyse/summary.h"
#include "render/json_doc.h"

void summary_json_alloc(struct json_doc *d, cJSON *root, const struct summary_alloc *a);
void summary_json_growth(struct json_doc *d, cJSON *root, const struct summary_growth *g);
/* The ledger, and how much the process took over time. */
void summary_json_memory(struct json_doc *d, cJSON *root, const struct run_summary *s);

#endif
