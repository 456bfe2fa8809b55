/* The table of a composition of two sides: each part before and after, its change, and what memscope diff says of the function it is. */
const compare_parts = (function () {
"use strict";

/* What the difference has of every function of the chosen value, where it is a profile's. */
async function changes(data, chosen) {
	const f = chosen.profile && data.comparison.figure(chosen.profile.id, chosen.profile.types[chosen.type]);
	const rows = f ? await data.comparison.rows_of(f, "functions") : [], all = new Map();
	for (const r of rows)
		all.set(r.function + (r.module ? " [" + r.module.replace(/^\[|\]$/g, "") + "]" : ""), r);
	return all;
}

const bare = (name) => name.replace(/ \[[^\]]*\/([^\]/]*)\]$/, " [$1]");

/*
 * `of_sides`: each side's totals by part, `wholes` their sums. Sums of profiles are scaled as the difference is; of several runs with factors of
 * their own by the mean of those. A part of one function whose values are those that the difference compared has its noise.
 */
function rows(data, chosen, parts, of_sides, wholes, diff_rows, by) {
	const range = data.range(), is_sum = !!chosen.profile || chosen.id === "alloc_series", c = data.comparison;
	const f = chosen.profile && c.figure(chosen.profile.id, chosen.profile.types[chosen.type]);
	const scale = !is_sum || range || (f ? f.scaled === "absolute" : c.scaled !== "seconds") ? 1 :
		f ? (f.raw_total[0] > 0 ? f.total[0] / f.raw_total[0] : 1) : c.lengths[0] > 0 ? c.lengths[1] / c.lengths[0] : 1;
	return parts.map((b, i) => {
		const before = of_sides[0][i] * scale, after = of_sides[1][i], row = by === "site" && !range && diff_rows ? diff_rows.get(bare(b.name)) : null;
		const unit = f && f.unit === "nanoseconds" ? 1e-9 : 1;
		const same = row && [before, after].every((v, k) => Math.abs(v - row.self[k] * unit) <= .01 * Math.max(1e-12, Math.abs(v)));
		return { b, i, before, after, shares: [[of_sides[0][i], wholes[0]], [of_sides[1][i], wholes[1]]],
			noise: same && row.self_noise !== null ? row.self_noise * unit : null, what: same ? row.what : "" };
	});
}

function columns(swatch, what, show, short) {
	const share = (k) => ({ title: k ? "Share after" : "Share before", number: true, key: (r) => r.shares[k][0], text: (r) => format.percent(...r.shares[k]) });
	const by = (r) => r.after - r.before;
	return [{ title: "Shown", key: (r) => r.i, cell: (r, td) => td.append(swatch(r)) }, { title: "Part", filter: true, key: (r) => short(r.b.name) },
		{ title: "Before" + (what ? ", " + what.trim() : ""), number: true, key: (r) => r.before, text: (r) => show(r.before) },
		{ title: "After" + (what ? ", " + what.trim() : ""), number: true, key: (r) => r.after, text: (r) => show(r.after) },
		{ title: "Change", number: true, key: (r) => Math.abs(by(r)), text: (r) => (by(r) > 0 ? "+" : by(r) < 0 ? "\u2212" : "") + show(Math.abs(by(r))) },
		{ title: "%", number: true, key: (r) => r.before ? by(r) / r.before : Infinity, text: (r) => compare.percent(r.before, r.after) },
		{ title: "\u00b1 95%", number: true, key: (r) => r.noise || 0, text: (r) => r.noise === null ? "" : show(r.noise) },
		{ title: "What", key: (r) => r.what }, share(0), share(1)];
}

return { changes, rows, columns };
})();
