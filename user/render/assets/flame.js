/*
 * Zoom, search and keyboard for the flame graph around this script. The table in <metadata> holds
 * the frames in preorder (svg.c, write_data); every change of state draws them anew, with the
 * formulas svg.c used for the picture as it was opened.
 */
(function () {
"use strict";

const NS = "http://www.w3.org/2000/svg";
const script = document.currentScript;
const svg = (script && script.ownerSVGElement) || document.documentElement;
const $ = (id) => svg.querySelector("#" + id);
const P = JSON.parse($("profile").textContent);
const frames = $("frames"), details = $("details"), matched = $("matched");
const hot = "#e600e6";

/* --- the table, unpacked ------------------------------------------------------------------------ */

const count = P.nodes.length / 3;
const level = new Int32Array(count), parent = new Int32Array(count), name = new Int32Array(count);
const end = new Int32Array(count);  /* one past the last frame below */
const start = new Float64Array(count), value = new Float64Array(count);

(function unpack() {
	const open = [];           /* the frames from the root to here */
	const next = [0];          /* where the next frame of each level begins */
	for (let i = 0; i < count; i++) {
		const d = i ? level[i - 1] + 1 - P.nodes[3 * i] : 0;
		while (open.length > d)
			end[open.pop()] = i;
		level[i] = d;
		parent[i] = d ? open[d - 1] : -1;
		value[i] = P.nodes[3 * i + 1];
		name[i] = P.nodes[3 * i + 2];
		start[i] = next[d];
		next[d] += value[i];
		next[d + 1] = start[i];
		open.push(i);
	}
	while (open.length)
		end[open.pop()] = count;
	for (let n = 1; n < P.modules.length; n++)
		if (P.modules[n] === 0)
			P.modules[n] = P.modules[n - 1];
})();

let zoomed = 0;       /* the frame that fills the width                      */
let under = -1;       /* the frame under the mouse, or reached by the keyboard */
let term = "";        /* what is searched for                               */
let hits = null;      /* per name: does it match?                           */

/* --- numbers for people: user/base/units.c -------------------------------------------------------- */

function grouped(n) {
	return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

const scales = {
	bytes: [[1, "B"], [1024, "KiB"], [1024 ** 2, "MiB"], [1024 ** 3, "GiB"], [1024 ** 4, "TiB"],
		[1024 ** 5, "PiB"], [1024 ** 6, "EiB"]],
	nanoseconds: [[1, "ns"], [1e3, "\u00b5s"], [1e6, "ms"], [1e9, "s"]],
};
const factors = {
	bytes: ["bytes", 1], kilobytes: ["bytes", 1024], megabytes: ["bytes", 1024 ** 2],
	nanoseconds: ["nanoseconds", 1], microseconds: ["nanoseconds", 1e3],
	milliseconds: ["nanoseconds", 1e6], seconds: ["nanoseconds", 1e9],
};

function scaled(v, steps) {
	let i = 0;
	const tenths = (k) => Math.floor(v / steps[k][0] * 10 + 0.5);
	while (i + 1 < steps.length && (v >= steps[i + 1][0] ||
	       (i && tenths(i) >= steps[i + 1][0] / steps[i][0] * 10)))
		i++;
	if (!i)
		return grouped(v) + " " + steps[0][1];
	const t = tenths(i);
	return grouped(Math.floor(t / 10)) + "." + t % 10 + " " + steps[i][1];
}

function text_of(v) {
	if (P.noun)
		return grouped(v / P.divisor) + " " + P.noun;
	const f = factors[P.unit];
	if (f)
		return scaled(v * f[1], scales[f[0]]);
	return grouped(v) + (P.unit && P.unit !== "count" ? " " + P.unit : "");
}

function share(part, whole) {
	const permille = Math.floor(part * 1000 / whole + 0.5);
	return !permille && part ? "<0.1%" : Math.floor(permille / 10) + "." + permille % 10 + "%";
}

/* Of a difference (svg.c, write_changes): what a frame was, is, and how far that is apart. */
function change(i) {
	const before = P.changes[3 * i], after = P.changes[3 * i + 1], by = Math.abs(after - before);
	const sign = after > before ? "+" : "\u2212";
	let text = text_of(before) + " \u2192 " + text_of(after);
	if (by)
		text += ": " + sign + text_of(by) + (!before ? ", new" : !after ? ", gone" :
			", " + sign + share(by, before));
	return text;
}

/* --- drawing --------------------------------------------------------------------------------------- */

function element(tag, attributes, text) {
	const e = document.createElementNS(NS, tag);
	for (const k in attributes)
		e.setAttribute(k, attributes[k]);
	if (text !== undefined)
		e.textContent = text;
	return e;
}

function scale() {
	return (P.width - 2 * P.pad) / value[zoomed];
}

/* Tenths of a pixel. */
function edge(v) {
	return Math.round((P.pad + (v - start[zoomed]) * scale()) * 10);
}

function row_y(d) {
	return P.top + (P.inverted ? d : P.rows - 1 - d) * P.row;
}

function drawn_width(w) {
	return w >= 30 ? w - 5 : Math.max(w, 1);
}

function wide(c) {
	return /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60]/.test(c) ||
		(c.codePointAt(0) >= 0x1f300 && c.codePointAt(0) <= 0x1faff) ||
		(c.codePointAt(0) >= 0x20000 && c.codePointAt(0) <= 0x3fffd);
}

/* What of `s` fits into `columns`. */
function cut(s, columns) {
	if (s.length * 2 <= columns)
		return s;
	const chars = Array.from(s), widths = chars.map((c) => wide(c) ? 2 : 1);
	if (widths.reduce((a, b) => a + b, 0) <= columns)
		return s;
	let out = "", room = columns - 1;
	for (let i = 0; i < chars.length && widths[i] <= room; i++) {
		room -= widths[i];
		out += chars[i];
	}
	return out + "\u2026";
}

/* As code_name_begin() does: without packages, and without namespaces but for the last. */
function begin(s, columns) {
	const bytes = (t) => new TextEncoder().encode(t).length;
	if (bytes(s) <= columns)
		return s;
	s = s.replace(/^(?:[a-z_][\w$]*\.)+(?=[A-Z])/, "");
	for (let m; bytes(s) > columns && (m = /^[\w$]+(?:::|\\)(?=[\w$]+(?:::|\\))/.exec(s));)
		s = s.slice(m[0].length);
	return s;
}

function color(i) {
	if (hits && hits[name[i]])
		return hot;
	return P.colors[P.changes ? P.changes[3 * i + 2] : P.color[name[i]]];
}

function draw_frame(i, into, thin) {
	const above = level[i] < level[zoomed];
	const x = above ? P.pad * 10 : edge(start[i]);
	const w = above ? (P.width - 2 * P.pad) * 10 : edge(start[i] + value[i]) - x;
	const y = row_y(level[i]);

	if (w < P.thin) {
		const dw = drawn_width(w) / 10, c = color(i);
		thin[c] = (thin[c] || "") + "M" + x / 10 + " " + y + "h" + dw;
		return;
	}
	const g = element("g", above ? { class: "above" } : {});
	g.appendChild(element("title", {}, P.names[name[i]] + " (" + (P.changes ? change(i) :
		text_of(value[i]) + ", " + share(value[i], value[0])) + ")"));
	g.appendChild(element("rect", { x: x / 10, y: y, width: drawn_width(w) / 10, height: P.row - 1,
		fill: color(i) }));
	const columns = Math.floor((w / 10 - 6) / (P.fontsize * P.charwidth));
	if (columns >= 3)
		g.appendChild(element("text", { x: (x + 30) / 10,
			y: (y * 10 + (P.row - 1) * 5 + Math.floor(P.fontsize * 7 / 2)) / 10 },
			cut(begin(P.names[name[i]], columns), columns)));
	into.appendChild(g);
}

function draw() {
	const into = document.createDocumentFragment(), thin = {};
	const least = P.minwidth / scale();

	for (let i = parent[zoomed]; i >= 0; i = parent[i])
		draw_frame(i, into, thin);
	for (let i = zoomed; i < end[zoomed];) {
		if (name[i] < 0 || (i !== zoomed && value[i] < least)) {
			i = end[i];
			continue;
		}
		draw_frame(i++, into, thin);
	}
	for (const c in thin)
		into.appendChild(element("path", { stroke: c, "stroke-width": P.row - 1,
			transform: "translate(0 " + (P.row - 1) / 2 + ")", d: thin[c] }));
	frames.replaceChildren(into);
	mark(-1);
	$("reset").setAttribute("visibility", zoomed ? "visible" : "hidden");
	remember();
}

/* --- what is under the mouse ------------------------------------------------------------------------- */

const outline = element("rect", { class: "mark", visibility: "hidden" });
svg.insertBefore(outline, $("foot"));

function ancestor(i, d) {
	while (level[i] > d)
		i = parent[i];
	return i;
}

/* The frame at a place of the picture, -1 when there is none. */
function frame_at(x, y) {
	const r = Math.floor((y - P.top) / P.row), d = P.inverted ? r : P.rows - 1 - r;

	if (r < 0 || r >= P.rows || x < P.pad || x > P.width - P.pad)
		return -1;
	if (d <= level[zoomed])
		return ancestor(zoomed, d);
	const v = start[zoomed] + (x - P.pad) / scale();
	let i = zoomed;
	while (level[i] < d) {
		let c = i + 1;
		while (c < end[i] && start[c] + value[c] <= v)
			c = end[c];
		if (c >= end[i] || start[c] > v)
			return -1;
		i = c;
	}
	return i;
}

function describe(i) {
	if (i < 0)
		return "\u00a0";
	const n = name[i];
	const who = n < 0 ? "(frames narrower than " + P.minwidth + " px)" :
		P.names[n] + (P.modules[n] ? "  [" + P.modules[n].replace(/^\[(.*)\]$/, "$1") + "]" : "");
	if (P.changes && n >= 0)
		return who + "  " + change(i);
	let text = who + "  " + text_of(value[i]) + ", " + share(value[i], value[0]);
	if (zoomed && level[i] > level[zoomed])
		text += " (" + share(value[i], value[zoomed]) + " of the zoomed frame)";
	return text;
}

function mark(i) {
	under = i;
	details.textContent = describe(i);
	keep_in_sight();
	outline.setAttribute("visibility", i < 0 || name[i] < 0 ? "hidden" : "visible");
	if (i < 0)
		return;
	const above = level[i] <= level[zoomed];
	const x = above ? P.pad * 10 : edge(start[i]);
	const w = above ? (P.width - 2 * P.pad) * 10 : edge(start[i] + value[i]) - x;
	outline.setAttribute("x", x / 10);
	outline.setAttribute("y", row_y(level[i]));
	outline.setAttribute("width", drawn_width(w) / 10);
	outline.setAttribute("height", P.row - 1);
}

function place(event) {
	const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
	return frame_at(at.x, at.y);
}

function zoom(i) {
	if (i < 0 || name[i] < 0)
		return;
	zoomed = i;
	draw();
}

/* --- search -------------------------------------------------------------------------------------------- */

const box = element("foreignObject", { x: P.width - P.pad - 260, y: 8, width: 260, height: P.fontsize + 10,
	visibility: "hidden" });
const input = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
input.setAttribute("type", "text");
input.setAttribute("spellcheck", "false");
input.setAttribute("aria-label", "search: a regular expression");
input.setAttribute("placeholder", "search (regular expression)");
box.appendChild(input);
svg.appendChild(box);

/* Ignores case unless the term has capitals; a term that is no expression is taken literally. */
function expression(t) {
	const flags = t === t.toLowerCase() ? "i" : "";
	try {
		return new RegExp(t, flags);
	} catch (error) {
		return new RegExp(t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), flags);
	}
}

/* The part of the whole that lies in frames that match, nested ones counted once. */
function matched_value() {
	let sum = 0;
	for (let i = 0; i < count;) {
		if (name[i] >= 0 && hits[name[i]]) {
			sum += value[i];
			i = end[i];
		} else {
			i++;
		}
	}
	return sum;
}

function search(t) {
	term = t;
	hits = null;
	matched.textContent = "\u00a0";
	if (t) {
		const e = expression(t);
		hits = P.names.map((n) => e.test(n));
		matched.textContent = "matched: " + share(matched_value(), value[0]);
	}
	draw();
}

function open_search() {
	box.setAttribute("visibility", "visible");
	$("search").setAttribute("visibility", "hidden");
	input.value = term;
	input.focus();
	input.select();
}

function close_search() {
	box.setAttribute("visibility", "hidden");
	$("search").setAttribute("visibility", "visible");
	input.blur();
}

/* --- the address keeps the state, so that a link shows the same --------------------------------------- */

function remember() {
	const parts = [];
	if (zoomed)
		parts.push("z=" + zoomed);
	if (term)
		parts.push("s=" + encodeURIComponent(term));
	if (svg !== document.documentElement)
		return;
	try {
		history.replaceState(null, "", parts.length ? "#" + parts.join("&") : location.pathname + location.search);
	} catch (error) {
		/* Some browsers refuse this for local files; nothing else depends on it. */
	}
}

function recall() {
	for (const part of location.hash.slice(1).split("&")) {
		if (/^z=\d+$/.test(part) && Number(part.slice(2)) < count && name[Number(part.slice(2))] >= 0)
			zoomed = Number(part.slice(2));
		if (part.startsWith("s=")) {
			try {
				term = decodeURIComponent(part.slice(2));
			} catch (error) {
				term = "";
			}
		}
	}
	if (term)
		search(term);
	else if (zoomed)
		draw();
}

/* --- keyboard ------------------------------------------------------------------------------------------- */

function shown(i) {
	return name[i] >= 0 && value[i] >= P.minwidth / scale();
}

/* From the frame `i`: the one below or above it, or its neighbour, as far as there is one. */
function neighbour(i, key) {
	const deeper = P.inverted ? "ArrowDown" : "ArrowUp", back = P.inverted ? "ArrowUp" : "ArrowDown";

	if (i < 0)
		return zoomed;
	if (key === deeper) {
		let best = i;
		for (let c = i + 1; c < end[i]; c = end[c])
			if (shown(c) && (best === i || value[c] > value[best]))
				best = c;
		return best;
	}
	if (key === back)
		return parent[i] < 0 ? i : parent[i];
	let before = -1;
	if (level[i] <= level[zoomed])
		return i;
	for (let c = parent[i] + 1; c < end[parent[i]]; c = end[c]) {
		if (!shown(c))
			continue;
		if (key === "ArrowLeft" && c === i)
			return before < 0 ? i : before;
		if (key === "ArrowRight" && c > i)
			return c;
		before = c;
	}
	return i;
}

function on_key(event) {
	const find = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f";
	const typing = event.target === input;

	if ((find && !typing) || (event.key === "/" && !typing && !event.ctrlKey)) {
		open_search();
	} else if (event.key === "Escape") {
		if (typing || term) {
			close_search();
			search("");
		} else {
			zoom(0);
		}
	} else if (typing) {
		if (event.key !== "Enter")
			return;
		close_search();
	} else if (event.key === "Enter" || event.key === " ") {
		if (event.target.id === "reset")
			zoom(0);
		else if (event.target.id === "search")
			open_search();
		else if (under >= 0)
			zoom(under);
		else
			return;
	} else if (/^Arrow/.test(event.key) && !event.ctrlKey && !event.altKey && !event.metaKey) {
		mark(neighbour(under, event.key));
	} else {
		return;
	}
	event.preventDefault();
}

/* --- the details stay in sight when the picture is taller than the window ------------------------------- */

function keep_in_sight() {
	const area = svg.getBoundingClientRect(), hidden = area.bottom - window.innerHeight;
	const shift = hidden > 0 ? Math.min(hidden * P.height / area.height, P.height - 60) : 0;

	$("foot").setAttribute("transform", "translate(0 " + -shift + ")");
	$("bar").setAttribute("visibility", shift && (under >= 0 || term) ? "visible" : "hidden");
}

svg.addEventListener("mousemove", (event) => mark(place(event)));
svg.addEventListener("mouseleave", () => mark(-1));
frames.addEventListener("click", (event) => zoom(place(event)));
$("reset").addEventListener("click", () => zoom(0));
$("search").addEventListener("click", open_search);
input.addEventListener("input", () => search(input.value));
(svg === document.documentElement ? document : svg).addEventListener("keydown", on_key);
window.addEventListener("scroll", keep_in_sight);
window.addEventListener("resize", keep_in_sight);

$("search").setAttribute("visibility", "visible");
recall();
if (svg === document.documentElement && !P.inverted && P.height > 2 * window.innerHeight)
	window.scrollTo(0, P.height);
keep_in_sight();
})();
