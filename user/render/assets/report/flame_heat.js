/*
 * The heat map above the flame graph: a column a second, in which time runs downwards, so that what happens within
 * seconds is seen (Spier and Gregg, "FlameScope", 2018). For profiles whose times are fine enough (record --fine).
 */
const flame_heat = (function () {
"use strict";

const LEAST_ROWS = 20; /* of a second: wider bins show nothing that the timeline does not */
const CELL_HEIGHT = 2, CELL_WIDTH = [3, 32];

/* Bins of a profile in one second; 0: too few, or no times. */
function rows_of(run, profile) {
	const rows = Math.round((profile.fineness || 1) / (run.bin_seconds || 1e9));
	return rows >= LEAST_ROWS ? rows : 0;
}

/* The weight of each of a profile's bins, of the samples that `wanted` (1 for each; null: all) has. */
function weights_by_bin(times, wanted) {
	const sums = new Float64Array(times.n_fine_bins);
	for (let s = 0; s < times.first.length - 1; s++)
		if (!wanted || wanted[s])
			for (let i = times.first[s]; i < times.first[s + 1]; i++)
				sums[times.fine_bin[i]] += Math.max(0, times.value[i]);
	return sums;
}

/* `on`: select({from, to} in seconds, or null), text(v): a value with its unit, dark(). */
class Heat {
	constructor(on) {
		const { el } = format;
		this.on = on;
		this.canvas = el("canvas", { "aria-hidden": "true" });
		this.said = el("output", { className: "flame-heat-said" });
		this.seconds = el("div", { className: "flame-heat-seconds", "aria-hidden": "true" });
		this.area = el("div", { className: "flame-heat-area", tabIndex: 0, role: "application",
			"aria-roledescription": "heat map", "aria-label": "Heat map of samples within each second: arrow keys move, " +
				"with shift they select, Enter selects the second" }, this.canvas, this.seconds);
		this.element = el("details", { className: "flame-heat", open: true },
			el("summary", {}, "Within each second: one column a second, time runs downwards; drag to select"),
		el("div", { className: "flame-heat-frame" },
			this.within = el("div", { className: "flame-heat-within", "aria-hidden": "true" }, ...["0 ms", "250", "500", "750", "1 s"].map((t) => el("span", {}, t))), this.area),
		this.scale = el("p", { className: "flame-heat-scale" }), this.said);
		this.range = null;
		this.cursor = this.anchor = -1;
		this.listen();
	}

	listen() {
		const a = this.area;
		let from = -1, moved = false;

		a.addEventListener("pointerdown", (event) => {
			if (event.button)
				return;
			from = this.at(event);
			moved = false;
			a.setPointerCapture(event.pointerId);
		});
		a.addEventListener("pointermove", (event) => {
			const at = this.at(event);
			this.describe(at);
			if (from < 0 || (at === from && !moved))
				return;
			moved = true;
			this.step(from, at);
		});
		a.addEventListener("pointerup", (event) => {
			if (from >= 0 && !moved)
				this.select_second(this.at(event));
			from = -1;
		});
		a.addEventListener("pointercancel", () => { from = -1; });
		a.addEventListener("keydown", (event) => this.on_key(event));
		this.element.addEventListener("toggle", () => this.draw());
		new ResizeObserver(() => this.draw()).observe(a);
	}

	/* A selection between two bins, both included: at most one a frame of the screen. */
	step(a, b) {
		this.wanted = [Math.min(a, b), Math.max(a, b) + 1];
		if (this.waiting)
			return;
		this.waiting = requestAnimationFrame(() => {
			this.waiting = 0;
			this.on.select({ from: this.wanted[0] / this.rows, to: this.wanted[1] / this.rows });
		});
	}

	select_second(bin) {
		const second = Math.floor(bin / this.rows);
		this.on.select({ from: second, to: second + 1 });
	}

	/* `sums` of weights_by_bin(), `rows` bins a second, `range` in bins or null. */
	set(sums, rows, range) {
		Object.assign(this, { sums, rows, range });
		this.columns = Math.ceil(sums.length / rows);
		this.most = sums.reduce((a, b) => Math.max(a, b), 0);
		this.draw();
	}

	set_range(range) {
		this.range = range;
		this.draw();
	}

	draw() {
		if (!this.sums || !this.element.open || !this.area.clientWidth)
			return;
		const { rows, columns, sums, canvas, range } = this;
		this.cell = Math.max(CELL_WIDTH[0], Math.min(CELL_WIDTH[1], Math.floor(this.area.clientWidth / columns)));
		canvas.width = columns;
		canvas.height = rows;
		canvas.style.width = columns * this.cell + "px";
		canvas.style.height = rows * CELL_HEIGHT + "px";
		const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
		const pixels = new Uint32Array(image.data.buffer), scale = flame_colors.heat(this.on.dark());
		for (let b = 0; b < columns * rows; b++) {
			const v = b < sums.length && sums[b] > 0 ? 1 + Math.round(Math.sqrt(sums[b] / this.most) * (scale.plain.length - 2)) : 0;
			const marked = b === this.cursor || (range && b >= range.from_bin && b < range.to_bin);
			pixels[b % rows * columns + Math.floor(b / rows)] = (marked ? scale.marked : scale.plain)[v];
		}
		context.putImageData(image, 0, 0);
		this.draw_axes(scale);
	}

	/* Which second a column is, and what the colours mean: as many labels as have room. */
	draw_axes(scale) {
		const { el } = format, { cell, columns } = this, steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
		const step = steps.find((s) => s * cell >= 46) || 7200, key = [cell, columns, step, this.most, this.on.dark()].join();
		if (key === this.drawn_axes)
			return;
		this.drawn_axes = key;
		const labels = [];
		for (let s = 0; s < columns && (s === 0 || s * cell + 30 <= columns * cell); s += step) {
			const label = el("span", {}, format.ticks([s])[0]);
			label.style.left = s * cell + "px";
			labels.push(label);
		}
		this.within.style.height = this.rows * CELL_HEIGHT + "px";
		this.seconds.style.width = columns * cell + "px";
		this.seconds.replaceChildren(...labels);
		const swatches = [0, 4, 12, 20, 32].map((k) => {
			const box = el("span", { className: "flame-swatch" }), c = scale.plain[k];
			box.style.background = `rgb(${c & 255} ${c >> 8 & 255} ${c >> 16 & 255})`;
			return box;
		});
		this.scale.replaceChildren("In each " + (1000 / this.rows).toFixed(1).replace(/\.0$/, "") + " ms: 0 ", ...swatches, " " + this.on.text(this.most));
	}

	at(event) {
		const box = this.canvas.getBoundingClientRect();
		const column = Math.floor((event.clientX - box.left) / this.cell);
		const row = Math.floor((event.clientY - box.top) / CELL_HEIGHT);
		return Math.max(0, Math.min(this.columns - 1, column)) * this.rows + Math.max(0, Math.min(this.rows - 1, row));
	}

	describe(bin) {
		this.said.textContent = (bin / this.rows).toFixed(3) + " s: " + this.on.text(this.sums[bin] || 0);
	}

	on_key(event) {
		const step = { ArrowLeft: -this.rows, ArrowRight: this.rows, ArrowUp: -1, ArrowDown: 1 }[event.key];
		if (event.ctrlKey || event.altKey || event.metaKey || !(step || event.key === "Enter"))
			return;
		event.preventDefault();
		if (event.key === "Enter") {
			this.select_second(Math.max(0, this.cursor));
			return;
		}
		const from = Math.max(0, this.cursor);
		this.cursor = Math.max(0, Math.min(this.sums.length - 1, this.cursor < 0 ? 0 : this.cursor + step));
		if (event.shiftKey) {
			this.anchor = this.anchor < 0 ? from : this.anchor;
			this.step(this.anchor, this.cursor);
		} else {
			this.anchor = -1;
		}
		this.describe(this.cursor);
		this.draw();
	}
}

return { Heat, rows_of, weights_by_bin };
})();
