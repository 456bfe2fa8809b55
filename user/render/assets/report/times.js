/* Values over time: of profiles whose samples have times, and of the run's tables. Nothing here touches the page. */
const times = (function () {
"use strict";

/* The times of value type `type` of a decoded profile; null: it has none. */
const of_type = (profile, type) => profile.times.find((t) => t.type === type) || null;

/* The middle of each bin, in seconds, and how long it lasted: the last may end with the run. */
function bins(run) {
	const middle = [], width = [];
	for (let b = 0; b < run.n_bins; b++) {
		const from = b * run.bin_seconds, to = Math.max(from + run.bin_seconds / 100, Math.min(from + run.bin_seconds, run.seconds));
		middle.push((from + to) / 2);
		width.push(to - from);
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

/* A rate: each bin's sum by how long it lasted, times `factor`. */
const rate = (sums, width, factor) => Array.from(sums, (v, b) => v / width[b] * (factor || 1));

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

return { of_type, bins, by_bin, by_group, rate, series, column, growth, is_counter, is_empty };
})();
