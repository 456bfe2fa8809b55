/*
 * One flame graph on a canvas: drawing, zoom, pointer and keyboard. What is in it comes from
 * flame_model.js, its colours and words from the pane (flame_pane.js).
 *
 * The canvas is as high as the part that is seen, and moves with it, so that stacks of any depth fit
 * into one. Edges are rounded to the screen's own pixels: a frame that ends on the pixel on which it
 * begins is not drawn, nor is what is below it, so a picture has at most one frame a pixel and row.
 */
const flame_view = (function () {
"use strict";

const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
const FONT_PX = 12, PAD = 5, LABEL_MIN = 26;

/* --- text that fits ------------------------------------------------------------------------------ */

/* Widths of characters at 12 px: measured once each, for measuring every label takes longer than drawing it. */
class Widths {
	constructor(context) {
		this.context = context;
		this.of = new Map();
		this.dots = this.character("\u2026");
	}

	character(c) {
		let w = this.of.get(c);
		if (w === undefined) {
			this.context.font = FONT_PX + "px " + FONT;
			this.of.set(c, w = this.context.measureText(c).width);
		}
		return w;
	}

	/* The width of `s`, or something above `most` where it is wider. */
	text(s, most) {
		let w = 0;
		for (const c of s)
			if ((w += this.character(c)) > most)
				break;
		return w;
	}

	/* What of `s` fits, with an ellipsis where it is cut; "" when that is too little to read. */
	cut(s, room) {
		if (this.text(s, room) <= room)
			return s;
		s = without_namespaces(s, (t) => this.text(t, room) <= room);
		let w = this.dots, out = "";
		for (const c of s) {
			if ((w += this.character(c)) > room)
				return out.length < 2 ? "" : out + "\u2026";
			out += c;
		}
		return s;
	}
}

/* Without packages, and without namespaces but for the last, as far as is needed: code_name_begin() in C. */
function without_namespaces(s, fits) {
	s = s.replace(/^(?:[a-z_][\w$]*\.)+(?=[A-Z])/, "");
	for (let m; !fits(s) && (m = /^[\w$]+(?:::|\\)(?=[\w$]+(?:::|\\))/.exec(s));)
		s = s.slice(m[0].length);
	return s;
}

/* --- the view --------------------------------------------------------------------------------------- */

/*
 * `on` has functions of the pane:
 *   name(i)          text of a frame
 *   color(i)         its colour, an index into those of colors()
 *   colors(), theme()  of flame_colors.js
 *   matches()        null, or 1 for each item that is searched for
 *   hover(i)         the pointer is on frame i, -1: on none
 *   chosen(i, zoomed)  it was clicked, tapped, or reached by the keyboard
 *   key(event, i)    any other key while frame i is in focus; true: it was used
 * `above`: 1 where the root's own row is not drawn.
 */
class View {
	constructor(label, on, { upward = false, hide_root = false } = {}) {
		const el = format.el;
		this.on = on;
		this.upward = upward;
		this.skip = hide_root ? 1 : 0;
		this.canvas = el("canvas", { "aria-hidden": "true" });
		this.hover_mark = el("div", { className: "flame-mark", hidden: true });
		this.focus_mark = el("div", { className: "flame-mark flame-focus", hidden: true });
		this.sheet = el("div", { className: "flame-sheet" }, this.canvas, this.hover_mark, this.focus_mark);
		this.element = el("div", { className: "flame-scroll", tabIndex: 0, role: "application", "aria-label": label,
			"aria-roledescription": "flame graph" }, this.sheet);
		this.context = this.canvas.getContext("2d", { alpha: false });
		this.widths = new Widths(this.context);
		this.tree = null;
		this.zoomed = this.focused = 0;
		this.hovered = -1;
		this.n = 0;
		this.node = new Int32Array(4096);
		this.left = new Float64Array(4096);
		this.right = new Float64Array(4096);
		this.listen();
	}

	listen() {
		const e = this.element;
		let pointer = "mouse";

		e.addEventListener("scroll", () => this.draw(), { passive: true });
		e.addEventListener("pointerdown", (event) => { pointer = event.pointerType; });
		e.addEventListener("pointermove", (event) => {
			if (event.pointerType !== "touch")
				this.hover(this.at(event));
		});
		e.addEventListener("pointerleave", () => this.hover(-1));
		e.addEventListener("click", (event) => {
			const i = this.at(event);
			if (i < 0)
				return;
			/* A finger has no hover: its first touch shows what a frame is, the next one zooms. */
			if (pointer === "touch" && i !== this.focused)
				this.focus(i);
			else
				this.zoom(i);
		});
		e.addEventListener("keydown", (event) => this.on_key(event));
		e.addEventListener("focus", () => this.place_marks());
		e.addEventListener("blur", () => this.place_marks());
		new ResizeObserver(() => this.draw()).observe(e);
		this.coarse = matchMedia("(pointer: coarse)");
		this.coarse.addEventListener("change", () => this.set_height());
	}

	/* Another tree; totals are summed up already. */
	set_tree(tree, zoomed = 0) {
		this.tree = tree;
		this.zoomed = zoomed < tree.n ? zoomed : 0;
		this.focused = this.zoomed;
		this.hovered = -1;
		this.set_height();
		this.element.scrollTop = this.upward ? this.sheet.offsetHeight : 0;
		this.draw();
	}

	set_height() {
		if (!this.tree)
			return;
		this.row = this.coarse.matches ? 26 : 19;
		this.height = Math.max(1, this.tree.depth + 1 - this.skip) * this.row;
		this.sheet.style.height = this.height + "px";
		this.element.style.height = this.height + 2 + "px"; /* and its border; the style has a maximum */
		this.draw();
	}

	/* --- drawing ------------------------------------------------------------------------------------- */

	/* The top of a row in the sheet. */
	row_y(level) {
		const at = level - this.skip;
		return this.upward ? this.height - (at + 1) * this.row : at * this.row;
	}

	within(i, outer) {
		return i >= outer && i < this.tree.end[outer];
	}

	draw() {
		const e = this.element, tree = this.tree;
		if (!tree || !e.clientWidth)
			return;
		const dpr = window.devicePixelRatio || 1, width = e.clientWidth, height = e.clientHeight;
		const w = Math.round(width * dpr), h = Math.round(height * dpr);
		if (this.canvas.width !== w || this.canvas.height !== h) {
			this.canvas.width = w;
			this.canvas.height = h;
			this.canvas.style.width = width + "px";
			this.canvas.style.height = height + "px";
		}
		this.canvas.style.top = e.scrollTop + "px";
		this.width = width;
		this.n = 0;

		const c = this.context, t = this.theme = this.on.theme();
		this.dpr = dpr;
		this.first_y = e.scrollTop;
		this.last_y = e.scrollTop + height;
		this.matches = this.on.matches();
		this.colors = this.on.colors(); /* full, above, dim, back: see flame_colors.js */
		this.labels = [];
		this.first_line = Math.floor(this.first_y / this.row);
		this.n_lines = Math.ceil(this.last_y / this.row) - this.first_line;
		this.line_width = w;
		const lines = this.lines_of(w, this.n_lines);
		for (let i = tree.parent[this.zoomed]; i >= 0; i = tree.parent[i])
			this.draw_frame(i, 0, width, true);
		if (tree.total[this.zoomed] > 0)
			this.draw_below(this.zoomed);

		c.setTransform(1, 0, 0, 1, 0, 0);
		c.fillStyle = t.back;
		c.fillRect(0, 0, w, h);
		lines.context.putImageData(lines.image, 0, 0);
		c.imageSmoothingEnabled = false;
		for (let k = 0; k < this.n_lines; k++) {
			const y0 = this.pixel_y(k), y1 = this.pixel_y(k + 1);
			c.drawImage(lines.canvas, 0, k, w, 1, 0, y0, w, y1 - y0 - 1);
		}
		c.font = FONT_PX * dpr + "px " + FONT;
		c.textBaseline = "middle";
		c.direction = "ltr";
		for (const [text, x, y, ink] of this.labels) {
			c.fillStyle = ink;
			c.fillText(text, x, y);
		}
		this.place_marks();
	}

	/*
	 * A picture with one line of pixels a row of frames, which is then stretched to the height of a row: filling
	 * numbers of an array costs a tenth of as many calls that fill rectangles.
	 */
	lines_of(w, n) {
		let l = this.lines;
		if (!l || l.canvas.width !== w || l.canvas.height !== n) {
			const canvas = format.el("canvas", { width: w, height: n }), context = canvas.getContext("2d");
			const image = context.createImageData(w, n);
			l = this.lines = { canvas, context, image, pixels: new Uint32Array(image.data.buffer) };
		}
		l.pixels.fill(this.colors.back);
		return l;
	}

	/* Where the k-th row in sight begins on the canvas. */
	pixel_y(k) {
		return Math.round(((this.first_line + k) * this.row - this.first_y) * this.dpr);
	}

	/* Frame i and all below it, over the full width. */
	draw_below(i) {
		const { tree } = this, scale = this.width / tree.total[i], end = tree.end[i];
		const next_x = [], dpr = this.dpr; /* where the next child on each level begins */
		const base = tree.level[i];

		this.draw_frame(i, 0, this.width, false);
		next_x[base + 1] = 0;
		for (let c = i + 1; c < end;) {
			const level = tree.level[c], x = next_x[level], to = x + tree.total[c] * scale;
			next_x[level] = to;
			if (Math.round(to * dpr) <= Math.round(x * dpr) || !this.reaches(level)) {
				c = tree.end[c];
				continue;
			}
			this.draw_frame(c, x, to, false);
			next_x[level + 1] = x;
			c++;
		}
	}

	/* Is a row of that level, or one further from the root, in sight? */
	reaches(level) {
		const y = this.row_y(level);
		return this.upward ? y + this.row > this.first_y : y < this.last_y;
	}

	draw_frame(i, from, to, above) {
		const y = this.row_y(this.tree.level[i]);
		if (this.tree.level[i] < this.skip || y + this.row <= this.first_y || y >= this.last_y)
			return;
		if (this.n === this.node.length)
			for (const key of ["node", "left", "right"]) {
				const grown = new this[key].constructor(2 * this.n);
				grown.set(this[key]);
				this[key] = grown;
			}
		this.node[this.n] = i;
		this.left[this.n] = from;
		this.right[this.n++] = to;

		const dpr = this.dpr, x0 = Math.round(from * dpr), x1 = Math.round(to * dpr), wide = x1 - x0;
		const line = Math.round(y / this.row) - this.first_line, item = this.tree.item[i], { colors } = this;
		const hit = this.matches !== null && item >= 0 && this.matches[item] === 1;
		const shades = hit ? colors.full : this.matches !== null ? colors.dim : above ? colors.above : colors.full;
		const color = shades[hit ? colors.hot : item < 0 ? colors.label : this.on.color(i)];
		const start = line * this.line_width + x0, gap = wide > 3 * dpr ? Math.max(1, Math.round(dpr / 2)) : 0;
		this.lines.pixels.fill(color, start, start + wide - gap);
		if (to - from < LABEL_MIN)
			return;
		const text = this.widths.cut(this.on.name(i), to - from - 2 * PAD);
		if (text)
			this.labels.push([text, x0 + PAD * dpr, (this.pixel_y(line) + this.pixel_y(line + 1)) / 2,
				hit ? this.theme.hot_ink : this.theme.ink]);
	}

	/* --- frames and places ----------------------------------------------------------------------------- */

	/* The frame at an event's place, -1: none. */
	at(event) {
		const box = this.element.getBoundingClientRect();
		const x = event.clientX - box.left - this.element.clientLeft;
		const y = event.clientY - box.top - this.element.clientTop + this.element.scrollTop;
		for (let k = 0; k < this.n; k++) {
			const top = this.row_y(this.tree.level[this.node[k]]);
			if (y >= top && y < top + this.row && x >= this.left[k] && x < this.right[k])
				return this.node[k];
		}
		return -1;
	}

	place(mark, i) {
		let k = 0;
		while (k < this.n && this.node[k] !== i)
			k++;
		mark.hidden = i < 0 || k === this.n;
		if (mark.hidden)
			return;
		mark.style.left = this.left[k] + "px";
		mark.style.top = this.row_y(this.tree.level[i]) + "px";
		mark.style.width = Math.max(2, this.right[k] - this.left[k] - 1) + "px";
		mark.style.height = this.row - 1 + "px";
	}

	place_marks() {
		if (!this.tree)
			return;
		this.place(this.hover_mark, this.hovered);
		this.place(this.focus_mark, document.activeElement === this.element || this.focused !== this.zoomed ?
			this.focused : -1);
	}

	hover(i) {
		if (i === this.hovered)
			return;
		this.hovered = i;
		this.place(this.hover_mark, i);
		this.on.hover(i);
	}

	/* Brings a frame's row into sight. */
	reveal(i) {
		const e = this.element, y = this.row_y(Math.max(this.skip, this.tree.level[i]));
		if (y < e.scrollTop)
			e.scrollTop = y;
		else if (y + this.row > e.scrollTop + e.clientHeight)
			e.scrollTop = y + this.row - e.clientHeight;
	}

	focus(i) {
		this.focused = i;
		this.reveal(i);
		this.place_marks();
		this.on.chosen(i, false);
	}

	zoom(i) {
		this.zoomed = this.focused = i;
		this.reveal(i);
		this.draw();
		this.on.chosen(i, true);
	}

	/* Puts frame i into focus, and zooms as far out as it takes for that, or in where it is too narrow. */
	show(i) {
		const { tree } = this;
		while (!this.within(i, this.zoomed))
			this.zoomed = tree.parent[this.zoomed];
		if (tree.total[this.zoomed] > 0 && tree.total[i] / tree.total[this.zoomed] * this.width < 40)
			this.zoomed = i;
		this.focused = i;
		this.reveal(i);
		this.draw();
		this.on.chosen(i, true);
	}

	/* --- keyboard ---------------------------------------------------------------------------------------- */

	seen(i) {
		return this.tree.total[i] / this.tree.total[this.zoomed] * this.width >= 1;
	}

	/* The widest child, the caller, or the neighbour on either side; i where there is none. */
	neighbour(i, key) {
		const { tree } = this;
		const deeper = this.upward ? "ArrowUp" : "ArrowDown", back = this.upward ? "ArrowDown" : "ArrowUp";

		if (key === deeper) {
			if (i !== this.zoomed && this.within(this.zoomed, i)) /* towards the zoomed frame */
				for (let c = i + 1; c < tree.end[i]; c = tree.end[c])
					if (this.within(this.zoomed, c))
						return c;
			let best = i;
			for (let c = i + 1; c < tree.end[i]; c = tree.end[c])
				if (this.seen(c) && (best === i || tree.total[c] > tree.total[best]))
					best = c;
			return best;
		}
		if (key === back)
			return tree.level[i] > this.skip ? tree.parent[i] : i;
		if (tree.level[i] <= tree.level[this.zoomed])
			return i;
		let before = i;
		for (let c = tree.parent[i] + 1; c < tree.end[tree.parent[i]]; c = tree.end[c]) {
			if (key === "ArrowLeft" && c === i)
				return before;
			if (key === "ArrowRight" && c > i && this.seen(c))
				return c;
			if (this.seen(c))
				before = c;
		}
		return i;
	}

	on_key(event) {
		if (event.ctrlKey || event.altKey || event.metaKey || !this.tree)
			return;
		const i = this.focused;
		if (/^Arrow/.test(event.key))
			this.focus(this.neighbour(i, event.key));
		else if (event.key === "Enter" || event.key === " ")
			this.zoom(i);
		else if (event.key === "Home" || (event.key === "Escape" && this.zoomed))
			this.zoom(0);
		else if (event.key === "Backspace")
			this.zoom(Math.max(0, this.tree.parent[this.zoomed]));
		else if (!this.on.key(event, i))
			return;
		event.preventDefault();
	}
}

return { View, without_namespaces };
})();
