/*
 * The data inside report.html: what page.c writes and assets/report/data.js reads.
 *
 * <script type="application/json" id="run">: one JSON object, every "<" written as \u003c
 *
 *   title       what was profiled, text
 *   memscope    version
 *   started     Unix time in seconds, with a fraction; 0: not known
 *   seconds     duration; 0: not known
 *   bin_seconds, n_bins   width and number of the time bins that samples are counted in; 0: they have no times
 *   profiles    [{id: "oncpu", source: "on-CPU", title, types: [{name, unit}], shown_type, fineness: how many
 *               of the bins in which its times are make one of the page's, estimates,
 *               estimate: how values were estimated, text or null, total, low, high: of the shown type, and its 95 % interval
 *               (on a CPU there is none: all is all), data: id of its element below}]
 *   series      [{id, title, times: [seconds since `started`], columns: [{name, unit, values: [number or null],
 *               stats: {integral, mean, deviation, intercept, slope, slope_low, slope_high, r2, first, last}}],
 *               rows_per_point: 1, or how many rows of the file the pair of points stands for that begins each stretch
 *               (lowest and highest)}]; id is the file without its ending: trend, workload, alloc_series, live_series,
 *               census, rss_breakdown. workload has one column a name, null where that name has no value
 *   details     [{profile: id, type: index, sites, bursts, kinds, kind_names, roles, data: id of its element}]: statistics of each site over time;
 *               sites: how many there are, of which the element may have the largest only; bursts: their intervals err
 *               together; kinds, kind_names, roles: of waits, what PAGE_DETAIL_WAIT and _ROLE count, kinds as text and as in summary.json;
 *               else []
 *   moments     [{profile: id, type: index, function, module, wait: kind or null, from, to, seconds, value, share}]: functions
 *               of which most came in a short time, or that began late, what stands out most first (page_moments.h)
 *   source      null, or {data: id of its element, rows: {profile: id of its element}, no_source: files were left out on request}
 *   marks       {omitted: how many more there are, all: [{at: seconds since `started`, text, message}]}: moments that the program
 *               marked itself, by time; message: true of what it logs, false of what begins a phase (model/over_time.h)
 *   summary     summary.json as it is; null: there is none
 *   charts      is uPlot in the page?
 *
 * Of a comparison (memscope diff -o FILE.html) that object is
 *
 *   title, memscope, charts   as above
 *   sides       before and after, each {name, runs: [objects as above]}. The ids of their elements begin with the side's letter and the
 *               run's number: "profile-a1-oncpu", "profile-b2-oncpu". All have the same bin_seconds
 *   comparison  {scalars: as `memscope diff --json` has them, profiles: [{id, types: [{the members that it has of a profile, but no rows;
 *               factors: of each side's runs, what their values are multiplied by to be compared, before the mean over runs; functions:
 *               id of an element with rows by function, n_functions: how many there are, of which it may have those that changed most only;
 *               stacks, n_stacks: the same by stack, of the type to show first}]}], scaled: absolute, totals or seconds, unasked: seconds
 *               because durations differ, least: the least change as a part of the total, same_work: programs ended by themselves}
 *
 * id="rows-…": base64 of raw deflate of the JSON that diff --json has of a profile.
 *
 * <script type="application/octet-stream" id="profile-oncpu">: base64 of raw deflate of the bytes below. Every number is
 * an unsigned LEB128 varint unless said; z(x) is zigzag, then varint. A column is all its values, one after another.
 *
 *   version     1
 *   n_strings   then each: length in bytes, UTF-8 (what is not UTF-8, a control character or one that changes the direction
 *               of text is U+FFFD). String 0 is ""
 *   n_frames    then columns name (string), module (string), file (string), line (0: none), kind: enum page_frame_kind
 *   n_nodes     nodes 1 … n of the tree of stacks; node 0 is the root of all and not written. Columns: parent (own number -
 *               parent's, so >= 1), frame. Parents come before their children
 *   n_sets      label sets: columns pid, tid, comm (string), thread (string), container (string); 0 or "": none
 *   n_samples   columns node (z of the difference to the sample before), set, and for each value type its values (z).
 *               Samples of one node follow each other
 *   n_timed     how many value types have times; for each: its index, then for each sample k and k pairs (difference to
 *               the bin before; the first: its number; value (z))
 *
 * id="detail-alloc": the same packing, of statistics by site (analyse/site_stats.h) of values a second:
 *
 *   version     PAGE_DETAIL_VERSION
 *   n_strings   then each, as above
 *   n_rows      sites, largest integral first. A site is a stack of functions (name, module and kind of frames), whatever
 *               their lines and its label sets: by the first node of the profile that has it
 *   columns     node; function and module (strings) that the value belongs to where that is not the leaf (analyse/sites.h),
 *               ""; then as 32-bit floats, little-endian, each column whole: enum page_detail_column
 *
 * id="source-": base64 of raw deflate of JSON, what sources_read() found, of each function the largest self cost first:
 *
 *   codes       [{name, module, start: vaddr in hex, n: instructions it has, cut: it has more, no_lines: why none has a line, or null,
 *               rows: [[number in the function, offset, text, name of what is called or "", number that it jumps to or -1, lines of
 *               jumps, origins]]}]; rows: those near cost. origins: [[function, index of `texts` or a file's base name or null, line]],
 *               innermost inlined call first; 0: those of the row before
 *   texts       [{path, newer: it was changed after the program was built, problem: why there are no lines, or null, left_out: true where
 *               there was no room, parts: [[number of the first line, [line]]]}]
 *   problems    [[path of an image, why instructions of it are missing]]
 *   functions_left_out, codes_left_out, texts_left_out   how many were not read, or had no room
 *
 * id="source-oncpu": the same packing as a profile's, of varints:
 *
 *   version     PAGE_DATA_VERSION
 *   n_samples   columns: how many nodes above the sample's own its value belongs to (0: none); the instruction, counted from 1 over the
 *               rows of all codes (0: not in the page)
 */
