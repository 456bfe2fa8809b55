/*
 * The source pane of a comparison: the lines that did the work on either side, and how that changed. The text of lines is in each run's own
 * report.html; here they are named by file and number, so that what only moved within a file stands as one line gone and one new.
 */
(function () {
"use strict";

const el = format.el;
let data = null, box = null, table = null, chosen = null, note = null, select = null;

const title = (p) => p.source + ": " + p.types[p.shown_type].name;

/* Of each line its self cost in every run, of the selected time: { file, line, name, runs }. */
async function lines_of(p, range) {
	const profile = await data.load(p), { nodes, frames, strings, samples, sets } = profile, type = p.shown_type, entry = times.of_type(profile, type);
	const in_time = range && entry, factors = data.comparison.factors(p.id, p.types[type], in_time ? range : null), rows = new Map();
	for (let s = 0; s < samples.n; s++) {
		const node = samples.node[s], f = node ? nodes.frame[node] : -1, run = sets.run[samples.set[s]];
		if (f < 0 || !frames.file[f] || !frames.line[f])
			continue;
		let value = in_time ? 0 : samples.values[type][s];
		for (let i = entry ? entry.first[s] : 0; in_time && i < entry.first[s + 1]; i++)
			if (entry.bin[i] >= range.from_bin && entry.bin[i] < range.to_bin)
				value += entry.value[i];
		const key = frames.file[f] * 2 ** 31 + frames.line[f];
		if (!rows.has(key))
			rows.set(key, { file: strings[frames.file[f]], line: frames.line[f], name: strings[frames.name[f]], runs: new Float64Array(factors.length) });
		rows.get(key).runs[run] += value > 0 ? value * factors[run] * data.sides[sets.side[samples.set[s]]].runs.length : 0;
	}
	return [...rows.values()].map((r) => {
		const sides = [0, 1].map((k) => data.comparison.runs.map((run, i) => [run.side, r.runs[i]]).filter(([side]) => side === k).map(([, v]) => v));
		return Object.assign(r, { before: compare.moments(sides[0]).mean, after: compare.moments(sides[1]).mean, noise: compare.interval(...sides) });
	});
}

function columns(unit, several) {
	const by = (r) => r.after - r.before, number = (name, key, text) => ({ title: name, number: true, key, text }), show = (v) => format.value(v, unit);
	return [{ title: "Line", filter: true, key: (r) => r.file.replace(/^.*\//, "") + ":" + r.line, of: (r) => r.file }, { title: "Function", filter: true, key: (r) => r.name },
		number("Before", (r) => r.before, (r) => show(r.before)), number("After", (r) => r.after, (r) => show(r.after)),
		number("Change", (r) => Math.abs(by(r)), (r) => compare.change(r.before, r.after, unit)), number("%", (r) => r.before ? by(r) / r.before : Infinity, (r) => compare.percent(r.before, r.after)),
		...(several ? [number("\u00b1 95%", (r) => r.noise, (r) => show(r.noise)), { title: "What", className: "word", key: (r) => Math.abs(by(r)) <= r.noise ? "within noise" : by(r) > 0 ? "more" : "less" }] : [])];
}

async function rebuild(range) {
	const rows = await lines_of(chosen, range), unit = chosen.types[chosen.shown_type].unit;
	if (table)
		table.el.remove();
	table = tables.make({ caption: title(chosen) + ", self by line" + (range ? ", in the selected time" : ""), rows, page: 25, filter: "Filter lines", sort: [4, true],
		columns: columns(unit, data.comparison.several), empty: "No sample of it has a source line; the program has no debug info, or none was found." });
	note.textContent = compare.scale_text(data.comparison, range) + (data.comparison.several ? "" : " With one run a side, the noise of a line is not known; Sites has that of functions.");
	box.append(table.el);
}

panes.add({
	id: "source",
	title: "Source",
	available: (d) => !!d.comparison && d.run.profiles.length > 0,
	async make(element, d) {
		data = d;
		box = element;
		select = el("select", { id: "lines-of" }, ...d.run.profiles.map((p) => el("option", { value: p.id }, title(p))));
		chosen = d.run.profiles[0];
		select.addEventListener("change", () => {
			chosen = d.run.profiles.find((p) => p.id === select.value);
			box.setAttribute("aria-busy", "true");
			rebuild(data.range()).finally(() => box.removeAttribute("aria-busy"));
		});
		note = el("p", { className: "dim" });
		box.append(el("div", { className: "tools" }, el("span", {}, el("label", { htmlFor: "lines-of" }, "Of "), select)), note);
		await rebuild(d.range());
	},
	select(range) {
		if (table)
			rebuild(range);
	},
	state: () => ({ of: chosen ? chosen.id : "" }),
	async restore(s) {
		const other = data.run.profiles.find((p) => p.id === s.of);
		if (!other || other === chosen)
			return;
		chosen = other;
		select.value = other.id;
		await rebuild(data.range());
	},
});
})();
