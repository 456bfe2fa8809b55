/* Small controls of the flame graph, and its state as the address has it. */
const flame_controls = (function () {
"use strict";

const { el } = format;

function choice(label, list, chosen, change) {
	const select = el("select", { "aria-label": label }, ...list.map(([value, text]) => el("option", { value }, text)));
	select.value = chosen;
	select.addEventListener("change", () => change(select.value));
	return { select, element: el("label", { className: "flame-choice" }, el("span", {}, label), select) };
}

function button(text, title, press) {
	const b = el("button", { type: "button", title }, text);
	b.addEventListener("click", () => press(b));
	return b;
}

/* Puts text into the clipboard; false: the browser refuses. */
async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch (error) { /* pages from files have no clipboard in some browsers: the old way */
		const box = el("textarea", { value: text, className: "flame-copy" });
		document.body.append(box);
		box.select();
		const done = document.execCommand("copy");
		box.remove();
		return done;
	}
}

/* The frames from the root to the zoomed one, as buttons; those in the middle of a long way are counted. */
function crumbs(tree, zoomed, name, zoom) {
	const path = [], items = [];
	for (let i = zoomed; i >= 0; i = tree.parent[i])
		path.unshift(i);
	const hidden = path.length > 7 ? path.length - 6 : 0;
	path.forEach((i, k) => {
		if (hidden && k > 0 && k <= hidden) {
			if (k === hidden)
				items.push(el("li", { className: "dim" }, "\u2026 " + hidden));
			return;
		}
		const b = button(name(i).slice(0, 200), name(i).slice(0, 400), () => zoom(i));
		b.className = "frame";
		if (i === zoomed)
			b.setAttribute("aria-current", "true");
		items.push(el("li", {}, b));
	});
	return items;
}

/* A selection {from, to} in seconds, in the profile's own bins: whole ones, as far as it reaches into them. */
function own_range(run, profile, wanted) {
	const width = run.bin_seconds / (profile.fineness || 1);
	if (!wanted || !(width > 0))
		return null;
	const from_bin = Math.floor(wanted.from / width + 1e-6);
	return { from_bin, to_bin: Math.max(from_bin + 1, Math.ceil(wanted.to / width - 1e-6)) };
}

/* --- the pane's state in the address: what is as at first is left out -------------------------------------- */

function state_of(state, start, profile, usual_colors) {
	const flag = (v) => v ? "1" : "", n = (v) => v > 0 ? String(v) : "", other = (key, usual = start[key]) => state[key] === usual ? "" : state[key];
	return {
		source: state.source, value: profile && state.type !== (profile.shown_type || 0) ? String(state.type) : "",
		view: other("view"), fn: state.view === "sandwich" ? String(state.fn) : "", root: other("root"), colors: other("colors", usual_colors),
		width: other("width"), up: flag(state.up), lines: flag(state.lines), heavy: flag(state.heavy), q: state.q, re: flag(state.re),
		zoom: n(state.zoom), at: state.at === state.zoom ? "" : n(state.at), filter: flame_filters.to_text(state.filters),
	};
}

/* `known`: for view, colors and width what there is, the usual one first. */
function state_from(wanted, source, known) {
	const one_of = (key) => known[key].some(([k]) => k === wanted[key]) ? wanted[key] : known[key][0][0];
	const whole = (v) => /^\d{1,9}$/.test(v || "") ? +v : -1;
	return {
		source: wanted.source || source, type: whole(wanted.value), view: one_of("view"), fn: whole(wanted.fn),
		root: Object.hasOwn(flame_filters.ROOTS, wanted.root || "") ? wanted.root : "none", colors: one_of("colors"), width: one_of("width"),
		up: !!wanted.up, lines: !!wanted.lines, heavy: !!wanted.heavy, q: wanted.q || "", re: !!wanted.re,
		zoom: Math.max(0, whole(wanted.zoom)), at: Math.max(0, whole(wanted.at)), filters: flame_filters.from_text(wanted.filter || ""),
	};
}

return { choice, button, copy, crumbs, own_range, state_of, state_from };
})();
