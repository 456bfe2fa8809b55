/* The overview of a comparison: both verdicts, what changed most and whether that is more than noise, and whether the sides are comparable. */
const compare_overview = (function () {
"use strict";

const el = format.el;
const MOST = 12; /* changes in the list */
let data = null;

/* Beside the title: what was compared, when, how long. */
function facts(d) {
	const of = d.comparison.sides.map((side, k) => {
		const first = side.runs[0].run, n = side.runs.length, parts = [];
		if (first.started)
			parts.push(format.date(first.started));
		if (d.comparison.lengths[k])
			parts.push(format.seconds(d.comparison.lengths[k]) + (n > 1 ? " on average" : ""));
		return side.name + ": " + (n > 1 ? n + " runs" : first.title) + (parts.length ? " (" + parts.join(", ") + ")" : "");
	});
	return of.concat("memscope " + d.run.memscope + (d.run.charts ? "" : ", built without charts: tables are shown instead")).join(" \u00b7 ");
}

/* --- verdicts ------------------------------------------------------------------------------------------------ */

function verdict(r, name) {
	const s = r.summary, v = s && s.verdict || {}, box = el("div", {}, el("h3", {}, name));
	box.append(el("p", { className: "sentence" }, s ? v.sentence || "The run has no verdict." : "There is no summary of this run, so there is no verdict."));
	if (v.next)
		box.append(el("p", { className: "dim" }, v.next));
	for (const d of s && s.diagnoses || [])
		box.append(el("p", {}, el("b", {}, d.kind + ": "), d.evidence));
	for (const l of overview.leaking_functions(s && s.alloc && s.alloc.leaks || []))
		box.append(el("p", { className: "bad" }, "Leak: ", el("b", { className: "name" }, l.function), " grows by " + format.bytes(l.bytes_s || 0) + "/s."));
	return box;
}

function verdicts() {
	const box = overview.section("Verdicts");
	box.classList.add("verdict");
	const sides = data.sides.map((side) => el("div", {}, ...side.runs.map((r, i) => verdict(r, side.name + (side.runs.length > 1 ? ", run " + (i + 1) : "") + ": " + r.run.title))));
	const kinds = data.sides.map((side) => [...new Set(side.runs.map((r) => r.summary && r.summary.verdict && r.summary.verdict.kind).filter(Boolean))].join(" or "));
	box.append(el("p", {}, kinds[0] && kinds[1] ? kinds[0] === kinds[1] ? "The verdict is the same on both sides: " + kinds[0] + "." : "From " + kinds[0] + " to " + kinds[1] + "." : ""),
		el("div", { className: "pair" }, ...sides), el("p", { className: "dim" }, compare.scale_text(data.comparison, null)));
	return box;
}

/* --- scalars ---------------------------------------------------------------------------------------------------- */

const scalar_names = { duration_ns: "Duration", cpu_ns: "CPU time", blocked_ns: "Blocked", runnable_ns: "Waiting for a CPU", rss_peak_bytes: "RSS, peak",
	rss_last_bytes: "RSS, last", alloc_bytes: "Allocated", alloc_objects: "Allocations", live_bytes: "Live at the end", resident_bytes: "Made resident" };
const of_time = /^(cpu_ns|blocked_ns|runnable_ns|alloc_bytes|alloc_objects|resident_bytes)$/;

function scalars() {
	const c = data.comparison, all = Object.entries(c.figures.scalars || {});
	if (!all.length)
		return null;
	const rows = all.map(([key, v]) => {
		const per_second = of_time.test(key) && c.scaled === "seconds", factor = per_second && c.lengths[0] > 0 ? c.lengths[1] / c.lengths[0] : 1;
		const unit = /_ns$/.test(key) ? "nanoseconds" : /_bytes$/.test(key) ? "bytes" : "count", percent = compare.percent(v.before * factor, v.after);
		return el("tr", {}, el("th", { scope: "row" }, scalar_names[key] || key), ...[v.before, v.after].map((x) => el("td", { className: "number" }, format.value(x, unit))),
			el("td", { className: "number" }, percent + (per_second && percent ? " a second" : "")),
			el("td", { className: "word" }, v.within_noise === true ? "within noise" : v.within_noise === false ? "beyond noise" : ""));
	});
	return overview.section("The runs as a whole", table_of("Figures of the runs as a whole", ["", "Before", "After", "Change", ""], rows), el("p", { className: "dim" }, c.several ?
		"Means of runs; noise is their 95% interval." : "With one run a side, a change of the program cannot be told from variation between runs; compare several (memscope diff A1 A2 A3 -- B1 B2 B3)."));
}

function table_of(name, titles, rows) {
	return el("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": name }, el("table", {}, el("thead", {}, el("tr", {}, ...titles.map((t, i) =>
		t ? el("th", { scope: "col", className: i && i < titles.length - 1 ? "number" : "" }, t) : el("td")))), el("tbody", {}, ...rows)));
}

/* --- what changed most ---------------------------------------------------------------------------------------------- */

/* The changed functions of every source, by how large a part of its source each is. */
async function changed() {
	const c = data.comparison, out = [];
	let compared = 0;
	for (const p of data.run.profiles) {
		const f = c.figure(p.id, p.types[p.shown_type]);
		if (!f)
			continue;
		compared++;
		const whole = Math.max(...f.total);
		for (const r of await c.rows_of(f, "functions"))
			if (r.changed)
				out.push({ p, f, r, part: whole > 0 ? Math.abs(r.self[1] - r.self[0]) / whole : 0 });
	}
	out.sort((a, b) => b.part - a.part);
	return { out, compared };
}

async function changes() {
	const { out, compared } = await changed(), box = overview.section("Largest changes");
	box.classList.add("verdict");
	if (!compared) {
		box.append(el("p", {}, "The sides have no profile in common."));
		return box;
	}
	if (!out.length)
		box.append(el("p", {}, "No function changed by more than noise and " + format.percent(data.comparison.figures.least, 1) + " of its source."));
	const rows = out.slice(0, MOST).map(({ p, f, r }) => {
		const button = el("button", { type: "button", className: "link name" }, (r.function || "[unknown]").slice(0, 200)), show = (v) => format.value(v, f.unit);
		button.addEventListener("click", () => data.go("flame", { source: p.id, function: r.function }));
		return el("tr", {}, el("td", {}, p.source), el("td", { className: "number" }, show(r.self[0])), el("td", { className: "number" }, show(r.self[1])),
			el("td", { className: "number" }, compare.change(r.self[0], r.self[1], f.unit)), el("td", { className: "number" }, r.self_noise === null ? "exact" : "\u00b1 " + show(r.self_noise)),
			el("td", { className: "word" }, r.what), el("th", { scope: "row", className: "name" }, button, el("span", { className: "dim" }, " " + (r.module || ""))));
	});
	if (rows.length) {
		const table = table_of("Functions with the largest changes", ["Source", "Before", "After", "Change", "95% interval", "What", "Function"], rows);
		for (const th of [...table.querySelectorAll("th[scope=col]")].filter((x) => /^(Source|What|Function)$/.test(x.textContent)))
			th.className = "";
		box.append(table);
	}
	box.append(el("p", { className: "dim" }, (out.length > MOST ? format.grouped(out.length - MOST) + " more in Sites. " : "") +
		"A function has changed when its own value differs by more than chance explains, at a false discovery rate of 1% over all functions, and by " +
		format.percent(data.comparison.figures.least, 1) + " of the total."));
	return box;
}

/* Of each source its total, and how many functions changed. */
function sources() {
	const c = data.comparison, rows = data.run.profiles.map((p) => {
		const f = c.figure(p.id, p.types[p.shown_type]), name = el("th", { scope: "row" }, p.source + " ", el("span", { className: "dim" }, p.types[p.shown_type].name));
		if (!f) {
			const of = [0, 1].map((k) => p.parts.filter((x) => x.side === k).length);
			return el("tr", {}, name, el("td", { colSpan: 4 }, of[0] && of[1] ? "nothing to compare" : "only " + (of[0] ? "before" : "after")));
		}
		const show = (v) => format.value(v, f.unit), by = f.total[1] - f.total[0];
		return el("tr", {}, name, el("td", { className: "number" }, show(f.total[0])), el("td", { className: "number" }, show(f.total[1])),
			el("td", { className: "number" }, compare.percent(...f.total) || "no change"), el("td", { className: "word" }, f.exact ? "exact" : Math.abs(by) <= f.total_noise ? "within noise" : "\u00b1 " + show(f.total_noise)),
			el("td", { className: "number" }, format.grouped(f.changed) + " changed"));
	});
	return rows.length ? overview.section("Sources", table_of("Totals of the sources", ["Source", "Before", "After", "Change", "Noise", "Functions"], rows)) : null;
}

/* --- the rest of an overview ------------------------------------------------------------------------------------------ */

const time_parts = [["On a CPU", "oncpu_ns"], ["Blocked", "blocked_ns"], ["Runnable", "runnable_ns"], ["Held", "held_ns"]];

/* Parts of a whole as a description of tables.of(). */
const time_split = (s) => s.time && s.time.wall_ns ? { caption: "Where thread time went", complete: true, rows: time_parts.map(([name, key]) => ({ name, v: s.time[key] || 0 }))
	.filter((r) => r.v), columns: [{ title: "State", key: (r) => r.name }, { title: "Time", number: true, unit: "nanoseconds", key: (r) => r.v }] } : null;

function rss(s) {
	const r = s.rss_breakdown;
	if (!r || !r.parts)
		return null;
	const rows = Object.entries(r.parts).map(([key, p]) => ({ name: overview.part_names[key] || key, v: r.measure === "pss" ? p.pss_bytes : p.resident_bytes }));
	return { caption: "RSS breakdown", complete: true, rows: rows.filter((x) => x.v), columns: [{ title: "Part", key: (x) => x.name }, { title: "Bytes", number: true, state: true, unit: "bytes", key: (x) => x.v }] };
}

panes.add({
	id: "overview",
	title: "Overview",
	available: (d) => !!d.comparison,
	async make(box, d) {
		data = d;
		const lost = overview.section("Are the sides comparable?", losses.comparable(d)), measured = data.sides.flatMap((side) => side.runs.slice(0, 1).map((r) => {
			const part = r.summary ? overview.measured(data, r.summary) : null;
			if (part)
				part.querySelector("h2").textContent = side.name + ": how it was measured";
			return part;
		}));
		const split = tables.of(d, [time_split, rss]).map((t) => el("div", { className: "panel across" }, t));
		box.append(el("div", { className: "grid" }, ...[verdicts(), await changes(), scalars(), sources(), lost, ...split, ...measured].filter(Boolean)));
	},
});

return { facts };
})();
