/* What was lost, which stacks are incomplete and why, which code has no names: so that nobody trusts more than was seen. */
const losses = (function () {
"use strict";

const el = format.el;
const verdicts = [["complete", "Complete"], ["truncated", "Truncated"], ["guessed", "Guessed"], ["no_table", "No table"],
	["unreadable", "Unreadable"], ["lost", "Lost"]];

function stacks(s) {
	const rows = s.stacks || [], whole = (r) => verdicts.reduce((sum, [k]) => sum + (r[k] || 0), 0);
	return rows.length && ({ caption: "Stacks, by completeness", rows, columns: [{ title: "Source", key: (r) => r.source },
		...verdicts.map(([k, title]) => ({ title, number: true, key: (r) => r[k], text: (r) => r[k] ? format.grouped(r[k]) + " (" +
			format.percent(r[k], whole(r)) + ")" : "0" }))] });
}

function incomplete(s) {
	const rows = s.incomplete_stacks || [];
	return rows.length && ({ caption: "Code at which stacks became incomplete", filter: true, rows, sort: [2, true], columns: [
		{ title: "Module", filter: true, key: (r) => r.module }, { title: "Why", filter: true, key: (r) => r.verdict },
		{ title: "Events", number: true, key: (r) => r.events, text: (r) => format.grouped(r.events) }] });
}

function drops(s) {
	const rows = s.drops || [];
	return rows.length && ({ caption: "Counters of loss", complete: true, page: 50, rows, sort: [1, true], columns: [
		{ title: "What was not counted, or not wholly", filter: true, key: (r) => r.help },
		{ title: "Count", number: true, key: (r) => r.count, text: (r) => format.grouped(r.count) },
		{ title: "Counter", filter: true, key: (r) => r.name }] });
}

function symbols(s) {
	const rows = (s.symbols && s.symbols.worst) || [];
	return rows.length && ({ caption: "Modules whose locations have no symbol", rows, sort: [1, true], columns: [
		{ title: "Module", filter: true, key: (r) => r.module }, { title: "Locations", number: true, state: true, key: (r) => r.locations,
			text: (r) => format.grouped(r.locations) }, { title: "Why", filter: true, key: (r) => r.reason },
		{ title: "Package with names", filter: true, key: (r) => r.debug_package || "" }] });
}

/* What a run lost, in a few sentences. */
function said(run, prefix) {
	const s = run.summary || {}, lost = (s.drops || []).filter((x) => x.count), k = s.symbols;
	const out = [el("p", {}, prefix + (lost.length ? "Something was lost: " + lost.map((x) => format.grouped(x.count) + " " + x.help).slice(0, 6).join("; ") + "." :
		"No counter of loss is above 0."))];
	if (k && k.locations)
		out.push(el("p", {}, prefix + "Locations with a symbol: " + format.grouped(k.symbolized) + " of " + format.grouped(k.locations) + " (" +
			format.percent(k.symbolized, k.locations) + ")."));
	for (const p of run.run.profiles)
		if (p.estimate)
			out.push(el("p", {}, el("b", {}, prefix + p.source + ": "), "values are estimates. " + p.estimate + "."));
	return out;
}

/* --- are two sides comparable? -------------------------------------------------------------------------------------------- */

const names = (list) => [...new Set(list)].join(", ");

/* A figure of each side, the mean of its runs; what differs by more than `least` (a part of the larger) is said. */
function differs(data, of, least, factor = () => 1) {
	const [a, b] = data.sides.map((side) => side.runs.map((r) => (of(r.summary || {}) || 0) * factor(r)).reduce((x, y) => x + y, 0) / side.runs.length);
	return Math.abs(a - b) > least * Math.max(a, b) ? [a, b] : null;
}

/* Sentences about what makes figures of the sides not comparable; none: nothing is known that does. */
function differences(data) {
	const summaries = data.sides.map((side) => side.runs.map((r) => r.summary).filter(Boolean)), all = summaries.flat(), out = [];
	if (!all.length)
		return out;
	if (data.sides.some((side, k) => side.runs.length > summaries[k].length))
		out.push("A run has no summary, so its losses are not known.");
	for (const name of new Set(all.flatMap((s) => (s.drops || []).map((d) => d.name)))) {
		const of = (s) => { const d = (s.drops || []).find((x) => x.name === name); return d ? d.count : 0; }, two = differs(data, of, .1, data.comparison.table_factor);
		if (two)
			out.push("Lost " + format.count(two[0]) + " before and " + format.count(two[1]) + " after: " + all.flatMap((s) => s.drops || []).find((d) => d.name === name).help + ".");
	}
	for (const source of new Set(all.flatMap((s) => (s.stacks || []).map((k) => k.source)))) {
		const share = (list) => {
			const rows = list.map((s) => (s.stacks || []).find((k) => k.source === source)).filter(Boolean);
			const whole = rows.reduce((sum, r) => sum + verdicts.reduce((x, [k]) => x + (r[k] || 0), 0), 0);
			return whole ? rows.reduce((sum, r) => sum + r.complete, 0) / whole : null;
		}, [a, b] = summaries.map(share);
		if (a !== null && b !== null && Math.abs(a - b) > .05)
			out.push("Complete stacks of " + source + ": " + format.percent(a, 1) + " before, " + format.percent(b, 1) + " after: functions near the root are known for different parts.");
	}
	const tiers = summaries.map((list) => names(list.map((s) => s.alloc && s.alloc.tier || "none")));
	if (tiers[0] !== tiers[1])
		out.push("Allocations were measured differently: " + tiers.join(" before, ") + " after.");
	const rates = summaries.map((list) => names(list.map((s) => s.oncpu && s.oncpu.hz).filter(Boolean)));
	if (rates[0] && rates[1] && rates[0] !== rates[1])
		out.push("CPUs were sampled at " + rates.join(" Hz before and ") + " Hz after: this changes counts of samples, not times.");
	for (const name of new Set(all.flatMap((s) => Object.keys(s.sources || {})))) {
		const states = summaries.map((list) => names(list.map((s) => s.sources && s.sources[name] ? s.sources[name].state : "none")));
		if (states[0] !== states[1])
			out.push("Source " + name + ": " + states.join(" before, ") + " after.");
	}
	const cost = differs(data, (s) => s.cost && s.cost.target_percent, .25);
	if (cost && Math.abs(cost[0] - cost[1]) > 2)
		out.push("Overhead: " + cost.map((v) => v.toFixed(1) + "%").join(" of the target's CPU time before, ") + " after.");
	return out;
}

/* As a list with a heading, or a sentence that there is nothing. */
function comparable(data) {
	const list = differences(data);
	return list.length ? el("div", {}, el("p", { className: "bad" }, "Losses or settings differ: figures may not be comparable."),
		el("ul", {}, ...list.map((text) => el("li", {}, text)))) : el("p", {}, data.sides.every((side) => side.runs.every((r) => r.summary)) ?
		"Settings and losses are the same on both sides." : "There are no summaries, so losses are not known.");
}

panes.add({
	id: "losses",
	title: "Losses",
	available: (d) => d.sides.some((side) => side.runs.some((r) => r.summary)),
	make(box, d) {
		const sentences = d.sides.flatMap((side) => side.runs.flatMap((r, i) => said(r, d.comparison ? side.name +
			(side.runs.length > 1 ? " (run " + (i + 1) + ")" : "") + ": " : "")));
		if (d.comparison)
			box.append(comparable(d));
		box.append(...sentences, ...tables.of(d, [stacks, incomplete, symbols, drops]), el("p", { className: "dim" },
			"Of the whole run: losses have no times, so this pane does not follow the selected time."));
	},
});

return { comparable, differences };
})();
