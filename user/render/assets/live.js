/* The live page of memscope serve: what /api/ says, every few seconds. */
"use strict";

(function () {
const $ = (id) => document.getElementById(id);
const FIRST = 15; /* targets that are shown before all are asked for */
const NAMES = { oncpu: "CPU time", offcpu: "waits", wakers: "who ended waits", growth: "memory that became resident", alloc: "allocations", heap: "memory in use",
	goroutine: "goroutines", mappings: "mappings", peak: "the peak" };
/* Source of a run: what it is called under /debug/pprof/. */
const PATHS = { oncpu: "profile", offcpu: "offcpu", wakers: "wakers", growth: "growth", alloc: "allocs", heap: "heap", goroutine: "goroutine" };
const state = { data: null, sort: "cpu_percent", down: true, all: false, paused: false, asked: 0 };

function element(name, attributes, ...children) {
	const e = document.createElement(name);
	for (const [key, value] of Object.entries(attributes || {}))
		e.setAttribute(key, value);
	e.append(...children);
	return e;
}

function figure(value, digits) {
	return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(digits === undefined ? 2 : digits);
}

function bytes(n) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	let i = 0;
	for (; n >= 1024 && i < units.length - 1; i++)
		n /= 1024;
	return (i ? figure(n, 1) : n) + " " + units[i];
}

function duration(s) {
	return s < 120 ? `${Math.round(s)} s` : s < 7200 ? `${Math.round(s / 60)} min` : s < 172800 ? `${(s / 3600).toFixed(1)} h` : `${(s / 86400).toFixed(1)} d`;
}

const SHOWN = {
	cpu_percent: (v) => figure(v) + " %",
	rss_kb: (v) => v ? bytes(v * 1024) : "–",
	blocked: (v) => figure(v),
	runnable: (v) => figure(v),
};

/* The last values as a line; its table beside it has the last one as a figure. */
function spark(values, kind) {
	const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), path = document.createElementNS(ns, "path");
	const top = Math.max(...values, 1e-9), step = values.length > 1 ? 100 / (values.length - 1) : 0;
	svg.setAttribute("viewBox", "0 0 100 24");
	svg.setAttribute("preserveAspectRatio", "none");
	svg.setAttribute("class", "line " + kind);
	svg.setAttribute("aria-hidden", "true");
	path.setAttribute("d", values.length > 1 ? "M" + values.map((v, i) => `${(i * step).toFixed(1)},${(23 - v / top * 22).toFixed(1)}`).join("L") : "");
	svg.append(path);
	return svg;
}

const last = (values) => values.length ? values[values.length - 1] : 0;

/* Mean of the last three rows: what the order goes by, so that rows do not jump. */
function lately(t, key) {
	if (key === "name")
		return t.name;
	if (key === "processes")
		return t.processes;
	const of = t[key].slice(-3);
	return of.length ? of.reduce((sum, v) => sum + v, 0) / of.length : 0;
}

function target_query(t) {
	if (t.kind === "container")
		return "container=" + encodeURIComponent(t.name);
	return t.pid ? "pid=" + t.pid : "comm=" + encodeURIComponent(t.name);
}

function show_targets() {
	const rows = state.data.targets.slice(), body = $("targets").tBodies[0], focus = document.activeElement && document.activeElement.dataset.of;
	rows.sort((a, b) => {
		const x = lately(a, state.sort), y = lately(b, state.sort), by = x < y ? -1 : x > y ? 1 : 0;
		return (state.down ? -by : by) || (a.name < b.name ? -1 : 1);
	});
	body.replaceChildren(...rows.slice(0, state.all ? rows.length : FIRST).map((t) => {
		const button = element("button", { type: "button", "data-of": target_query(t), "aria-label": `Collect: flame graph of ${t.name}` }, "Collect");
		const tr = element("tr", {}, element("td", { class: "name", title: t.name }, t.name, element("span", { class: "kind" }, t.kind === "processes" ? "" : t.kind)),
			element("td", { class: "number" }, t.processes ? String(t.processes) : "–"));
		for (const key of ["cpu_percent", "rss_kb", "blocked", "runnable"])
			tr.append(element("td", { class: "number" }, element("span", { class: "figure" }, SHOWN[key](last(t[key]))), spark(t[key], key)));
		button.addEventListener("click", () => { $("who").value = target_query(t); collect(); });
		tr.append(element("td", {}, t.kind === "others" ? "" : button));
		return tr;
	}));
	if (focus)
		body.querySelector(`[data-of="${CSS.escape(focus)}"]`)?.focus();
	$("more").hidden = rows.length <= FIRST;
	$("more").textContent = state.all ? "Show fewer" : `Show all ${rows.length}`;
	const s = state.data;
	$("targets-note").textContent = s.times_ms.length ? `The last ${duration(s.interval_seconds)}, and the ${duration(s.interval_seconds * s.times_ms.length)} before as lines, each to its own scale. ` +
		"CPU in percent of one; blocked and waits for a CPU in threads, on average; RSS summed over processes." : `The first row comes after ${s.interval_seconds} s.`;
}

