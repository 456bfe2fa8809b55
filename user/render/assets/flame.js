/*
 * Zoom, search, keyboard and other views for the flame graph around this script. The table in <metadata> holds
 * the frames in preorder (svg_data.c); every change of state draws them anew, with the
 * formulas svg.c used for the picture as it was opened. What the reader does is in flame_views.js, the rest of this function.
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

/*
 * Frames in preorder: their levels, callers, names (-1: frames that are not drawn), one past the last frame above each,
 * where they begin and how wide they are.
 */
function table(n, level, value, name) {
	const t = { count: n, level, value, name, parent: new Int32Array(n), end: new Int32Array(n),
		start: new Float64Array(n) };
	const open = [];           /* the frames from the root to here */
	const next = [0];          /* where the next frame of each level begins */
	for (let i = 0; i < n; i++) {
		const d = level[i];
		while (open.length > d)
			t.end[open.pop()] = i;
		t.parent[i] = d ? open[d - 1] : -1;
		t.start[i] = next[d];
		next[d] += value[i];
		next[d + 1] = t.start[i];
		open.push(i);
	}
	while (open.length)
		t.end[open.pop()] = n;
	return t;
}

const whole = (function unpack() {
	const n = P.nodes.length / 3;
	const level = new Int32Array(n), name = new Int32Array(n), value = new Float64Array(n);
	for (let i = 0; i < n; i++) {
		level[i] = i ? level[i - 1] + 1 - P.nodes[3 * i] : 0;
		value[i] = P.nodes[3 * i + 1];
		name[i] = P.nodes[3 * i + 2];
	}
	for (let k = 1; k < P.modules.length; k++)
		if (P.modules[k] === 0)
			P.modules[k] = P.modules[k - 1];
	return table(n, level, value, name);
})();

/* What each frame has itself. */
const self = Float64Array.from(whole.value);
for (let i = 1; i < whole.count; i++)
	self[whole.parent[i]] -= whole.value[i];

/*
 * Leaf-up: below the root the functions in which samples are, above each its callers. Made when it is asked for, of what
 * is wide enough; what is not drawn has no leaf, and lies at the end.
 */
const leaf_up = (function () {
	let made = null;

	function grouped_callers(members) {
		const groups = new Map();
		for (const m of members) {
			if (m.at <= 0)
				continue;
			const n = whole.name[m.at], group = groups.get(n);
			if (group) {
				group.value += m.value;
				group.members.push(m);
			} else {
				groups.set(n, { name: n, value: m.value, members: [m] });
			}
		}
		return [...groups.values()].sort((a, b) => b.value - a.value || a.name - b.name);
	}

	function make() {
		const level = [], value = [], name = [], least = P.minwidth * whole.value[0] / (P.width - 2 * P.pad);
		const members = [], stack = [];
		for (let i = 1; i < whole.count; i++)
			if (self[i] > 0 && whole.name[i] >= 0)
				members.push({ at: i, value: self[i] });
		stack.push({ name: whole.name[0], value: whole.value[0], members, level: 0 });
		while (stack.length) {
			const g = stack.pop();
			let narrow = 0;
			level.push(g.level);
			value.push(g.value);
			name.push(g.name);
			if (g.name < 0)
				continue;
			if (g.level)
				g.members.forEach((m) => { m.at = whole.parent[m.at]; });
			const above = grouped_callers(g.members);
			const shown = above.filter((c) => c.value >= least);
			above.forEach((c) => { narrow += c.value < least ? c.value : 0; });
			if (!g.level)
				for (let i = 1; i < whole.count; i++)
					narrow += whole.name[i] < 0 ? whole.value[i] : 0;
			if (narrow)
				stack.push({ name: -1, value: narrow, level: g.level + 1 });
			for (const c of shown.reverse())
				stack.push(Object.assign(c, { level: g.level + 1 }));
		}
		return table(level.length, Int32Array.from(level), Float64Array.from(value), Int32Array.from(name));
	}
	return () => made || (made = make());
})();

let count, level, parent, name, end, start, value, rows; /* of the table that is shown */
function use(t) {
	({ count, level, parent, name, end, start, value } = t);
	rows = 1;
	for (let i = 0; i < count; i++)
		if (name[i] >= 0 && level[i] >= rows)
			rows = level[i] + 1;
}
use(whole);

let zoomed = 0;       /* the frame that fills the width                      */
let under = -1;       /* the frame under the mouse, or reached by the keyboard */
let term = "";        /* what is searched for                               */
let plain = false;    /* … as text, and not as an expression                */
let hits = null;      /* per name: does it match?                           */
let callers = false;  /* leaf-up                                            */
let by_module = null; /* per name: a colour; null: colours as they came     */
let module_names = []; /* and those colours' modules */
const note = details.textContent; /* of frames that are not drawn           */
const came = { inverted: P.inverted, width: P.width };

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

/* What text_of() rounds, to the last unit: " (1,234,567 B)". */
function exact(v) {
	const f = factors[P.unit], rounded = text_of(v);
	const text = P.noun ? "" : f ? grouped(v * f[1]) + (f[0] === "bytes" ? " B" : " ns") : "";
	return text && text !== rounded ? " (" + text + ")" : "";
}

