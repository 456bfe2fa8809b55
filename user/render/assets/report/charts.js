/*
 * Charts over the time of the run, all on one axis: drawn by uPlot where it is in the page, and always there as a table.
 *
 *   charts.make({ title, times, series: [{ label, unit, values, low, high, colour (or colour_of: its number), thin, hidden }], whole: {low, high},
 *                 stacked, height, data, note, scale_of })
 *
 * `low` and `high` are the ends of the values' 95 % intervals, drawn as a band behind the line; of a stacked chart those of the
 * sum, `whole`, as dashed lines.
 *
 * `scale_of` has other charts' options: all of them have one scale of values.
 *
 * `times` are seconds since the run began; values may be null. Dragging over a chart selects that time in every pane
 * while it goes on; a click selects nothing and calls options.click(index of the nearest point, time). The result: { el, select(range), show(i, on),
 * update(options), size() }.
 */
const charts = (function () {
"use strict";

const el = format.el, all = new Set();
/* So wide that the axes of all charts stand below one another. */
const AXIS = 74;

const has_charts = () => typeof uPlot !== "undefined";
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* By number: eight that differ in lightness as well as hue, then the same with other strokes (dashes). */
const colour = (i) => css("--s" + (i % 8 + 1));
const colour_of = (s, i) => s.colour || colour(s.colour_of === undefined ? i : s.colour_of);
const byte_steps = Array.from({ length: 53 }, (x, i) => 2 ** i);
const dashes = [[], [6, 3], [2, 3], [9, 3, 2, 3]];

/* Of all values that are shown, and 0. */
function extent(columns, shown) {
	let low = 0, high = 0;
	columns.forEach((values, i) => {
		for (let k = 0; shown[i] && k < values.length; k++) {
			low = values[k] < low ? values[k] : low;
			high = values[k] > high ? values[k] : high;
		}
	});
	return [low * 1.08, high > 0 ? high * 1.08 : 1];
}

/* Sums from the first series up, each on top of those before it. */
function sums(series, shown) {
	const n = series.length ? series[0].values.length : 0, running = new Float64Array(n), out = [];
	for (const [i, s] of series.entries()) {
		if (shown[i])
			for (let k = 0; k < n; k++)
				running[k] += s.values[k] || 0;
		out.push(Array.from(running));
	}
	return out;
}

/* The scale of a chart, as far as intervals are not so wide that what they are of lies flat. */
function extent_of(o, stack, shown) {
	const range = extent(stack || o.series.map((s) => s.values), shown);
	if (o.whole && o.stacked && shown.every(Boolean))
		range[1] = Math.min(extent([o.whole.high], [true])[1], 3 * range[1]);
	if (!o.stacked && o.series.some((s) => s.high))
		range[1] = Math.max(range[1], Math.min(3 * range[1], extent(o.series.map((s) => s.high || []), shown)[1]));
	return range;
}

/* That of all charts with the same one. */
function common_extent(o, stack, shown) {
	return (o.scale_of || []).map((other) => {
		const on = other.series.map((s) => !s.hidden);
		return extent_of(other, other.stacked ? sums(other.series, on) : null, on);
	}).reduce((a, b) => [Math.min(a[0], b[0]), Math.max(a[1], b[1])], extent_of(o, stack, shown));
}

function nearest(times, t) {
	let low = 0, high = times.length - 1;
	while (low < high) {
		const mid = (low + high) >> 1;
		if (times[mid] < t)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && t - times[low - 1] < times[low] - t ? low - 1 : low;
}

function figures(o) {
	const rows = o.times.map((t, i) => i);
	return tables.make({ caption: o.title, page: 20, rows,
		columns: [{ title: "Time", number: true, key: (i) => o.times[i], text: (i) => format.seconds(o.times[i]) },
			...o.series.flatMap((s) => [{ title: s.label, number: true, key: (i) => s.values[i], text: (i) => format.value(s.values[i], s.unit) },
				...(s.high ? [{ title: "95% interval", number: true, key: (i) => s.high[i] - s.low[i],
					text: (i) => s.high[i] > s.low[i] ? format.value(s.low[i], s.unit) + " to " + format.value(s.high[i], s.unit) : "" }] : [])])] }).el;
}

function make(options) {
	let o = options, plot = null, drawn = false, shown = o.series.map((s) => !s.hidden), range = null, sheet = null;
	const box = el("figure", { className: "chart" }), canvas = el("div", { className: "plot" });
	const heading = el("figcaption", {}, el("span", { className: "what" }, o.title));
	const legend = el("span", { className: "legend" }), brush = el("div", { className: "brush", hidden: true });
	const table = el("details", {}, el("summary", {}, "Figures"));

	heading.append(" ", legend);
	box.append(heading);
	if (has_charts())
		box.append(canvas);
	else
		table.open = true;
	const note = el("span", { className: "dim" }, o.note || "");
	heading.append(note);
	if (!o.no_table)
		box.append(table);
	table.addEventListener("toggle", fill_table);

	function fill_table() {
		if (!table.open || sheet === o)
			return;
		sheet = o;
		table.replaceChildren(table.firstChild, figures(o));
	}

	function draw_legend() {
		legend.replaceChildren(...(o.no_legend ? [] : o.series.map((s, i) => {
			if (s.unnamed)
				return "";
			const key = el("span", { className: "key" }), value = el("b");
			key.style.background = colour_of(s, i);
			s.value_el = value;
			return el("span", { className: "item" }, key, s.label + " ", value);
		})));
		canvas.setAttribute("role", "img"); /* not before it has a name */
		canvas.setAttribute("aria-label", o.title + ": " + o.series.map((s) => s.label).join(", ").slice(0, 300) +
			". The figures are in the table below.");
	}

	function show_values(i) {
		for (const s of o.series)
			if (s.value_el)
				s.value_el.textContent = i === null || i === undefined ? "" : format.value(s.values[i], s.unit);
		if (o.hover)
			o.hover(i);
	}

	function draw_brush() {
		brush.hidden = !range || !drawn; /* before its first drawing it knows no positions */
		if (brush.hidden)
			return;
		const left = Math.max(0, plot.valToPos(range.from, "x")), right = Math.min(plot.over.clientWidth, plot.valToPos(range.to, "x"));
		brush.style.left = left + "px";
		brush.style.width = Math.max(1, right - left) + "px";
	}

	/* Phases that the program marked: a line each. */
	function draw_marks(u) {
		const marks = ((o.data.run.marks || {}).all || []).filter((m) => !m.message);
		if (o.small || !marks.length)
			return;
		u.ctx.save();
		u.ctx.strokeStyle = css("--dim");
		u.ctx.setLineDash([3, 3]);
		u.ctx.beginPath();
		for (const m of marks) {
			const x = Math.round(u.valToPos(m.at, "x", true)) + .5;
			u.ctx.moveTo(x, u.bbox.top);
			u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
		}
		u.ctx.stroke();
		u.ctx.restore();
	}

	/* Selecting: the range follows the pointer, once a frame. */
	function listen(over) {
		let from = null, asked = 0, to = null;
		const time_at = (e) => plot.posToVal(Math.max(0, Math.min(over.clientWidth, e.clientX - over.getBoundingClientRect().left)), "x");
		const go = () => {
			asked = 0;
			o.data.select({ from: Math.min(from, to), to: Math.max(from, to) });
		};
		over.addEventListener("pointerdown", (e) => {
			if (e.button === 0) {
				from = to = time_at(e);
				over.pixels = e.clientX;
				over.setPointerCapture(e.pointerId);
			}
		});
		over.addEventListener("pointermove", (e) => {
			if (from === null || Math.abs(e.clientX - over.pixels) < 4 && from === to)
				return;
			to = time_at(e);
			asked = asked || requestAnimationFrame(go);
		});
		over.addEventListener("pointerup", (e) => {
			if (from !== null && from === to) {
				if (o.click)
					o.click(nearest(o.times, from), from);
				else if (range)
					o.data.select(null);
			}
			from = null;
		});
		over.addEventListener("pointercancel", () => { from = null; });
		over.append(brush);
	}

	function draw() {
		if (plot)
			plot.destroy();
		plot = null;
		drawn = false;
		draw_legend();
		if (!has_charts() || !box.isConnected || !canvas.clientWidth)
			return;
		const unit = o.series.length ? o.series[0].unit : "", bare = /^(threads|CPUs)$/.test(unit) ? "" : unit, ink = css("--dim"), line = css("--line");
		const dense = o.times.length > 150;
		const stack = o.stacked ? sums(o.series, shown) : null;
		const y_range = common_extent(o, stack, shown), all_shown = shown.every(Boolean);
		const order = o.series.map((s, i) => i);
		if (o.stacked)
			order.reverse(); /* the highest sum first: each fill hides what is below it */
		const series = order.map((i) => {
			const s = o.series[i], c = colour_of(s, i);
			return { label: s.label, show: shown[i], stroke: o.stacked ? (dense ? c : css("--panel")) : c, width: o.stacked ? .7 : s.thin ? .8 : dense ? 1.1 : 1.6,
				fill: o.stacked ? c : s.filled ? c + "30" : undefined, dash: o.stacked || s.solid ? [] : s.dash || dashes[Math.floor(i / 8) % 4],
				spanGaps: true, points: { show: o.times.length < 3 && !o.stacked } };
		});
		const columns = order.map((i) => stack ? stack[i] : o.series[i].values), between = [], bare_line = (more) => Object.assign({ points: { show: false }, spanGaps: true }, more);
		for (const i of o.stacked ? [] : order) {
			const s = o.series[i], c = colour_of(s, i);
			if (!s.high || !shown[i])
				continue;
			between.push({ series: [series.length + 2, series.length + 1], fill: c + "2e" });
			for (const ends of [s.low, s.high]) {
				series.push(bare_line({ stroke: c + "60", width: .7 }));
				columns.push(ends);
			}
		}
		if (o.whole && o.stacked && all_shown)
			for (const ends of [o.whole.low, o.whole.high]) {
				series.push(bare_line({ stroke: css("--ink"), width: 1, dash: [4, 3] }));
				columns.push(ends);
			}
		plot = new uPlot({
			width: canvas.clientWidth, height: o.height || 120, legend: { show: false }, padding: [8, 24, o.small ? 6 : 0, 0],
			cursor: { drag: { x: false, y: false, setScale: false }, sync: { key: "time", setSeries: false }, points: { show: !o.stacked }, y: false },
			scales: { x: { time: false, range: () => [0, o.data.run.seconds || 1] },
				y: { range: () => y_range } },
			axes: [{ show: !o.small, stroke: ink, grid: { stroke: line, width: .6 }, ticks: { stroke: line, width: .6 }, size: 30, font: "12px system-ui, sans-serif",
				values: (u, ticks) => format.ticks(ticks) },
			{ stroke: ink, grid: { stroke: line, width: .6 }, ticks: { show: false }, size: AXIS, font: "12px system-ui, sans-serif", gap: 4,
				values: (u, ticks) => ticks.map((v) => format.value(v, bare)), space: 26, splits: o.small ? (u) => [u.scales.y.max / 1.08] : undefined, incrs: /^bytes/.test(unit) ? byte_steps : undefined }],
			series: [{}, ...series], bands: between,
			hooks: { setCursor: [(u) => show_values(u.cursor.idx)], draw: [(u) => {
				plot = u;
				drawn = true;
				draw_marks(u);
				draw_brush();
			}] },
		}, [o.times, ...columns], canvas);
		listen(plot.over);
	}

	const chart = {
		el: box,
		draw,
		select(r) {
			range = r;
			draw_brush();
		},
		show(i, on) {
			shown[i] = on;
			o.series[i].hidden = !on;
			draw();
		},
		is_shown: (i) => shown[i],
		update(other) {
			o = Object.assign({}, o, other);
			shown = o.series.map((s) => !s.hidden);
			heading.firstChild.textContent = o.title;
			note.textContent = o.note || "";
			draw();
			fill_table();
		},
	};
	all.add(chart);
	watch.observe(box);
	chart.width = 0;
	box.chart = chart;
	fill_table();
	return chart;
}

/* Drawn once it has a width, and anew when that changes. */
const watch = new ResizeObserver((entries) => {
	for (const entry of entries) {
		const chart = entry.target.chart, width = Math.round(entry.contentRect.width);
		if (chart && width && width !== chart.width) {
			chart.width = width;
			chart.draw();
		}
	}
});

document.addEventListener("theme", () => {
	for (const chart of all)
		if (chart.el.isConnected)
			chart.draw();
		else
			all.delete(chart);
});

return { make, has_charts, colour, nearest };
})();
