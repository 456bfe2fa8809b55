/*
 * What makes up a quantity over time: its largest sites, modules or types as a stacked area or as lines, and the rest as OTHER, so
 * that the area is always the whole. From profiles whose samples have times, and from the tables over time.
 */
const composition = (function () {
"use strict";

const el = format.el, OTHER = "OTHER";
let data = null, graphs = [], pair = null, box = null, controls = null, table = null, spot = null, legend = null, whole = null, chosen = null;
/*
 * What is drawn. Each side (of a report: one) has times x, how long each lasts (span), of each part its values then, and how many of its runs
 * were still there (part of them; of one run 1).
 */
let parts = [], sides = [], hidden = new Set(), by_bins = false, unit = "", changes = null;
const state = { of: "", by: "site", n: 15, as: "area" };

/* --- where parts come from ------------------------------------------------------------------------------ */

function choices(run, data) {
	const all = [];
	for (const p of run.profiles)
		if (run.n_bins)
			for (const [i, t] of p.types.entries())
				all.push({ id: p.id + "/" + t.name + "/" + t.unit, title: p.source + ": " + t.name + (t.unit === "count" ? " (count)" : ""), profile: p, type: i });
	for (const s of data.sides.flatMap((side) => side.runs[0].run.series))
		if (/^(alloc_series|live_series|census|rss_breakdown)$/.test(s.id) && !all.some((c) => c.id === s.id))
			all.push({ id: s.id, title: s.title, tables: data.sides.map((side) => times.series(side.runs[0].run, s.id)) });
	return all;
}

/* Types without times cannot be known before the profile is read: those are left out then. */
async function known(all) {
	const out = [];
	for (const c of all) {
		if (c.profile && !times.of_type(await data.load(c.profile), c.type))
			continue;
		out.push(c);
	}
	return out;
}

const rate_units = { nanoseconds: [1e-9, "threads"], bytes: [1, "bytes/s"], count: [1, "count/s"], "byte-milliseconds": [1e-3, "bytes"] };

/*
 * By site: of memory the function that asked, which allocators and the kernel work for; of waits the one that waits; of time on a
 * CPU the one that was there.
 */
const below_site = /^(__libc_)?(malloc|calloc|realloc|free|memalign|aligned_alloc|posix_memalign|mmap|munmap|operator new.*|_?PyObject_Malloc|_?PyMem_.*|PyObject_Realloc)$/;

const asks = (source) => source.id !== "oncpu";
const allocates = (source) => !/^(oncpu|offcpu|goroutine|wakers|syscalls)$/.test(source.id);

function site_of(p, node, source) {
	const { nodes, frames, strings } = p;
	let at = node;
	while (at > 0 && frames.kind[nodes.frame[at]] !== 2)
		at = nodes.parent[at];
	if (at > 0)
		return at; /* of an interpreted program its own code, not the interpreter's */
	at = node;
	while (at > 0 && asks(source)) {
		const f = nodes.frame[at], kind = frames.kind[f];
		if (kind !== 1 && kind !== 5 && !(allocates(source) && below_site.test(strings[frames.name[f]])))
			return at;
		at = nodes.parent[at];
	}
	return node;
}

/* The function that each site's value belongs to, as memscope found it (analyse/sites.h): by the site's first node. */
const askers = new Map();
async function know_askers(source) {
	if (askers.has(source.id))
		return;
	const p = await data.load(source), site = sites.site_of_node(p), of = new Map();
	/* A comparison's profile is made of those of its runs, which have statistics each. */
	const all = source.parts ? source.parts.map((part, i) => ({ run: data.comparison.runs[part.run].run, entry: part.entry, nodes: p.part_nodes[i] })) :
		[{ run: data.run, entry: source }];
	for (const { run, entry, nodes } of all) {
		const choice = sites.choice_of(run, entry);
		for (const r of choice ? await sites.of_profile(data, choice) : [])
			if (r.fn)
				of.set(nodes ? site[nodes[r.node]] : r.node, r);
	}
	if (of.size)
		askers.set(source.id, { of, site });
}

function group_name(p, node, by, source) {
	const known = askers.get(source.id), asker = known && known.of.get(known.site[node]);
	if (asker && by !== "stack")
		return by === "module" ? asker.module || "[no module]" : sites.full_name(asker.fn, asker.module);
	const { nodes, frames, strings } = p;
	if (!node)
		return "[no stack]";
	if (by === "stack") {
		const names = [];
		for (let at = node; at > 0; at = nodes.parent[at])
			names.push(strings[frames.name[nodes.frame[at]]]);
		return names.reverse().join(";");
	}
	const f = nodes.frame[site_of(p, node, source)];
	const module = strings[frames.module[f]];
	if (by === "module")
		return module || "[no module]";
	return strings[frames.name[f]] + (module ? " [" + module.replace(/^\[|\]$/g, "") + "]" : "");
}

/* Parts by their totals on all sides, largest first, the rest in OTHER. Of several runs a side, its values are their mean. */
async function of_profile(choice) {
	const p = await data.load(choice.profile), entry = times.of_type(p, choice.type), run = data.run, bins = times.bins(run);
	await know_askers(choice.profile);
	const [factor, shown_unit] = rate_units[choice.profile.types[choice.type].unit] || [1, choice.profile.types[choice.type].unit + "/s"];
	const number = new Map(), names = [], group_of = new Int32Array(p.samples.n), total = [], by_node = new Map();
	const runs_of = data.sides.map((side) => side.runs.length), side_of = (s) => p.sets.side ? p.sets.side[p.samples.set[s]] : 0;
	for (let s = 0; s < p.samples.n; s++) {
		const node = p.samples.node[s];
		let g = by_node.get(node);
		if (g === undefined) {
			const name = group_name(p, node, state.by, choice.profile);
			g = number.get(name);
			if (g === undefined) {
				number.set(name, g = names.length);
				names.push(name);
				total.push(0);
			}
			by_node.set(node, g);
		}
		group_of[s] = g;
		for (let i = entry.first[s]; i < entry.first[s + 1]; i++)
			total[g] += entry.value[i] / runs_of[side_of(s)];
	}
	const order = names.map((n, i) => i).sort((a, b) => total[b] - total[a]);
	const rank = new Int32Array(names.length), most = Math.min(state.n, names.length);
	order.forEach((g, i) => { rank[g] = Math.min(i, most); });
	const n = names.length > most ? most + 1 : most;
	const sums = times.by_group(entry, run.n_bins, group_of.map((g, i) => side_of(i) * (most + 1) + rank[g]), (most + 1) * runs_of.length);
	by_bins = true;
	unit = shown_unit;
	parts = Array.from({ length: n }, (_, i) => ({ name: i < most ? names[order[i]] : OTHER }));
	sides = data.sides.map((side, k) => {
		const there = bins.width.map((width, b) => side.runs.reduce((sum, r) => sum + Math.max(.05, Math.min(1, (r.run.seconds - b * run.bin_seconds) / width)), 0));
		return { x: bins.middle, span: bins.width, there: there.map((m) => m / side.runs.length),
			values: parts.map((b, i) => times.rate(sums[k * (most + 1) + i].map((v, bin) => v / there[bin]), bins.width, factor)) };
	});
}

/* The columns of a table that are parts, and how much each is over time. */
function columns_of(t) {
	const area = (values) => values.reduce((sum, v, i) => sum + (v || 0) * ((t.times[i + 1] || t.times[i]) - (t.times[i - 1] || t.times[i])), 0);
	return t.columns.filter((c) => c.unit !== "count" && !/^(rss|pss|live_bytes|traced_bytes|unexplained|not_read_rss)$/.test(c.name))
		.map((c) => ({ name: c.name, unit: c.unit, values: c.values, area: area(c.values) }));
}

function of_table(choice) {
	const tables_of = choice.tables.map((t) => t || { times: [], columns: [] }), columns = tables_of.map(columns_of), sums = new Map();
	for (const c of columns.flat())
		if (c.name !== OTHER)
			sums.set(c.name, (sums.get(c.name) || 0) + c.area);
	const names = [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a)), largest = names.slice(0, state.n);
	const has_rest = names.length > largest.length || columns.flat().some((c) => c.name === OTHER);
	by_bins = false;
	unit = columns.flat().length ? columns.flat()[0].unit : "bytes";
	parts = largest.concat(has_rest ? [OTHER] : []).map((name) => ({ name }));
	sides = tables_of.map((t, k) => {
		const x = t.times, rest = columns[k].filter((c) => !largest.includes(c.name));
		return { x, span: x.map((time, i) => x.length < 2 ? 1 : ((x[i + 1] === undefined ? time : x[i + 1]) - (i ? x[i - 1] : time)) / 2), there: x.map(() => 1),
			values: parts.map(({ name }, i) => i < largest.length ? (columns[k].find((c) => c.name === name) || { values: x.map(() => 0) }).values :
				x.map((time, j) => rest.reduce((sum, c) => sum + (c.values[j] || 0), 0))) };
	});
}

/* --- names of parts ------------------------------------------------------------------------------------------ */

const frames_of = (name) => name.split(";");

/* "main;load;malloc" is shown by its site, and has its stack below. */
function short(name) {
	const frames = frames_of(name);
	if (frames.length === 1)
		return name;
	let i = frames.length - 1;
	while (i >= 0 && !/ \([^()]+\.\w+\)$/.test(frames[i]))
		i--; /* "parse (app.py)": the program's own code, not its interpreter's */
	if (i < 0)
		i = frames.length - 1;
	while (i > 0 && below_site.test(frames[i]))
		i--;
	return frames[i] + (i ? " ← " + frames[i - 1] : "");
}

/*
 * The 95 % interval of each part's total, where totals are estimates: from those of its sites, which add up as squares; those that rest
 * on the same bursts err together, and so are added up as they are, which is wide rather than narrow.
 */
async function add_intervals() {
	whole = null;
	const detail = chosen.profile && data.run.details.find((d) => d.profile === chosen.profile.id && d.type === chosen.type);
	if (!detail)
		return;
	const rows = await sites.of_profile(data, { detail, profile: chosen.profile, type: chosen.type }), of = new Map(parts.map((b) => [b.name, [0, 0, 0]]));
	if (rows.length < detail.sites)
		return;
	const place = new Map(parts.map((b, i) => [b.name, i])), part_of = (r) => {
		const i = place.get(group_name(r.p, r.node, state.by, chosen.profile));
		return i === undefined ? parts.length - 1 : i;
	};
	add_intervals_over_time(rows, detail, part_of);
	for (const r of rows) {
		const sum = of.get(parts[part_of(r)].name);
		const down = r.integral - r.low, up = r.high - r.integral;
		sum[0] += r.integral;
		sum[1] += detail.bursts ? down : down * down;
		sum[2] += detail.bursts ? up : up * up;
	}
	for (const b of parts) {
		const [total, down, up] = of.get(b.name);
		b.low = Math.max(0, total - (detail.bursts ? down : Math.sqrt(down)));
		b.high = total + (detail.bursts ? up : Math.sqrt(up));
		b.scale = chosen.profile.types[chosen.type].unit === "nanoseconds" ? 1e-9 : 1;
	}
}

/* Those of each bin: of each part, and of all. */
function add_intervals_over_time(rows, detail, part_of) {
	const n = data.run.n_bins, width = times.bins(data.run).width, factor = (rate_units[chosen.profile.types[chosen.type].unit] || [1])[0];
	const errors = times.variances(rows, n, detail.bursts, part_of, parts.length), all = times.variances(rows, n, detail.bursts, () => 0, 1);
	if (!errors)
		return;
	const sums = times.by_rows(rows, n, part_of, parts.length);
	parts.forEach((b, i) => Object.assign(b, { over_time: times.interval_rates(sums[i], errors[i], width, factor) }));
	whole = times.interval_rates(times.by_rows(rows, n, () => 0, 1)[0], all[0], width, factor);
}

/* A bar as long as the total, and a line from one end of its interval to the other. */
function whisker(r, longest) {
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), at = (v) => (90 * v / longest).toFixed(1);
	svg.setAttribute("viewBox", "0 0 92 12");
	svg.setAttribute("class", "whisker");
	svg.setAttribute("aria-hidden", "true");
	for (const [name, d] of [["bar", `M0 6H${at(r.b.scale ? r.sum / r.b.scale : 0)}`], ["line", `M${at(r.b.low)} 6H${at(r.b.high)}M${at(r.b.low)} 2V10M${at(r.b.high)} 2V10`]]) {
		const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
		path.setAttribute("class", name);
		path.setAttribute("d", d);
		svg.append(path);
	}
	return svg;
}

