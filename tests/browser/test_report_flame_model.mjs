/* Trees, sums and search of the report's flame graph, under node, against slow and simple code. */
import { deflateRawSync } from "node:zlib";
import { equal, ok, run_tests, test } from "./chromium.mjs";
import { chance, encode, random_samples, scripts, Writer } from "./report_fixture.mjs";

const { report_data, flame_model, flame_search, flame_colors } = scripts(["data.js", "flame_leaves.js", "flame_model.js", "flame_search.js",
	"flame_colors.js"], ["report_data", "flame_model", "flame_search", "flame_colors"]);

const model_of = (samples, timed = 1) => new flame_model.Model(report_data.decode(encode(samples, timed), 2));

/* What a tree shows, as lines "path: total", in the order in which it is drawn. */
function shown(tree, weight) {
	const { model, entries, labels } = tree, lines = [], path = [];

	flame_model.sum_up(tree, weight);
	for (let i = 1; i < tree.n; i++) {
		const e = tree.item[i];
		path.length = tree.level[i] - 1;
		path.push(e < entries.n ? model.name(entries.fn[e]) + "@" + model.module(entries.fn[e]) + "/" +
			entries.kind[e] : "<" + labels[e - entries.n] + ">");
		if (tree.total[i])
			lines.push(path.join(";") + ": " + tree.total[i]);
	}
	return lines;
}

/* --- the reference: stacks as lists, sums by path --------------------------------------------------------- */

const entry = (f) => f.name + "@" + f.module + "/" + (f.kind || 0);
const fn = (f) => f.name + "@" + f.module;
const label = {
	none: () => [],
	process: (l) => [`<${l.comm} (${l.pid})>`],
	thread: (l) => [`<${l.thread || l.comm} (${l.tid})>`],
	container: (l) => [`<${l.container}>`],
};

/* The path of a sample in a tree; null: it is not in it. */
function path_of(sample, { form = "calls", root = "none", of = "" }) {
	const stack = sample.stack.map(entry), top = label[root](sample.labels);
	const at = sample.stack.findIndex((f) => fn(f) === of);

	switch (form) {
	case "calls":
		return [...top, ...stack];
	case "leaves":
		return [...top, ...stack.reverse()];
	case "callees":
		return at < 0 ? null : stack.slice(at + 1);
	default:
		return at < 0 ? null : [...stack.slice(0, at).reverse(), ...top];
	}
}

function expected(samples, options, weight) {
	const sums = new Map();
	for (const s of samples) {
		const path = path_of(s, options);
		for (let k = 1; path && k <= path.length; k++) {
			const key = path.slice(0, k).join(";");
			sums.set(key, (sums.get(key) || 0) + weight(s));
		}
	}
	return [...sums].filter(([, v]) => v).map(([k, v]) => k + ": " + v);
}

const in_bins = (from, to) => (s) => s.times.reduce((sum, [b, v]) => sum + (b >= from && b < to ? v : 0), 0);
const sorted = (lines) => [...lines].sort();

/* --- trees ---------------------------------------------------------------------------------------------- */

test("trees of every form and root are those of the stacks, also of a selected time", () => {
	for (let seed = 1; seed <= 12; seed++) {
		const samples = random_samples(seed, 150), model = model_of(samples);
		for (const form of ["calls", "leaves", "callers", "callees"])
			for (const root of ["none", "process", "thread", "container"]) {
				const tree = model.tree({ form, root, fn: model.find("c", "m1") });
				const options = { form, of: "c@m1", root: form === "callees" ? "none" : root };
				const weights = model.weights_of(1);
				for (const [from, to] of [[0, 20], [3, 9], [4, 12], [0, 5], [17, 18], [6, 6]])
					equal(sorted(shown(tree, weights.get({ from_bin: from, to_bin: to }))),
						sorted(expected(samples, options, in_bins(from, to))),
						[seed, form, root, from, to].join(" "));
				equal(sorted(shown(tree, model.weights_of(0).get(null))),
					sorted(expected(samples, options, (s) => s.values[0])), "the other value type");
			}
	}
});

