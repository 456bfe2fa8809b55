/*
 * What was behind a point of a chart: the functions with most of that time, and the way to their stacks. A click on any chart over
 * time opens it below the chart, and selects that time in every pane.
 */
const moment = (function () {
"use strict";

const { el } = format;

/* Which profile has the stacks behind a chart, the best first; else any that has times. */
function profile_of(run, ids) {
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
	const found = await functions(data, p, bin, bin + 1), all = found.rows.reduce((sum, r) => sum + r[1], 0);
	const title = "At " + format.clock(bin * width) + (run.started ? " (" + format.time_of_day(run.started + bin * width) + ")" : "") + ", " + p.source;
	const close = el("button", { type: "button" }, "Close");
	close.addEventListener("click", () => {
		box.replaceChildren();
		data.select(null);
	});
	box.replaceChildren(el("div", { className: "panel moment" }, el("div", { className: "tools" }, stacks_button(data, p, found.type), close),
		tables.make({ caption: title, rows: found.rows, page: 6, empty: "Nothing of it in this time.", columns: [
			{ title: "Function", filter: true, key: (r) => r[0] },
			{ title: width === 1 ? "In this second" : "In this time", number: true, key: (r) => r[1], text: (r) => format.value(r[1], found.unit) },
			{ title: "Share", number: true, key: (r) => r[1], text: (r) => format.percent(r[1], all) }] }).el));
	box.scrollIntoView({ block: "nearest" });
}

return { show, stacks_button, profile_of };
})();