/* Only of all of the run: what part of an error falls into a time is not known. */
function interval_columns() {
	const longest = Math.max(...parts.map((b) => b.high || 0));
	if (!(longest > 0) || data.range())
		return [];
	const show = (v) => format.value(v, chosen.profile.types[chosen.type].unit);
	return [{ title: "95% interval", number: true, key: (r) => r.b.high - r.b.low, text: (r) => r.b.high > r.b.low ? show(r.b.low) + " to " + show(r.b.high) : "" },
		{ title: "Drawn", key: (r) => r.b.high, cell: (r, td) => td.append(whisker(r, longest)) }];
}

/* Sums of a side over the selected time, or all of it: rates times seconds, amounts as their mean. */
function totals({ x, span, there, values }) {
	const range = data.range(), per_s = /\/s$|^threads$/.test(unit), out = parts.map(() => 0);
	let all = 0;
	for (let i = 0; i < x.length; i++) {
		/* Bins that reach into the selected time are in it, as in every other pane; readings are where they were made. */
		if (range && (by_bins ? i < range.from_bin || i >= range.to_bin : x[i] < range.from || x[i] >= range.to))
			continue;
		all += span[i];
		parts.forEach((b, k) => { out[k] += (values[k][i] || 0) * span[i] * there[i]; });
	}
	return parts.map((b, k) => per_s ? out[k] : all ? out[k] / all : 0);
}

