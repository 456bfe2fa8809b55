/*
 * Trees for the flame graph, from a decoded profile (data.js). Nothing here touches the page.
 *
 * A *function* is a name in a module. An *entry* is what frames of a tree are merged by: a function
 * and its kind (inlined or not), with lines: also its file and line. Trees are arrays in preorder:
 * the frames below i are i + 1 … end[i] - 1, its children i + 1, end[i + 1], and so on. Their shape
 * depends on no weight, so a selection of time only sums anew: frames keep their place.
 */
const flame_model = (function () {
"use strict";

/* --- functions and entries --------------------------------------------------------------------- */

/* Numbers for keys, in the order in which they come. */
class Numbering {
	constructor() {
		this.of = new Map();
	}

	get(key) {
		let id = this.of.get(key);
		if (id === undefined)
			this.of.set(key, id = this.of.size);
		return id;
	}
}

/* A function's name and module, as indices into the profile's strings. */
function find_functions(profile) {
	const { frames, strings } = profile, by_key = new Numbering();
	const of_frame = new Int32Array(frames.n), name = [], module = [];

	for (let i = 0; i < frames.n; i++) {
		const f = by_key.get(frames.name[i] * strings.length + frames.module[i]);
		of_frame[i] = f;
		if (f === name.length) {
			name.push(frames.name[i]);
			module.push(frames.module[i]);
		}
	}
	return { n: name.length, of_frame, name, module };
}

/* Files and lines in which an entry's frames differ are 0. `rank` orders entries by name. */
function find_entries(profile, functions, lines) {
	const { frames, strings } = profile, kinds = new Numbering(), files = new Numbering(), all = new Numbering();
	const of_frame = new Int32Array(frames.n), fn = [], kind = [], file = [], line = [];

	for (let i = 0; i < frames.n; i++) {
		let e = kinds.get(functions.of_frame[i] * 256 + frames.kind[i]);
		if (lines)
			e = all.get(files.get(e * strings.length + frames.file[i]) * 2 ** 31 + frames.line[i]);
		of_frame[i] = e;
		if (e === fn.length) {
			fn.push(functions.of_frame[i]);
			kind.push(frames.kind[i]);
			file.push(frames.file[i]);
			line.push(frames.line[i]);
		} else {
			if (file[e] !== frames.file[i])
				file[e] = line[e] = 0;
			if (line[e] !== frames.line[i])
				line[e] = 0;
		}
	}
	const order = Array.from(fn, (_, e) => e), rank = new Int32Array(fn.length);
	const text = fn.map((f) => strings[functions.name[f]]);
	order.sort((a, b) => text[a] < text[b] ? -1 : text[a] > text[b] ? 1 :
		functions.module[fn[a]] - functions.module[fn[b]] || kind[a] - kind[b] || line[a] - line[b] || a - b);
	order.forEach((e, at) => { rank[e] = at; });
	return { n: fn.length, of_frame, fn, kind, file, line, rank };
}

const LANGUAGES = [
	[/\.(c|h)$/i, "C"], [/\.(cc|cpp|cxx|c\+\+|hh|hpp|hxx|h\+\+|ipp|tcc|inl)$/i, "C++"], [/\.rs$/, "Rust"],
	[/\.go$/, "Go"], [/\.py[xi]?$/, "Python"], [/\.([cm]?js|jsx)$/, "JavaScript"], [/\.([cm]?ts|tsx)$/, "TypeScript"],
	[/\.java$/, "Java"], [/\.kts?$/, "Kotlin"], [/\.scala$/, "Scala"], [/\.rb$/, "Ruby"], [/\.(php|phtml)$/, "PHP"],
	[/\.(pl|pm)$/, "Perl"], [/\.l?hs$/, "Haskell"], [/\.d$/, "D"], [/\.zig$/, "Zig"], [/\.swift$/, "Swift"],
	[/\.s$/i, "assembly"], [/\.lua$/, "Lua"], [/\.(f|f90|for)$/i, "Fortran"], [/\.ml$/, "OCaml"], [/\.nim$/, "Nim"],
];

/* By its source file's ending; code without a file has no language that we know. */
function language(profile, frame) {
	const { frames, strings } = profile;

	if (frames.kind[frame] === 1)
		return "kernel";
	const file = strings[frames.file[frame]];
	const found = LANGUAGES.find(([ending]) => ending.test(file));
	return found ? found[1] : "not known";
}

/* --- which samples and frames count -------------------------------------------------------------- */

/* Of several runs (compare.js) processes and threads are the same by their names, whatever their numbers. */
const LABELS = {
	process: (s, sets, strings) => label_text(strings[sets.comm[s]], sets.side ? 0 : sets.pid[s]),
	thread: (s, sets, strings) => label_text(strings[sets.thread[s]] || strings[sets.comm[s]], sets.side ? 0 : sets.tid[s]),
	container: (s, sets, strings) => strings[sets.container[s]],
};

function label_text(name, id) {
	return name && id ? name + " (" + id + ")" : name || (id ? String(id) : "");
}

/* Each label set's label of a kind, as a number; `texts` in natural order. "": it has none. */
function find_labels(profile, kind) {
	const { sets, strings } = profile, by_text = new Numbering(), of_set = new Int32Array(sets.n);

	if (LABELS[kind])
		for (let s = 0; s < sets.n; s++)
			of_set[s] = by_text.get(LABELS[kind](s, sets, strings));
	else
		by_text.get("");
	const texts = [...by_text.of.keys()];
	const order = texts.map((_, i) => i).sort((a, b) =>
		texts[a].localeCompare(texts[b], "en", { numeric: true }) || a - b);
	const place = new Int32Array(texts.length);
	order.forEach((i, at) => { place[i] = at; });
	return { of_set: of_set.map((i) => place[i]), texts: order.map((i) => texts[i]) };
}

/* What a filter may look at in a frame; each gives text. */
const FIELDS = {
	name: (p, f) => p.strings[p.frames.name[f]],
	module: (p, f) => p.strings[p.frames.module[f]],
	file: (p, f) => p.strings[p.frames.file[f]],
	kind: (p, f) => report_data.KINDS[p.frames.kind[f]] || "not known",
	language,
};

/* 1 for each frame that the filter names: equal to its value, or matched by its `test` function. */
function frames_matched(profile, filter) {
	const field = FIELDS[filter.what], matched = new Uint8Array(profile.frames.n);

	for (let f = 0; f < matched.length; f++) {
		const text = field(profile, f);
		matched[f] = filter.test ? filter.test(text) : text === filter.value;
	}
	return matched;
}

/*
 * Filters {how, what, value or test}: keep or drop the stacks that have such a frame ("through",
 * "without"), or in every stack leave out such frames or all others ("hide", "only"). Labels
 * (process, thread, container) know "through" and "without".
 */
function apply_filters(profile, filters) {
	const { nodes, frames, sets, samples } = profile;
	const hidden = new Uint8Array(frames.n), kept = new Uint8Array(samples.n).fill(1);

	for (const filter of filters) {
		if (LABELS[filter.what]) {
			const labels = find_labels(profile, filter.what), want = filter.how === "through";
			for (let s = 0; s < samples.n; s++)
				if ((labels.texts[labels.of_set[samples.set[s]]] === filter.value) !== want)
					kept[s] = 0;
			continue;
		}
		const matched = frames_matched(profile, filter);
		if (filter.how === "hide" || filter.how === "only") {
			const hide = filter.how === "hide" ? 1 : 0;
			for (let f = 0; f < frames.n; f++)
				if (matched[f] === hide)
					hidden[f] = 1;
			continue;
		}
		const has = new Uint8Array(nodes.n), want = filter.how === "through" ? 1 : 0;
		for (let i = 1; i < nodes.n; i++)
			has[i] = has[nodes.parent[i]] | matched[nodes.frame[i]];
		for (let s = 0; s < samples.n; s++)
			if (has[samples.node[s]] !== want)
				kept[s] = 0;
	}
	return { hidden, kept };
}

/* --- trees ----------------------------------------------------------------------------------------- */

/* A tree that grows: node 0 is its root, children are found by their item. */
class Trie {
	constructor(expected) {
		let cap = 1024;
		while (cap < expected && cap < 1 << 22)
			cap *= 2;
		this.n = 1;
		this.parent = new Int32Array(cap);
		this.item = new Int32Array(cap);
		this.parent[0] = this.item[0] = -1;
		this.table = new Int32Array(2 * cap); /* open addressing; 0 is free: the root is no child */
	}

	grow() {
		const grown = (a) => { const b = new Int32Array(2 * a.length); b.set(a); return b; };
		this.parent = grown(this.parent);
		this.item = grown(this.item);
		this.table = new Int32Array(2 * this.parent.length);
		for (let i = 1; i < this.n; i++)
			this.table[this.slot(this.parent[i], this.item[i])] = i;
	}

	slot(parent, item) {
		const mask = this.table.length - 1;
		let h = Math.imul(parent, 0x9e3779b1) ^ Math.imul(item, 0x85ebca6b);
		h ^= h >>> 15;
		h = Math.imul(h, 0x2c1b3c6d);
		h ^= h >>> 13;
		for (let at = h & mask;; at = at + 1 & mask) {
			const i = this.table[at];
			if (!i || (this.parent[i] === parent && this.item[i] === item))
				return at;
		}
	}

	child(parent, item) {
		let at = this.slot(parent, item);
		const found = this.table[at];
		if (found)
			return found;
		if (this.n === this.parent.length) {
			this.grow();
			at = this.slot(parent, item);
		}
		this.parent[this.n] = parent;
		this.item[this.n] = item;
		this.table[at] = this.n;
		return this.n++;
	}
}

/* Sample numbers, those of one label together, labels and samples in their order. */
function samples_by_label(samples, of_set, n_labels) {
	const first = new Int32Array(n_labels + 1), order = new Int32Array(samples.n);

	for (let s = 0; s < samples.n; s++)
		first[of_set[samples.set[s]] + 1]++;
	for (let l = 0; l < n_labels; l++)
		first[l + 1] += first[l];
	for (let s = 0; s < samples.n; s++)
		order[first[of_set[samples.set[s]]]++] = s;
	return order;
}

/* Where fn is entered first on the way to each node: that node; 0: it is not. */
function outermost(profile, of_frame, fn, hidden) {
	const { nodes } = profile, outer = new Int32Array(nodes.n);

	for (let i = 1; i < nodes.n; i++)
		outer[i] = outer[nodes.parent[i]] ||
			(of_frame[nodes.frame[i]] === fn && !hidden[nodes.frame[i]] ? i : 0);
	return outer;
}

/*
 * Grows `trie` by every sample that counts; the result has each sample's node, -1 for the others.
 * The form of a tree is "leaves" (flame_leaves.js), from the leaf ("reverse"), or one of
 *   calls    from the root of the stack to its leaf
 *   callers, callees   of the function `fn`: the halves of a sandwich. A stack in which fn calls
 *            itself counts once, from where it is entered first
 */
function grow(trie, profile, c) {
	const { nodes, samples } = profile, { parent, frame } = nodes;
	const { form, kept, hidden, entry_of_frame, labels, label_item, outer } = c;
	const of_sample = new Int32Array(samples.n).fill(-1);
	const known = new Int32Array(nodes.n), known_for = new Int32Array(nodes.n).fill(-1);
	const rooted = c.labelled, path = [];

	for (const s of samples_by_label(samples, labels.of_set, labels.texts.length)) {
		const leaf = samples.node[s], label = labels.of_set[samples.set[s]];
		if (!kept[s] || (outer && !outer[leaf]))
			continue;
		const from = outer ? outer[leaf] : 0; /* where calls and callees begin */
		const key = form === "callees" || !rooted ? 0 : label;
		const memo = form === "callers" ? from : leaf;
		if (known_for[memo] === key) {
			of_sample[s] = known[memo];
			continue;
		}
		let at;
		if (form === "calls" || form === "callees") {
			let i = leaf;
			for (; i !== from && known_for[i] !== key; i = parent[i])
				path.push(i);
			at = known_for[i] === key ? known[i] : form === "calls" && rooted ?
				trie.child(0, label_item + label) : 0;
			while (path.length) {
				i = path.pop();
				if (!hidden[frame[i]])
					at = trie.child(at, entry_of_frame[frame[i]]);
				known[i] = at;
				known_for[i] = key;
			}
		} else {
			at = 0;
			for (let i = parent[from]; i; i = parent[i])
				if (!hidden[frame[i]])
					at = trie.child(at, entry_of_frame[frame[i]]);
			if (rooted)
				at = trie.child(at, label_item + label);
			known[memo] = at;
			known_for[memo] = key;
		}
		of_sample[s] = at;
	}
	return of_sample;
}

/* Places 0 … n - 1 in the order of key[i] in 0 … n_keys - 1, equal ones in the order of `order`. */
function sorted_by(order, key, n_keys) {
	const first = new Int32Array(n_keys + 1), out = new Int32Array(order.length);

	for (let i = 0; i < order.length; i++)
		first[key[order[i]] + 1]++;
	for (let k = 0; k < n_keys; k++)
		first[k + 1] += first[k];
	for (let i = 0; i < order.length; i++)
		out[first[key[order[i]]]++] = order[i];
	return out;
}

/* The trie as arrays in preorder, siblings by the rank of their item; `weight`: heaviest first. */
function finish(trie, of_sample, rank, weight) {
	const n = trie.n, parent_was = trie.parent, item_was = trie.item;
	const ranks = new Int32Array(n), all = new Int32Array(n - 1);
	for (let i = 1; i < n; i++) {
		ranks[i] = rank[item_was[i]];
		all[i - 1] = i;
	}
	const children = sorted_by(sorted_by(all, ranks, rank.length), parent_was, n);
	const first = new Int32Array(n + 1);
	for (let i = 1; i < n; i++)
		first[parent_was[i] + 1]++;
	for (let i = 0; i < n; i++)
		first[i + 1] += first[i];

	const total = new Float64Array(n);
	if (weight) {
		for (let s = 0; s < of_sample.length; s++)
			if (of_sample[s] >= 0)
				total[of_sample[s]] += weight[s];
		for (let i = n - 1; i > 0; i--)
			total[parent_was[i]] += total[i];
		for (let i = 0; i < n; i++)
			if (first[i + 1] - first[i] > 1)
				children.subarray(first[i], first[i + 1]).sort((a, b) =>
					total[b] - total[a] || ranks[a] - ranks[b]);
	}

	const parent = new Int32Array(n), item = new Int32Array(n), level = new Int32Array(n), end = new Int32Array(n);
	const now = new Int32Array(n), next = first.slice(0, n), path = [0];
	let count = 1, depth = 0;
	parent[0] = item[0] = -1;
	while (path.length) {
		const i = path[path.length - 1];
		if (next[i] < first[i + 1]) {
			const c = children[next[i]++];
			parent[count] = now[i];
			item[count] = item_was[c];
			level[count] = path.length;
			if (path.length > depth)
				depth = path.length;
			now[c] = count++;
			path.push(c);
		} else {
			end[now[i]] = count;
			path.pop();
		}
	}
	for (let s = 0; s < of_sample.length; s++)
		if (of_sample[s] >= 0)
			of_sample[s] = now[of_sample[s]];
	return { n, parent, item, level, end, depth, of_sample, total: new Float64Array(n) };
}

/* 1 for each frame that is not below another of its function: what its total is the sum of. */
function mark_outermost(tree, fn_of_entry, n_functions) {
	const top = new Uint8Array(tree.n), open = new Int32Array(n_functions), path = [];

	for (let i = 1; i < tree.n; i++) {
		while (path.length && tree.end[path[path.length - 1]] <= i)
			open[fn_of_entry[tree.item[path.pop()]]]--;
		if (tree.item[i] >= fn_of_entry.length)
			continue;
		top[i] = open[fn_of_entry[tree.item[i]]]++ === 0 ? 1 : 0;
		path.push(i);
	}
	return top;
}

/* --- weights ------------------------------------------------------------------------------------------ */

/*
 * The weight of each sample for one value type: of the whole run, or of the profile's own bins from … to - 1.
 * A selection that moves adds and subtracts the bins between; values are whole numbers, so this is exact.
 */
class Weights {
	constructor(profile, type) {
		const times = profile.times.find((t) => t.type === type);

		this.whole = profile.samples.values[type];
		this.timed = !!times;
		this.n_bins = times ? times.n_fine_bins : 0;
		if (!times)
			return;
		this.from = this.to = 0;
		this.selected = new Float64Array(profile.samples.n);
		this.first = new Int32Array(times.n_fine_bins + 1);
		this.sample = new Int32Array(times.n);
		this.value = new Float64Array(times.n);
		for (let i = 0; i < times.n; i++)
			this.first[times.fine_bin[i] + 1]++;
		for (let b = 0; b < times.n_fine_bins; b++)
			this.first[b + 1] += this.first[b];
		const next = this.first.slice();
		for (let s = 0; s < profile.samples.n; s++)
			for (let i = times.first[s]; i < times.first[s + 1]; i++) {
				const at = next[times.fine_bin[i]]++;
				this.sample[at] = s;
				this.value[at] = times.value[i];
			}
	}

	add(from, to, sign) {
		for (let i = this.first[from]; i < this.first[to]; i++)
			this.selected[this.sample[i]] += sign * this.value[i];
	}

	/* `range` {from_bin, to_bin}, the latter not included, or null; borrowed until the next call. */
	get(range) {
		if (!range || !this.timed)
			return this.whole;
		const clamp = (b) => Math.max(0, Math.min(this.n_bins, b));
		const from = clamp(range.from_bin), to = Math.max(from, clamp(range.to_bin));
		if (from >= this.to || to <= this.from) {
			this.selected.fill(0);
			this.add(from, to, 1);
		} else {
			if (from < this.from)
				this.add(from, this.from, 1);
			else
				this.add(this.from, from, -1);
			if (to > this.to)
				this.add(this.to, to, 1);
			else
				this.add(to, this.to, -1);
		}
		this.from = from;
		this.to = to;
		return this.selected;
	}
}

/* The weight of every frame of a tree: those of its samples and of all below. Negative ones count as none. */
function sum_up(tree, weight, total = tree.total) {
	const { of_sample, parent } = tree;

	total.fill(0);
	for (let s = 0; s < of_sample.length; s++)
		if (of_sample[s] >= 0 && weight[s] > 0)
			total[of_sample[s]] += weight[s];
	for (let i = tree.n - 1; i > 0; i--)
		total[parent[i]] += total[i];
	return total;
}

/* What stays in frame i itself. */
function self_of(tree, i, total = tree.total) {
	let self = total[i];
	for (let c = i + 1; c < tree.end[i]; c = tree.end[c])
		self -= total[c];
	return self;
}

/* The items from the root to frame i. */
function items_to(tree, i) {
	const list = [];
	for (; i > 0; i = tree.parent[i])
		list.push(tree.item[i]);
	return list.reverse();
}

/* The frame that these items lead to, as far as there is one. */
function follow(tree, items) {
	let at = 0;
	for (const item of items) {
		let c = at + 1;
		while (c < tree.end[at] && tree.item[c] !== item)
			c = tree.end[c];
		if (c >= tree.end[at])
			break;
		at = c;
	}
	return at;
}

/* --- a profile, ready for questions -------------------------------------------------------------------- */

class Model {
	constructor(profile) {
		this.profile = profile;
		this.functions = find_functions(profile);
		this.weights = new Map();
		this.entries_by = new Map();
	}

	name(fn) {
		return this.profile.strings[this.functions.name[fn]];
	}

	module(fn) {
		return this.profile.strings[this.functions.module[fn]];
	}

	/* The function of that name and, unless null, module; -1: there is none. */
	find(name, module = null) {
		for (let f = 0; f < this.functions.n; f++)
			if (this.name(f) === name && (module === null || this.module(f) === module))
				return f;
		return -1;
	}

	entries(lines) {
		if (!this.entries_by.has(lines))
			this.entries_by.set(lines, find_entries(this.profile, this.functions, lines));
		return this.entries_by.get(lines);
	}

	weights_of(type) {
		if (!this.weights.has(type))
			this.weights.set(type, new Weights(this.profile, type));
		return this.weights.get(type);
	}

	/* The labels of a kind that samples have, in order. */
	labels(kind) {
		return find_labels(this.profile, kind).texts;
	}

	/* The different values that a field of filters has. */
	choices(what) {
		if (LABELS[what])
			return this.labels(what).filter((t) => t);
		const field = FIELDS[what], seen = new Set();
		for (let f = 0; f < this.profile.frames.n; f++)
			seen.add(field(this.profile, f));
		seen.delete("");
		return [...seen].sort();
	}

	/*
	 * A tree of the form `form` (see grow()), of `fn` for a sandwich; `root`: process, thread, container
	 * or none; `lines`: frames differ by line; `filters` as for apply_filters(); `by_weight`: the order of
	 * siblings is that of the weights of value type `type` in the whole run, not of their names.
	 */
	tree({ form = "calls", fn = -1, root = "none", lines = false, filters = [], by_weight = false, type = 0 } = {}) {
		const { profile, functions } = this, entries = this.entries(lines);
		const labels = find_labels(profile, root), { hidden, kept } = apply_filters(profile, filters);
		const sandwich = form === "callers" || form === "callees";
		const c = {
			form, hidden, kept, labels, labelled: !!LABELS[root], entry_of_frame: entries.of_frame,
			label_item: entries.n,
			outer: sandwich ? outermost(profile, functions.of_frame, fn, hidden) : null,
		};
		const rank = new Int32Array(entries.n + labels.texts.length);
		rank.set(entries.rank);
		labels.texts.forEach((_, l) => { rank[entries.n + l] = entries.n + l; });
		const weight = by_weight ? profile.samples.values[type] : null, trie = new Trie(form === "leaves" ? 0 : profile.nodes.n);
		const tree = form === "leaves" ? flame_leaves.build(profile, c, rank, weight) :
			finish(trie, grow(trie, profile, c), rank, weight);
		return Object.assign(tree, { model: this, form, fn, entries, labels: labels.texts });
	}

	/* Self and total of every function in a tree of the form "calls" whose totals are summed up. */
	functions_of(tree, weight, total = tree.total) {
		const { entries, of_sample, item } = tree, fns = entries.fn;
		const self = new Float64Array(this.functions.n), all = new Float64Array(this.functions.n);

		if (!tree.top)
			tree.top = mark_outermost(tree, fns, this.functions.n);
		for (let s = 0; s < of_sample.length; s++)
			if (of_sample[s] > 0 && weight[s] > 0 && item[of_sample[s]] < fns.length)
				self[fns[item[of_sample[s]]]] += weight[s];
		for (let i = 1; i < tree.n; i++)
			if (tree.top[i])
				all[fns[item[i]]] += total[i];
		return { self, total: all };
	}
}

return { Model, sum_up, self_of, items_to, follow, LABELS: Object.keys(LABELS), FIELDS: Object.keys(FIELDS), language };
})();
