#include "render/summary/sections.h"

#include <stddef.h>

/* clang-format off */
const struct summary_section summary_sections[] = {
	/* name, all of it, its brief form, lines of that, with a table?, tone, JSON */
	{ "target", section_target_text, section_target_brief, 3, false, NULL, section_target_json },
	{ "verdict", section_verdict_text, section_verdict_brief, 5, false, section_verdict_tone, section_verdict_json },
	{ "next", section_next_text, section_next_brief, 4, false, NULL, NULL },
	{ "diagnoses", section_diagnoses_text, section_diagnoses_brief, 3, false, NULL, section_diagnoses_json },
	{ "time", section_time_text, section_time_brief, 3, false, NULL, section_time_json },
	{ "processes", section_processes_text, section_processes_brief, 1, true, NULL, section_processes_json },
	{ "oncpu", section_oncpu_text, section_oncpu_brief, 8, false, NULL, section_oncpu_json },
	{ "labels", section_labels_text, NULL, 0, false, NULL, section_labels_json },
	{ "waits", section_waits_text, section_waits_brief, 2, true, NULL, section_waits_json },
	{ "io_waits", section_io_waits_text, NULL, 0, false, NULL, section_io_waits_json },
	{ "locks", section_locks_text, NULL, 0, false, NULL, section_locks_json },
	{ "wakers", section_wakers_text, NULL, 0, false, NULL, section_wakers_json },
	{ "run_queue", section_run_delays_text, NULL, 0, false, NULL, section_run_delays_json },
	{ "syscalls", section_syscalls_text, NULL, 0, false, NULL, section_syscalls_json },
	{ "events", section_events_text, section_events_brief, 6, true, NULL, section_events_json },
	{ "counts", section_counts_text, section_counts_brief, 1, true, NULL, section_counts_json },
	{ "goroutines", section_goroutines_text, section_goroutines_brief, 1, true, NULL, section_goroutines_json },
	{ "memory", section_memory_text, section_memory_brief, 3, false, NULL, section_memory_json },
	{ "gc", section_gc_text, NULL, 0, false, NULL, section_gc_json },
	{ "rss_breakdown", section_rss_breakdown_text, NULL, 0, false, NULL, section_rss_breakdown_json },
	{ "alloc", section_alloc_text, section_alloc_brief, 3, true, NULL, section_alloc_json },
	{ "mappings", section_mappings_text, NULL, 0, false, NULL, section_mappings_json },
	{ "growth", section_growth_text, NULL, 0, false, NULL, section_growth_json },
	{ "sources", section_sources_text, section_sources_brief, 2, false, section_sources_tone, section_sources_json },
	{ "stacks", section_stacks_text, NULL, 0, false, NULL, section_stacks_json },
	{ "languages", section_langs_text, section_langs_brief, 1, false, NULL, section_langs_json },
	{ "symbols", section_symbols_text, NULL, 0, false, NULL, section_symbols_json },
	{ "losses", section_losses_text, section_losses_brief, 3, false, section_losses_tone, section_losses_json },
	{ "unwinding", section_unwinding_text, NULL, 0, false, NULL, section_unwinding_json },
	{ "notes", section_notes_text, section_notes_brief, 2, false, NULL, section_notes_json },
	{ "push", section_push_text, NULL, 0, false, NULL, section_push_json },
	{ "cost", section_cost_text, section_cost_brief, 2, false, NULL, section_cost_json },
	{ "files", section_files_text, section_files_brief, 3, false, NULL, section_files_json },
	{ "last", section_last_text, section_last_brief, 4, false, section_last_tone, NULL },
	{ 0 },
};
/* clang-format on */
