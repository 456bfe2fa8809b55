/* What a heap holds: live bytes, what the allocator holds, and RSS over time; what RSS consisted of; leaks. */
const heap = (function () {
"use strict";

const el = format.el;
let list = [];

const sum_of = (table, names) => table.times.map((t, i) => {
	const parts = names.map((n) => times.column(table, n)).filter(Boolean).map((c) => c.values[i]);
	return parts.some((v) => v !== null) ? parts.reduce((a, b) => a + (b || 0), 0) : null;
});

/* rss_breakdown.csv, and the breakdown at the end, which only the summary has. */
function split_of(d) {
	const table = times.series(d.run, "rss_breakdown"), end = d.summary && d.summary.rss_breakdown;
	if (!table || !end || !end.parts || !(end.at_ns / 1e9 > table.times[table.times.length - 1] + .5))
		return table;
	const measure = end.measure === "pss" ? "pss_bytes" : "resident_bytes", part = (n) => (end.parts[n] ? end.parts[n][measure] || 0 : 0);
	return Object.assign({}, table, { times: table.times.concat(end.at_ns / 1e9), columns: table.columns.map((c) => Object.assign({}, c, { values: c.values.concat(
		c.name === "live" ? part("live") + part("live_traced") + part("live_preexisting") : end.parts[c.name] ? part(c.name) : null) })) });
}

/* Values of one table at the times of another that are nearest to its own; null at the others. */
function at_times(table, values, wanted) {
	const out = wanted.map(() => null);
	table.times.forEach((t, i) => { out[charts.nearest(wanted, t)] = values[i]; });
	return out;
}

function over_time(d) {
	const run = d.run, trend = times.series(run, "trend"), split = split_of(d), live = times.series(run, "live_series");
	const base = trend || split, series = [];
	if (!base)
		return null;
	const add = (label, table, values) => {
		const v = table === base ? values : at_times(table, values, base.times);
		if (v.some((n) => n))
			series.push({ label, unit: "bytes", values: v });
	};
	const rss = times.column(trend, "rss_kb");
	if (rss)
		add("RSS", trend, rss.values.map((v) => v === null ? null : v * 1024));
	if (split) {
		add("held by allocators", split, sum_of(split, ["live", "free_retained", "metadata", "heap_unwalked"]));
		add("live (in use, resident)", split, sum_of(split, ["live"]));
	}
	for (const [name, label] of [["gc_heap_kb", "heaps of garbage collectors"], ["gc_blocks_kb", "their blocks in use"], ["gc_live_kb", "live after a collection"]]) {
		const c = times.column(trend, name);
		if (c)
			add(label, trend, c.values.map((v) => v === null ? null : v * 1024));
	}
	const traced = times.column(trend, "live_bytes");
	if (traced && traced.values.filter((v) => v !== null).length > traced.values.length / 2)
		add("allocated in the run and live", trend, traced.values);
	else if (live)
		add("allocated in the run and live", live, live.times.map((t, i) => live.columns.reduce((a, c) => a + (c.values[i] || 0), 0)));
	const sampled = series.find((s) => /^allocated in the run/.test(s.label)), of = run.profiles.find((p) => p.id === "heap");
	if (sampled && of)
		Object.assign(sampled, times.live_interval(sampled.values, of));
	return series.length ? { title: "Live, held and resident", note: sampled && sampled.high ? "Live bytes are estimates, shown with their 95% interval." : null, times: base.times, series, height: 260 } : null;
}

const names = { live: "in use", free_retained: "free, retained", metadata: "allocator metadata", heap_unwalked: "heap, not walked",
	other_anonymous: "other anonymous", stacks: "stacks", file_modified: "file-backed, modified", file: "file-backed",
	shared_memory: "shared memory" };

function breakdown(d) {
	const split = split_of(d);
	if (!split || split.times.length < 2)
		return null;
	const series = Object.keys(names).map((n) => [n, times.column(split, n)]).filter(([n, c]) => c && !times.is_empty(c.values))
		.map(([n, c]) => ({ label: names[n], unit: "bytes", values: c.values }));
	return { title: "What was resident", times: split.times, series, stacked: true, height: 240 };
}

/* How many blocks are in use, by the allocators' own structures. */
function blocks(d) {
	const table = times.series(d.run, "rss_breakdown"), c = times.column(table, "live_blocks");
	return c && table.times.length > 1 && !times.is_empty(c.values) ?
		{ title: "Blocks in use", times: table.times, series: [{ label: "blocks", unit: "count", values: c.values }], height: 130 } : null;
}

function interval(low, high, unit) {
	return high === undefined || high === null || (!low && !high) ? "" : format.value(low, unit) + " to " + format.value(high, unit);
}

function leaks(s) {
	const alloc = s.alloc || {}, rows = (alloc.leaks || []).concat(alloc.no_leaks || []);
	return rows.length && ({ caption: "Sites that grew, with the verdict on each", rows, sort: [3, true], columns: [
		{ title: "Function", filter: true, key: (r) => r.function, of: (r) => r.module },
		{ title: "Kind", same: false, key: (r) => r.growth || "" },
		{ title: "Live", number: true, state: true, unit: "bytes", key: (r) => r.live_bytes, text: (r) => format.bytes(r.live_bytes || 0) },
		{ title: "Growth", number: true, state: true, unit: "bytes/s", low: (r) => r.low, high: (r) => r.high, key: (r) => r.bytes_s, text: (r) => format.bytes(r.bytes_s || 0) + "/s" },
		{ title: "95% interval", number: true, key: (r) => r.low, text: (r) => interval(r.low, r.high, "bytes/s") },
		{ title: "R²", number: true, key: (r) => r.r2, text: (r) => r.r2 === null || r.r2 === undefined ? "" : r.r2.toFixed(2) },
		{ title: "Since", number: true, key: (r) => r.since_s, text: (r) => r.since_s === undefined ? "" : format.seconds(r.since_s) }] });
}

function live_sites(s) {
	const rows = (s.alloc && s.alloc.live_sites) || [];
	return rows.length && ({ caption: "Largest live sites at the end", rows, sort: [1, true], columns: [
		{ title: "Function", filter: true, key: (r) => r.function, of: (r) => r.module },
		{ title: "Live", number: true, state: true, unit: "bytes", low: (r) => r.low, high: (r) => r.high, key: (r) => r.bytes, text: (r) => format.bytes(r.bytes) },
		{ title: "Blocks", number: true, state: true, key: (r) => r.objects, text: (r) => format.grouped(r.objects || 0) },
		{ title: "95% interval", number: true, key: (r) => r.low, text: (r) => interval(r.low, r.high, "bytes") }] });
}

/* A run with its summary. */
const has_chart = (r) => !!over_time({ run: r.run, summary: r.summary });

/* Of a comparison: each line of "over time" as a chart of both sides, and what was resident beside each other, on one scale. */
function charts_of_sides(d) {
	const lines = new Map();
	d.comparison.runs.forEach(({ side, run }) => {
		const o = over_time({ run, summary: run.summary });
		for (const s of o ? o.series : []) {
			if (!lines.has(s.label))
				lines.set(s.label, { title: s.label[0].toUpperCase() + s.label.slice(1), lines: [] });
			lines.get(s.label).lines.push({ side, times: o.times, values: s.values, unit: s.unit });
		}
	});
	const parts = d.sides.map((side) => ({ o: breakdown(side.runs[0]), side })).filter((p) => p.o);
	const both = parts.map(({ o, side }) => Object.assign(o, { title: side.name + ": what was resident" + (side.runs.length > 1 ? ", first run" : "") }));
	colour_alike(both);
	for (const o of both)
		o.scale_of = both;
	return { lines: [...lines.values()].map((row) => Object.assign(timeline.one_axis(row, d), { height: 140 })), beside: both };
}

/* The same part has the same colour on both sides. */
function colour_alike(both) {
	const number = new Map();
	for (const s of both.flatMap((o) => o.series)) {
		if (!number.has(s.label))
			number.set(s.label, number.size);
		s.colour_of = number.get(s.label);
	}
}

function make_charts(d) {
	const one = (o) => charts.make(Object.assign({ data: d }, o));
	if (!d.comparison) {
		list = [over_time(d), breakdown(d), blocks(d)].filter(Boolean).map(one);
		return list.map((c) => c.el);
	}
	const { lines, beside } = charts_of_sides(d), pair = beside.map(one);
	list = lines.map(one).concat(pair);
	return [...list.slice(0, lines.length).map((c) => c.el), el("div", { className: "pair" }, ...pair.map((c) => c.el))];
}

function peak(r, prefix) {
	const p = r.summary && r.summary.alloc && r.summary.alloc.live_peak;
	return p && p.bytes ? el("p", { className: "dim" }, (prefix ? prefix + "most" : "Most") + " was live " + format.ns(p.at_ns) + " into the run: " + format.bytes(p.bytes) +
		(p.high > p.low ? " (" + interval(p.low, p.high, "bytes") + ")" : "") + ".") : null;
}

panes.add({
	id: "heap",
	title: "Heap",
	available: (d) => d.sides.some((side) => side.runs.some(has_chart)) || tables.any(d, [live_sites]),
	make(box, d) {
		const peaks = d.sides.flatMap((side) => side.runs.map((r) => peak(r, side.name ? side.name + ": " : "")));
		box.append(...make_charts(d), ...tables.of(d, [leaks, live_sites]), ...peaks.filter(Boolean));
	},
	select(range) {
		for (const c of list)
			c.select(range);
	},
});

return { breakdown };
})();
