/* Values over time: of profiles whose samples have times, and of the run's tables. Nothing here touches the page. */
const times = (function () {
"use strict";

/* The times of value type `type` of a decoded profile; null: it has none. */
const of_type = (profile, type) => profile.times.find((t) => t.type === type) || null;

/* The middle of each bin, in seconds, and how long it lasted: the last may end with the run. */
function bins(run) {
	const middle = [], width = [];
	for (let b = 0; b < run.n_bins; b++) {
		const from = b * run.bin_seconds, rest = Math.min(run.bin_seconds, run.seconds - from);
		/* A run that says it ended before is not believed, as in C (page_details.c). */
		width.push(rest > run.bin_seconds / 100 ? rest : run.bin_seconds);
		middle.push(from + width[b] / 2);
	}
	return { middle, width };
}

/* A sum a bin: of all samples, or of those whose group is `wanted`. */
function by_bin(entry, n_bins) {
	const sum = new Float64Array(n_bins);
	for (let i = 0; i < entry.n; i++)
		if (entry.bin[i] < n_bins)
			sum[entry.bin[i]] += entry.value[i];
	return sum;
}

/* The same for each group: group_of[sample] is 0 … n_groups - 1, or below 0 for none. */
function by_group(entry, n_bins, group_of, n_groups) {
	const sums = Array.from({ length: n_groups }, () => new Float64Array(n_bins));
	for (let s = 0; s < group_of.length; s++) {
		const g = group_of[s];
		if (g < 0)
			continue;
		for (let i = entry.first[s]; i < entry.first[s + 1]; i++)
			if (entry.bin[i] < n_bins)
				sums[g][entry.bin[i]] += entry.value[i];
	}
	return sums;
}

/* The same of rows of statistics (sites.js). */
function by_rows(rows, n_bins, group_of, n_groups) {
	const sums = Array.from({ length: n_groups }, () => new Float64Array(n_bins));
	for (const r of rows) {
		const g = sums[group_of(r)];
		for (const s of r.samples)
			for (let i = r.entry.first[s]; i < r.entry.first[s + 1]; i++)
				if (r.entry.bin[i] < n_bins)
					g[r.entry.bin[i]] += r.entry.value[i];
	}
	return sums;
}

/* A rate: each bin's sum by how long it lasted, times `factor`. */
const rate = (sums, width, factor) => Array.from(sums, (v, b) => v / width[b] * (factor || 1));

/* --- intervals of estimates, as model/estimate.h has them ---------------------------------------------------- */

const Z = 1.959963984540054; /* 97.5 % of the normal distribution lie below */

/* Of an estimate x with variance v, of which one more sample would add c: x - low and high - x of the ends of (T - x)² = z² (v + c (x - T)). */
function interval(x, v, c) {
	const half = Math.sqrt(Z * Z * c * c / 4 + v);
	return { low: Math.max(0, Math.min(x, x + Z * (Z * c / 2 - half))), high: x + Z * (Z * c / 2 + half) };
}

/*
 * The variance of each group's sum in each bin: of a site's variance a bin has the part that it has of the site's value, as samples are
 * independent. Sites that rest on the same bursts (`bursts`) err together: their deviations are added, not their squares.
 * `group_of(row)` is 0 … n_groups - 1. The result: [{v, c}] by group, c what one more sample adds on average; null: all was counted.
 */
function variances(rows, n_bins, bursts, group_of, n_groups) {
	const out = Array.from({ length: n_groups }, () => ({ v: new Float64Array(n_bins), c: 0, all: 0 }));
	let any = false;
	for (const r of rows) {
		if (!(r.variance > 0) || !(r.integral > 0))
			continue;
		const g = out[group_of(r)];
		any = true;
		if (r.weight > 0) {
			g.c += r.variance * r.weight;
			g.all += r.variance;
		}
		const own = new Float64Array(n_bins);
		for (const s of r.samples)
			for (let i = r.entry.first[s]; i < r.entry.first[s + 1]; i++)
				if (r.entry.bin[i] < n_bins)
					own[r.entry.bin[i]] += r.entry.value[i];
		for (let b = 0; b < n_bins; b++)
			if (own[b] > 0)
				g.v[b] += bursts ? Math.sqrt(r.variance * own[b] / r.integral) : r.variance * own[b] / r.integral;
	}
	for (const g of out) {
		if (bursts)
			g.v = g.v.map((x) => x * x);
		g.c = g.all > 0 ? g.c / g.all : 0;
	}
	return any ? out : null;
}

/* {low, high} of a group's rates: `sums` by bin, as by_bin() has them, `factor` as rate() takes it. */
function interval_rates(sums, group, width, factor) {
	const low = [], high = [], whole = Math.max(...width) / 2;
	sums.forEach((x, b) => {
		if (width[b] < whole) { /* the rest of a bin at the end: a rate of it is mostly chance */
			low.push(null);
			high.push(null);
			return;
		}
		const i = interval(Math.max(0, x), group.v[b], group.c);
		low.push(i.low / width[b] * (factor || 1));
		high.push(i.high / width[b] * (factor || 1));
	});
	return { low, high };
}

/*
 * The ends of the 95 % interval of what lives at each moment, from those of all that does at the end: the error of a sum over blocks that
 * were seen by chance is a random walk, whose variance is in proportion to what lives (analyse/live_series.h). null: it was counted.
 */
function live_interval(values, { total, low, high }) {
	const part = (v) => Math.sqrt(Math.max(0, v) / total);
	if (!(high > low) || !(total > 0))
		return null;
	/* Where nothing was seen to live, nothing is known of what does. */
	return { low: values.map((v) => v > 0 ? Math.max(0, v - (total - low) * part(v)) : null),
		high: values.map((v) => v > 0 ? v + (high - total) * part(v) : null) };
}

const series = (run, id) => run.series.find((s) => s.id === id) || null;
const column = (table, name) => (table && table.columns.find((c) => c.name === name)) || null;
const is_empty = (values) => !values.some((v) => v);

/* How fast a column grows, in units a second; where it falls something began anew, and that is not known. */
function growth(table, values) {
	const out = [null];
	let last = values[0], at = table.times[0];
	for (let i = 1; i < values.length; i++) {
		const dt = table.times[i] - at;
		if (values[i] === null || last === null || !(dt > 0)) {
			out.push(null);
			if (last === null) {
				last = values[i];
				at = table.times[i];
			}
			continue;
		}
		out.push(values[i] >= last ? (values[i] - last) / dt : null);
		last = values[i];
		at = table.times[i];
	}
	return out;
}

/* As import/work_series.h has it. */
const is_counter = (name) => /(_total|_count|_sum)(\{|$)/.test(name);

return { interval, live_interval, variances, interval_rates, of_type, bins, by_bin, by_group, by_rows, rate, series, column, growth, is_counter, is_empty };
})();
