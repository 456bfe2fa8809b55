/*
 * The page around its panes: tabs, the selected time, the address, colours, keys.
 *
 *   panes.add({ id, title, make(el, data), select(range), keys, state(), restore(object), available(data), print })
 *
 *   make       fills the pane's element; called when the pane is first shown, may be async
 *   select     another time is selected: {from, to} in seconds since the run began, {from_bin, to_bin} (to_bin is one past
 *              the last) of run.bin_seconds each, or null for all of it. Called for panes that were made
 *   state      what the address keeps, an object of short texts; restore is given it back, after make
 *   available  false: the run has nothing for this pane, and it has no tab
 *   keys       [[key, what it does]] for the list of keys; a pane listens itself while its element is shown
 *
 * `data` is { run, summary, sides, comparison, load(profile), select(range), range(), changed(), go(pane, object) }. Whatever is text in
 * it was written by programs that were profiled: it may become textContent, and nothing else.
 *
 * `sides` is [{ name, runs: [{ run, summary }] }]: of a report one side of one run, which are `run` and `summary` themselves. A pane
 * that is made of `sides`, not of `summary`, serves comparisons as well: tables by tables.of(data, makers), where each maker is a
 * function of one run's summary. Of a comparison (memscope diff -o FILE.html) `sides` are before and after, each of one run or more;
 * `run` is both as one (compare.js), whose profiles have the samples of all runs; `summary` is null, and `comparison` has what
 * the difference needs. A pane that serves only one of the two says so in available().
 */
const panes = (function () {
"use strict";

const list = [], made = new Map();
let data = null, shown = null, range = null, waiting = 0, strip = null;

const $ = (id) => document.getElementById(id);

/* The tabs, from left to right. A new pane is its file and its row here. */
const order = ["overview", "timeline", "flame", "composition", "heap", "sites", "source", "waits", "tables", "losses"];

function add(pane) {
	list.push(pane);
	list.sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id));
}

/* --- the address ------------------------------------------------------------------------------------ */

function parse(hash) {
	const all = {};
	for (const part of hash.replace(/^#/, "").split("&")) {
		const at = part.indexOf("=");
		if (at > 0) {
			try {
				all[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1));
			} catch (error) { /* not ours */ }
		}
	}
	return all;
}

function write_address() {
	const all = { pane: shown.id };
	if (range)
		all.time = +range.from.toFixed(6) + "-" + +range.to.toFixed(6);
	if (document.documentElement.dataset.theme)
		all.theme = document.documentElement.dataset.theme;
	if (shown.state && made.get(shown))
		Object.assign(all, shown.state());
	const hash = "#" + Object.keys(all).filter((k) => all[k] !== undefined && all[k] !== null && all[k] !== "")
		.map((k) => k + "=" + encodeURIComponent(all[k])).join("&");
	if (hash !== location.hash)
		history.replaceState(null, "", hash);
}

/* A pane's state changed: the address says so, once things are quiet. */
function changed() {
	if (waiting)
		return;
	waiting = setTimeout(() => {
		waiting = 0;
		write_address();
	}, 150);
}

/* --- the selected time ------------------------------------------------------------------------------ */

function clock(seconds) {
	const started = data.run.started;
	return format.seconds(seconds) + (started ? " (" + format.time_of_day(started + seconds) + ")" : "");
}

function show_range() {
	const fine = range && range.to - range.from < 2;
	$("range").textContent = !range ? "" : fine ? "Time " + range.from.toFixed(3) + " to " + range.to.toFixed(3) + " s" :
		"Time " + clock(range.from) + " to " + clock(range.to);
	$("range-reset").hidden = !range;
}

function tell(pane) {
	if (!pane.select || !made.get(pane) || pane.shown_range === range)
		return;
	pane.shown_range = range;
	pane.select(range);
}