test("parents come before children, children are within them, in order of their names or weights", () => {
	const samples = random_samples(77, 300), model = model_of(samples);
	for (const by_weight of [false, true]) {
		const tree = model.tree({ by_weight, type: 0 }), weight = model.weights_of(0).get(null);
		flame_model.sum_up(tree, weight);
		for (let i = 0; i < tree.n; i++) {
			let sum = flame_model.self_of(tree, i), last = null;
			ok(sum >= 0, "self of " + i);
			for (let c = i + 1; c < tree.end[i]; c = tree.end[c]) {
				equal([tree.parent[c], tree.level[c]], [i, tree.level[i] + 1], "child " + c);
				const now = by_weight ? -tree.total[c] : tree.entries.rank[tree.item[c]];
				ok(last === null || last <= now, "order below " + i);
				last = now;
				sum += tree.total[c];
			}
			equal(sum, tree.total[i], "total of " + i);
		}
		equal(tree.total[0], samples.reduce((sum, s) => sum + s.values[0], 0), "the whole");
	}
});

test("recursion: a function's total counts each stack once, in the table and in a sandwich", () => {
	const f = (name) => ({ name, module: "m" });
	const samples = [
		{ stack: ["main", "walk", "walk", "walk", "read"].map(f), values: [5, 5], times: [[0, 5]] },
		{ stack: ["main", "walk", "visit", "walk"].map(f), values: [3, 3], times: [[1, 3]] },
		{ stack: ["main"].map(f), values: [2, 2], times: [[1, 2]] },
	];
	const model = model_of(samples), tree = model.tree(), weight = model.weights_of(0).get(null);
	flame_model.sum_up(tree, weight);
	const { self, total } = model.functions_of(tree, weight);
	const of = (name) => [self[model.find(name)], total[model.find(name)]];
	equal([of("main"), of("walk"), of("visit"), of("read")], [[2, 10], [3, 8], [0, 3], [5, 5]], "self, total");
	equal(shown(model.tree({ form: "callers", fn: model.find("walk") }), weight), ["main@m/0: 8"], "callers");
	equal(shown(model.tree({ form: "callees", fn: model.find("walk") }), weight), ["visit@m/0: 3",
		"visit@m/0;walk@m/0: 3", "walk@m/0: 5", "walk@m/0;walk@m/0: 5", "walk@m/0;walk@m/0;read@m/0: 5"], "callees");
});

test("self and total of every function are those of the stacks", () => {
	for (let seed = 21; seed < 27; seed++) {
		const samples = random_samples(seed, 200), model = model_of(samples);
		for (const root of ["none", "process"]) {
			const tree = model.tree({ root }), weight = model.weights_of(1).get({ from_bin: 2, to_bin: 11 });
			flame_model.sum_up(tree, weight);
			const got = model.functions_of(tree, weight), want = new Map();
			for (const s of samples) {
				const w = in_bins(2, 11)(s);
				for (const name of new Set(s.stack.map(fn)))
					want.set("total " + name, (want.get("total " + name) || 0) + w);
				if (s.stack.length)
					want.set("self " + fn(s.stack.at(-1)), (want.get("self " + fn(s.stack.at(-1))) || 0) + w);
			}
			for (let f = 0; f < model.functions.n; f++) {
				const name = model.name(f) + "@" + model.module(f);
				equal([got.self[f], got.total[f]], [want.get("self " + name) || 0, want.get("total " + name) || 0], name);
			}
		}
	}
});

test("frames that differ by line are one, or one each where lines are asked for", () => {
	const at = (line) => ({ name: "f", module: "m", file: "f.c", line });
	const samples = [{ stack: [at(1)], values: [1, 1] }, { stack: [at(2)], values: [2, 2] }];
	const model = model_of(samples), weight = model.weights_of(0).get(null);
	equal(shown(model.tree(), weight), ["f@m/0: 3"], "without lines");
	const tree = model.tree({ lines: true });
	equal(shown(tree, weight), ["f@m/0: 1", "f@m/0: 2"], "with lines");
	equal([...tree.entries.line], [1, 2], "lines");
	equal([model.entries(false).line[0], model.profile.strings[model.entries(false).file[0]]], [0, "f.c"],
		"lines differ, the file does not");
});

