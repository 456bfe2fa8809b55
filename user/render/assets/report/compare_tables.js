/*
 * Tables of two sides from the descriptions of one run's tables (table.js, "of"): rows that are about the same are one row with what was before,
 * after, and the change. Columns of text say what is the same; a column may have
 *
 *   same     (row): what of it is the same in every run, where its text has addresses or numbers of processes; false: it is no part of that,
 *            and is shown as the last run has it
 *   state    its number is of a moment or a mean, and is not compared per second
 *   largest  rows of one side that are the same have the largest of their numbers, not the sum
 *   alone    (or a title of an interval, R²): it is of one run, and is left out here
 *   low, high  (row): the 95 % interval of its number
 *   unit     of its number ("count")
 *   identity  its number says what a row is about, as text does
 *
 * and a description `complete`: a row that is not there is 0, not one that fell off the end of the list.
 */
const compare_tables = (function () {
"use strict";

const number_of = (c, r) => { const v = c.key(r); return typeof v === "number" && Number.isFinite(v) ? v : 0; };
const is_left_out = (c) => c.alone || /^(95% interval|R²|Since|Drawn)$/.test(c.title);

/* One run's rows by what they are about: key → { row, numbers, low, high }. */
function rows_by_key(spec, texts, numbers, factor) {
	const by = new Map();
	for (const r of spec ? spec.rows : []) {
		const key = JSON.stringify(texts.filter((c) => c.same !== false).map((c) => String(c.same ? c.same(r) : c.text ? c.text(r) : c.key(r)) +
			(c.of && c.of(r) ? " " + c.of(r) : "")));
		const values = numbers.map((c) => number_of(c, r) * (c.state ? 1 : factor)), was = by.get(key);
		const spread = numbers.map((c) => c.high && c.high(r) > c.low(r) ? ((c.high(r) - c.low(r)) / 2 * (c.state ? 1 : factor)) ** 2 : 0);
		if (!was)
			by.set(key, { row: r, values, spread });
		else
			numbers.forEach((c, k) => {
				was.values[k] = c.largest ? Math.max(was.values[k], values[k]) : was.values[k] + values[k];
				was.spread[k] += spread[k];
			});
	}
	return by;
}

/*
 * `sides`: of before and after, of each run a description or null. Rows { row, key, numbers: [{ before, after, noise }], in: [runs before, after that
 * have it] }, and the columns they have.
 */
function join(data, sides) {
	const spec = sides.flat().find(Boolean), columns = spec.columns.filter((c) => !is_left_out(c));
	const all = sides.flat().filter(Boolean).flatMap((s) => s.rows), texts = columns.filter((c) => c.identity || (!c.number && all.some((r) => String(c.key(r) || "")))), numbers = columns.filter((c) => c.number && !c.identity);
	const by_run = sides.map((side, k) => side.map((s, i) => rows_by_key(s, texts, numbers, data.comparison.table_factor(data.sides[k].runs[i]))));
	const keys = new Map();
	for (const side of by_run)
		for (const run of side)
			for (const [key, r] of run)
				keys.set(key, r.row);
	const rows = [...keys].map(([key, row]) => {
		const there = by_run.map((side) => side.map((run) => run.get(key)).filter(Boolean).length);
		return { row, key, there, numbers: numbers.map((c, k) => {
			const values = by_run.map((side) => side.map((run) => run.has(key) ? run.get(key).values[k] : 0));
			const [before, after] = values.map((v) => compare.moments(v).mean);
			let noise = compare.interval(values[0], values[1]);
			if (noise === null) {
				const own = by_run.reduce((sum, side) => sum + (side[0].has(key) ? side[0].get(key).spread[k] : 0), 0);
				noise = own > 0 ? Math.sqrt(own) : null;
			}
			return { before, after, noise };
		}) };
	});
	return { spec, texts, numbers, rows };
}

/* What is said of a change, in the words of memscope diff. */
function verdict(n, there, complete) {
	if (!there[0] && n.after)
		return complete ? "new" : "only after";
	if (!there[1] && n.before)
		return complete ? "gone" : "only before";
	if (n.before === n.after)
		return "equal";
	if (n.noise !== null)
		return Math.abs(n.after - n.before) <= n.noise ? "within noise" : n.after > n.before ? "more" : "less";
	return n.after > n.before ? "higher" : "lower";
}

function make(data, sides) {
	const { spec, texts, numbers, rows } = join(data, sides), complete = !!spec.complete;
	const [by] = spec.sort || [-1], at = Math.max(0, numbers.indexOf(spec.columns[by])), noisy = rows.some((r) => r.numbers.length && r.numbers[at].noise !== null);
	const change = (r, k) => r.numbers[k].after - r.numbers[k].before;
	const columns = texts.map((c) => Object.assign({}, c, { key: (r) => c.key(r.row), text: (r) => c.same ? c.same(r.row) : c.text ? c.text(r.row) : c.key(r.row),
		cell: undefined, of: c.of ? (r) => c.of(r.row) : undefined }));
	numbers.forEach((c, k) => {
		const show = (v) => format.value(v, c.unit || "count"), short = (v) => v ? show(v) : "";
		columns.push({ title: c.title + ", before", number: true, key: (r) => r.numbers[k].before, text: (r) => short(r.numbers[k].before) },
			{ title: "after", number: true, key: (r) => r.numbers[k].after, text: (r) => short(r.numbers[k].after) });
		if (k !== at)
			return;
		columns.push({ title: "Change", number: true, key: (r) => change(r, k), text: (r) => (change(r, k) > 0 ? "+" : change(r, k) < 0 ? "\u2212" : "") +
			show(Math.abs(change(r, k))) },
		{ title: "%", number: true, key: (r) => r.numbers[k].before ? change(r, k) / r.numbers[k].before : Infinity,
			text: (r) => compare.percent(r.numbers[k].before, r.numbers[k].after).replace(/^(new|gone)$/, "") },
		...(noisy ? [{ title: "\u00b1 95%", number: true, key: (r) => r.numbers[k].noise || 0, text: (r) => r.numbers[k].noise === null ? "" : show(r.numbers[k].noise) }] : []),
		{ title: "What", className: "word", key: (r) => verdict(r.numbers[k], r.there, complete) });
	});
	if (!texts.some((c) => c.identity))
		rows.sort((a, b) => a.numbers.length ? Math.abs(change(b, at)) - Math.abs(change(a, at)) : 0);
	else
		rows.sort((a, b) => texts[0].key(a.row) - texts[0].key(b.row));
	const element = tables.make({ caption: spec.caption, rows, columns, page: spec.page, filter: spec.filter || rows.length > 10, empty: spec.empty }).el;
	if (!complete && rows.some((r) => !r.there[0] || !r.there[1]))
		element.append(format.el("p", { className: "dim" }, "Each list has only a run's largest rows; a row missing on one side may be too small for that side's list."));
	return element;
}

/* As tables.of(): nothing where no run has rows. */
function of(data, described) {
	return described.filter((sides) => sides.some((side) => side.some((s) => s && s.rows.length))).map((sides) => make(data, sides));
}

return { of, join, verdict };
})();