/* {from, to} in seconds or null. The pane that is shown follows now, the others when they are. */
function select(wanted) {
	const end = data.run.seconds;
	if (wanted) {
		const from = Math.max(0, Math.min(wanted.from, wanted.to)), to = Math.min(end, Math.max(wanted.from, wanted.to));
		if (!(to > from) || (from <= 0 && to >= end))
			wanted = null;
		else {
			const width = data.run.bin_seconds || 0;
			wanted = { from, to, from_bin: width ? Math.floor(from / width + 1e-9) : 0,
				to_bin: width ? Math.max(Math.ceil(to / width - 1e-9), Math.floor(from / width + 1e-9) + 1) : 0 };
		}
	}
	if (!wanted && !range)
		return;
	if (wanted && range && wanted.from === range.from && wanted.to === range.to)
		return;
	range = wanted;
	show_range();
	if (strip)
		strip.select(range);
	tell(shown);
	changed();
}

/* --- panes ------------------------------------------------------------------------------------------- */

function trouble(el, error) {
	const p = document.createElement("p");
	p.className = "trouble";
	p.setAttribute("role", "alert");
	p.textContent = String(error && error.message || error);
	el.append(p);
}

async function show(pane, state) {
	for (const other of list) {
		const on = other === pane;
		if (!other.tab)
			continue;
		other.tab.setAttribute("aria-selected", String(on));
		other.tab.tabIndex = on ? 0 : -1;
		other.el.hidden = !on;
	}
	shown = pane;
	document.body.dataset.pane = pane.id;
	if (!made.has(pane)) {
		made.set(pane, false);
		try {
			await pane.make(pane.el, data);
			made.set(pane, true);
			pane.shown_range = null;
		} catch (error) {
			trouble(pane.el, error);
			throw error;
		} finally {
			pane.el.removeAttribute("aria-busy");
		}
	}
	if (!made.get(pane))
		return;
	if (state && pane.restore)
		await pane.restore(state);
	tell(pane);
	if (shown === pane)
		write_address();
}

function go(id, state) {
	const pane = list.find((p) => p.id === id && p.tab);
	if (pane) {
		show(pane, state);
		pane.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
	}
	return !!pane;
}

function make_tabs() {
	const tabs = $("tabs"), main = $("panes");
	for (const pane of list) {
		if (pane.available && !pane.available(data))
			continue;
		const tab = pane.tab = document.createElement("button"), el = pane.el = document.createElement("section");
		tab.type = "button";
		tab.id = "tab-" + pane.id;
		tab.setAttribute("role", "tab");
		tab.setAttribute("aria-controls", "pane-" + pane.id);
		tab.textContent = pane.title;
		tab.addEventListener("click", () => show(pane));
		el.id = "pane-" + pane.id;
		el.setAttribute("role", "tabpanel");
		el.setAttribute("aria-labelledby", tab.id);
		el.setAttribute("aria-busy", "true");
		el.hidden = true;
		tabs.append(tab);
		main.append(el);
	}
	tabs.addEventListener("keydown", (e) => {
		const all = list.filter((p) => p.tab), at = all.indexOf(shown);
		const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[e.key];
		if (to === undefined)
			return;
		e.preventDefault();
		const pane = all[(to + all.length) % all.length];
		show(pane);
		pane.tab.focus();
	});
}

/* --- colours and keys --------------------------------------------------------------------------------- */