/* --- filters ----------------------------------------------------------------------------------------------- */

test("filters keep and drop stacks, and leave out frames, by name, module, kind, language and label", () => {
	const field = {
		name: (f) => f.name, module: (f) => f.module, kind: (f) => report_data.KINDS[f.kind],
		language: (f) => f.kind === 1 ? "kernel" : /\.py$/.test(f.file) ? "Python" : /\.c$/.test(f.file) ? "C" : "not known",
	};
	const samples = random_samples(5, 250), model = model_of(samples), weight = model.weights_of(0).get(null);
	for (const [what, value] of [["name", "b"], ["module", "m2"], ["kind", "kernel"], ["language", "Python"], ["language", "C"]])
		for (const how of ["through", "without", "hide", "only"]) {
			const is = (f) => field[what](f) === value;
			const left = how === "through" ? samples.filter((s) => s.stack.some(is)) :
				how === "without" ? samples.filter((s) => !s.stack.some(is)) :
					samples.map((s) => ({ ...s, stack: s.stack.filter((f) => is(f) === (how === "only")) }));
			for (const form of ["calls", "leaves"])
				equal(sorted(shown(model.tree({ form, filters: [{ how, what, value }] }), weight)),
					sorted(expected(left, { form }, (s) => s.values[0])), [how, what, value, form].join(" "));
		}
	const both = [{ how: "through", what: "process", value: "p1 (2)" }, { how: "without", what: "container", value: "c1" },
		{ how: "without", what: "name", test: (text) => /[ab]/.test(text) }];
	equal(sorted(shown(model.tree({ filters: both }), weight)), sorted(expected(samples.filter((s) => s.labels.pid === 2 &&
		!s.labels.container && !s.stack.some((f) => /[ab]/.test(f.name))), {}, (s) => s.values[0])), "labels and an expression");
	equal(model.choices("process"), ["p0 (1)", "p1 (2)"], "processes to choose from");
	equal(model.choices("language"), ["C", "Python", "kernel", "not known"], "languages to choose from");
});

/* --- search -------------------------------------------------------------------------------------------------- */

test("the matched share counts a stack once, however often it matches", () => {
	for (let seed = 31; seed < 36; seed++) {
		const samples = random_samples(seed, 200), model = model_of(samples);
		for (const range of [null, { from_bin: 3, to_bin: 9 }])
			for (const [term, regex, is] of [["a", false, (f) => f.name === "a"], ["[bc]", true, (f) => /[bc]/.test(f.name)],
				["module:m2", false, (f) => f.module === "m2"], ["zz", false, () => false]]) {
				const weight = model.weights_of(1).get(range), w = range ? in_bins(3, 9) : (s) => s.values[1];
				for (const forms of [["calls"], ["leaves"]]) {
					const trees = forms.map((form) => model.tree({ form }));
					const withins = trees.map((t) => flame_search.below_matches(t, flame_search.find(t, term, regex).items));
					equal(flame_search.matched_weight(trees, withins, weight),
						samples.filter((s) => s.stack.some(is)).reduce((sum, s) => sum + w(s), 0), term + " " + forms);
				}
			}
	}
});

test("in a sandwich, a stack with matches on both sides counts once", () => {
	const f = (name) => ({ name, module: "m" });
	const model = model_of([{ stack: ["x1", "mid", "x2"].map(f), values: [4, 4] }, { stack: ["x1", "mid"].map(f), values: [2, 2] },
		{ stack: ["y", "mid"].map(f), values: [1, 1] }]);
	const trees = ["callers", "callees"].map((form) => model.tree({ form, fn: model.find("mid") }));
	for (const [term, want] of [["x", 6], ["x2", 4], ["mid", 7], ["none", 0]]) {
		const withins = trees.map((t) => flame_search.below_matches(t, flame_search.find(t, term, false).items));
		equal(flame_search.matched_weight(trees, withins, model.weights_of(0).get(null)), want, term);
	}
});

