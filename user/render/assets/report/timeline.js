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

/* Value type `name` of profile `id` as a rate, null where it has no times. */
async function rate_of(run, id, name, unit) {
	const p = run.profiles.find((x) => x.id === id), bins = times.bins(run);
	const type = p ? p.types.findIndex((t) => t.name === name && t.unit === unit) : -1;
	if (type < 0 || !run.n_bins)
		return null;
	const entry = times.of_type(await data.load(p), type);
	if (!entry)
		return null;
	const [factor, shown] = unit_of[unit];
	return { x: bins.middle, values: times.rate(times.by_bin(entry, run.n_bins), bins.width, factor), unit: shown, estimates: p.estimates };
}

function line(label, unit, values, more) {
	return Object.assign({ label, unit, values }, more);
}

async function cpu(run, trend) {
	const r = await rate_of(run, "oncpu", "cpu", "nanoseconds"), percent = times.column(trend, "cpu_percent");
	if (r)
		return { title: "On a CPU", times: r.x, series: [line("CPUs in use", "CPUs", r.values, { filled: true })] };
	return percent && { title: "On a CPU", times: trend.times,
		series: [line("CPUs in use", "CPUs", percent.values.map((v) => v === null ? null : v / 100), { filled: true })] };
}

async function waits(run) {
	const blocked = await rate_of(run, "offcpu", "blocked", "nanoseconds"), runnable = await rate_of(run, "offcpu", "runnable", "nanoseconds");
	const series = [];
	if (blocked)
		series.push(line("blocked", "threads", blocked.values));
	if (runnable)
		series.push(line("runnable, without a CPU", "threads", runnable.values));
	return series.length && { title: "Waiting threads", times: (blocked || runnable).x, series };
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
	return series.length && { title: "Memory", times: trend.times, series, height: 150 };
}

function faults(trend) {
	const minor = times.column(trend, "minor_faults"), major = times.column(trend, "major_faults"), series = [];
	if (minor)
		series.push(line("minor", "count/s", times.growth(trend, minor.values)));
	if (major && !times.is_empty(times.growth(trend, major.values)))
		series.push(line("major", "count/s", times.growth(trend, major.values)));
	return series.length && { title: "Page faults", times: trend.times, series };
}

async function allocation(run) {
	const r = await rate_of(run, "alloc", "alloc_space", "bytes"), table = times.series(run, "alloc_series");
	if (r)
		return { title: "Allocation rate", times: r.x, series: [line("allocated", "bytes/s", r.values, { filled: true })],
			note: r.estimates ? "Estimates." : null };
	if (!table)
		return null;
	const all = table.times.map((t, i) => table.columns.reduce((sum, c) => sum + (c.values[i] || 0), 0));
	return { title: "Allocation rate", times: table.times, series: [line("allocated", "bytes/s", all, { filled: true })],
		note: run.profiles.some((p) => p.id === "alloc" && p.estimates) ? "Estimates." : null };
}

async function growth(run) {
	const r = await rate_of(run, "growth", "resident", "bytes");
	return r && { title: "Pages made resident", times: r.x, series: [line("resident", "bytes/s", r.values, { filled: true })], note: "Estimates." };
}

function collections(trend) {
	const all = times.column(trend, "gc_count"), major = times.column(trend, "gc_major_count"), ms = times.column(trend, "gc_ms"), rows = [];
	if (all && !times.is_empty(all.values)) {
		const series = [line("collections", "count/s", times.growth(trend, all.values))];
		if (major && !times.is_empty(major.values))
			series.push(line("major", "count/s", times.growth(trend, major.values)));
		rows.push({ title: "Garbage collections", times: trend.times, series });
	}
	if (ms && !times.is_empty(ms.values))
		rows.push({ title: "Time in garbage collection", times: trend.times, series: [line("of the time", "percent",
			times.growth(trend, ms.values).map((v) => v === null ? null : v / 10), { filled: true })] });
	return rows;
}

function thread_count(trend) {
	const c = times.column(trend, "threads");
	return c && new Set(c.values.filter((v) => v !== null)).size > 1 &&
		{ title: "Threads", times: trend.times, series: [line("threads", "count", c.values)] };
}

/* Series of the application: counters as rates, the rest as they are; each its own chart, for units differ. */
function work(run) {
	const table = times.series(run, "workload");
	if (!table)
		return [];
	return table.columns.filter((c) => !/^(cpu_seconds|allocated_bytes)$/.test(c.name)).slice(0, 24).map((c) => {
		const there = table.times.map((t, i) => i).filter((i) => c.values[i] !== null);
		const own = { times: there.map((i) => table.times[i]) }, values = there.map((i) => c.values[i]);
		const counts = times.is_counter(c.name);
		if (own.times.filter((t) => t >= 0 && t <= run.seconds).length < 2)
			return null;
		return { title: c.name, times: own.times, series: [line(counts ? "per second" : "value", counts ? "count/s" : "count",
			counts ? times.growth(own, values) : values)] };
	});
}

/* --- the pane ------------------------------------------------------------------------------------------ */

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
		el("span", { className: "dim" }, charts.has_charts() ? "Drag over a chart: every pane follows." : ""));
}

panes.add({
	id: "timeline",
	title: "Timeline",
	available: (d) => d.run.seconds > 0 && (d.run.series.length > 0 || d.run.n_bins > 0),
	async make(box, d) {
		data = d;
		const run = d.run, trend = times.series(run, "trend");
		const rows = [await cpu(run, trend), await waits(run), trend && memory(trend), trend && faults(trend), await allocation(run),
			await growth(run), ...(trend ? collections(trend) : []), trend && thread_count(trend), ...work(run)].filter(Boolean);
		box.append(make_fields());
		if (!charts.has_charts())
			box.append(el("p", { className: "trouble" }, "memscope was built without uPlot (make deps fetches it), so charts are shown as tables."));
		list = rows.map((o) => charts.make(Object.assign({ data: d, height: 116 }, o)));
		box.append(...list.map((c) => c.el));
		if (trend && trend.rows_per_point > 1)
			box.append(el("p", { className: "dim" }, "Of trend.csv each pair of points is the lowest and the highest of " +
				trend.rows_per_point + " rows; no peak is left out."));
		if (!rows.length)
			box.append(el("p", {}, "The run has nothing over time."));
	},
	select(range) {
		for (const c of list)
			c.select(range);
		show_fields();
	},
});

/* Above every pane: one line of the run, to select a time by. What it does most: computing, else allocating, else waiting. */
async function strip(d) {
	data = d;
	const run = d.run, trend = times.series(run, "trend"), box = document.getElementById("strip");
	if (!charts.has_charts() || !(run.seconds > 0))
		return null;
	const o = await cpu(run, trend) || await allocation(run) || await waits(run);
	if (!o || o.times.length < 2)
		return null;
	const chart = charts.make(Object.assign({ data: d, no_table: true, small: true }, o, { height: 58, note: null }));
	box.append(chart.el);
	box.hidden = false;
	return chart;
}

return { strip };
})();
