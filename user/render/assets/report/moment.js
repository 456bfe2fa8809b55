/*
 * What was behind a point of a chart: the functions with most of that time, and the way to their stacks. A click on any chart over
 * time opens it below the chart, and selects that time in every pane.
 */
const moment = (function () {
"use strict";

const { el } = format;

/* Which profile has the stacks behind a chart, the best first; else any that has times. */
function profile_of(run, ids) {
	if (run.profiles.some((p) => p.parts)) /* of a comparison: any that both sides have */
		return ids.map((id) => run.profiles.find((p) => p.id === id)).find(Boolean) || null;
	for (const id of [...ids, ...run.details.map((d) => d.profile)]) {
		const p = run.profiles.find((x) => x.id === id), detail = run.details.find((x) => x.profile === id);
		if (p && detail)
			return p;
	}
	return null;
}

/* By function, what profile `p` has from bin `from` to before `to`. */
async function functions(data, p, from, to) {
	const choice = sites.choice_of(data.run, p), sums = new Map();
	for (const r of await sites.of_profile(data, choice)) {
		let sum = 0;
		for (const s of r.samples)
			for (let i = r.entry.first[s]; i < r.entry.first[s + 1]; i++)
				if (r.entry.bin[i] >= from && r.entry.bin[i] < to)
					sum += r.entry.value[i];
		const name = r.fn ? sites.full_name(r.fn, r.module) : composition.site_name(r.p, r.node, r.source);
		if (sum > 0)
			sums.set(name, (sums.get(name) || 0) + sum);
	}
	return { unit: choice.unit, type: choice.type, rows: [...sums].sort((a, b) => b[1] - a[1]) };
}

/* The same of both sides of a comparison, means of their runs. null: it has no times. */
async function functions_of_sides(data, p, from, to) {
	const decoded = await data.load(p), entry = decoded.times.find((t) => t.type === p.shown_type) || decoded.times[0], sums = new Map();
	if (!entry)
		return null;
	await composition.know_askers(data, p);
	for (let s = 0; s < decoded.samples.n; s++)
		for (let i = entry.first[s]; i < entry.first[s + 1]; i++)
			if (entry.bin[i] >= from && entry.bin[i] < to) {
				const name = composition.site_name(decoded, decoded.samples.node[s], p), side = decoded.sets.side[decoded.samples.set[s]];
				const two = sums.get(name) || [0, 0];
				two[side] += entry.value[i] / data.sides[side].runs.length;
				sums.set(name, two);
			}
	return { unit: p.types[entry.type].unit, type: entry.type, rows: [...sums].sort((a, b) => Math.max(...b[1]) - Math.max(...a[1])) };
}

/* A button that shows the stacks of `p` in the time that is selected. */
function stacks_button(data, p, type) {
	const button = el("button", { type: "button" }, "Flame graph of this time (" + p.source + ")");
	button.addEventListener("click", () => data.go("flame", { source: p.id, value: String(type) }));
	return button;
}

/* Fills `box` with what was there at `at` seconds, and selects it. `ids`: of profiles, as profile_of() takes them. */
async function show(data, box, at, ids) {
	const run = data.run, width = run.bin_seconds, bin = Math.max(0, Math.min(run.n_bins - 1, Math.floor(at / width + 1e-9))), p = width ? profile_of(run, ids) : null;
	if (!p) {
		box.replaceChildren();
		return;
	}
	data.select({ from: bin * width, to: (bin + 1) * width });
	const both = !!data.comparison, found = await (both ? functions_of_sides : functions)(data, p, bin, bin + 1);
	if (!found) {
		box.replaceChildren();
		return;
	}
	const all = found.rows.reduce((sum, r) => sum + (both ? 0 : r[1]), 0), what = width === 1 ? "in this second" : "in this time";
	const number = (title, key, text) => ({ title, number: true, key, text }), show_value = (v) => format.value(v, found.unit);
	const columns = both ? [number("Before, " + what, (r) => r[1][0], (r) => show_value(r[1][0])), number("After", (r) => r[1][1], (r) => show_value(r[1][1])),
		number("Change", (r) => Math.abs(r[1][1] - r[1][0]), (r) => compare.change(...r[1], found.unit))] :
		[number(what[0].toUpperCase() + what.slice(1), (r) => r[1], (r) => show_value(r[1])), number("Share", (r) => r[1], (r) => format.percent(r[1], all))];
	const title = "At " + format.clock(bin * width) + (run.started ? " (" + format.time_of_day(run.started + bin * width) + ")" : "") + ", " + p.source;
	const close = el("button", { type: "button" }, "Close");
	close.addEventListener("click", () => {
		box.replaceChildren();
		data.select(null);
	});
	box.replaceChildren(el("div", { className: "panel moment" }, el("div", { className: "tools" }, stacks_button(data, p, found.type), close),
		tables.make({ caption: title, rows: found.rows, page: 6, empty: "It has no samples in this time.", columns: [
			{ title: "Function", filter: true, key: (r) => r[0] },
			...columns] }).el));
	box.scrollIntoView({ block: "nearest" });
}

return { show, stacks_button, profile_of };
})();