function total_unit() {
	return unit === "threads" ? "seconds" : unit.replace(/\/s$/, "");
}

/* --- the pane ------------------------------------------------------------------------------------------------ */

function swatch(r) {
	const shown = !hidden.has(r.b.name), key = el("span", { className: "key" });
	const button = el("button", { type: "button", className: "swatch", "aria-pressed": String(shown),
		"aria-label": "Show " + short(r.b.name).slice(0, 80) }, key);
	if (shown)
		key.style.background = r.b.name === OTHER ? "var(--line)" : charts.colour(r.i);
	button.addEventListener("click", () => toggle(r.i));
	return button;
}

/* Of rates their total, of amounts their mean. */
function make_legend() {
	const total = /\/s$|^threads$/.test(unit);
	table = tables.make({ caption: data.comparison ? "Parts, largest change first" : "Parts, largest first", page: 31, rows: [],
		sort: [data.comparison ? 4 : 3, true], columns: data.comparison ? compare_parts.columns(swatch, total ? "" : "mean", (v) => format.value(v, total_unit()), short) : [
		{ title: "Shown", key: (r) => r.i, cell: (r, td) => td.append(swatch(r)) },
		{ title: "Part", filter: true, key: (r) => short(r.b.name) },
		{ title: "Share", number: true, key: (r) => r.sum, text: (r) => format.percent(r.sum, r.whole) },
		{ title: total ? "Total" : "Mean", number: true, key: (r) => r.sum, text: (r) => format.value(r.sum, total_unit()) }, ...interval_columns()],
	unfold: (r, td) => td.append(stack_list(r.b.name)) });
	legend.replaceChildren(table.el);
	show_legend();
}