test("what is no regular expression is said in a sentence, and as text it is searched for", () => {
	equal(flame_search.compile("", true), null, "nothing");
	for (const bad of ["(", "a[", "*x", "(?<n>"]) {
		ok(/^Not a regular expression: .+\.$/.test(flame_search.compile(bad, true).error), bad);
		ok(flame_search.compile(bad, false).test("is " + bad + " here"), bad + " as text");
	}
	ok(flame_search.compile("std::", false).test("STD::sort"), "case is ignored");
	ok(!flame_search.compile("Std::", false).test("STD::sort"), "unless the term has capitals");
	ok(flame_search.compile("^\\w+::so", true).test("std::sort"), "an expression");
});

/* --- bytes ---------------------------------------------------------------------------------------------------- */

test("columns are decoded as they were written", () => {
	const samples = [
		{ stack: [{ name: "main", module: "a.out", file: "m.c", line: 7 }, { name: "na\u00efve \u2713", kind: 2 }],
			labels: { pid: 4, tid: 5, comm: "c", thread: "t", container: "k" }, values: [2 ** 53 - 1, -3], times: [[0, 1], [300, -4]] },
		{ stack: [], values: [0, 128], times: [] },
	];
	const p = report_data.decode(encode(samples, 1), 2);
	equal(p.strings, ["", "main", "a.out", "m.c", "na\u00efve \u2713", "c", "t", "k"], "strings");
	equal([[...p.nodes.parent], [...p.nodes.frame], [...p.frames.kind], [...p.frames.line]],
		[[-1, 0, 1], [-1, 0, 1], [0, 2], [7, 0]], "nodes, frames");
	equal([[...p.samples.node], [...p.samples.set], p.samples.values.map((v) => [...v])],
		[[0, 2], [1, 0], [[0, 2 ** 53 - 1], [128, -3]]], "samples");
	const t = p.times[0];
	equal([t.type, t.n_bins, [...t.first], [...t.bin], [...t.value]], [1, 301, [0, 0, 2], [0, 300], [1, -4]], "times");
});

test("times finer than the page's bins are kept beside those, and selected by", () => {
	const f = { name: "f", module: "m" }, samples = [{ stack: [f], values: [1, 6], times: [[3, 1], [4, 2], [9, 3]] }];
	const p = report_data.decode(encode(samples, 1), 2, 4), [t] = p.times;
	equal([[...t.bin], [...t.fine_bin], t.n_bins, t.n_fine_bins], [[0, 1, 2], [3, 4, 9], 3, 10], "bins");
	const weights = new flame_model.Model(p).weights_of(1);
	equal([[3, 4], [4, 9], [9, 10], [0, 99]].map(([from_bin, to_bin]) => weights.get({ from_bin, to_bin })[0]), [1, 2, 3, 6], "selected");
});

test("damaged bytes give one sentence, soon", () => {
	const whole = encode(random_samples(3, 60), 1), random = chance(9);
	const started = performance.now();
	let refused = 0;
	const attempt = (bytes, what) => {
		try {
			const model = new flame_model.Model(report_data.decode(bytes, 2));
			flame_model.sum_up(model.tree({ root: "process" }), model.weights_of(1).get({ from_bin: 0, to_bin: 5 }));
		} catch (error) {
			refused++;
			ok(/^The profile in this page (is damaged: .+\.|has version \d+, and .+\.)$/.test(error.message),
				what + ": " + error.stack);
		}
	};
	for (let length = 0; length < whole.length; length++)
		attempt(whole.subarray(0, length), "cut at " + length);
	equal(refused, whole.length, "cut ones refused");
	for (let k = 0; k < 3000; k++) {
		const bytes = whole.slice();
		for (let j = 0; j < 1 + k % 3; j++)
			bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256);
		attempt(bytes, "changed");
	}
	attempt(Uint8Array.from([...whole, 0]), "with one byte more");
	const huge = new Writer().number(1).number(1).number(0).number(2 ** 52);
	attempt(Uint8Array.from(huge.bytes), "with 2^52 frames");
	attempt(new Uint8Array(20).fill(255), "with an endless number");
	ok(refused > whole.length + 500, "refused " + refused);
	ok(performance.now() - started < 60e3, "this took " + (performance.now() - started) + " ms");
});

