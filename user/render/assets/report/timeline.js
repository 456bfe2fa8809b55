/*
 * Everything that changes in a run, one chart below the other on one axis of time. Where samples have times, CPU, waits and
 * allocations come from them; else from trend.csv and alloc_series.csv.
 */
const timeline = (function () {
"use strict";

const el = format.el;
let data = null, list = [], fields = null;

/* --- what there is -------------------------------------------------------------------------------------- */

const unit_of = { nanoseconds: [1e-9, "threads"], bytes: [1, "bytes/s"], count: [1, "count/s"] };

/* Everything below is of one run; `trend` is its table, or null. */

/* Value type `name` of profile `id` as a rate, with its intervals where it is estimated; null where it has no times. */
async function rate_of(run, id, name, unit) {
	const p = run.profiles.find((x) => x.id === id), bins = times.bins(run);
	const type = p ? p.types.findIndex((t) => t.name === name && t.unit === unit) : -1;
	if (type < 0 || !run.n_bins)
		return null;
	const entry = times.of_type(await data.load(p), type);
	if (!entry)
		return null;
	const [factor, shown] = unit_of[unit], sums = times.by_bin(entry, run.n_bins), choice = sites.choice_of(run, p);
	const out = { x: bins.middle, values: times.rate(sums, bins.width, factor), unit: shown, estimates: p.estimates };
	if (choice && choice.type === type) {
		const errors = times.variances(await sites.of_profile(data, choice), run.n_bins, choice.detail.bursts, () => 0, 1);
		if (errors)
			Object.assign(out, times.interval_rates(sums, errors[0], bins.width, factor));
	}
	return out;
}

function line(label, unit, values, more) {
	return Object.assign({ label, unit, values }, more);
}

const ends = (r) => r.high ? { low: r.low, high: r.high } : {};
const note_of = (r) => r.estimates ? "Estimates" + (r.high ? ", with their 95% intervals." : ".") : r.high ? "With 95% intervals." : null;

async function cpu(run, trend) {
	const r = await rate_of(run, "oncpu", "cpu", "nanoseconds"), percent = times.column(trend, "cpu_percent");
	if (r)
		return { title: "On a CPU", times: r.x, series: [line("CPUs in use", "CPUs", r.values, { filled: true, ...ends(r) })], note: note_of(r), stacks: ["oncpu"] };
	return percent && { title: "On a CPU", times: trend.times, stacks: ["oncpu"],
		series: [line("CPUs in use", "CPUs", percent.values.map((v) => v === null ? null : v / 100), { filled: true })] };
}

/* Waits by what they are for; those of workers without work apart, which hide nothing then. */
async function waits(run) {
	const runnable = await rate_of(run, "offcpu", "runnable", "nanoseconds"), p = run.profiles.find((x) => x.id === "offcpu"), series = [], x = times.bins(run).middle;
	const choice = p && sites.choice_of(run, p);
	if (choice && choice.detail.kinds.length) {
		const rows = await sites.of_profile(data, choice), names = new Map(), of = (r) => choice.detail.roles[r.role] === "idle" ? "idle workers" : choice.detail.kinds[r.wait];
		for (const r of rows)
			names.set(of(r), (names.get(of(r)) || 0) + r.integral);
		const order = [...names].sort((a, b) => (a[0] === "idle workers") - (b[0] === "idle workers") || b[1] - a[1]).map((n) => n[0]), most = order.slice(0, 7), width = times.bins(run).width;
		const sums = times.by_rows(rows, run.n_bins, (r) => Math.min(order.indexOf(of(r)), 7), 8);
		most.forEach((name, i) => series.push(line(name, "threads", times.rate(sums[i], width, 1e-9))));
		if (order.length > 7)
			series.push(line("other", "threads", times.rate(sums[7], width, 1e-9)));
	}
	if (runnable)
		series.push(line("runnable, without a CPU", "threads", runnable.values));
	return series.length && { title: "Waiting threads, by what they wait for", times: x, series, stacks: ["offcpu"], height: 150 };
}

function memory(trend, breakdown) {
	const names = { rss_kb: "RSS", pss_kb: "PSS", anonymous_kb: "anonymous", file_kb: "file-backed", swap_kb: "swap", group_kb: "control group" };
	const series = [];
	for (const [name, label] of Object.entries(names)) {
		const c = times.column(trend, name);
		if (c && !times.is_empty(c.values) === true)
			series.push(line(label, "bytes", c.values.map((v) => v === null ? null : v * 1024)));
	}
	const live = times.column(trend, "live_bytes");
	if (live && !times.is_empty(live.values))
		series.push(line("allocated and live", "bytes", live.values));
	return series.length && { title: "Memory", times: trend.times, series, height: 150, stacks: ["growth", "alloc"] };
}

function faults(trend) {
	const minor = times.column(trend, "minor_faults"), major = times.column(trend, "major_faults"), series = [];
	if (minor)
		series.push(line("minor", "count/s", times.growth(trend, minor.values)));
	if (major && !times.is_empty(times.growth(trend, major.values)))
		series.push(line("major", "count/s", times.growth(trend, major.values)));
	return series.length && { title: "Page faults", times: trend.times, series, stacks: ["growth"] };
}

async function allocation(run) {
	const r = await rate_of(run, "alloc", "alloc_space", "bytes"), table = times.series(run, "alloc_series");
	if (r)
		return { title: "Allocation rate", times: r.x, series: [line("allocated", "bytes/s", r.values, { filled: true, ...ends(r) })],
			note: note_of(r), stacks: ["alloc"] };
	if (!table)
		return null;
	const all = table.times.map((t, i) => table.columns.reduce((sum, c) => sum + (c.values[i] || 0), 0));
	return { title: "Allocation rate", times: table.times, series: [line("allocated", "bytes/s", all, { filled: true })],
		note: run.profiles.some((p) => p.id === "alloc" && p.estimates) ? "Estimates." : null };
}

async function growth(run) {
	const r = await rate_of(run, "growth", "resident", "bytes");
	return r && { title: "Pages made resident", times: r.x, series: [line("resident", "bytes/s", r.values, { filled: true, ...ends(r) })],
		note: note_of(r), stacks: ["growth"] };
}

function collections(trend) {
	const all = times.column(trend, "gc_count"), major = times.column(trend, "gc_major_count"), ms = times.column(trend, "gc_ms"), rows = [];
	if (all && !times.is_empty(all.values)) {
		const series = [line("collections", "count/s", times.growth(trend, all.values))];
		if (major && !times.is_empty(major.values))
			series.push(line("major", "count/s", times.growth(trend, major.values)));
		rows.push({ title: "Garbage collections", times: trend.times, series, stacks: ["alloc", "oncpu"] });
	}
	if (ms && !times.is_empty(ms.values))
		rows.push({ title: "Time in garbage collection", times: trend.times, series: [line("of the time", "percent",
			times.growth(trend, ms.values).map((v) => v === null ? null : v / 10), { filled: true })], stacks: ["oncpu"] });
	return rows;
}

function thread_count(trend) {
	const c = times.column(trend, "threads");
	return c && new Set(c.values.filter((v) => v !== null)).size > 1 &&
		{ title: "Threads", times: trend.times, series: [line("threads", "count", c.values)] };
}

/* A column's readings that are there: { times, values }. */
function readings(table, c) {
	const there = table.times.map((t, i) => i).filter((i) => c.values[i] !== null);
	return { times: there.map((i) => table.times[i]), values: there.map((i) => c.values[i]) };
}

/* What one counter gained for each unit that another gained, between readings of the second. */
function ratio(of, per) {
	const at = (r, t) => { /* a straight line between two readings */
		const i = r.times.findIndex((x) => x >= t);
		if (i < 0 || (i === 0 && r.times[0] > t))
			return null;
		const span = i ? r.times[i] - r.times[i - 1] : 0;
		return i && span > 0 ? r.values[i - 1] + (r.values[i] - r.values[i - 1]) * (t - r.times[i - 1]) / span : r.values[i];
	};
	return per.times.map((t, i) => {
		const [a, b] = i ? [at(of, per.times[i - 1]), at(of, t)] : [null, null], units = i ? per.values[i] - per.values[i - 1] : 0;
		return a === null || b === null || !(units > 0) || b < a ? null : (b - a) / units;
	});
}

/* Series of the application: counters as rates, the rest as they are, each its own chart, for units differ; and what one unit costs. */
function work(run) {
	const table = times.series(run, "workload"), costs = [["cpu_seconds", "CPU time", "seconds", ["oncpu"]], ["allocated_bytes", "Allocated", "bytes", ["alloc"]]];
	if (!table)
		return [];
	const enough = (own) => own.times.filter((t) => t >= -1 && t <= run.seconds + 1).length >= 2;
	return table.columns.filter((c) => !/^(cpu_seconds|allocated_bytes)$/.test(c.name)).slice(0, 24).flatMap((c) => {
		const own = readings(table, c), counts = times.is_counter(c.name);
		if (!enough(own))
			return [];
		const out = [{ title: c.name, times: own.times, stacks: ["oncpu"], series: [line(counts ? "per second" : "value", counts ? "count/s" : "count",
			counts ? times.growth(own, own.values) : own.values)] }];
		for (const [name, title, unit, stacks] of counts ? costs : []) {
			const cost = times.column(table, name), of = cost && readings(table, cost), values = of && enough(of) ? ratio(of, own) : [];
			if (values.some((v) => v !== null))
				out.push({ title: title + " for each of " + c.name, times: own.times, stacks, series: [line("per unit", unit, values)] });
		}
		return out;
	});
}

/* RSS by what it consists of, as in the pane of the heap. */
function breakdown(d) {
	const o = heap.breakdown(d);
	return o && Object.assign(o, { height: 150, stacks: ["growth", "alloc"] });
}

/* All charts of a run with its summary: what charts.make() takes. */
async function rows_of(d) {
	const run = d.run, trend = times.series(run, "trend");
	return [await cpu(run, trend), await waits(run), trend && memory(trend), trend && faults(trend), await allocation(run),
		await growth(run), data.comparison ? null : breakdown(d), ...(trend ? collections(trend) : []), trend && thread_count(trend), ...work(run)].filter(Boolean);
}

/* What a run does most, for the line above every pane: computing, else allocating, else waiting. */
async function main_row({ run }) {
	return await cpu(run, times.series(run, "trend")) || await allocation(run) || await waits(run);
}

/* --- both sides of a comparison ----------------------------------------------------------------------------- */

/* Of each chart the line of every run, on one axis of time: a chart for each series. Runs that have none of a series have no line. */
async function rows_of_sides(of_run) {
	const { runs } = data.comparison, all = await Promise.all(runs.map(async (r) => [await of_run({ run: r.run, summary: r.run.summary })].flat().filter(Boolean))), out = new Map();
	all.forEach((rows, i) => rows.forEach((row) => row.series.forEach((s) => {
		const key = row.title + "\n" + s.label;
		if (!out.has(key))
			out.set(key, { title: row.series.length > 1 ? row.title + ": " + s.label : row.title, note: row.note, stacks: row.stacks, lines: [] });
		out.get(key).lines.push({ side: runs[i].side, times: row.times, unit: s.unit, values: s.values, low: s.low, high: s.high });
	})));
	const is_there = (row) => row.lines.some((l) => l.values.some((v) => v > (l.unit === "threads" ? .005 : 0)));
	return [...out.values()].filter(is_there).map((row) => one_axis(row));
}

/* Lines with times of their own as series of one chart: between two of its own points a line is straight. */
function one_axis(row, { comparison } = data) {
	const x = [...new Set(row.lines.flatMap((l) => l.times))].sort((a, b) => a - b), named = new Set();
	row.lines.sort((a, b) => a.side - b.side);
	const n = comparison.sides.map((side) => side.runs.length);
	return Object.assign({}, row, { times: x, series: row.lines.map((l) => {
		const side = comparison.sides[l.side], unnamed = named.has(l.side), ends_of = n[l.side] === 1 && l.high;
		named.add(l.side);
		return { label: side.name + (n[l.side] > 1 ? unnamed ? ", another run" : " (" + n[l.side] + " runs)" : ""), unit: l.unit, unnamed,
			thin: n[l.side] > 1, values: at_times(l.times, l.values, x), colour_of: l.side, solid: true,
			...(ends_of ? { low: at_times(l.times, l.low, x), high: at_times(l.times, l.high, x) } : {}) };
	}) });
}

function at_times(own, values, x) {
	let at = 0;
	return x.map((t) => {
		while (at + 1 < own.length && own[at + 1] <= t)
			at++;
		const t0 = own[at], t1 = own[at + 1], v0 = values[at], v1 = values[at + 1];
		if (t === t0)
			return v0;
		return t < t0 || t1 === undefined || v0 === null || v1 === null ? null : v0 + (v1 - v0) * (t - t0) / (t1 - t0);
	});
}

/* What the program marked itself: a line in each chart, and all of it here. */
function marks_of(run) {
	const marks = run.marks || {}, rows = marks.all || [];
	if (!rows.length)
		return null;
	return tables.make({ caption: "Marked by the program" + (marks.omitted ? " (" + format.grouped(marks.omitted) + " more are left out)" : ""), rows, page: 15,
		filter: "Filter marks", columns: [{ title: "Time", number: true, key: (m) => m.at, text: (m) => format.seconds(m.at) },
			{ title: "Text", filter: true, key: (m) => m.text }, { title: "Kind", key: (m) => m.message ? "message" : "marker" }] }).el;
}

/* --- the pane ------------------------------------------------------------------------------------------ */

let opened = null; /* below which chart a moment is shown */

function show_below(below, at, stacks) {
	if (opened && opened !== below)
		opened.replaceChildren();
	opened = below;
	moment.show(data, below, at, stacks).catch((error) => console.error(error));
}

function show_fields() {
	const range = data.range(), end = data.run.seconds;
	fields.from.value = range ? +range.from.toFixed(3) : 0;
	fields.to.value = range ? +range.to.toFixed(3) : +end.toFixed(3);
}

function make_fields() {
	const field = (id, text) => {
		const input = el("input", { type: "number", id, min: 0, max: Math.ceil(data.run.seconds), step: "any" });
		input.addEventListener("change", () => data.select({ from: +fields.from.value, to: +fields.to.value }));
		return [el("label", { htmlFor: id }, text), input];
	};
	const from = field("time-from", "From second"), to = field("time-to", "to second");
	fields = { from: from[1], to: to[1] };
	show_fields();
	return el("div", { className: "tools" }, ...from, ...to,
		el("span", { className: "dim" }, charts.has_charts() ? "Drag over a chart to select a time for every pane. Click to see what was live or running at that moment." : ""));
}

panes.add({
	id: "timeline",
	title: "Timeline",
	available: (d) => d.run.seconds > 0 && d.sides.some((side) => side.runs.some((r) => r.run.series.length > 0 || r.run.n_bins > 0)),
	async make(box, d) {
		data = d;
		const trend = times.series(d.run, "trend"), rows = d.comparison ? await rows_of_sides(rows_of) : await rows_of(d);
		box.append(make_fields());
		if (!charts.has_charts())
			box.append(el("p", { className: "trouble" }, "memscope was built without uPlot (make deps fetches it), so charts are shown as tables."));
		list = rows.map((o) => {
			const below = el("div", { "aria-live": "polite" }), chart = charts.make(Object.assign({ data: d, height: 116,
				click: (i, at) => show_below(below, at, o.stacks || ["oncpu"]) }, o));
			box.append(chart.el, below);
			return chart;
		});
		if (trend && trend.rows_per_point > 1)
			box.append(el("p", { className: "dim" }, "Of trend.csv each pair of points is the lowest and the highest of " +
				trend.rows_per_point + " rows; no peak is left out."));
		if (d.comparison)
			box.append(el("p", { className: "dim" }, "Time 0 is the start of each run. " + (d.comparison.several ? "There is a line for each run. " : "") +
				"Values are not scaled."));
		const marks = marks_of(run);
		if (marks)
			box.append(marks);
		if (!rows.length && !marks)
			box.append(el("p", {}, "The run has nothing over time."));
	},
	select(range) {
		for (const c of list)
			c.select(range);
		show_fields();
	},
});

/* Above every pane: one line of the run, to select a time by. */
async function strip(d) {
	data = d;
	const box = document.getElementById("strip");
	if (!charts.has_charts() || !(d.run.seconds > 0))
		return null;
	const o = d.comparison ? (await rows_of_sides(main_row))[0] : await main_row(d);
	if (!o || o.times.length < 2)
		return null;
	o.series = o.series.map((x) => Object.assign({}, x, { low: undefined, high: undefined }));
	const chart = charts.make(Object.assign({ data: d, no_table: true, small: true }, o, { height: 58, note: null }));
	box.append(chart.el);
	box.hidden = false;
	return chart;
}

return { strip, one_axis };
})();
