/*
 * A run's summary for scripts: one JSON object. Keys are stable: they may be added, never
 * renamed or given another unit. What is unknown is null, or its object is missing.
 *
 *   version, start (RFC 3339, local time with offset), duration_ns, end, end_detail
 *   target     {kind: "processes"|"command"|"host"|"groups", processes: [{pid, ns_pid, comm, exe,
 *               cmdline}], groups: [{path, container, container_id, engine, image, restarts, was_gone,
 *               gone_ns}], members, seen_processes, seen_threads}
 *   child      {exited, code, signal}; null without a command
 *   sources    {oncpu|offcpu|alloc|growth|trend: {state: "ok"|"off"|"unavailable", why}}
 *   time       {oncpu_ns, blocked_ns, runnable_ns, wall_ns, held_ns, residual_ns}: thread time; null when
 *              unknown
 *   by_process [{pid, comm, container, ns_pid, samples, cpu_ns, blocked_ns, runnable_ns}]
 *   oncpu      {samples, hz, event, cpu_ns, cpu_share, few_samples, kernel_samples, probe_samples,
 *               top_self|top_total: [{function, module, self, total}]}
 *   offcpu     {min_ns, max_ns, left_out, left_out_ns, sampled, switches, busy_switches, looks, moved,
 *               look_gap_s, waits: [{function, module, comm, kernel, kind, blocked_ns, count, idle, low_ns,
 *               high_ns}]}
 *   alloc      {tier: "off"|"exact"|"sampled"|"slices"|"declined", reason, calls_per_s, cost_percent, covered_from_ns,
 *               covered_to_ns, objects, bytes, freed_objects, freed_bytes, live_objects,
 *               live_bytes, failed, inherited_frees, earlier_frees, untracked; sampled: sampler,
 *               rate, bytes_interval, live_interval, freed_samples, untold; slices: {…}, bytes_interval;
 *               sites|live_sites: [{function, module, bytes, objects, low, high, samples}], leaks: [];
 *               exact: temporary, cross_thread_frees, lifetime_ns, peak, lifetimes, sizes, peak_sites,
 *               call_sites, temporary_sites, threads; before_… and start_…, where blocks of before the run
 *               are known; mappings: {file|anonymous|shared: {}, sites, live_sites, …} or null}
 *   diagnoses  [{kind, evidence}]
 *   growth     {resident|returned: {file_bytes, anonymous_bytes, shared_bytes}, made_bytes, ended_bytes,
 *               on_stacks_bytes, returned_on_stacks_bytes, samples, check, sites, returned_sites}; null
 *               when unknown
 *   rss        {first_kb, last_kb, peak_kb}; null when unknown
 *   memory     {base_kb, last_kb, peak_kb, course, slope_kb_s, plain, plain_percent; ledger: {at_ns,
 *               processes, rss_bytes, not_explained_bytes, walked, not_walked, doubt, took_ns, parts: {},
 *               objects}}; null when unknown
 *   stacks     [{source, complete, truncated, guessed, no_table, unreadable, lost}]
 *   gaps       [{module, verdict, events}]: code in which stacks came to be not complete, worst first
 *   symbols    {locations, named, ranges, offset_only, no_module, worst: [{module, locations, reason,
 *               debug_package}]}
 *   drops      [{name, count, help}]: every counter of loss, those at 0 too
 *   sideband_lost
 *   own        {cpu_ns, rss_kb, peak_kb, map_bytes}: of memscope itself
 *   unwind     the unwind tables of the run
 *   cost       {window_ns, ns, percent, target_percent, profiled_ns, profiled_percent, limit_percent,
 *               sources: [{name, events, program_ns, trap_ns, ns, percent}]}: CPU time of the programs in the kernel and of the way to them, of all who
 *               ran them; percent: of one CPU; target_percent: of the target's CPU time; program_ns and
 *               trap_ns: of one event; measured in window_ns of the run, allocations in all of it
 *   dir, files: []
 *   notes      []
 *   verdict    {kind, sentence, next}
 *
 * Names are clean UTF-8: a byte that is not, and a control character, is U+FFFD.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_JSON_H
#define MEMSCOPE_RENDER_SUMMARY_JSON_H

#include "analyse/summary.h"
#include "base/err.h"
#include "base/sink.h"

/* -ENOMEM; errors of writing stick in the sink. */
int summary_json_write(const struct run_summary *s, struct sink *out, struct err *e);

#endif