function show_choices() {
	const who = $("who"), of = $("of"), chosen = who.value, source = of.value;
	const options = state.data.targets.filter((t) => t.kind !== "others").sort((a, b) => a.name < b.name ? -1 : 1).map((t) => [target_query(t), t.name]);
	if (chosen && !options.some(([value]) => value === chosen))
		options.push([chosen, decodeURIComponent(chosen.split("=")[1])]);
	if (document.activeElement !== who) {
		who.replaceChildren(element("option", { value: "" }, "all"), ...options.map(([value, name]) => element("option", { value }, name)));
		who.value = chosen;
	}
	const kinds = state.data.profiles.filter((p) => PATHS[p]);
	if (of.options.length !== kinds.length) {
		of.replaceChildren(...kinds.map((p) => element("option", { value: p }, NAMES[p] || p)));
		of.value = kinds.includes(source) ? source : kinds[0];
	}
}

function show_own() {
	const s = state.data, own = s.own, pairs = [["Resident", bytes(own.rss_kb * 1024)], ["Tables in the kernel", bytes(own.map_bytes)]];
	if (own.cpu_percent !== undefined)
		pairs.unshift(["CPU of its process, without probes", figure(own.cpu_percent) + " %"]);
	pairs.push(["Lost", s.lost.length ? String(s.lost.reduce((sum, l) => sum + l.count, 0)) : "nothing"]);
	$("own").replaceChildren(...pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
	$("lost").hidden = !s.lost.length;
	$("lost").tBodies[0].replaceChildren(...s.lost.map((l) => element("tr", {}, element("td", { class: "number" }, String(l.count)), element("td", {}, `${l.help} (${l.name})`))));
}

function say_state(text, bad) {
	$("state").textContent = text;
	$("state").className = bad ? "bad" : "";
}

async function get(path) {
	const answer = await fetch(path, { credentials: "same-origin" });
	if (!answer.ok)
		throw new Error((await answer.text()).trim() || answer.statusText);
	return answer.json();
}

async function refresh() {
	try {
		state.data = await get("/api/targets");
		const s = state.data;
		document.title = `${s.host} · memscope`;
		$("title").textContent = s.all ? s.host : `Targets on ${s.host}`;
		$("facts").textContent = `memscope ${s.version}, for ${duration(s.uptime_seconds)}, ${s.hz} samples a second and CPU, a window every ${duration(s.window_seconds)}`;
		show_targets();
		show_choices();
		show_own();
		say_state("live", false);
	} catch (error) {
		say_state("no answer: " + error.message, true);
	}
}

function stamp_time(stamp) {
	const m = /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)/.exec(stamp);
	return m ? `${m[1]}-${m[2]}-${m[3]} ${m[4]}:${m[5]}:${m[6]}` : stamp;
}

async function refresh_windows() {
	let list;
	try {
		list = await get("/api/windows");
	} catch (error) {
		$("windows-note").textContent = error.message;
		return;
	}
	$("windows-note").textContent = list.windows.length ? "As files in the archive, in this host's time." + (list.more ? " There are more: memscope ls lists them." : "")
		: "None yet: the first is written when its time is over.";
	$("windows").tBodies[0].replaceChildren(...list.windows.map((w) => element("tr", {}, element("td", {}, stamp_time(w.stamp)),
		element("td", {}, ...w.files.map((f) => {
			const source = f.name.slice(0, f.name.indexOf("-")), path = "/api/windows/" + encodeURIComponent(f.name);
			const flame = element("button", { type: "button", "aria-label": `${source}: flame graph of the window of ${stamp_time(w.stamp)}` }, source);
			flame.addEventListener("click", () => show_picture(path + "?format=svg", path, `${NAMES[source] || source}, window of ${stamp_time(w.stamp)}`));
			return element("span", { class: "file" }, flame, element("a", { href: path, download: f.name, "aria-label": `${bytes(f.bytes)}: download ${f.name}` }, bytes(f.bytes)));
		})))));
}