function show_legend() {
	const of_sides = sides.map(totals), wholes = of_sides.map((sums) => sums.reduce((a, b) => a + b, 0));
	table.update(data.comparison ? compare_parts.rows(data, chosen, parts, of_sides, wholes, changes, state.by) :
		parts.map((b, i) => ({ b, i, sum: of_sides[0][i], whole: wholes[0] })));
}

function toggle(i) {
	const name = parts[i].name;
	if (hidden.has(name))
		hidden.delete(name);
	else
		hidden.add(name);
	for (const chart of graphs)
		chart.show(i, !hidden.has(name));
	if (graphs.length > 1) /* one scale of values for both */
		for (const chart of graphs)
			chart.draw();
	show_legend();
}

function stack_list(name) {
	return el("ol", { className: "stack" }, ...frames_of(name).reverse().map((f) => el("li", { className: "frame" }, f)));
}

/* How long a reading stands for. */
const step_at = (x, i) => x.length > 1 ? (x[Math.min(i + 1, x.length - 1)] - x[Math.max(i - 1, 0)]) / (i > 0 && i < x.length - 1 ? 2 : 1) : 1;

/* What was there on a side at one moment: the spike, and the stacks behind it. */
function show_moment(side, i) {
	const { x, values } = sides[side], from = by_bins ? i * data.run.bin_seconds : x[i] - step_at(x, i) / 2, to = from + (by_bins ? data.run.bin_seconds : step_at(x, i));
	const source = chosen.profile || moment.profile_of(data.run, chosen.id === "alloc_series" || chosen.id === "live_series" ? ["alloc", "growth"] : ["growth", "alloc"]);
	data.select({ from, to });
	const rows = parts.map((b, k) => [b, values[k][i] || 0]).filter((r) => r[1] > 0).sort((a, b) => b[1] - a[1]);
	const detail = source && data.run.details.find((d) => d.profile === source.id), type = chosen.profile ? chosen.type : detail && detail.type;
	const title = (data.sides[side].name ? data.sides[side].name + ", at " : "At ") + format.seconds(x[i]);
	spot.replaceChildren(...[el("h3", {}, title), source ? el("p", {}, moment.stacks_button(data, source, type)) : null, tables.make({ caption: title,
		rows, page: 10, columns: [{ title: "Part", filter: true, key: (r) => short(r[0].name) },
			{ title: "Value", number: true, key: (r) => r[1], text: (r) => format.value(r[1], unit) }],
		unfold: (r, td) => td.append(stack_list(r[0].name)) }).el].filter(Boolean));
	spot.scrollIntoView({ block: "nearest" });
}

