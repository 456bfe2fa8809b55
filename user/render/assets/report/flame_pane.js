/*
 * The pane with flame graphs: which profile, value, form, root, filters and colours; search; what is known of a
 * frame; and the table of functions. What it shows is a function of `state`, most of which the address keeps.
 */
(function () {
"use strict";

const { el } = format;
const FORMS = [["calls", "Top-down"], ["leaves", "Leaf-up"], ["sandwich", "Callers and callees"]];
const COLORS = [["kind", "kind of code"], ["module", "module"], ["change", "change in the selected time"]];
const { ROOTS } = flame_filters, { choice, button } = flame_controls;
const LONGEST = 400; /* of a name in the page: names of 10 kB exist */

const START = { source: "", type: -1, view: "calls", fn: -1, root: "none", colors: "kind", up: false, lines: false,
	heavy: false, q: "", re: false, zoom: 0, at: 0, filters: [], width: "both" };

let data, pane_el, ui, state = { ...START };
let profile = null, model = null, weights = null; /* of the source that is shown */
const models = new Map();
let views = [], active = null; /* what is drawn: one view, or callers and callees */
let factors = null, side_weights = null, rows = null; /* of a comparison (flame_compare.js) */
let range = null, found = null, withins = null, palette = null, colors = null, whole_totals = null, table_timer = 0;

/* --- pieces of the page ------------------------------------------------------------------------------ */

function toggle(text, title, key, after) {
	const b = button(text, title, () => {
		state[key] = !state[key];
		b.setAttribute("aria-pressed", String(state[key]));
		after();
	});
	b.setAttribute("aria-pressed", String(state[key]));
	b.show = () => b.setAttribute("aria-pressed", String(state[key]));
	return b;
}

function fill(select, list, chosen) {
	select.replaceChildren(...list.map(([value, text]) => el("option", { value: String(value) }, text)));
	select.value = String(chosen);
}

function build_ui() {
	ui = {};
	ui.source = choice("Profile", data.run.profiles.map((p) => [p.id, p.title || p.source]), state.source, (id) => {
		Object.assign(state, { source: id, type: -1, fn: -1, zoom: 0, at: 0, filters: [], root: "none" });
		if (state.view === "sandwich")
			state.view = "calls";
		open_profile();
	});
	ui.type = choice("Value", [], "", (t) => {
		state.type = +t;
		weights = model.weights_of(state.type);
		find_change_rows();
		rebuild(true);
	});
	ui.view = choice("Form", FORMS, state.view, (v) => set_form(v));
	ui.root = choice("Root by", [], "none", (r) => { state.root = r; rebuild(); });
	ui.width = choice("Width", flame_compare.WIDTHS, state.width, (w) => { state.width = w; rebuild(true); });
	ui.width.element.hidden = !data.comparison;
	ui.colors = choice("Colours", all_colors(), state.colors, (c) => { state.colors = c; recolor(); draw(); data.changed(); });
	ui.up = toggle("Upwards", "Draw callers below what they call", "up", () => { make_views(); rebuild(true); });
	ui.lines = toggle("Lines", "Tell frames of one function apart by line", "lines", () => rebuild());
	ui.heavy = toggle("Heaviest first", "Order frames by weight in the whole run, not by name", "heavy", () => rebuild(true));

	ui.search = el("input", { type: "search", placeholder: "Search", spellcheck: false, autocomplete: "off",
		"aria-label": "Search for functions; after module: or file: for those", "aria-describedby": "flame-matched" });
	ui.search.addEventListener("input", () => { state.q = ui.search.value; search(); data.changed(); });
	ui.search.addEventListener("keydown", search_key);
	ui.re = toggle(".*", "The search is a regular expression", "re", () => { search(); data.changed(); });
	ui.re.setAttribute("aria-label", "Regular expression");
	ui.matched = el("output", { id: "flame-matched", className: "flame-matched" });
	ui.previous = button("\u2039", "The match before", () => next_match(-1));
	ui.next = button("\u203a", "The next match", () => next_match(1));
	ui.previous.setAttribute("aria-label", "The match before");
	ui.next.setAttribute("aria-label", "The next match");
	ui.chips = el("ul", { className: "flame-chips", "aria-label": "Filters" });

	ui.note = el("p", { className: "flame-note dim", role: "status" });
	ui.crumbs = el("ol", { className: "flame-crumbs" });
	ui.name = el("p", { className: "flame-title frame" });
	ui.where = el("p", { className: "flame-where dim" });
	ui.figures = el("p", { className: "flame-figures" });
	ui.announce = el("p", { className: "flame-announce", "aria-live": "polite" });
	ui.actions = el("div", { className: "flame-actions" },
		button("Callers and callees", "Show who calls this function and what it calls (s)", () => sandwich_of(current())),
		button("Only through it", "Keep the stacks that have this function", () => filter_current("through")),
		button("Without it", "Drop the stacks that have this function", () => filter_current("without")),
		...(data.run.source ? [button("Source", "Show its lines and instructions", () => current() >= 0 && data.go("source", { of: profile.id, fn: model.name(current()) }))] : []),
		button("Copy name", "Copy the function's name (c)", () => copy_name()),
		button("Copy link", "Copy a link to what is shown (l)", () => copy_link()));
	ui.graph = el("div", { className: "flame-graph" });
	ui.empty = el("p", { className: "flame-empty", hidden: true });
	ui.legend = el("ul", { className: "flame-legend", "aria-label": "Legend" });
	ui.table = new flame_table.Table({ open: sandwich_of, sorted: () => {}, text: value_text }, !!data.comparison);
	ui.heat = new flame_heat.Heat({ select: (wanted) => data.select(wanted), text: value_text, dark: () => data.is_dark() });
	ui.trouble = el("p", { className: "trouble", role: "alert", hidden: true });

	pane_el.classList.add("flame");
	pane_el.replaceChildren(
		el("div", { className: "flame-bar-row" }, ui.source.element, ui.type.element, ui.view.element, ui.root.element,
			ui.width.element, ui.colors.element),
		el("div", { className: "flame-bar-row" },
			el("div", { className: "flame-search", role: "search" }, ui.search, ui.re, ui.previous, ui.next, ui.matched),
			el("div", { className: "flame-toggles" }, ui.up, ui.heavy, ui.lines),
			flame_filters.form((what) => model ? model.choices(what) : [], add_filter), ui.chips),
		ui.note, ui.trouble,
		ui.body = el("div", { className: "flame-body" },
			el("div", { className: "flame-main" }, ui.heat.element,
				el("nav", { "aria-label": "Callers of the zoomed frame", className: "flame-path" }, ui.crumbs),
				el("div", { className: "flame-details" }, el("div", { className: "flame-text" }, ui.name, ui.where, ui.figures),
					ui.actions),
				ui.graph, ui.empty, ui.legend, ui.announce),
			ui.table.element));
	make_views();
}

function add_filter(filter) {
	if (state.filters.some((f) => f.how === filter.how && f.what === filter.what && f.value === filter.value))
		return;
	state.filters.push(filter);
	rebuild();
}

function show_filters() {
	ui.chips.replaceChildren(...flame_filters.chips(state.filters, (gone) => {
		state.filters = state.filters.filter((f) => f !== gone);
		rebuild();
	}));
}

function filter_current(how) {
	if (current() >= 0)
		add_filter(flame_filters.of_name(how, model.name(current())));
}

/* --- views ------------------------------------------------------------------------------------------------ */

function make_views() {
	const one = (label, options) => {
		const view = new flame_view.View(label, {
			name: (i) => frame_name(view.tree, i),
			color: (i) => color_of(view, i),
			theme: () => palette,
			colors: () => colors,
			matches: () => found && !found.error ? found.items : null,
			hover: (i) => describe(view, i),
			chosen: (i, zoomed) => chosen(view, i, zoomed),
			key: (event) => view_key(event),
		}, options);
		return view;
	};
	if (state.view === "sandwich") {
		views = [one("Callers", { upward: true, hide_root: true }), one("Callees", {})];
		ui.graph.replaceChildren(el("h2", {}, "Callers"), views[0].element, el("h2", {}, "The function, and what it calls"),
			views[1].element);
	} else {
		views = [one(state.view === "leaves" ? "Flame graph, from the leaf of each stack to its callers" :
			"Flame graph, from the root of each stack", { upward: state.up })];
		ui.graph.replaceChildren(views[0].element);
	}
	ui.graph.classList.toggle("sandwich", state.view === "sandwich");
	active = views[views.length - 1];
}

function frame_name(tree, i) {
	const item = tree.item[i], { entries } = tree;

	if (item < 0)
		return tree.fn >= 0 ? model.name(tree.fn) || "(no name)" : "all";
	if (item >= entries.n)
		return tree.labels[item - entries.n] || "(no " + state.root + ")";
	const line = state.lines && entries.line[item] ? ":" + entries.line[item] : "";
	return (model.name(entries.fn[item]) || "(no name)") + line;
}

/* The function of a frame, -1: it is none. */
function frame_fn(tree, i) {
	const item = tree.item[i];
	return item < 0 ? tree.fn : item < tree.entries.n ? tree.entries.fn[item] : -1;
}

const all_colors = () => data.comparison ? flame_compare.COLORS : COLORS;
const by_change = () => state.colors === "change" || state.colors === "sure";

function color_of(view, i) {
	if (!by_change())
		return view.tree.item[i];
	if (data.comparison) {
		const [before, after] = view.tree.sides.map((side) => side[i]), noise = state.colors === "sure" ? function_noise(view.tree, i) : null;
		return noise !== null && Math.abs(after - before) <= noise ? flame_colors.STEPS / 2 : flame_colors.change_step(before, after);
	}
	const before = whole_totals && whole_totals[views.indexOf(view)], now = view.tree.total;
	if (!before || !range || !weights.timed)
		return flame_colors.STEPS / 2;
	return flame_colors.change_step(before[i] / before[0], now[i] / (now[0] || 1));
}

function set_form(view, fn = state.fn) {
	if (view === "sandwich" && fn < 0) {
		fn = current();
		if (fn < 0)
			fn = ui.table.order()[0];
		if (fn === undefined)
			view = "calls";
	}
	state.view = view;
	state.fn = view === "sandwich" ? fn : -1;
	state.zoom = state.at = 0;
	make_views();
	rebuild();
}

function sandwich_of(fn) {
	if (fn < 0)
		return;
	set_form("sandwich", fn);
	ui.graph.scrollIntoView({ block: "nearest" });
	active.element.focus({ preventScroll: true });
}

/* --- from the profile to the picture ------------------------------------------------------------------- */

function forms() {
	return state.view === "sandwich" ? ["callers", "callees"] : [state.view];
}

/* Trees anew. `keep`: the frames are the same ones, so what is zoomed stays. */
function rebuild(keep = false) {
	const options = { root: state.root, lines: state.lines, filters: state.filters, by_weight: state.heavy, type: state.type };
	const list = forms(), was = views.map((v) => v.tree && v.tree.model === model && v.tree.entries === model.entries(state.lines) ?
		flame_model.items_to(v.tree, v.zoomed) : []);
	const wanted = state.zoom;

	table_tree = null;
	const trees = list.map((form) => model.tree({ ...options, form, fn: state.fn }));
	whole_totals = null;
	sum(trees);
	recolor(trees);
	find_matches(trees);
	trees.forEach((tree, k) => {
		const start = keep === "restore" ? (views[k] === active && wanted < tree.n ? wanted : 0) : flame_model.follow(tree, was[k]);
		views[k].set_tree(tree, start);
		if (keep === "restore" && views[k] === active && state.at > 0 && state.at < tree.n)
			views[k].focused = state.at;
	});
	show_controls();
	show_filters();
	show_heat();
	after_sums(true);
	remember();
	describe(active, -1);
	show_crumbs();
}

let table_tree = null; /* functions are summed in a tree from the root, whatever is shown */

function sum(trees) {
	const weight = weights.get(range);

	if (data.comparison) {
		factors = data.comparison.factors(profile.id, profile.types[state.type], weights.timed ? range : null);
		side_weights = flame_compare.split(weight, model.profile, factors);
		for (const tree of trees)
			flame_compare.sum_up(tree, side_weights, state.width);
		return;
	}
	for (const tree of trees)
		flame_model.sum_up(tree, weight);
	if (state.colors === "change" && !whole_totals)
		whole_totals = trees.map((tree) => flame_model.sum_up(tree, weights.whole, new Float64Array(tree.n)));
}

function recolor(trees = views.map((v) => v.tree)) {
	const type = type_shown();
	palette = flame_colors.theme(data.is_dark());
	const native = flame_colors.hue_of(profile.source, type);
	colors = flame_colors.pixels(by_change() ? flame_colors.of_changes(palette) :
		flame_colors.of_items(trees[0], state.colors, palette, native), palette);
	if (by_change() && !whole_totals && !data.comparison)
		sum(trees);
	const total = table_tree ? table_tree.total : trees[trees.length - 1].total;
	const entries = data.comparison && by_change() ? flame_compare.legend(palette) :
		flame_colors.legend(table_tree || trees[trees.length - 1], state.colors, palette, native, total);
	ui.legend.replaceChildren(...entries.map(([text, color, v]) => {
			const box = el("span", { className: "flame-swatch" });
			box.style.background = color;
			return el("li", {}, box, el("span", { className: "frame" }, text.slice(0, 60)), v === undefined ? null :
				el("span", { className: "dim" }, " " + format.percent(v, total[0])));
		}));
	show_note();
}

function draw() {
	for (const view of views)
		view.draw();
}

/* The heat map of what passes the filters and, where something is searched for, matches. */
function show_heat() {
	const rows = data.comparison ? 0 : flame_heat.rows_of(data.run, profile), times = model.profile.times.find((t) => t.type === state.type);
	ui.heat.element.hidden = !rows || !times;
	if (ui.heat.element.hidden)
		return;
	const trees = views.map((v) => v.tree), wanted = new Uint8Array(model.profile.samples.n);
	for (let s = 0; s < wanted.length; s++)
		wanted[s] = trees.some((t, k) => t.of_sample[s] >= 0 && (!withins || withins[k][t.of_sample[s]])) ? 1 : 0;
	ui.heat.set(flame_heat.weights_by_bin(times, wanted), rows, range);
}

/* A step of a selection: sums and the picture now, the table once the hand is still. */
function resum() {
	sum(views.map((v) => v.tree));
	draw();
	ui.heat.set_range(range);
	after_sums(false);
}

function after_sums(at_once) {
	show_matched();
	show_empty();
	show_note();
	describe(active, active.hovered);
	clearTimeout(table_timer);
	if (at_once)
		show_table();
	else
		table_timer = setTimeout(show_table, 150);
}

function show_table() {
	const weight = weights.get(range);
	if (!table_tree) {
		table_tree = views[0].tree.form === "calls" ? views[0].tree :
			model.tree({ root: state.root, lines: state.lines, filters: state.filters });
	}
	if (table_tree !== views[0].tree)
		sum([table_tree]);
	let matches = null;
	if (found && !found.error) {
		matches = new Uint8Array(model.functions.n);
		for (let e = 0; e < table_tree.entries.n; e++)
			if (found.items[e])
				matches[table_tree.entries.fn[e]] = 1;
	}
	if (data.comparison)
		ui.table.set(model, flame_table.changes(table_tree.sides.map((side, k) => model.functions_of(table_tree, side_weights[k], side))),
			Math.max(...table_tree.sides.map((side) => side[0])), matches);
	else
		ui.table.set(model, model.functions_of(table_tree, weight), table_tree.total[0], matches);
	if (!by_change())
		recolor();
}

function show_empty() {
	const nothing = views.every((v) => !(v.tree.total[0] > 0));
	ui.empty.hidden = !nothing;
	ui.empty.textContent = !nothing ? "" : range && weights.timed ? "Nothing of this value in the selected time." :
		state.filters.length ? "No stack passes the filters." : "Nothing of this value was recorded.";
	ui.graph.classList.toggle("nothing", nothing);
}

function show_note() {
	const parts = [];
	if (data.range() && !(range && weights.timed))
		parts.push("The times of this value are not known: the whole run is shown.");
	if (data.comparison)
		parts.push(compare.scale_text(data.comparison, weights.timed ? range : null));
	else if (state.colors === "change" && !(range && weights.timed))
		parts.push("Select a time in the timeline: colours then say what has a larger or smaller share in it than in the whole run.");
	if (profile.estimates)
		parts.push("Estimated: " + (profile.estimate || "from samples") + ".");
	ui.note.textContent = parts.join(" ");
}

/* --- what is known of a frame -------------------------------------------------------------------------- */

/* While another profile is on its way, the state may already be about a type that this one has not. */
function type_shown() {
	return profile.types[state.type] || profile.types[profile.shown_type || 0];
}

function value_text(v) {
	return format.value(v, type_shown().unit);
}

/* The same, with what is counted where that is not a unit. */
function amount_text(v) {
	const type = type_shown();
	return value_text(v) + (type.unit === "count" ? " " + type.name.replace(/^(alloc|inuse)_/, "") : "");
}

function current() {
	return active && active.tree ? frame_fn(active.tree, active.focused) : -1;
}

function where_text(tree, i) {
	const item = tree.item[i], { entries } = tree, { strings } = model.profile, parts = [];
	const fn = frame_fn(tree, i);

	if (fn < 0)
		return item < 0 ? (profile.title || profile.source) + (range && weights.timed ? ", the selected time" : "") : "";
	if (item >= 0)
		parts.push(report_data.KINDS[entries.kind[item]] || "");
	parts.push(model.module(fn));
	if (item >= 0 && entries.file[item])
		parts.push(strings[entries.file[item]] + (entries.line[item] ? ":" + entries.line[item] : ""));
	return parts.filter((p) => p).join(" \u00b7 ").slice(0, LONGEST);
}

function function_noise(tree, i) {
	const fn = frame_fn(tree, i), f = range && weights.timed ? null : data.comparison.figure(profile.id, profile.types[state.type]);
	return flame_compare.function_noise(f, rows, fn, fn < 0 ? "" : model.name(fn), fn < 0 ? "" : model.module(fn));
}

function figures_text(view, i) {
	const { tree } = view, v = tree.total[i], all = tree.total[0];
	if (data.comparison)
		return flame_compare.figures(tree, i, value_text, data.comparison.several ? flame_compare.noise_of_runs(tree, i, weights.get(range),
			model.profile, data.comparison, factors) : function_noise(tree, i));
	const parts = [amount_text(v) + ", " + format.percent(v, all) + (tree.fn >= 0 ? " of this function" : " of all")];

	if (view.zoomed && view.within(i, view.zoomed) && i !== view.zoomed)
		parts.push(format.percent(v, tree.total[view.zoomed]) + " of the zoomed frame");
	if (tree.form === "calls" || tree.form === "callees") {
		const self = flame_model.self_of(tree, i);
		parts.push("self " + amount_text(self) + ", " + format.percent(self, all));
	}
	const before = state.colors === "change" && whole_totals && range && weights.timed && whole_totals[views.indexOf(view)];
	if (before)
		parts.push(format.percent(before[i], before[0]) + " in the whole run");
	return parts.join(" \u00b7 ");
}

/* Frame i under the pointer; -1: the one in focus. */
function describe(view, i) {
	const v = i < 0 ? active : view, n = i < 0 ? active.focused : i;
	ui.name.textContent = frame_name(v.tree, n).slice(0, LONGEST);
	ui.where.textContent = where_text(v.tree, n);
	ui.figures.textContent = figures_text(v, n);
	for (const b of ui.actions.children)
		b.disabled = frame_fn(active.tree, active.focused) < 0 && !/link/.test(b.textContent);
}

function chosen(view, i, zoomed) {
	active = view;
	describe(view, -1);
	ui.announce.textContent = [frame_name(view.tree, i).slice(0, LONGEST), where_text(view.tree, i), figures_text(view, i)].join(", ");
	if (zoomed)
		show_crumbs();
	remember();
}

function remember() {
	state.zoom = active.zoomed;
	state.at = active.focused;
	data.changed();
}

function show_crumbs() {
	const { tree, zoomed } = active;
	ui.crumbs.replaceChildren(...flame_controls.crumbs(tree, zoomed, (i) => frame_name(tree, i), (i) => active.zoom(i)));
}

async function copy(text, what) {
	const done = await flame_controls.copy(text);
	ui.announce.textContent = done ? what + " copied" : "The browser does not let this page copy";
	ui.figures.textContent = ui.announce.textContent;
}

function copy_name() {
	const fn = current();
	if (fn >= 0)
		copy(model.name(fn), "Name");
}

function copy_link() {
	data.changed();
	setTimeout(() => copy(location.href, "Link"), 250); /* the address follows changes with a delay */
}

/* --- search ---------------------------------------------------------------------------------------------- */

function find_matches(trees) {
	found = flame_search.find(trees[0], state.q, state.re);
	withins = found && !found.error ? trees.map((t) => flame_search.below_matches(t, found.items)) : null;
}

function search() {
	find_matches(views.map((v) => v.tree));
	draw();
	show_heat();
	after_sums(false);
}

function show_matched() {
	const wrong = found && found.error;
	ui.search.setAttribute("aria-invalid", String(!!wrong));
	ui.matched.classList.toggle("trouble", !!wrong);
	ui.previous.disabled = ui.next.disabled = !withins;
	if (!withins) {
		ui.matched.textContent = wrong || "";
		return;
	}
	const trees = views.map((v) => v.tree), all = trees[trees.length - 1].total[0];
	if (data.comparison) {
		const two = side_weights.map((weight) => flame_search.matched_weight(trees, withins, weight)), { sides } = trees[trees.length - 1];
		ui.matched.textContent = two.map((v, k) => format.percent(v, sides[k][0])).join(" \u2192 ") + " matched, " + two.map(value_text).join(" \u2192 ");
		return;
	}
	const weight = flame_search.matched_weight(trees, withins, weights.get(range));
	ui.matched.textContent = format.percent(weight, all) + " matched, " + amount_text(weight);
	ui.matched.title = "In stacks that have a match, each counted once";
}

/* The next outermost match in the order of the picture, from the frame in focus. */
function next_match(step) {
	const { tree } = active, within = withins && withins[views.indexOf(active)];
	if (!within)
		return;
	let i = active.focused;
	for (let k = 0; k < tree.n; k++) {
		i = (i + step + tree.n) % tree.n;
		if (i && found.items[tree.item[i]] && !within[tree.parent[i]] && tree.total[i] > 0) {
			active.show(i);
			return;
		}
	}
}

function search_key(event) {
	if (event.key === "Enter")
		next_match(event.shiftKey ? -1 : 1);
	else if (event.key === "Escape") {
		ui.search.value = state.q = "";
		search();
		data.changed();
		active.element.focus();
	} else
		return;
	event.preventDefault();
}

function view_key(event) {
	if (event.key === "s")
		sandwich_of(current());
	else if (event.key === "c")
		copy_name();
	else if (event.key === "l")
		copy_link();
	else if (event.key === "n" || event.key === "N")
		next_match(event.key === "n" ? 1 : -1);
	else if (event.key === "Escape" && state.q) {
		ui.search.value = state.q = "";
		search();
		data.changed();
	} else
		return false;
	return true;
}

/* --- the pane ---------------------------------------------------------------------------------------------- */

function show_controls() {
	fill(ui.type.select, profile.types.map((t, i) => [i, t.name + (t.unit === "count" ? "" : ", " + t.unit)]), state.type);
	ui.type.element.hidden = profile.types.length < 2;
	const roots = Object.keys(ROOTS).filter((r) => model.labels(r).length > 1);
	fill(ui.root.select, [["none", "nothing"], ...roots.map((r) => [r, ROOTS[r]])], state.root);
	ui.root.element.hidden = !roots.length;
	ui.source.select.value = state.source;
	ui.source.element.hidden = data.run.profiles.length < 2;
	ui.view.select.value = state.view;
	ui.colors.select.value = state.colors;
	ui.width.select.value = state.width;
	ui.up.hidden = state.view === "sandwich";
	for (const b of [ui.up, ui.lines, ui.heavy, ui.re])
		b.show();
	if (document.activeElement !== ui.search)
		ui.search.value = state.q;
}

async function open_profile(keep = false) {
	const wanted = data.run.profiles.find((p) => p.id === state.source) || data.run.profiles[0];
	state.source = wanted.id;
	ui.source.select.value = wanted.id;
	pane_el.setAttribute("aria-busy", "true");
	try {
		if (!models.has(wanted.id))
			models.set(wanted.id, new flame_model.Model(await data.load(wanted)));
		if (state.source !== wanted.id)
			return; /* another one was chosen meanwhile */
		profile = wanted;
		model = models.get(wanted.id);
		if (!(state.type >= 0 && state.type < wanted.types.length))
			state.type = wanted.shown_type || 0;
		if (!(state.fn < model.functions.n) || (state.view === "sandwich" && state.fn < 0))
			Object.assign(state, { fn: -1, view: state.view === "sandwich" ? "calls" : state.view });
		weights = model.weights_of(state.type);
		find_change_rows();
		range = flame_controls.own_range(data.run, profile, data.range());
		ui.trouble.hidden = true;
		ui.body.hidden = false;
		make_views();
		rebuild(keep);
	} catch (error) {
		ui.trouble.hidden = false;
		ui.trouble.textContent = String(error && error.message || error);
		ui.body.hidden = true;
		if (!/^(The profile|This browser)/.test(ui.trouble.textContent))
			throw error;
	} finally {
		pane_el.removeAttribute("aria-busy");
	}
}

/* What memscope diff says of each function, once it is read. */
function find_change_rows() {
	const f = data.comparison && data.comparison.figure(profile.id, profile.types[state.type]), wanted = state.source + "/" + state.type;
	rows = null;
	if (!f)
		return;
	data.comparison.rows_of(f, "functions").then((list) => {
		if (wanted !== state.source + "/" + state.type)
			return;
		rows = flame_compare.by_function(list);
		draw();
		describe(active, -1);
	});
}

async function make(element, page_data) {
	data = page_data;
	pane_el = element;
	state = { ...START, filters: [], source: data.run.profiles[0].id, colors: all_colors()[0][0] };
	build_ui();
	document.addEventListener("theme", redraw_theme);
	window.addEventListener("beforeprint", () => redraw_theme(null, false));
	window.addEventListener("afterprint", redraw_theme);
	document.addEventListener("keydown", (event) => {
		if (event.key !== "/" || pane_el.hidden || event.ctrlKey || event.altKey || event.metaKey ||
			/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName))
			return;
		event.preventDefault();
		ui.search.focus();
		ui.search.select();
	});
	await open_profile();
}

function redraw_theme() {
	if (!model)
		return;
	recolor();
	draw();
	ui.heat.draw();
}

function select(wanted) {
	if (!model || ui.body.hidden)
		return;
	range = flame_controls.own_range(data.run, profile, wanted);
	resum();
}

const pane_state = () => flame_controls.state_of(state, START, profile, all_colors()[0][0]);

/*
 * What the address or another pane asks for. Besides what pane_state() gives: `function` (a name) opens its sandwich,
 * `node` zooms to a node of the embedded profile.
 */
async function restore(wanted) {
	const whole = (v) => /^\d{1,9}$/.test(v || "") ? +v : -1;

	if (!Object.keys(wanted).some((k) => k in pane_state() || k === "function" || k === "node"))
		return;
	Object.assign(state, START, flame_controls.state_from(wanted, state.source, { view: FORMS, colors: all_colors(), width: flame_compare.WIDTHS }));
	await open_profile("restore");
	if (!model || ui.body.hidden)
		return;
	if (wanted.function && model.find(wanted.function) >= 0)
		set_form("sandwich", model.find(wanted.function));
	if (whole(wanted.node) > 0 && whole(wanted.node) < model.profile.nodes.n)
		show_node(whole(wanted.node));
}

function show_node(node) {
	const { nodes } = model.profile, items = [];
	for (let i = node; i > 0; i = nodes.parent[i])
		items.unshift(active.tree.entries.of_frame[nodes.frame[i]]);
	active.show(flame_model.follow(active.tree, items));
}

panes.add({
	id: "flame", title: "Flame graph", make, select, restore, state: pane_state,
	available: (d) => d.run.profiles.length > 0,
	keys: [["\u2190 \u2191 \u2192 \u2193", "flame graph: the next frame"], ["Enter", "zoom"], ["Backspace", "zoom out one frame"],
		["Esc", "zoom out; end the search"], ["/", "search"], ["n  N", "next match, match before"],
		["s", "callers and callees of the function"], ["c  l", "copy its name, a link"]],
});
})();
