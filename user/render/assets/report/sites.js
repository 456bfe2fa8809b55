/*
 * A row for each site: how much, how steadily and how fast it grows. The figures were computed by memscope, in real units and
 * seconds (user/analyse/site_stats.h); only what falls into the selected time is summed here.
 */
const sites = (function () {
"use strict";

const el = format.el, NS = "http://www.w3.org/2000/svg";
const names = ["integral", "low", "high", "mean", "deviation", "intercept", "slope", "slope_low", "slope_high", "r2", "first", "last",
	"temporary", "lifetime", "live", "variance", "weight", "burst_from", "burst_to", "mate", "mate_r", "wait", "role"];
const VERSION = 2; /* PAGE_DETAIL_VERSION */
let data = null, box = null, chosen = null, table = null, choice = null;

/* --- where rows come from -------------------------------------------------------------------------------- */

function choices(run) {
	const of_profiles = run.details.map((d) => {
		const p = run.profiles.find((x) => x.id === d.profile), t = p.types[d.type];
		return { id: p.id, title: p.source + ": " + t.name, detail: d, profile: p, type: d.type, unit: t.unit, rate: t.unit + "/s" };
	});
	return of_profiles.concat(run.series.filter((s) => /^(alloc_series|live_series|census|rss_breakdown|workload)$/.test(s.id))
		.map((s) => ({ id: s.id, title: s.title, table: s, unit: null })));
}

/* A time in a second is a number of CPUs or threads. */
const show_rate = (n, unit) => unit === "nanoseconds/s" ? (n / 1e9).toPrecision(3) : format.value(n, unit);
const show_slope = (n, unit) => unit === "nanoseconds/s" ? (n / 1e9).toPrecision(3) + "/s" : unit === "byte-milliseconds/s" ? format.value(n, unit) + "/s" : format.value(n, unit).replace(/\/s$/, "/s²").replace(/([^²])$/, /\/s$/.test(unit) ? "$1" : "$1/s");

/* The site of each node is the first that has the same functions from the root on (page_data.h). */
function site_of_node(p) {
	const { nodes, frames, strings } = p, functions = new Map(), sites = new Map(), of_frame = new Int32Array(frames.n), site = new Int32Array(nodes.n);
	for (let f = 0; f < frames.n; f++) {
		const key = (frames.name[f] * strings.length + frames.module[f]) * 256 + frames.kind[f];
		if (!functions.has(key))
			functions.set(key, functions.size);
		of_frame[f] = functions.get(key);
	}
	for (let i = 1; i < nodes.n; i++) {
		const key = site[nodes.parent[i]] * functions.size + of_frame[nodes.frame[i]];
		if (!sites.has(key))
			sites.set(key, i);
		site[i] = sites.get(key);
	}
	return site;
}

/* Each site's samples. */
function samples_by_site(p) {
	const site = site_of_node(p), out = new Map();
	for (let s = 0; s < p.samples.n; s++) {
		const at = site[p.samples.node[s]];
		if (!out.has(at))
			out.set(at, []);
		out.get(at).push(s);
	}
	return out;
}

/* The rows of a profile's statistics; made once, as panes share them. */
const made = new Map();
function of_profile(data, c) {
	if (!made.has(c.detail))
		made.set(c.detail, read_rows(data, c));
	return made.get(c.detail);
}

async function read_rows(data, c) {
	const bytes = await data.bytes(c.detail.data), r = new report_data.Reader(bytes), p = await data.load(c.profile);
	if (r.number("the version") !== VERSION)
		throw new Error("The statistics in this page have another version than this page reads.");
	const texts = report_data.read_strings(r), n = r.number("the number of sites"), index = (limit, what) => {
		const column = new Int32Array(n);
		for (let i = 0; i < n; i++)
			column[i] = r.index(limit, what);
		return column;
	};
	const node = index(p.nodes.n, "the node of a site"), fn = index(texts.length, "the function of a site"), module = index(texts.length, "the module of a site");
	const floats = new Float32Array(bytes.slice(r.at, r.at + 4 * names.length * n).buffer);
	if (floats.length !== names.length * n)
		throw new Error("The statistics in this page are damaged: they end early.");
	const entry = times.of_type(p, c.type), samples = samples_by_site(p);
	const rows = [];
	for (let i = 0; i < n; i++) {
		const row = { rank: i + 1, node: node[i], p, source: c.profile, entry, samples: samples.get(node[i]) || [], unit: c.unit, rate: c.rate,
			fn: texts[fn[i]], module: texts[module[i]] };
		names.forEach((name, k) => { row[name] = floats[k * n + i]; });
		rows.push(row);
	}
	tell_apart(rows);
	return rows;
}

/* What details say of a profile, as `of_profile` takes it; null: nothing. */
function choice_of(run, profile) {
	const detail = run.details.find((d) => d.profile === profile.id);
	return detail ? { detail, profile, type: detail.type, unit: profile.types[detail.type].unit, rate: profile.types[detail.type].unit + "/s" } : null;
}

function of_table(c) {
	const rows = c.table.columns.filter((col) => col.name !== "OTHER").map((col) => ({ name: col.name, values: col.values, x: c.table.times, rate: col.unit,
		unit: /\/s$/.test(col.unit) ? col.unit.replace("/s", "") : col.unit + "·s", low: 0, high: 0, ...col.stats }));
	rows.sort((a, b) => b.integral - a.integral);
	rows.forEach((r, i) => { r.rank = i + 1; });
	return rows;
}

/* --- names, stacks, lines ---------------------------------------------------------------------------------------- */

const full_name = (fn, module) => fn + (module ? " [" + module.replace(/^\[|\]$/g, "") + "]" : "");

function site_name(r) {
	if (r.name !== undefined)
		return composition.short(r.name);
	if (r.label === undefined)
		r.label = r.fn ? full_name(r.fn, r.module) : composition.site_name(r.p, r.node, r.source);
	return r.label;
}

/* The functions of a row's stack, from the root. */
function functions_of(r) {
	const { nodes, frames, strings } = r.p, out = [];
	for (let at = r.node; at > 0; at = nodes.parent[at])
		out.unshift(strings[frames.name[nodes.frame[at]]]);
	return out;
}

function frames_of(r) {
	if (r.name !== undefined)
		return r.name.split(";").reverse();
	const { nodes, frames, strings } = r.p, out = [];
	for (let at = r.node; at > 0; at = nodes.parent[at]) {
		const f = nodes.frame[at], module = strings[frames.module[f]], file = strings[frames.file[f]];
		out.push(strings[frames.name[f]] + (module ? "  [" + module.replace(/^\[|\]$/g, "") + "]" : "") +
			(file && frames.line[f] ? "  " + file.replace(/^.*\//, "") + ":" + frames.line[f] : ""));
	}
	return out;
}

/* Rows of one name are different stacks: `apart` becomes the function where each left the others. */
function split(group, at) {
	if (group.length < 2)
		return;
	const first = group[0].functions, branches = new Map();
	while (at < first.length && group.every((r) => r.functions[at] === first[at]))
		at++;
	for (const r of group) {
		r.apart = r.functions[at] || "itself";
		branches.set(r.apart, (branches.get(r.apart) || []).concat(r));
	}
	if (branches.size > 1)
		branches.forEach((branch) => split(branch, at + 1));
}

function tell_apart(rows) {
	const groups = new Map();
	for (const r of rows) {
		r.functions = functions_of(r);
		groups.set(site_name(r), (groups.get(site_name(r)) || []).concat(r));
	}
	groups.forEach((group) => split(group, 0));
}

/* Values a second over the run, in at most `most` points: means, for a line of a few pixels. */
function over_time(r, most) {
	if (r.values) {
		const step = Math.max(1, Math.ceil(r.values.length / most)), out = [];
		for (let i = 0; i < r.values.length; i += step)
			out.push(r.values.slice(i, i + step).reduce((a, b) => a + (b || 0), 0) / Math.min(step, r.values.length - i));
		return out;
	}
	const n = data.run.n_bins, step = Math.max(1, Math.ceil(n / most)), out = new Array(Math.ceil(n / step)).fill(0);
	for (const s of r.samples)
		for (let i = r.entry.first[s]; i < r.entry.first[s + 1]; i++)
			out[Math.floor(r.entry.bin[i] / step)] += r.entry.value[i];
	return out;
}

function spark(r) {
	const v = over_time(r, 60), high = Math.max(1e-300, ...v), svg = document.createElementNS(NS, "svg"), path = document.createElementNS(NS, "path");
	svg.setAttribute("viewBox", "0 0 90 20");
	svg.setAttribute("class", "spark");
	svg.setAttribute("role", "img");
	svg.setAttribute("aria-label", "over time: highest " + (high > 1e-299 ? "at " + format.seconds((v.indexOf(high) + .5) / v.length * data.run.seconds) : "nowhere"));
	path.setAttribute("d", v.map((y, i) => (i ? "L" : "M") + (v.length < 2 ? 0 : 90 * i / (v.length - 1)).toFixed(1) + " " + (19 - 18 * y / high).toFixed(1)).join(""));
	svg.append(path);
	return svg;
}

/* --- the selected time ------------------------------------------------------------------------------------------------ */

function in_range(r, range) {
	let sum = 0;
	if (r.values) {
		const x = r.x;
		for (let i = 0; i < x.length; i++)
			if (x[i] >= range.from && x[i] < range.to)
				sum += (r.values[i] || 0) * ((i + 1 < x.length ? x[i + 1] : x[i]) - (i ? x[i - 1] : x[i])) / 2;
		return sum;
	}
	for (const s of r.samples)
		for (let i = r.entry.first[s]; i < r.entry.first[s + 1]; i++)
			if (r.entry.bin[i] >= range.from_bin && r.entry.bin[i] < range.to_bin)
				sum += r.entry.value[i];
	return sum;
}

function follow(range) {
	for (const r of choice.rows)
		r.selected = range ? in_range(r, range) : r.integral;
	table.update(choice.rows);
}

/* --- the pane -------------------------------------------------------------------------------------------------------------- */

const interval = (low, high, show, unit) => Number.isFinite(low) && Number.isFinite(high) && high > low ? show(low, unit) + " to " + show(high, unit) : "";
const fixed = (n) => Number.isFinite(n) ? n.toFixed(2) : "";

/* The leak that the run's verdict found at this site, of allocations and of what lives. */
function leak_of(r) {
	const alloc = data.summary && data.summary.alloc, name = r.fn || site_name(r);
	if (!/bytes/.test(r.unit))
		return undefined;
	return ((alloc && alloc.leaks) || []).find((l) => l.function && (name === l.function || name.startsWith(l.function + " ")));
}

const mate_of = (r) => Number.isFinite(r.mate) ? choice.rows[r.mate] : undefined;
/* A burst of fewer than ten samples is chance. */
const is_short = (r) => r.burst_to - r.burst_from <= data.run.seconds / 4 && !(r.integral * r.integral < 10 * r.variance);
const between = (a, b) => format.clock(a) + " to " + format.clock(b);

/* What a row is marked with: [word, class, why]. */
function marks(r) {
	const out = [], leak = leak_of(r), mate = mate_of(r);
	if (leak)
		out.push(["leak", "bad", "A leak, according to the run's verdict: it holds " + format.bytes(leak.live_bytes || 0) + ", grows by " + format.bytes(leak.bytes_s || 0) + "/s" +
			(interval(leak.low, leak.high, format.value, "bytes/s") ? " (95% interval " + interval(leak.low, leak.high, format.value, "bytes/s") + ")" : "") +
			" since " + format.clock(leak.since_s || 0) + (leak.retained ? ", and " + format.percent(leak.retained, 1) + " of its blocks older than " +
			format.seconds(leak.retained_age_s || 0) + " are still live" : "") + "."]);
	if (is_short(r))
		out.push(["burst", "warn", "Four fifths of its cost came from " + between(r.burst_from, r.burst_to) + "."]);
	if (mate)
		out.push(["with " + format.grouped(mate.rank), "", "It rises and falls together with " + format.grouped(mate.rank) + ", " + site_name(mate) +
			": correlation " + r.mate_r.toFixed(3) + "."]);
	return out;
}

function why(r) {
	const out = marks(r).map((m) => m[2]);
	if (r.slope_low > 0)
		out.push("It grows: the whole interval of its slope is above 0.");
	else if (r.slope_high < 0)
		out.push("It shrinks: the whole interval of its slope is below 0.");
	return out;
}

function unfold(r, td) {
	td.append(...why(r).map((text) => el("p", {}, text)), el("p", { className: "dim" }, "Line: " + show_rate(r.intercept, r.rate) + " at the begin, " + show_slope(r.slope, r.rate) +
		(interval(r.slope_low, r.slope_high, show_slope, r.rate) ? " (95% interval " + interval(r.slope_low, r.slope_high, show_slope, r.rate) + ")" : "") + "."),
	el("ol", { className: "stack" }, ...frames_of(r).map((f) => el("li", { className: "frame" }, f))));
}

function make_table(rows) {
	const end = data.run.seconds, estimated = rows.some((r) => r.high > r.low), traced = rows.some((r) => Number.isFinite(r.temporary));
	return tables.make({ caption: "Sites, over the whole run", rows, page: 25, filter: "Filter sites", unfold, changed: () => data.changed(), sort: [0, false], columns: [
		{ title: "Rank", number: true, key: (r) => r.rank, text: (r) => format.grouped(r.rank) },
		{ title: "Site", filter: true, key: (r) => site_name(r) + (r.apart ? " " + r.apart : ""), hint: "marks: leak; burst, most of the cost in a short time; correlated with another row",
			cell: (r, td) => td.append(site_name(r), ...(r.apart ? [el("span", { className: "dim" }, " " + r.apart)] : []), ...marks(r).map(([word, kind, text]) => el("span", { className: "mark " + kind, title: text }, word))) },
		{ title: "Over time", key: (r) => r.last, cell: (r, td) => td.append(spark(r)) },
		{ title: "Selected", number: true, key: (r) => r.selected, text: (r) => format.value(r.selected, r.unit), hint: "in the selected time" },
		{ title: "Total", number: true, key: (r) => r.integral, text: (r) => format.value(r.integral, r.unit), hint: "the integral over the run" },
		...(estimated ? [{ title: "95% interval", number: true, key: (r) => r.high - r.low, text: (r) => interval(r.low, r.high, format.value, r.unit), hint: "of the total, which is an estimate" }] : []),
		{ title: "Mean", number: true, key: (r) => r.mean, text: (r) => show_rate(r.mean, r.rate) },
		{ title: "Deviation", number: true, key: (r) => r.deviation, text: (r) => show_rate(r.deviation, r.rate), hint: "standard deviation over time" },
		{ title: "Slope", number: true, key: (r) => r.slope, text: (r) => show_slope(r.slope, r.rate), hint: "of the least-squares line; its interval unfolds" },
		{ title: "R²", number: true, key: (r) => r.r2, text: (r) => fixed(r.r2) },
		{ title: "Age", number: true, key: (r) => end - r.first, text: (r) => Number.isFinite(r.first) ? format.seconds(Math.max(0, end - r.first)) : "", hint: "from its first value to the end of the run" },
		...(traced ? [{ title: "Temporary", number: true, key: (r) => r.temporary, text: (r) => Number.isFinite(r.temporary) ? format.percent(r.temporary, 1) : "",
			hint: "freed before their thread allocated anything else" },
		{ title: "Lifetime", number: true, key: (r) => r.lifetime, text: (r) => Number.isFinite(r.lifetime) ? format.ns(r.lifetime) : "", hint: "mean, of blocks that were freed" },
		{ title: "Live", number: true, key: (r) => r.live, text: (r) => Number.isFinite(r.live) ? format.bytes(r.live) : "", hint: "at the end of the run" }] : [])] });
}

async function rebuild() {
	choice.rows = chosen.table ? of_table(chosen) : await of_profile(data, chosen);
	for (const r of choice.rows)
		r.selected = r.integral;
	const next = make_table(choice.rows), all = chosen.detail ? chosen.detail.sites : 0;
	if (table)
		table.el.remove();
	table = next;
	choice.note.textContent = (all > choice.rows.length ? "The " + format.grouped(choice.rows.length) + " largest of " + format.grouped(all) + " sites. " : "") +
		(chosen.profile && chosen.profile.estimate ? "Estimates: " + chosen.profile.estimate + ". " : "") + (chosen.unit === "nanoseconds" ? "A mean of 1 is one CPU, or one thread that waits. " : "");
	box.append(table.el);
	if (data.range())
		follow(data.range());
	data.changed();
}

panes.add({
	id: "sites",
	title: "Sites",
	available: (d) => !d.comparison && choices(d.run).length > 0 && d.run.seconds > 0,
	async make(element, d) {
		data = d;
		box = element;
		const all = choices(d.run), select = el("select", { id: "sites-of" }, ...all.map((c) => el("option", { value: c.id }, c.title)));
		chosen = all.find((c) => c.id === "alloc") || all[0];
		select.value = chosen.id;
		select.addEventListener("change", () => {
			chosen = all.find((c) => c.id === select.value);
			rebuild();
		});
		choice = { select, all, note: el("p", { className: "dim" }), rows: [] };
		box.append(el("div", { className: "tools" }, el("span", {}, el("label", { htmlFor: "sites-of" }, "Of "), select)), choice.note);
		await rebuild();
	},
	select(range) {
		if (table)
			follow(range);
	},
	state: () => ({ of: chosen.id, sort: table ? table.sorted()[0] + (table.sorted()[1] ? "-" : "+") : "", find: table ? table.text() : "" }),
	async restore(s) {
		const other = choice.all.find((c) => c.id === s.of), order = /^(\d+)([+-])$/.exec(s.sort || "");
		if (other && other !== chosen) {
			chosen = other;
			choice.select.value = other.id;
			await rebuild();
		}
		if (order && +order[1] < table.n_columns)
			table.sort(+order[1], order[2] === "-");
		if (s.find)
			table.filter(s.find);
	},
});

return { of_profile, choice_of, in_range, site_of_node, full_name };
})();