test("what is not base64 or not deflated is said in a sentence; what is, is inflated", async () => {
	const bytes = new TextEncoder().encode("some bytes ".repeat(1000));
	const back = await report_data.inflate(report_data.from_base64("\n" + deflateRawSync(bytes).toString("base64") + "\n"));
	equal(Buffer.from(back).equals(Buffer.from(bytes)), true, "inflated");
	for (const text of ["%%%", "AAAA////", deflateRawSync(bytes).toString("base64").slice(0, 20)]) {
		let message = "";
		try {
			await report_data.inflate(report_data.from_base64(text));
		} catch (error) {
			message = error.message;
		}
		ok(/^The profile in this page is damaged: it (is not base64|cannot be inflated)\.$/.test(message), text + ": " + message);
	}
});

/* --- colours ---------------------------------------------------------------------------------------------------- */

const linear = (c) => [1, 3, 5].map((at) => parseInt(c.slice(at, at + 2), 16) / 255).map((v) =>
	v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
const luminance = (c) => linear(c).reduce((sum, v, k) => sum + v * [.2126, .7152, .0722][k], 0);
const contrast = (a, b) => {
	const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
	return (high + .05) / (low + .05);
};

/* How eyes without one kind of cones see (Machado, Oliveira and Fernandes 2009, table of severity 1.0), on linear RGB. */
const eyes = {
	all: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
	"no red": [[.152286, 1.052583, -.204868], [.114503, .786281, .099216], [-.003882, -.048116, 1.051998]],
	"no green": [[.367322, .860646, -.227968], [.280085, .672501, .047413], [-.011820, .042940, .968881]],
	"no blue": [[1.255528, -.076749, -.178779], [-.078411, .930809, .147602], [.004733, .691367, .303900]],
};

function seen(color, eye) {
	const rgb = linear(color), [r, g, b] = eyes[eye].map((row) => Math.max(0, row.reduce((sum, v, k) => sum + v * rgb[k], 0)));
	const [l, m, s] = [[.4122214708, .5363325363, .0514459929], [.2119034982, .6806995451, .1073969566],
		[.0883024619, .2817188376, .6299787005]].map(([x, y, z]) => Math.cbrt(x * r + y * g + z * b));
	return [.2104542553 * l + .7936177850 * m - .0040720468 * s, 1.9779984951 * l - 2.4285922050 * m + .4505937099 * s,
		.0259040371 * l + .7827717662 * m - .8086757660 * s];
}

test("text is readable on every shade (4.5:1), and kinds differ for every kind of eye, in both schemes", () => {
	for (const dark of [false, true]) {
		const t = flame_colors.theme(dark);
		for (const what of ["cpu", "wait", "memory"]) {
			const kinds = [flame_colors.NATIVE[what], ...flame_colors.KIND_COLORS.slice(1, 6)];
			for (const kind of kinds)
				for (let h = 0; h < 15 * 32; h++) {
					const c = flame_colors.shade(t, kind, h);
					ok(contrast(c, t.ink) >= 4.5, `${c} of kind ${kind} has ${contrast(c, t.ink)}`);
				}
			for (const eye in eyes)
				for (let a = 0; a < kinds.length; a++)
					for (let b = 0; b < a; b++) {
						const [x, y] = [a, b].map((k) => seen(flame_colors.shade(t, kinds[k], 7 * 32 + 16), eye));
						const far = Math.hypot(...x.map((v, k) => v - y[k]));
						/* 0.02 in OKLab is what most people just notice */
						ok(far >= .04, `${what}, ${dark ? "dark" : "light"}, ${eye}: kinds ${b} and ${a} are ${far.toFixed(3)} apart`);
					}
		}
		for (const c of [...flame_colors.of_changes(t), t.label])
			ok(contrast(c, t.ink) >= 4.5, c);
		ok(contrast(t.hot, t.hot_ink) >= 4.5, "matches: " + contrast(t.hot, t.hot_ink));
	}
});

await run_tests({ close() {} });