function show_file(path, name) {
	$("download").hidden = false;
	$("download").href = path;
	$("download").download = name;
}

function show_picture(path, download, what) {
	const frame = $("picture");
	frame.hidden = false;
	frame.src = path;
	frame.title = "Flame graph: " + what;
	$("said").textContent = what;
	state.asked++;
	$("open").hidden = false;
	$("open").href = path;
	show_file(download, download.slice(download.lastIndexOf("/") + 1));
	$("flame-title").scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

/*
 * The picture and the file are asked for together: the server makes them of one collection. A frame with the picture's own address
 * has the picture's own policy, and says nothing of what is in it: whether there is a picture is asked beside it.
 */
async function collect() {
	const seconds = +$("seconds").value, source = $("of").value, who = $("who").value, name = $("who").selectedOptions[0]?.textContent || "all";
	const path = `/debug/pprof/${PATHS[source]}?seconds=${seconds}${who ? "&" + who : ""}`, mine = ++state.asked, frame = $("picture");
	let left = seconds;
	const say = () => { $("said").textContent = left > 0 ? `Collecting ${NAMES[source]} of ${name}: ${left} s …` : "Naming functions …"; };
	const timer = setInterval(() => { left--; if (mine === state.asked) say(); }, 1000);
	say();
	$("go").disabled = true;
	$("open").hidden = $("download").hidden = frame.hidden = true;
	$("flame-title").scrollIntoView({ block: "start" });
	try {
		const drawn = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
		frame.src = path + "&format=svg";
		const [answer, picture] = await Promise.all([path, path + "&format=svg"].map((p) => fetch(p, { credentials: "same-origin" })));
		for (const one of [answer, picture])
			if (!one.ok)
				throw new Error((await one.text()).trim());
		const bytes = await answer.blob();
		await picture.text();
		await drawn;
		if (mine !== state.asked)
			return;
		show_file(URL.createObjectURL(bytes), `${source}.pb.gz`);
		frame.hidden = false;
		frame.title = `Flame graph: ${NAMES[source]} of ${name}`;
		$("said").textContent = `${NAMES[source]} of ${name}, ${seconds} s up to ${new Date().toTimeString().slice(0, 8)}`;
	} catch (error) {
		if (mine === state.asked)
			$("said").textContent = error.message;
	} finally {
		clearInterval(timer);
		$("go").disabled = false;
	}
}

/* --- controls --- */

for (const button of document.querySelectorAll("#targets th button"))
	button.addEventListener("click", () => {
		const key = button.dataset.sort;
		state.down = state.sort === key ? !state.down : key !== "name";
		state.sort = key;
		for (const th of document.querySelectorAll("#targets th"))
			th.removeAttribute("aria-sort");
		button.parentElement.setAttribute("aria-sort", state.down ? "descending" : "ascending");
		if (state.data)
			show_targets();
	});
$("more").addEventListener("click", () => { state.all = !state.all; show_targets(); });
$("ask").addEventListener("submit", (event) => { event.preventDefault(); collect(); });
$("pause").addEventListener("click", () => {
	state.paused = !state.paused;
	$("pause").setAttribute("aria-pressed", String(state.paused));
	say_state(state.paused ? "paused" : "live", false);
});

function is_dark() {
	const chosen = document.documentElement.dataset.theme;
	return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function show_theme() {
	$("theme").setAttribute("aria-pressed", String(is_dark()));
}

$("theme").addEventListener("click", () => {
	document.documentElement.dataset.theme = is_dark() ? "light" : "dark";
	try {
		localStorage.setItem("memscope-theme", document.documentElement.dataset.theme);
	} catch { /* it is forgotten with the page */ }
	show_theme();
});
show_theme();

function tick(fn, ms) {
	fn();
	setInterval(() => { if (!state.paused && !document.hidden) fn(); }, ms);
}

tick(refresh, 2000);
tick(refresh_windows, 10000);
})();