async function rebuild() {
	if (chosen.tables)
		of_table(chosen);
	else
		await of_profile(chosen);
	controls.by.parentElement.hidden = !!chosen.tables;
	const estimates = chosen.profile ? chosen.profile.estimates : /alloc_series|live_series/.test(chosen.id) && data.run.profiles.some((p) => p.id === "alloc" && p.estimates);
	if (data.comparison)
		changes = await compare_parts.changes(data, chosen);
	else
		await add_intervals();
	const live = !data.comparison && chosen.id === "live_series" && data.run.profiles.find((p) => p.id === "heap");
	if (live)
		whole = times.live_interval(sides[0].x.map((t, i) => sides[0].values.reduce((sum, v) => sum + (v[i] || 0), 0)), live);
	const note = (estimates ? "Estimates: " + (chosen.profile && chosen.profile.estimate || "allocations were sampled or traced in bursts") + ". " : "") + (whole ? state.as === "area" ?
		"Dashed: the 95% interval of the whole." : "The band behind a line is its 95% interval." : "");
	const all = sides.map((side, k) => ({ title: (data.sides[k].name ? data.sides[k].name + ": " : "") + chosen.title, times: side.x,
		stacked: state.as === "area", height: data.comparison ? 260 : 320, data, no_legend: true, whole, note,
		series: parts.map((b, i) => ({ label: short(b.name), unit, values: side.values[i], ...b.over_time, hidden: hidden.has(b.name),
			colour: b.name === OTHER ? getComputedStyle(document.documentElement).getPropertyValue("--line").trim() : undefined })),
		click: (i) => show_moment(k, i) }));
	for (const o of all)
		o.scale_of = all;
	graphs = all.map((o) => charts.make(o));
	pair.replaceChildren(...graphs.map((chart) => chart.el));
	for (const chart of graphs)
		chart.select(data.range());
	spot.replaceChildren();
	make_legend();
	data.changed();
}