function is_dark() {
	const theme = document.documentElement.dataset.theme;
	return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function show_theme() {
	$("theme").setAttribute("aria-pressed", String(is_dark()));
	document.dispatchEvent(new Event("theme"));
}

function toggle_theme() {
	const theme = is_dark() ? "light" : "dark";
	document.documentElement.dataset.theme = theme;
	try {
		localStorage.setItem("memscope-theme", theme);
	} catch (error) { /* no storage */ }
	show_theme();
	changed();
}

/* Paper is light, whatever the screen is. */
function print_light() {
	let before;
	window.addEventListener("beforeprint", () => {
		before = document.documentElement.dataset.theme;
		document.documentElement.dataset.theme = "light";
		show_theme();
	});
	window.addEventListener("afterprint", () => {
		if (before)
			document.documentElement.dataset.theme = before;
		else
			delete document.documentElement.dataset.theme;
		show_theme();
	});
}

const own_keys = [["1 … 9", "show a pane"], ["[  ]", "the pane before, after"], ["Esc", "all of the run's time"],
	["t", "light or dark"], ["?", "these keys"]];

function show_keys() {
	const body = $("keys-table").tBodies[0], rows = own_keys.concat(shown.keys || []);
	body.replaceChildren(...rows.map(([key, what]) => {
		const tr = document.createElement("tr"), th = document.createElement("th"), td = document.createElement("td");
		const kbd = document.createElement("kbd");
		th.scope = "row";
		kbd.textContent = key;
		th.append(kbd);
		td.textContent = what;
		tr.append(th, td);
		return tr;
	}));
	$("keys").showModal();
}

function on_key(e) {
	const t = e.target, all = list.filter((p) => p.tab), at = all.indexOf(shown);
	if (e.defaultPrevented || e.ctrlKey || e.altKey || e.metaKey || $("keys").open ||
		t.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(t.tagName))
		return;
	if (/^[1-9]$/.test(e.key) && all[+e.key - 1])
		show(all[+e.key - 1]);
	else if (e.key === "[" || e.key === "]")
		show(all[(at + (e.key === "]" ? 1 : -1) + all.length) % all.length]);
	else if (e.key === "Escape" && range)
		select(null);
	else if (e.key === "t")
		toggle_theme();
	else if (e.key === "?")
		show_keys();
	else
		return;
	e.preventDefault();
}

/* --- begin ---------------------------------------------------------------------------------------------- */

function facts(run) {
	const parts = [];
	if (run.started)
		parts.push(format.date(run.started));
	if (run.seconds)
		parts.push(format.seconds(run.seconds));
	const labels = run.summary && run.summary.labels;
	for (const key of Object.keys(labels || {}))
		parts.push(key + "=" + labels[key]);
	parts.push("memscope " + run.memscope + (run.charts ? "" : ", built without charts: tables are shown instead"));
	return parts.join(" · ");
}

function open_address() {
	const state = parse(location.hash), all = list.filter((p) => p.tab);
	const time = /^([0-9.]+)-([0-9.]+)$/.exec(state.time || "");
	if (!all.length)
		return;
	shown = shown || all[0];
	if (state.theme === "dark" || state.theme === "light") {
		document.documentElement.dataset.theme = state.theme;
		show_theme();
	}
	select(time ? { from: +time[1], to: +time[2] } : null);
	show(all.find((p) => p.id === state.pane) || all[0], state).catch((error) => console.error(error));
}

function begin() {
	const page = JSON.parse($("run").textContent);
	const of_page = page.sides ? compare.begin(page) : { run: page, summary: page.summary, comparison: null,
		sides: [{ name: "", runs: [{ run: page, summary: page.summary }] }], load: (p) => report_data.load(p) };
	data = Object.assign(of_page, { bytes: (id) => report_data.bytes_of(id), select, range: () => range, changed, go, is_dark });
	$("facts").textContent = page.sides ? compare_overview.facts(data) : facts(page);
	make_tabs();
	$("range-reset").addEventListener("click", () => select(null));
	$("theme").addEventListener("click", toggle_theme);
	$("keys-open").addEventListener("click", show_keys);
	$("keys-close").addEventListener("click", () => $("keys").close());
	document.addEventListener("keydown", on_key);
	print_light();
	window.addEventListener("hashchange", open_address);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show_theme);
	open_address();
	show_theme();
	timeline.strip(data).then((chart) => {
		strip = chart;
		if (strip)
			strip.select(range);
	}).catch((error) => console.error(error));
}

document.addEventListener("DOMContentLoaded", begin);

return { add, list };
})();
