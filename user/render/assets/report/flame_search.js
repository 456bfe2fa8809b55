/*
 * Search in flame graphs: which functions a term matches, and the share of the weight in stacks that
 * have one. Nothing here touches the page.
 */
const flame_search = (function () {
"use strict";

/*
 * A test of text for what somebody typed: {test} or {error}, a sentence. Case matters where the term
 * has capitals. null: the term is empty.
 */
function compile(term, regex) {
	const any_case = term === term.toLowerCase();

	if (!term)
		return null;
	if (!regex)
		return { test: any_case ? (text) => text.toLowerCase().includes(term) : (text) => text.includes(term) };
	try {
		const e = new RegExp(term, any_case ? "iu" : "u");
		return { test: (text) => e.test(text) };
	} catch (strict) {
		try { /* without "u", more is allowed: "\_" or a lone "{" */
			const e = new RegExp(term, any_case ? "i" : "");
			return { test: (text) => e.test(text) };
		} catch (error) {
			return { error: "Not a regular expression: " +
				String(error.message).replace(/^Invalid regular expression: (\/.*\/[a-z]*: )?/, "") + "." };
		}
	}
}

const PREFIXES = { "module:": "module", "file:": "file", "line:": "line" };

/*
 * 1 for each item of a tree (entry or label) that matches. A term looks at names; after "module:" or
 * "file:" at those. {items, n: how many match} or {error}; null: nothing is searched for.
 */
function find(tree, term, regex) {
	const prefix = Object.keys(PREFIXES).find((p) => term.startsWith(p));
	const what = prefix ? PREFIXES[prefix] : "name";
	const e = compile(prefix ? term.slice(prefix.length) : term, regex);

	if (!e || e.error)
		return e;
	const { entries, labels, model } = tree, { strings } = model.profile;
	const items = new Uint8Array(entries.n + labels.length);
	const text_of = {
		name: (i) => model.name(entries.fn[i]),
		module: (i) => model.module(entries.fn[i]),
		file: (i) => strings[entries.file[i]],
		line: (i) => strings[entries.file[i]] + ":" + entries.line[i],
	}[what];
	let n = 0;

	for (let i = 0; i < entries.n; i++)
		n += items[i] = e.test(text_of(i)) ? 1 : 0;
	if (what === "name")
		labels.forEach((text, l) => { n += items[entries.n + l] = e.test(text) ? 1 : 0; });
	return { items, n };
}

/* 1 for each node of a tree that is a matching frame or below one. */
function below_matches(tree, items) {
	const within = new Uint8Array(tree.n), { fn } = tree.entries;

	if (tree.fn >= 0) /* a sandwich: its function is in each of its stacks */
		within[0] = fn.some((f, e) => f === tree.fn && items[e]) ? 1 : 0;
	for (let i = 1; i < tree.n; i++)
		within[i] = within[tree.parent[i]] | items[tree.item[i]];
	return within;
}

/* The weight of all samples with a match in any of the trees, each sample counted once. */
function matched_weight(trees, withins, weight) {
	let sum = 0;

	for (let s = 0; s < weight.length; s++)
		if (weight[s] > 0)
			for (let k = 0; k < trees.length; k++) {
				const at = trees[k].of_sample[s];
				if (at >= 0 && withins[k][at]) {
					sum += weight[s];
					break;
				}
			}
	return sum;
}

return { compile, find, below_matches, matched_weight };
})();
