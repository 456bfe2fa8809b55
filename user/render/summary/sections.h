/*
 * The parts of a run's summary, one file each. summary_text.c and summary_json.c go through
 * summary_sections in its order, which is the order of the text.
 *
 * A new section: a file with its functions, their prototypes below, its row in sections.c, and its keys in the
 * comment of summary_json.h. It reads what a component's report() put into struct run_summary
 * (analyse/summary.h). What is not known is not shown by text, and null or missing in JSON.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_SECTIONS_H
#define MEMSCOPE_RENDER_SUMMARY_SECTIONS_H

#include "analyse/summary.h"
#include "base/sink.h"
#include "render/json_doc.h"

/* How a terminal shows a section: what is not plain is what a reader must not miss. */
enum summary_tone { TONE_PLAIN, TONE_STRONG, TONE_WARNING };

/* Begins the line above a table's rows in a brief form: it is not shown itself, and the line not without a row. */
#define SUMMARY_HEADING "\001"

struct summary_section {
	const char *name;
	/* All of it: an empty line before it where it has a label. */
	void (*text)(const struct run_summary *s, struct sink *out);
	/* What of it is on the first screen; `rows`: of a table at most. NULL: not there. */
	void (*brief)(const struct run_summary *s, uint32_t rows, struct sink *out);
	uint32_t lines;           /* of the first screen at most …            */
	bool table;               /* … and `rows` more                        */
	/* NULL: always plain. */
	enum summary_tone (*tone)(const struct run_summary *s);
	/* Adds its members to the object of the whole. NULL: none. */
	void (*json)(struct json_doc *d, cJSON *root, const struct run_summary *s);
};

/* Ends with a row without a name. */
extern const struct summary_section summary_sections[];

void section_target_text(const struct run_summary *s, struct sink *out);
void section_target_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_target_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_verdict_text(const struct run_summary *s, struct sink *out);
void section_verdict_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
enum summary_tone section_verdict_tone(const struct run_summary *s);
void section_verdict_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_next_text(const struct run_summary *s, struct sink *out);
void section_next_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_diagnoses_text(const struct run_summary *s, struct sink *out);
void section_diagnoses_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_diagnoses_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_time_text(const struct run_summary *s, struct sink *out);
void section_time_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_time_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_processes_text(const struct run_summary *s, struct sink *out);
void section_processes_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_processes_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_oncpu_text(const struct run_summary *s, struct sink *out);
void section_oncpu_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_oncpu_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_waits_text(const struct run_summary *s, struct sink *out);
void section_waits_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_waits_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_labels_text(const struct run_summary *s, struct sink *out);
void section_labels_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_locks_text(const struct run_summary *s, struct sink *out);
void section_locks_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_run_delays_text(const struct run_summary *s, struct sink *out);
void section_run_delays_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_io_waits_text(const struct run_summary *s, struct sink *out);
void section_io_waits_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_syscalls_text(const struct run_summary *s, struct sink *out);
void section_syscalls_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_push_text(const struct run_summary *s, struct sink *out);
void section_push_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_events_text(const struct run_summary *s, struct sink *out);
void section_events_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_events_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_counts_text(const struct run_summary *s, struct sink *out);
void section_counts_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_counts_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_wakers_text(const struct run_summary *s, struct sink *out);
void section_wakers_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_goroutines_text(const struct run_summary *s, struct sink *out);
void section_goroutines_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_goroutines_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_memory_text(const struct run_summary *s, struct sink *out);
void section_memory_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_memory_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_rss_breakdown_text(const struct run_summary *s, struct sink *out);
void section_rss_breakdown_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_alloc_text(const struct run_summary *s, struct sink *out);
void section_alloc_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_alloc_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_mappings_text(const struct run_summary *s, struct sink *out);
void section_mappings_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_gc_text(const struct run_summary *s, struct sink *out);
void section_gc_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_growth_text(const struct run_summary *s, struct sink *out);
void section_growth_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_sources_text(const struct run_summary *s, struct sink *out);
void section_sources_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
enum summary_tone section_sources_tone(const struct run_summary *s);
void section_sources_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_stacks_text(const struct run_summary *s, struct sink *out);
void section_stacks_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_langs_text(const struct run_summary *s, struct sink *out);
void section_langs_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_langs_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_symbols_text(const struct run_summary *s, struct sink *out);
void section_symbols_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_losses_text(const struct run_summary *s, struct sink *out);
void section_losses_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
enum summary_tone section_losses_tone(const struct run_summary *s);
void section_losses_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_unwinding_text(const struct run_summary *s, struct sink *out);
void section_unwinding_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_notes_text(const struct run_summary *s, struct sink *out);
void section_notes_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_notes_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_cost_text(const struct run_summary *s, struct sink *out);
void section_cost_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_cost_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_files_text(const struct run_summary *s, struct sink *out);
void section_files_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
void section_files_json(struct json_doc *d, cJSON *root, const struct run_summary *s);
void section_last_text(const struct run_summary *s, struct sink *out);
void section_last_brief(const struct run_summary *s, uint32_t rows, struct sink *out);
enum summary_tone section_last_tone(const struct run_summary *s);

#endif
