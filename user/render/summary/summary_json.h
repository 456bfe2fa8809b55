/*
 * A run's summary for scripts: one JSON object. Keys are stable: they may be added, never
 * renamed or given another unit. What is unknown is null, or its object is missing.
 *
 *   version, command_line (how memscope was called, as a shell reads it), title, labels {KEY: VALUE}, start (RFC 3339, local time with offset), duration_ns, asked_ns, end, end_detail
 *   target     {kind: "processes"|"command"|"host"|"groups", processes: [{pid, ns_pid, comm, exe,
 *               cmdline}], groups: [{path, container, container_id, engine, image, pod, namespace,
 *               restarts, was_gone, gone_ns}], members, seen_processes, seen_threads}
 *   child      {exited, code, signal}; null without a command
 *   sources    {oncpu|offcpu|alloc|growth|trend: {state: "ok"|"off"|"unavailable", why}}
 *   time       {oncpu_ns, blocked_ns, runnable_ns, wall_ns, held_ns, residual_ns, machine_busy_ns, machine_idle_ns,
 *               throttled_ns}: thread time; of the CPUs it may use; held back by CPU quotas; null when
 *              unknown
 *   by_process [{pid, comm, container, ns_pid, samples, cpu_ns, blocked_ns, runnable_ns}]
 *   program_labels [{key, values, samples, blocked_ns, top: [{value, samples, blocked_ns}]}]: labels that programs set
 *               themselves; values: how many different ones; top: the three with most samples
 *   oncpu      {samples, hz, event, cpu_ns, cpu_share, few_samples, kernel_samples, probe_samples, gc_samples, jit_samples,
 *               gc: {RUNTIME: samples},
 *               top_self|top_total: [{function, module, self, total}]}
 *   offcpu     {min_ns, max_ns, left_out, left_out_ns, sampled, switches, wait_sampler_switches,
 *               stacks_sampled, reassigned, sample_gap_s, endpoints: [{name, kind: "peer"|"file", seen}],
 *               requests: {looks, waiting, held, inbound, port, left_out, failed, peers: [{name, looks, for_inbound, outstanding,
 *               age_ms, oldest_ms, answers}]}: looks at TCP connections; waiting: at which requests waited in the targets, inbound of
 *               them in all, to port; held, for_inbound: and one of theirs was outstanding that was sent since;
 *               tasks: {looks, seen, ready, changed, left_out, more, waits: [{function, line, awaits, kind, seen, looks,
 *               left, longest_ns}]}: tasks of asyncio at each look, and what they await;
 *               waits: [{function, module, comm, kernel, kind, role, pool, blocked_ns, count, idle, low_ns,
 *               high_ns}], monitors: {waits, unowned, held, owner, tid}}
 *   locks      [{pid, address, kind: "mutex"|"rwlock"|"futex"|"GIL"|"", name, place, waited_ns, waits, function, module, owner_known_ns,
 *               owners, owner, owner_name, owner_ns, held_ns, held_in, held_in_module, held_in_ns, held_caller,
 *               released_ns, released_in, released_in_module, released_in_ns, releaser}]: what threads waited for; place: where a lock
 *               without a name is, or what made its block; released_in: where those waits were ended, by the thread releaser;
 *               owner: the thread, as its process numbers it, that owned it for most of the time that is known (0: none),
 *               when the wait began; held_in: what owners did meanwhile
 *   io_waits   [{kind: "file"|"directory"|"device"|"peer"|"client"|"socket", name, device, blocked_ns, count, function, module, function_ns}]:
 *               waits in system calls that name a descriptor; client: who has connected to that port; function: where most of it was
 *   wakers     {blocked_ns, interrupts_ns, others_ns, unknown_ns, rows: [{function, module, comm, kind, idle, blocked_ns, wakeups, waker,
 *               waker_function, waker_module}]}: waits that ended, by where and by who ended them: a thread called waker; interrupts_ns,
 *               others_ns (threads that are not profiled, of the kernel too) and unknown_ns are parts of blocked_ns; null when not looked at
 *   run_queue  {delay_ns, own_threads_ns, idle_ns, other_queue_ns, unknown_ns, rows: [{pid, comm, container, ran_pid, ran_comm, ran_container,
 *               delay_ns, runs}]}: time that threads were runnable, by the process that ran on the CPU which they then got (ran_pid 0:
 *               threads of the kernel); own_threads_ns: that of their own; idle_ns: that CPU was idle; other_queue_ns: they stood in
 *               another CPU's queue; null when not looked at
 *   syscalls   {calls, calls_error, errors, time_ns, no_return, in_flight_before, in_flight, of_32bit, one_in, stacks_one_in, by_call: [{call,
 *               calls, calls_error, errors, time_ns, longest_ns, p50_ns, p99_ns, no_return, in_flight, errnos: [{errno, name, count}]}],
 *               rows: [{pid, comm, container, and the same}]}: system calls that returned; calls_error: half of a 95 % interval, where at times
 *               only one in one_in was counted; in_flight_before: had begun before the run, and are in nothing else; stacks_one_in: of short
 *               calls' stacks; null when not looked at
 *   push       [{store, spooled, pushed, pushed_bytes, retries, waiting, waiting_bytes, failing_since_ns, cpu_ns, dropped: {refused, rejected,
 *               over_limit, disk_full, damaged, not_made}}]: stores of serve --push; spooled, pushed and dropped: profiles of this run's
 *               windows, each by kind and container (large ones in parts); retries: requests made again; waiting: now, those of earlier
 *               runs too; failing_since_ns: Unix time, 0: it works; missing where nothing is pushed
 *   events     {missed_tracepoints, rows: [{event, part, profile, unit, count, samples, on_stacks, on_stacks_error, period, one_in, missed,
 *               stopped_s, function, module, function_value, why}]}: of -e; part: of a pattern, the one event that the row is of;
 *               count: exact; on_stacks: what samples stand for; missed: while another program ran; null without -e
 *   counts     [{function, profile, calls, returned, left, in_progress, lost, time_ns, outermost, outermost_ns, shortest_ns, longest_ns,
 *               p50_ns, p99_ns, counted_s, timed_s, untimed, histogram: [{from_ns, calls}]}]: of --count; left: calls that never return; outermost: of those
 *               that returned, calls not within another one of the function; counted_s, timed_s: for so long alone (0: to the end); untimed:
 *               why no call was timed; null when not looked at
 *   goroutines {processes, runtime, untested, refused, why, looks, looked, moved, unreadable, cut_stacks, one_in, now, running, system,
 *               rows: [{state, function, module, own, role, peer, now, time_ns, stops, longest_ns}]}: of Go programs, by what they wait for
 *               and where; now: at the end; time_ns: an estimate; stops: how often they stopped running, there or elsewhere; longest_ns: at least; missing without a Go program
 *   alloc      {tier: "off"|"exact"|"sampled"|"bursts"|"declined", reason, calls_per_s, cost_percent, covered_from_ns,
 *               covered_to_ns, unseen_objects_bytes, seen_live_bytes (0: nothing is unseen), objects, bytes, freed_objects, freed_bytes, live_objects,
 *               live_bytes, failed, inherited_frees, earlier_frees, untracked; sampled: sampler,
 *               rate, bytes_interval, live_interval, freed_samples, unreported; bursts: {…}, bytes_interval; both: live_peak: {bytes, low, high, at_ns, in_use};
 *               live_estimate: {known, why_not; allocators, low, high, blocks, before_bytes, objects_bytes, looks, failed_looks, look_ns,
 *               reused, unknown, caches_count};
 *               sites|live_sites: [{function, module, bytes, objects, low, high, samples}], leaks|no_leaks: [{function, module, live_bytes, bytes_s, low, high, r2, since_s, growth: "leak"|"idle"|"work"|"follows"|"fills"|"stopped"|"replaces",
 *               retained, retained_age_s, sampled_in_use, sampled_ended, sampled_age_s (estimates: blocks that reached that age), grew_bytes, work_ended, work, grows_with, bytes_per_unit, …}];
 *               exact: temporary, cross_thread_frees, lifetime_ns, peak, lifetimes, sizes, peak_sites,
 *               call_sites, temporary_sites, threads; preexisting_… (live at the end) and start_… (at the
 *               start), where pre-existing blocks are known}
 *   mappings   {file|anonymous|shared: {made, made_bytes, released_bytes, live, live_bytes}, ended_bytes, failed,
 *               untracked, sites, live_sites}; null when unknown
 *   diagnoses  [{kind, evidence}]
 *   growth     {resident|released: {file_bytes, anonymous_bytes, shared_bytes}, fork_exec_bytes, ended_bytes,
 *               on_stacks_bytes, released_on_stacks_bytes, samples, check: {processes, reported_bytes,
 *               rss_bytes}, sites, released_sites, growing: [{function, module, bytes_s, low, high, since_s}]}; null when
 *               unknown
 *   rss        {first_kb, last_kb, peak_kb}; null when unknown
 *   memory     {base_kb, last_kb, peak_kb, trend_shape, slope_kb_s, endpoint_rule, endpoint_percent}: private
 *               memory; null when unknown
 *   gc         [{runtime: "GHC"|"CPython"|"HotSpot", untested, processes, count, major_count, kinds: {NAME: count}, estimated, time_ns, time_low_ns,
 *               time_high_ns, seen_ns, looks, looks_collecting, longest_pause_ns, longest_pause_exact, live_bytes, heap_bytes, missing}]:
 *               collections of garbage since the run began, by what the runtimes count; estimated: time_ns is seen_ns by the
 *               part of the looks that found a collection under way, low and high its 95 % interval; live_bytes: after the last
 *   workload   [{name, grows_with: "short"|"steady"|"work"|"idle"|"both"|"unknown", grown_bytes, bytes_per_unit,
 *               bytes_per_unit_low, bytes_per_unit_high, idle_bytes_s, idle_bytes_s_low, idle_bytes_s_high, units,
 *               r2}]: memory against each series of work (analyse/workload.h); name and grows_with alone when
 *               there are too few points
 *   rss_breakdown {at_ns, processes, measure, rss_bytes, pss_bytes, unexplained_bytes, not_read_processes,
 *               not_read_rss_bytes, walked, not_walked, caveat, took_ns, parts: {NAME: {resident_bytes, pss_bytes,
 *               bytes, blocks, how}}, objects, containers: [{name, …, parts}]}: measure says which of RSS and PSS
 *               the parts explain; null when unknown
 *   stacks     [{source, complete, truncated, guessed, no_table, unreadable, lost}]
 *   incomplete_stacks [{module, verdict, events}]: the code in which stacks became incomplete, worst first
 *   languages  {processes, runtime, untested, unreadable, trouble, left_out, named, gone, damaged, native_events,
 *               lost_stacks, misplaced_stacks}: frames of interpreted languages; null when no runtime was found
 *   symbols    {locations, symbolized, range_only, offset_only, no_module, worst: [{module, locations, reason,
 *               debug_package}]}
 *   drops      [{name, count, help}]: every counter of loss, those at 0 too
 *   memscope   {cpu_ns, rss_kb, peak_kb, map_bytes}: what it took itself
 *   unwind     the unwind tables of the run
 *   cost       {window_ns, ns, percent, target_percent, profiled_ns, profiled_percent, limit_percent,
 *               sources: [{name, events, program_ns, trap_ns, ns, percent}]}: CPU time of the programs in the
 *               kernel and of the way to them, of all processes that ran them; percent: of one CPU; target_percent: of the target's CPU time; program_ns and
 *               trap_ns: of one event; measured in window_ns of the run, allocations in all of it
 *   service    {limit_percent, percent, costs: [{name, ns}], estimates: [{name, share, least_share, error_percent}], savings: [{name, share}]}: of `memscope serve`, all that
 *               it cost, and what it gathered in a share of the time to keep within its limit; error_percent: half of the sum's 95 % interval;
 *               savings: what was left out in a share of the time, as its process and children passed the limit by themselves
 *   dir, files: []
 *   notes      []
 *   verdict    {kind, sentence, next}
 *
 * Names are clean UTF-8: a byte that is not, and a control character, is U+FFFD.
 */
#ifndef MEMSCOPE_RENDER_SUMMARY_SUMMARY_JSON_H
#define MEMSCOPE_RENDER_SUMMARY_SUMMARY_JSON_H

#include "analyse/summary.h"
#include "base/err.h"
#include "base/sink.h"

/* -ENOMEM; errors of writing stick in the sink. */
int summary_json_write(const struct run_summary *s, struct sink *out, struct err *e);

#endif
