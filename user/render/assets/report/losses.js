/* What was lost, which stacks are incomplete and why, which code has no names: so that nobody trusts more than was seen. */
(function () {
"use strict";

const el = format.el;
const verdicts = [["complete", "Complete"], ["truncated", "Truncated"], ["guessed", "Guessed"], ["no_table", "No table"],
	["unreadable", "Unreadable"], ["lost", "Lost"]];

function stacks(s) {
	const rows = s.stacks || [], whole = (r) => verdicts.reduce((sum, [k]) => sum + (r[k] || 0), 0);
	return rows.length && ({ caption: "Stacks, by how they ended", rows, columns: [{ title: "Source", key: (r) => r.source },
		...verdicts.map(([k, title]) => ({ title, number: true, key: (r) => r[k], text: (r) => r[k] ? format.grouped(r[k]) + " (" +
			format.percent(r[k], whole(r)) + ")" : "0" }))] });
}

function incomplete(s) {
	const rows = s.incomplete_stacks || [];
	return rows.length && ({ caption: "The code in which stacks became incomplete", filter: true, rows, sort: [2, true], columns: [
		{ title: "Module", filter: true, key: (r) => r.module }, { title: "Why", filter: true, key: (r) => r.verdict },
		{ title: "Events", number: true, key: (r) => r.events, text: (r) => format.grouped(r.events) }] });
}

function drops(s) {
	const rows = s.drops || [];
	return rows.length && ({ caption: "Counters of loss", page: 50, rows, sort: [1, true], columns: [
		{ title: "What was not counted, or not wholly", filter: true, key: (r) => r.help },
		{ title: "Count", number: true, key: (r) => r.count, text: (r) => format.grouped(r.count) },
		{ title: "Counter", filter: true, key: (r) => r.name }] });
}

function symbols(s) {
	const rows = (s.symbols && s.symbols.worst) || [];
	return rows.length && ({ caption: "Modules whose locations have no symbol", rows, sort: [1, true], columns: [
		{ title: "Module", filter: true, key: (r) => r.module }, { title: "Locations", number: true, key: (r) => r.locations,
			text: (r) => format.grouped(r.locations) }, { title: "Why", filter: true, key: (r) => r.reason },
		{ title: "Package with names", filter: true, key: (r) => r.debug_package || "" }] });
}

panes.add({
	id: "losses",
	title: "Losses",
	available: (d) => !!d.summary,
	make(box, d) {
		const s = d.summary, lost = (s.drops || []).filter((x) => x.count), k = s.symbols;
		box.append(el("p", {}, lost.length ? "Something was lost: " + lost.map((x) => format.grouped(x.count) + " " + x.help).slice(0, 6).join("; ") + "." :
			"No counter of loss is above 0."));
		if (k && k.locations)
			box.append(el("p", {}, "Locations with a symbol: " + format.grouped(k.symbolized) + " of " + format.grouped(k.locations) + " (" +
				format.percent(k.symbolized, k.locations) + ")."));
		box.append(...tables.of(d, [stacks, incomplete, symbols, drops]));
		for (const p of d.run.profiles)
			if (p.estimate)
				box.append(el("p", {}, el("b", {}, p.source + ": "), "values are estimates. " + p.estimate + "."));
		box.append(el("p", { className: "dim" }, "Of the whole run: losses are counted, but not when they were, so that nothing here follows the selected time."));
	},
});
})();
