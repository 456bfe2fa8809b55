/*
 * The flame graph of a comparison: a tree of the stacks of both sides, with what each side has in every frame (tree.sides), how wide frames are, and
 * what is known of a change. Values of a side are the mean of its runs, scaled as the difference is (compare.js, factors()).
 */
const flame_compare = (function () {
"use strict";

/* What frames are as wide as. Of both: the larger of the two selfs, so that what only one side has has its full width (frame_tree.h). */
const WIDTHS = [["both", "both sides"], ["before", "before"], ["after", "after"]];
const COLORS = [["sure", "change beyond noise"], ["change", "change"], ["kind", "kind of code"], ["module", "module"]];

/* The weight of each sample on its side, on the other 0. `weight`: as measured; `factors`: of each run, by number. */
function split(weight, { samples, sets }, factors) {
	const sides = [new Float64Array(samples.n), new Float64Array(samples.n)];
	for (let s = 0; s < samples.n; s++)
		if (weight[s] > 0)
			sides[sets.side[samples.set[s]]][s] = weight[s] * factors[sets.run[samples.set[s]]];
	return sides;
}

/* Sums both sides in every frame, and makes frames as wide as `width` says. */
function sum_up(tree, weights, width) {
	const { n, of_sample, parent, total } = tree;
	const sides = tree.sides = tree.sides || [new Float64Array(n), new Float64Array(n)];
	sides.forEach((side, k) => {
		side.fill(0);
		for (let s = 0; s < of_sample.length; s++)
			if (of_sample[s] >= 0)
				side[of_sample[s]] += weights[k][s];
	});
	for (let i = 0; i < n; i++)
		total[i] = Math.max(sides[0][i], sides[1][i]);
	for (let i = n - 1; i > 0; i--) {
		sides[0][parent[i]] += sides[0][i];
		sides[1][parent[i]] += sides[1][i];
		total[parent[i]] += total[i];
	}
	if (width !== "both")
		total.set(sides[width === "before" ? 0 : 1]);
}

/* Each run's value of frame i: of several runs a side what its change is held against. */
function values_of_runs(tree, i, weight, { samples, sets }, comparison, factors) {
	const sums = new Float64Array(factors.length), end = tree.end[i];
	for (let s = 0; s < samples.n; s++)
		if (tree.of_sample[s] >= i && tree.of_sample[s] < end && weight[s] > 0)
			sums[sets.run[samples.set[s]]] += weight[s];
	return comparison.sides.map((side, k) => comparison.runs.map((r, n) => [r.side, sums[n] * factors[n] * comparison.sides[r.side].runs.length])
		.filter(([of]) => of === k).map(([, v]) => v));
}

/* Rows of memscope diff by function, for look-ups by name and module. */
function by_function(rows) {
	const all = new Map();
	for (const r of rows)
		all.set(r.function + "\n" + r.module, r);
	return all;
}
const base = (module) => module.slice(module.lastIndexOf("/") + 1);
/* As the difference calls modules: without folders; the kernel's is "[kernel]". */
const row_of = (rows, name, module) => rows.get(name + "\n" + module) || rows.get(name + "\n" + base(module)) || null;

/* "3.1 s → 4.3 s, +1.2 s (+38.7%), within noise" */
function change_text(before, after, text, noise) {
	const by = after - before, percent = compare.percent(before, after);
	return text(before) + " \u2192 " + text(after) + ", " + (by ? (by > 0 ? "+" : "\u2212") + text(Math.abs(by)) : "no change") +
		(percent ? " (" + percent + ")" : "") + (noise === null || noise === undefined || !by ? "" : Math.abs(by) <= noise ?
		", within noise (\u00b1 " + text(noise) + ")" : " \u00b1 " + text(noise));
}

/*
 * Half the 95 % interval of the change of a function, all of which a frame's is a part of: `f` the figures of the value type, or null, `rows` by
 * function, `fn` below 0: the whole. null: it is not known, or there is none.
 */
function function_noise(f, rows, fn, name, module) {
	if (!f || f.exact)
		return null;
	const row = fn >= 0 && rows ? row_of(rows, name, module) : null;
	return row ? row.total_noise : fn < 0 ? f.total_noise : null;
}

const noise_of_runs = (...of) => compare.interval(...values_of_runs(...of));

/* Both sides of frame i: its change, its shares, and what stays in it. */
function figures(tree, i, text, noise) {
	const [before, after] = tree.sides.map((side) => side[i]), parts = [change_text(before, after, text, noise)];
	parts.push(tree.sides.map((side) => format.percent(side[i], side[0])).join(" \u2192 ") + (tree.fn >= 0 ? " of this function" : " of all"));
	if (tree.form === "calls" || tree.form === "callees")
		parts.push("self " + tree.sides.map((side) => text(flame_model.self_of(tree, i, side))).join(" \u2192 "));
	return parts.join(" \u00b7 ");
}

function legend(t) {
	return [["halved or less, or gone", 0], ["the same, or within noise", flame_colors.STEPS / 2], ["doubled or more, or new", flame_colors.STEPS]]
		.map(([text, k]) => [text, flame_colors.of_changes(t)[k]]);
}

return { WIDTHS, COLORS, split, sum_up, by_function, function_noise, noise_of_runs, figures, legend };
})();