#ifndef MEMSCOPE_RENDER_HTML_PAGE_DATA_H
#define MEMSCOPE_RENDER_HTML_PAGE_DATA_H

enum { PAGE_DATA_VERSION = 1, PAGE_DETAIL_VERSION = 2 };

enum page_frame_kind {
	PAGE_FRAME_NATIVE,
	PAGE_FRAME_KERNEL,
	PAGE_FRAME_INTERPRETED,
	PAGE_FRAME_JIT,
	PAGE_FRAME_INLINED,
	PAGE_FRAME_MARKER,  /* no code: [unknown], [anon] */
	PAGE_FRAME_GUESSED, /* not used yet: which frame was guessed is not kept */
};

/* What is not known is NaN. */
enum page_detail_column {
	PAGE_DETAIL_INTEGRAL,   /* the value itself: of a rate, over time                   */
	PAGE_DETAIL_LOW,        /* its 95 % interval; equal ends: it was counted            */
	PAGE_DETAIL_HIGH,
	PAGE_DETAIL_MEAN,
	PAGE_DETAIL_DEVIATION,
	PAGE_DETAIL_INTERCEPT,
	PAGE_DETAIL_SLOPE,
	PAGE_DETAIL_SLOPE_LOW,
	PAGE_DETAIL_SLOPE_HIGH,
	PAGE_DETAIL_R2,
	PAGE_DETAIL_FIRST,      /* seconds since the run began                              */
	PAGE_DETAIL_LAST,
	/* Of blocks, where every call was traced (model/alloc_site.h): */
	PAGE_DETAIL_TEMPORARY,  /* the share that was freed before its thread's next allocation */
	PAGE_DETAIL_LIFETIME,   /* mean of those that were freed, ns                    */
	PAGE_DETAIL_LIVE,       /* bytes live at the end                                */
	/* Of the integral, where it is an estimate: its variance; what one more sample would add: of a time that had none, too. */
	PAGE_DETAIL_VARIANCE,
	PAGE_DETAIL_WEIGHT,
	PAGE_DETAIL_BURST_FROM, /* most of it came then (analyse/site_stats.h), s       */
	PAGE_DETAIL_BURST_TO,
	PAGE_DETAIL_MATE,       /* the row that it rises and falls with (analyse/series_mates.h), */
	PAGE_DETAIL_MATE_R,     /* and how closely                                      */
	PAGE_DETAIL_WAIT,       /* of waits: what for                                   */
	PAGE_DETAIL_ROLE,       /* and what that means                                  */
	N_PAGE_DETAIL_COLUMNS,
};

#endif