function select_of(id, text, options, value, apply) {
	const select = el("select", { id }, ...options.map(([v, t]) => el("option", { value: v }, t)));
	select.value = value;
	select.addEventListener("change", () => {
		apply(select.value);
		box.setAttribute("aria-busy", "true");
		rebuild().finally(() => box.removeAttribute("aria-busy"));
	});
	return [el("span", {}, el("label", { htmlFor: id }, text + " "), select), select];
}

function make_controls(all) {
	const [of_box, of] = select_of("parts-of", "Of", all.map((c) => [c.id, c.title]), state.of, (v) => {
		chosen = all.find((c) => c.id === v);
		state.of = v;
	});
	const [by_box, by] = select_of("parts-by", "by", [["site", "function"], ["module", "module"], ["stack", "stack"]], state.by, (v) => { state.by = v; });
	const [n_box, n] = select_of("parts-n", "Parts", [5, 10, 15, 20, 30].map((v) => [String(v), String(v)]), String(state.n), (v) => { state.n = +v; });
	const [as_box, as] = select_of("parts-as", "as", [["area", "stacked area"], ["lines", "lines"]], state.as, (v) => { state.as = v; });
	controls = el("div", { className: "tools" }, of_box, by_box, n_box, as_box,
		el("span", { className: "dim" }, charts.has_charts() ? "Drag: select a time. Click: what was there then." : ""));
	Object.assign(controls, { of, by, n, as, all });
	return controls;
}

panes.add({
	id: "composition",
	title: "Composition",
	available: (d) => d.run.seconds > 0 && choices(d.run, d).length > 0,
	async make(element, d) {
		data = d;
		box = element;
		const all = await known(choices(d.run, d));
		if (!all.length) {
			box.append(el("p", {}, "No profile of this run has times, and no table over time is there."));
			return;
		}
		chosen = all.find((c) => c.id.startsWith("alloc/alloc_space")) || all.find((c) => c.id === "alloc_series") || all[0];
		state.of = chosen.id;
		spot = el("div", { "aria-live": "polite" });
		legend = el("div");
		pair = el("div", { className: "pair" });
		box.append(make_controls(all), pair, ...(d.comparison ? [el("p", { className: "dim" }, "Colours, order and scale are the same on both sides" +
			(d.comparison.several ? "; profiles are means of the runs, tables over time are those of the first run" : "") + ".")] : []), spot, legend);
		await rebuild();
	},
	select(range) {
		if (!graphs.length)
			return;
		for (const chart of graphs)
			chart.select(range);
		if (!range !== !legend.range) { /* intervals are of all of the run */
			legend.range = range;
			make_legend();
		} else {
			show_legend();
		}
	},
	state: () => ({ of: state.of, by: state.by, n: state.n, as: state.as }),
	async restore(s) {
		if (!controls)
			return;
		const other = controls.all.find((c) => c.id === s.of);
		if (other) {
			chosen = other;
			state.of = controls.of.value = other.id;
		}
		for (const key of ["by", "n", "as"])
			if (s[key] && [...controls[key].options].some((o) => o.value === s[key])) {
				controls[key].value = s[key];
				state[key] = key === "n" ? +s[key] : s[key];
			}
		await rebuild();
	},
});

return { short, know_askers: (d, source) => { data = d; return know_askers(source); }, site_name: (profile, node, source) => group_name(profile, node, "site", source) };
})();
