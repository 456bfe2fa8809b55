/*
 * The leaf-up tree of a flame graph, in the arrays that flame_model.js describes: who called what did the work.
 *
 * Stacks rarely share their way up to the root, so most of what such a tree has is the rest of one stack alone. Samples are
 * sorted by where they are, then by the caller, and so on, only as long as several have all of it in common: the rest is
 * written out as it is, and nothing is looked up.
 */
const flame_leaves = (function () {
"use strict";

/* The node itself, or the first above it whose frame is not hidden; 0: there is none. */
function shown_nodes({ n, parent, frame }, hidden) {
	const shown = new Int32Array(n);

	for (let i = 1; i < n; i++)
		shown[i] = hidden[frame[i]] ? shown[parent[i]] : i;
	return shown;
}

class Out {
	constructor() {
		this.n = 1;
		this.depth = 0;
		for (const k of ["parent", "item", "level"])
			this[k] = new Int32Array(1024);
		this.parent[0] = this.item[0] = -1;
	}

	add(parent, item) {
		const level = this.level[parent] + 1;

		if (this.n === this.parent.length)
			for (const k of ["parent", "item", "level"]) {
				const grown = new Int32Array(2 * this.n);
				grown.set(this[k]);
				this[k] = grown;
			}
		this.parent[this.n] = parent;
		this.item[this.n] = item;
		this.level[this.n] = level;
		if (level > this.depth)
			this.depth = level;
		return this.n++;
	}
}

/*
 * `c`: what grow() of flame_model.js has, too. `rank` orders siblings, and no two items have the same one; or their weight does,
 * the heaviest first.
 */
function build(profile, c, rank, weight) {
	const { nodes, samples } = profile, { entry_of_frame, hidden, kept, labels, label_item } = c;
	const shown = shown_nodes(nodes, hidden), at = new Int32Array(samples.n);
	const of_sample = new Int32Array(samples.n).fill(-1), item_of_rank = new Int32Array(rank.length);
	const out = new Out(), order = new Int32Array(samples.n), keys = new Float64Array(samples.n);
	let n = 0;

	rank.forEach((r, item) => { item_of_rank[r] = item; });
	for (let s = 0; s < samples.n; s++) {
		at[s] = shown[samples.node[s]];
		if (kept[s])
			order[n++] = s;
	}

	/* order[from … to) by the item each has next, those that have none first, each with the node that they end at. */
	function group(from, to, node, by_label) {
		const sorted = keys.subarray(0, to - from);
		for (let k = from; k < to; k++) {
			const s = order[k], label = by_label ? label_item + labels.of_set[samples.set[s]] : 0;
			const key = by_label ? rank[label] + 1 : at[s] ? rank[entry_of_frame[nodes.frame[at[s]]]] + 1 : 0;
			sorted[k - from] = key * samples.n + s;
		}
		sorted.sort();
		const groups = [];
		let last = -1;
		for (let k = from; k < to; k++) {
			const key = Math.floor(sorted[k - from] / samples.n), s = sorted[k - from] - key * samples.n;
			order[k] = s;
			if (key === 0) {
				of_sample[s] = node;
				continue;
			}
			if (key !== last)
				groups.push({ from: k, to: k, parent: node, item: item_of_rank[key - 1], weight: 0 });
			last = key;
			groups[groups.length - 1].to = k + 1;
			if (weight)
				groups[groups.length - 1].weight += weight[s];
			if (!by_label)
				at[s] = shown[nodes.parent[at[s]]];
		}
		return weight ? groups.sort((a, b) => b.weight - a.weight || rank[a.item] - rank[b.item]) : groups;
	}

	const open = n ? group(0, n, 0, c.labelled).reverse() : [];
	while (open.length) {
		const g = open.pop(), first = at[order[g.from]];
		let node = out.add(g.parent, g.item), same = true;
		for (let k = g.from + 1; same && k < g.to; k++)
			same = at[order[k]] === first;
		if (!same) {
			for (const above of group(g.from, g.to, node, false).reverse())
				open.push(above);
			continue;
		}
		for (let i = first; i; i = shown[nodes.parent[i]])
			node = out.add(node, entry_of_frame[nodes.frame[i]]);
		for (let k = g.from; k < g.to; k++)
			of_sample[order[k]] = node;
	}

	const end = new Int32Array(out.n);
	for (let i = out.n - 1; i >= 0; i--) {
		if (!end[i])
			end[i] = i + 1;
		if (i && end[out.parent[i]] < end[i])
			end[out.parent[i]] = end[i];
	}
	const cut = (a) => a.slice(0, out.n);
	return { n: out.n, parent: cut(out.parent), item: cut(out.item), level: cut(out.level), end, depth: out.depth, of_sample,
		total: new Float64Array(out.n) };
}

return { build };
})();