function share(part, all) {
	const permille = Math.floor(part * 1000 / all + 0.5);
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
	return P.top + (P.inverted ? d : rows - 1 - d) * P.row;
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
	if (by_module)
		return by_module[name[i]];
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

/* The picture is as wide and as high as it has to be; what is at the right and below moves along. */
const right = ["search", "reset", "legend", "matched", "menu_button"];
const legend_end = $("legend") ? $("legend").getBBox().x : P.width;
const below = ["bar", "details", "matched"].map((id) => [id, Number($(id).getAttribute("y"))]);
const lines = ["title", "subtitle"].map((id) => [$(id), $(id).textContent]);

let high = P.height, least_high = 0; /* of the picture now; what an open menu needs */

/* Where the subtitle leaves room for it; of modules the largest that fit. */
function draw_legend() {
	const least = lines[1][0].getBBox().width + 3 * P.pad, y = lines[1][0].getAttribute("y");
	const by = P.width - came.width;
	let x = P.width - P.pad;
	if ($("legend"))
		$("legend").setAttribute("visibility", !by_module && legend_end + by > least ? "visible" : "hidden");
	modules.replaceChildren();
	for (const [text, fill] of by_module ? module_names : []) {
		const label = cut(text, 20), size = P.fontsize - 1, wide = Array.from(label).length * P.fontsize * P.charwidth;
		if (x - wide - 2 * P.fontsize < least)
			break;
		modules.appendChild(element("text", { x: x - wide, y, fill: "#6b6b66" }, label));
		modules.appendChild(element("rect", { x: x - wide - P.fontsize - 4, y: y - P.fontsize + 2, width: size,
			height: size, rx: 2, fill }));
		x -= wide + 2 * P.fontsize + 4;
	}
}

function resize(width) {
	const height = P.top + rows * P.row + P.fontsize + 20, by = width - came.width;
	P.width = width;
	high = Math.max(height, least_high);
	for (const [k, v] of [["width", width], ["height", high], ["viewBox", "0 0 " + width + " " + high]])
		svg.setAttribute(k, v);
	const back = svg.querySelector(".back"), columns = (width - 2 * P.pad) / (P.fontsize * P.charwidth);
	back.setAttribute("width", width);
	back.setAttribute("height", high);
	$("bar").setAttribute("width", width);
	for (const id of right)
		if ($(id))
			$(id).setAttribute("transform", "translate(" + by + " 0)");
	box.setAttribute("x", width - P.pad - 290);
	if (width < came.width) {
		lines[0][0].textContent = cut(lines[0][1], Math.floor((columns - 36) * P.fontsize / (P.fontsize + 4)));
		lines[1][0].textContent = cut(lines[1][1], Math.floor(columns));
	} else {
		lines.forEach(([e, text]) => { e.textContent = text; });
	}
	draw_legend();
	for (const [id, y] of below)
		$(id).setAttribute("y", y + height - P.height);
}

/* Another table, way up or width: everything anew. */
function view(frame) {
	const old = callers ? leaf_up() : whole;
	if (old.level !== level) {
		use(old);
		zoomed = 0;
	}
	if (frame !== undefined)
		zoomed = frame;
	resize(P.width);
	draw();
}

/* --- what is under the mouse ------------------------------------------------------------------------- */

const modules = element("g", { id: "modules" });
svg.insertBefore(modules, $("foot"));
const outline = element("rect", { class: "mark", visibility: "hidden" });
svg.insertBefore(outline, $("foot"));

function ancestor(i, d) {
	while (level[i] > d)
		i = parent[i];
	return i;
}

/* The frame at a place of the picture, -1 when there is none. */
function frame_at(x, y) {
	const r = Math.floor((y - P.top) / P.row), d = P.inverted ? r : rows - 1 - r;

	if (r < 0 || r >= rows || x < P.pad || x > P.width - P.pad)
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

/* Name and module are cut to what `columns` leave beside the figures. */
function describe(i, columns) {
	if (i < 0)
		return cut(note, columns);
	const n = name[i];
	const who = n < 0 ? "(frames narrower than " + P.minwidth + " px)" :
		P.names[n] + (P.modules[n] ? "  [" + P.modules[n].replace(/^\[(.*)\]$/, "$1") + "]" : "");
	let text = "  ";
	if (P.changes && n >= 0)
		return cut(who, Math.max(20, columns - change(i).length - 2)) + text + change(i);
	text += text_of(value[i]) + exact(value[i]) + ", " + share(value[i], value[0]);
	const own = callers || n < 0 ? 0 : self[i];
	if (own > 0 && own < value[i])
		text += ", self " + text_of(own);
	if (zoomed && level[i] > level[zoomed])
		text += " (" + share(value[i], value[zoomed]) + " of the zoomed frame)";
	return cut(who, Math.max(20, columns - text.length)) + text;
}

/* What the line of details has room for, beside the share that matches. */
function room() {
	return Math.floor((P.width - 2 * P.pad) / (P.fontsize * P.charwidth)) - matched.textContent.length - 1;
}

function say(text) {
	details.textContent = text;
}

function mark(i) {
	under = i;
	say(describe(i, room()));
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
