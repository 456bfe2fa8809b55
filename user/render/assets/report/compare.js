/*
 * Runs before and after as one: the page of `memscope diff -o FILE.html` (page_data.h, "sides").
 *
 * The profiles of all runs of both sides become one profile, whose label sets say of which side and run they are (sets.side, sets.run), so
 * that panes of one profile show both: equal stacks are one stack. Values stay as they were measured; factors() says what each run's
 * are multiplied by before they are compared, so that a side is the mean of its runs, per second or by equal totals where that was asked for.
 */
const compare = (function () {
"use strict";

const SIDES = ["Before", "After"];
/* Student's t, 97.5 %, by degrees of freedom from 1 on; beyond: 1.96. Abramowitz and Stegun, "Handbook of Mathematical Functions", table 26.10. */
const T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
	2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042];

/* --- one profile of several ----------------------------------------------------------------------------- */

class Numbering {
	constructor() {
		this.of = new Map();
	}

	get(key) {
		let id = this.of.get(key);
		if (id === undefined)
			this.of.set(key, id = this.of.size);
		return id;
	}
}

/* Appends columns; `rename` says what becomes of a value. */
function append(into, from, rename) {
	for (let i = 0; i < from.length; i++)
		into.push(rename ? rename(from[i]) : from[i]);
}

/* Which type of a part is the joined profile's type `t`; -1: it has none. */
const type_of = (types, t) => types.findIndex((x) => x.name === t.name && x.unit === t.unit);

/*
 * parts: [{ side, run, types, profile }], decoded as data.js does it; `types` of the joined profile. Times of a type are known where all
 * parts that have samples know them. `part_nodes`: of each part, which node each of its own became.
 */
function join(parts, types) {
	const strings = new Numbering(), frames = new Numbering(), nodes = new Map();
	const f = { name: [], module: [], file: [], line: [], kind: [] }, parent = [-1], frame = [-1];
	const sets = { pid: [], tid: [], comm: [], thread: [], container: [], side: [], run: [] };
	const node_of_sample = [], set_of_sample = [], values = types.map(() => []), part_nodes = [];

	strings.get("");
	for (const { side, run, types: own, profile: p } of parts) {
		const s = p.strings.map((text) => strings.get(text)), frame_of = new Int32Array(p.frames.n), node_of = new Int32Array(p.nodes.n);
		for (let i = 0; i < p.frames.n; i++) {
			const row = [s[p.frames.name[i]], s[p.frames.module[i]], s[p.frames.file[i]], p.frames.line[i], p.frames.kind[i]];
			frame_of[i] = frames.get(row.join());
			if (frame_of[i] === f.name.length)
				["name", "module", "file", "line", "kind"].forEach((key, k) => f[key].push(row[k]));
		}
		for (let i = 1; i < p.nodes.n; i++) {
			const up = node_of[p.nodes.parent[i]], key = up * 2 ** 26 + frame_of[p.nodes.frame[i]];
			let n = nodes.get(key);
			if (n === undefined) {
				nodes.set(key, n = parent.length);
				parent.push(up);
				frame.push(frame_of[p.nodes.frame[i]]);
			}
			node_of[i] = n;
		}
		part_nodes.push(node_of);
		const first_set = sets.side.length;
		for (const key of ["pid", "tid"])
			append(sets[key], p.sets[key]);
		for (const key of ["comm", "thread", "container"])
			append(sets[key], p.sets[key], (v) => s[v]);
		for (let i = 0; i < p.sets.n; i++) {
			sets.side.push(side);
			sets.run.push(run);
		}
		append(node_of_sample, p.samples.node, (v) => node_of[v]);
		append(set_of_sample, p.samples.set, (v) => first_set + v);
		types.forEach((t, k) => {
			const at = type_of(own, t);
			append(values[k], at < 0 ? new Float64Array(p.samples.n) : p.samples.values[at]);
		});
	}
	const ints = (o) => Object.assign(Object.fromEntries(Object.entries(o).map(([key, v]) => [key, Int32Array.from(v)])),
		{ n: Object.values(o)[0].length });
	return { strings: [...strings.of.keys()], frames: ints(f), nodes: ints({ parent, frame }), sets: ints(sets),
		samples: { n: node_of_sample.length, node: Int32Array.from(node_of_sample), set: Int32Array.from(set_of_sample),
			values: values.map((v) => Float64Array.from(v)) },
		times: types.map((t, k) => join_times(parts, t, k)).filter(Boolean), part_nodes };
}

function join_times(parts, type, index) {
	const there = parts.filter((p) => p.profile.samples.n), of = there.map((p) => p.profile.times.find((t) => t.type === type_of(p.types, type)));
	if (!there.length || of.some((t) => !t))
		return null;
	const n = of.reduce((sum, t) => sum + t.n, 0), samples = there.reduce((sum, p) => sum + p.profile.samples.n, 0);
	const first = new Int32Array(samples + 1), bin = new Int32Array(n), value = new Float64Array(n);
	let at = 0, sample = 0;
	of.forEach((t, k) => {
		bin.set(t.bin, at);
		value.set(t.value, at);
		for (let i = 0; i < there[k].profile.samples.n; i++)
			first[++sample] = at + t.first[i + 1];
		at += t.n;
	});
	const n_bins = of.reduce((most, t) => Math.max(most, t.n_bins), 0);
	return { type: index, n, n_bins, n_fine_bins: n_bins, first, bin, fine_bin: bin, value };
}

/* The profiles of all runs by their id: those of a source that only some run has are there as well. */
function join_entries(sides) {
	const all = new Map();
	let run = 0;
	sides.forEach((side, k) => side.runs.forEach((r) => {
		for (const p of r.run.profiles) {
			if (!all.has(p.id))
				all.set(p.id, Object.assign({}, p, { data: null, fineness: 1, parts: [], estimates: false }));
			const joined = all.get(p.id);
			joined.parts.push({ side: k, run, entry: p });
			joined.estimates = joined.estimates || p.estimates;
			joined.estimate = joined.estimate || p.estimate;
		}
		run++;
	}));
	return [...all.values()].map((p) => Object.assign(p, { types: p.parts[p.parts.length - 1].entry.types,
		shown_type: p.parts[p.parts.length - 1].entry.shown_type }));
}

/* --- noise --------------------------------------------------------------------------------------------------- */

function moments(values) {
	const mean = values.reduce((a, b) => a + b, 0) / (values.length || 1);
	return { mean, n: values.length, variance: values.length > 1 ? values.reduce((a, b) => a + (b - mean) ** 2, 0) / (values.length - 1) : null };
}

/*
 * Half the 95 % interval of the difference of two means of runs, by Welch's t-test; of a side of one run the variance is the other's. null:
 * there is one run a side, which says nothing.
 */
function interval(before, after) {
	const a = moments(before), b = moments(after);
	if (a.variance === null && b.variance === null)
		return null;
	const of_a = (a.variance === null ? b.variance : a.variance) / a.n, of_b = (b.variance === null ? a.variance : b.variance) / b.n;
	if (!(of_a + of_b > 0))
		return 0;
	const freedom = (of_a + of_b) ** 2 / ((a.n > 1 ? of_a ** 2 / (a.n - 1) : 0) + (b.n > 1 ? of_b ** 2 / (b.n - 1) : 0));
	const t = freedom >= T.length + 1 ? 1.96 : T[Math.max(1, Math.floor(freedom)) - 1];
	return t * Math.sqrt(of_a + of_b);
}

/* --- the page's data ------------------------------------------------------------------------------------------- */

const seconds_of = (side) => side.runs.reduce((sum, r) => sum + r.run.seconds, 0) / side.runs.length;

/* `page`: the page's JSON. The result is what main.js calls `data`, but for its functions. */
function begin(page) {
	const sides = page.sides.map((side, k) => ({ name: SIDES[k], path: side.name, runs: side.runs.map((run) => ({ run, summary: run.summary })) }));
	const runs = sides.flatMap((side, k) => side.runs.map((r) => ({ side: k, run: r.run }))), figures = page.comparison || { profiles: [], scaled: "absolute" };
	const all = runs.map((r) => r.run), lengths = sides.map(seconds_of), loaded = new Map();
	const run = { title: page.title, memscope: page.memscope, charts: page.charts, started: 0, seconds: Math.max(...all.map((r) => r.seconds)),
		bin_seconds: Math.max(...all.map((r) => r.bin_seconds)), n_bins: Math.max(...all.map((r) => r.n_bins)), profiles: join_entries(sides),
		series: [], details: [], summary: null };

	function load(p) {
		if (!p.parts)
			return report_data.load(p);
		if (!loaded.has(p.id))
			loaded.set(p.id, Promise.all(p.parts.map(async (part) => ({ side: part.side, run: part.run, types: part.entry.types,
				profile: await report_data.load(part.entry) }))).then((parts) => join(parts, p.types)));
		return loaded.get(p.id);
	}

	/* What memscope diff says of a value type; null: it has nothing to compare. */
	function figure(id, type) {
		const p = figures.profiles.find((x) => x.id === id);
		return p && type && p.types.find((t) => t.type === type.name && t.unit === type.unit) || null;
	}

	/*
	 * What the values of each run (by number, those before first) are multiplied by: shares of a mean. In a selected time all runs have
	 * the same seconds, so that nothing is scaled for their lengths.
	 */
	function factors(id, type, range) {
		const f = figure(id, type), by_run = f && f.factors.flat();
		return Float64Array.from(runs, (r, i) => {
			const n = sides[r.side].runs.length;
			if (!f)
				return (figures.scaled === "seconds" && !range && r.run.seconds > 0 ? lengths[1] / r.run.seconds : 1) / n;
			return (range && f.scaled === "seconds" ? 1 : by_run[i]) / n;
		});
	}

	/* Sums over all of the time of tables that tell no time: as the profiles are compared. */
	const table_factor = (r) => figures.scaled === "seconds" && r.run.seconds > 0 ? lengths[1] / r.run.seconds : 1;

	const rows = new Map();
	/* `what`: functions or stacks. Each { function, module, self, total, what, changed, self_noise, total_noise, p }; [] where there are none. */
	function rows_of(f, what) {
		const element = f && f[what];
		if (!element)
			return Promise.resolve([]);
		if (!rows.has(element))
			rows.set(element, report_data.bytes_of(element).then((bytes) => JSON.parse(new TextDecoder().decode(bytes)).rows));
		return rows.get(element);
	}

	const comparison = { sides, runs, lengths, figures, figure, factors, table_factor, rows_of, scaled: figures.scaled,
		several: sides.some((s) => s.runs.length > 1), same_work: !!figures.same_work };
	return { run, summary: null, sides, comparison, load };
}

/* How values are compared, for people. */
function scale_text(c, range) {
	const n = c.sides.map((s) => s.runs.length), mean = c.several ? "Means of " + n[0] + (n[0] > 1 ? " runs" : " run") + " before and " + n[1] + " after. " : "";
	if (c.scaled === "totals")
		return mean + "Before is scaled to the total of after, so shares are compared.";
	if (c.scaled === "seconds")
		return mean + (range ? "A selected time has the same number of seconds on both sides, so nothing is scaled." :
			"Durations differ, " + format.seconds(c.lengths[0]) + " and " + format.seconds(c.lengths[1]) +
			": values are compared per second; those before are scaled to the duration after.");
	return mean + (c.same_work ? "The programs ran to their end, so totals are compared." : "");
}

const change = (before, after, unit) => (after > before ? "+" : after < before ? "\u2212" : "") + format.value(Math.abs(after - before), unit);

function percent(before, after) {
	if (!(before > 0) || !(after > 0))
		return before === after ? "" : after > 0 ? "new" : "gone";
	const p = 100 * (after - before) / before;
	return (p > 0 ? "+" : p < 0 ? "\u2212" : "") + Math.abs(p).toFixed(1) + "%";
}

return { begin, join, interval, moments, scale_text, change, percent, SIDES };
})();
