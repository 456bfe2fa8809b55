/*
 * Colours of frames: by kind, by module, and by how far a share changed. They are made in OKLCH
 * (Björn Ottosson, "A perceptual color space for image processing", 2020), so that one colour of text is
 * readable on all of them, in either scheme. Kinds differ in hue and lightness, which readers with any
 * colour vision tell apart; a change is blue or orange. The same name always has the same shade.
 */
const flame_colors = (function () {
"use strict";

function channel(x) {
	const v = x <= 0.0031308 ? 12.92 * x : 1.055 * Math.max(x, 0) ** (1 / 2.4) - 0.055;
	return Math.round(255 * Math.min(1, Math.max(0, v)));
}

/* Lightness 0 … 1, chroma, hue in degrees: "#rrggbb". */
function oklch(lightness, chroma, hue) {
	const a = chroma * Math.cos(hue * Math.PI / 180), b = chroma * Math.sin(hue * Math.PI / 180);
	const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
	return "#" + [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
		-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
		-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s]
		.map((x) => channel(x).toString(16).padStart(2, "0")).join("");
}

/* As palette_shade() does it: FNV-1a over the bytes, then mixed. */
function hash(name) {
	let h = 2166136261;
	for (const byte of new TextEncoder().encode(name.slice(0, 1000)))
		h = Math.imul(h ^ byte, 16777619);
	h ^= h >>> 15;
	h = Math.imul(h, 0x2c1b3c6d);
	return (h ^ h >>> 13) >>> 0;
}

/* Hue, chroma and what is added to the lightness, by kind (report_data.KINDS). Eyes without red or green cones see some
 * hues alike, so kinds differ in lightness, too: searched for the largest least distance. What native code has depends on
 * what is shown: as in the SVGs, CPU time is yellow, waiting blue, memory green. */
const KIND_COLORS = [null, [42, .13, -.14], [313, .098, 0], [340, .123, -.09], [168, .106, -.04], [0, 0, .06], [0, 0, -.04]];
const NATIVE = { cpu: [86, .118, .045], wait: [261, .118, -.105], memory: [125, .11, -.045] };
const MODULE_HUES = [85, 250, 180, 45, 310, 135, 350, 215, 110, 280, 20, 155];

function theme(dark) {
	return dark ? {
		dark, light: .455, span: .05, chroma: .72, back: "#16181c", ink: "#f4f3ef", dim: [.27, .006],
		hot: oklch(.57, .26, 328), hot_ink: "#ffffff", label: oklch(.36, .008, 90),
	} : {
		dark, light: .83, span: .05, chroma: 1, back: "#ffffff", ink: "#1b1b1a", dim: [.945, .004],
		hot: oklch(.55, .27, 328), hot_ink: "#ffffff", label: oklch(.885, .006, 90),
	};
}

function shade(t, [hue, chroma, lighter = 0], h) {
	return oklch(t.light + lighter * (t.dark ? .6 : 1) + t.span * (h % 32) / 31, chroma * t.chroma, hue + (chroma ? (h >>> 5) % 15 - 7 : 0));
}

/* "cpu", "wait" or "memory": what a value type measures. */
function hue_of(source, type) {
	if (/bytes/.test(type.unit) || /alloc|inuse|heap|resident|space|object/.test(type.name))
		return "memory";
	return /off|block|wait|runnable|lock/i.test(source + " " + type.name) ? "wait" : "cpu";
}

/* A hue for each module: the one that its name asks for, or the next that no module with more frames has. */
const hues_of = new WeakMap();
function module_hues(model) {
	if (hues_of.has(model))
		return hues_of.get(model);
	const { frames, strings } = model.profile, uses = new Map(), hues = new Map(), n = MODULE_HUES.length;
	for (let f = 0; f < frames.n; f++)
		uses.set(frames.module[f], (uses.get(frames.module[f]) || 0) + 1);
	const order = [...uses].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([m]) => strings[m]).filter((m) => m);
	const taken = new Array(n).fill(0);
	order.forEach((module, k) => {
		let at = hash(module) % n;
		while (k < n && taken[at])
			at = (at + 1) % n;
		taken[at] = 1;
		hues.set(module, [MODULE_HUES[at], .09]);
	});
	hues.set("", [0, 0]);
	hues_of.set(model, hues);
	return hues;
}

/* The colour of each item of a tree (entries, then labels). `by`: kind or module. */
function of_items(tree, by, t, native) {
	const { entries, labels, model } = tree, out = new Array(entries.n + labels.length), shades = new Map();
	const hues = module_hues(model);
	const cached = (text) => {
		if (!shades.has(text))
			shades.set(text, hash(text));
		return shades.get(text);
	};

	for (let e = 0; e < entries.n; e++) {
		const name = cached(model.name(entries.fn[e]));
		if (by === "module") {
			out[e] = shade(t, hues.get(model.module(entries.fn[e])), name);
		} else {
			out[e] = shade(t, KIND_COLORS[entries.kind[e]] || (entries.kind[e] ? [0, 0] : NATIVE[native]), name);
		}
	}
	out.fill(t.label, entries.n);
	return out;
}

/*
 * Steps of a share that was `before` and is `after`, both parts of 1: the middle one where nothing changed, the last
 * where it doubled or more, the first where it halved or less.
 */
const STEPS = 64;

function change_step(before, after) {
	const r = before <= 0 ? (after > 0 ? 1 : 0) : after <= 0 ? -1 : Math.log2(after / before);
	return Math.round((Math.max(-1, Math.min(1, r)) + 1) / 2 * STEPS);
}

/* Their colours, from blue over grey to orange. */
function of_changes(t) {
	return Array.from({ length: STEPS + 1 }, (_, k) => {
		const r = 2 * k / STEPS - 1;
		return oklch(t.light + t.span / 2, .13 * Math.abs(r) * t.chroma, r > 0 ? 50 : 250);
	});
}

/*
 * Colours as pixels (bytes r, g, b, a in memory): each one in full, of frames above the zoomed one, and of those that
 * a search does not match. `label` and `hot` are the indices of labels' colour and of that of matches.
 */
function pixels(list, t) {
	const all = [...list, t.label, t.hot], out = { label: list.length, hot: list.length + 1 };
	const bytes = (c) => [1, 3, 5].map((at) => parseInt(c.slice(at, at + 2), 16)), back = bytes(t.back);
	const seen = new Map();

	for (const [name, part] of [["full", 1], ["above", .55], ["dim", .35]]) {
		const data = new Uint8Array(4 * all.length);
		seen.clear();
		all.forEach((c, k) => {
			if (!seen.has(c))
				seen.set(c, [...bytes(c).map((v, n) => Math.round(part * v + (1 - part) * back[n])), 255]);
			data.set(seen.get(c), 4 * k);
		});
		out[name] = new Uint32Array(data.buffer);
	}
	out.back = new Uint32Array(Uint8Array.from([...back, 255]).buffer)[0];
	return out;
}

/* Pixels of a heat map, from nothing to the most: in full, and where a time is selected. */
function heat(dark) {
	const steps = Array.from({ length: 33 }, (_, k) => k === 0 ? (dark ? "#202327" : "#f1efe9") :
		dark ? oklch(.32 + .53 * k / 32, .07 + .08 * k / 32, 60) : oklch(.93 - .5 * k / 32, .05 + .11 * k / 32, 50));
	const data = (list) => new Uint32Array(Uint8Array.from(list.flatMap((c) =>
		[1, 3, 5].map((at) => parseInt(c.slice(at, at + 2), 16)).concat(255))).buffer);
	const marked = Array.from({ length: 33 }, (_, k) => dark ? oklch(.42 + .5 * k / 32, .13, 250) : oklch(.86 - .5 * k / 32, .1, 250));
	return { plain: data(steps), marked: data(marked) };
}

/* [text, colour] for the legend of what a tree shows. */
function legend(tree, by, t, native, total) {
	if (by === "change")
		return [["half of its share or less", 0], ["the same", STEPS / 2], ["twice or more", STEPS]]
			.map(([text, k]) => [text, of_changes(t)[k]]);
	const sums = new Map(), { entries, model } = tree, hues = module_hues(model);
	for (let i = 1; i < tree.n; i++) {
		const e = tree.item[i];
		if (e >= entries.n || !total[i])
			continue;
		const key = by === "module" ? model.module(entries.fn[e]) : entries.kind[e];
		let self = total[i];
		for (let c = i + 1; c < tree.end[i]; c = tree.end[c])
			self -= total[c];
		sums.set(key, (sums.get(key) || 0) + self);
	}
	const all = [...sums].sort((a, b) => b[1] - a[1]);
	if (by === "module")
		return all.slice(0, 12).map(([m, v]) => [m || "no module", shade(t, hues.get(m), 7 * 32 + 16), v]);
	return all.map(([k, v]) => [report_data.KINDS[k] || "other",
		shade(t, KIND_COLORS[k] || (k ? [0, 0] : NATIVE[native]), 7 * 32 + 16), v]);
}

return { theme, shade, KIND_COLORS, NATIVE, of_items, of_changes, change_step, pixels, heat, STEPS, legend, hue_of, oklch, hash };
})();
