/* What was found, and where to look first: from summary.json alone, but for the buttons that lead to other panes. */
const overview = (function () {
"use strict";

const el = format.el;

/* Which pane has more about a verdict. */
const panes_of = { "cpu-bound": ["flame", { source: "oncpu" }], contended: ["waits"], "lock-bound": ["waits"], blocked: ["waits"],
	"io-bound": ["waits"], growing: ["heap"], idle: ["waits"], starved: ["timeline"] };

/* The flame graph that a sentence names, by its words. */
const graph_of = { "on-CPU": "oncpu", "off-CPU": "offcpu", allocation: "alloc", heap: "heap", growth: "growth", goroutine: "goroutine" };

/* "Open report.html (growth flame graph): …" is here already: the name of the graph leads to it. */
function next_step(data, text) {
	const step = el("p", {}), parts = text.split(/report[\w-]*\.html \(([\w-]+) flame graph\)/);
	parts.forEach((part, i) => {
		if (i % 2 === 0) {
			step.append(part);
			return;
		}
		const button = el("button", { type: "button" }, "the " + part + " flame graph");
		button.addEventListener("click", () => data.go("flame", { source: graph_of[part] }));
		step.append(button);
	});
	return step;
}

function bars(parts, whole, unit) {
	const rows = el("tbody");
	for (const [name, value, hint] of parts) {
		if (!value)
			continue;
		const bar = el("div", { className: "bar" }), fill = el("div");
		fill.style.width = Math.max(.3, Math.min(100, 100 * value / whole)) + "%";
		bar.append(fill);
		rows.append(el("tr", {}, el("th", { scope: "row" }, name, hint ? el("span", { className: "dim" }, " " + hint) : null),
			el("td", { className: "number" }, format.value(value, unit)),
			el("td", { className: "number" }, format.percent(value, whole)), el("td", { className: "bars", "aria-hidden": "true" }, bar)));
	}
	return el("table", { className: "split" }, rows);
}

function section(title, ...inside) {
	return el("div", { className: "panel" }, el("h2", {}, title), ...inside);
}

/* One row a function, as in the verdict: its stacks added up; limits of intervals, too, which makes them wider than needed. */
function leaking_functions(leaks) {
	const rows = [];
	for (const l of leaks) {
		const row = rows.find(r => r.function === l.function && r.module === l.module && r.growth === l.growth);
		if (!row) {
			rows.push({ ...l });
			continue;
		}
		for (const key of ["bytes_s", "low", "high", "live_bytes"])
			if (typeof l[key] === "number" && typeof row[key] === "number")
				row[key] += l[key];
		row.since_s = Math.min(row.since_s || 0, l.since_s || 0);
	}
	return rows;
}

function verdict(data, s) {
	const v = s.verdict || {}, box = el("div", { className: "panel verdict" }, el("h2", {}, "Verdict"));
	box.append(el("p", { className: "sentence" }, v.sentence || "The run has no verdict."));
	if (v.next)
		box.append(next_step(data, v.next));
	for (const d of s.diagnoses || [])
		box.append(el("p", {}, el("b", {}, d.kind + ": "), d.evidence));
	for (const l of leaking_functions((s.alloc && s.alloc.leaks) || []))
		box.append(el("p", { className: "bad" }, "Leak: ", el("b", { className: "name" }, l.function), " grows by " +
			format.bytes(l.bytes_s || 0) + "/s" + (l.low !== undefined && l.low !== null ? " (95% interval " + format.bytes(l.low) + "/s to " +
			format.bytes(l.high) + "/s)" : "") + (l.since_s > 0 ? ", steadily since " + format.clock(l.since_s) +
			(data.run.started ? " (" + format.time_of_day(data.run.started + l.since_s) + ")" : "") : "") + ", " + format.bytes(l.live_bytes || 0) + " live."));
	const [pane, state] = panes_of[v.kind] || [];
	if (pane && document.getElementById("tab-" + pane)) {
		const button = el("button", { type: "button" }, "Show " + document.getElementById("tab-" + pane).textContent.toLowerCase());
		button.addEventListener("click", () => data.go(pane, state));
		box.append(button);
	}
	return box;
}

/* Bursts and late starts (page_moments.h); a click selects it, and shows the stacks of that time. */
const doing = { oncpu: "on a CPU", alloc: "allocated", growth: "made resident" };

function show_moment(data, m) {
	data.select({ from: m.from, to: m.to });
	data.go("flame", { source: m.profile, value: String(m.type) });
}

/* Who held the lock meanwhile, as far as the run knows. */
function lock_owner(data, m) {
	const row = m.wait && ((data.summary && data.summary.locks) || []).find((l) => l.function === m.function && l.owner);
	return row ? el("span", { className: "dim" }, " held by " + (row.owner_name || "thread " + row.owner) + (row.held_in ? " in " + row.held_in +
		(row.held_caller && row.held_caller !== row.held_in ? " \u2190 " + row.held_caller : "") : "")) : null;
}

function moments(data) {
	const list = data.run.moments || [], started = data.run.started;
	if (!list.length)
		return null;
	const body = el("tbody", {}, ...list.map((m) => {
		const profile = data.run.profiles.find((p) => p.id === m.profile), button = el("button", { type: "button",
			"aria-label": "Stacks of " + m.function.slice(0, 80) + " from " + format.clock(m.from) }, "Stacks");
		button.addEventListener("click", () => show_moment(data, m));
		return el("tr", {}, el("td", { className: "number" }, format.clock(m.from) + (m.burst ? " to " + format.clock(m.to) : " on"),
			started ? el("span", { className: "dim" }, " " + format.time_of_day(started + m.from)) : null),
		el("th", { scope: "row", className: "name" }, m.function, el("span", { className: "dim" }, " " + m.module)),
		el("td", {}, (m.wait ? "waited for " + m.wait : doing[m.profile] || profile.source) + (m.burst ? "" : ", since then"), lock_owner(data, m)),
		el("td", { className: "number" }, format.value(m.value, profile.types[m.type].unit)),
		el("td", { className: "number" }, format.percent(m.share, 1)), el("td", {}, button));
	}));
	const head = ["When", "Function", "What", "How much", "Of all", ""].map((t, i) => el("th", { scope: "col",
		className: i === 0 || i === 3 || i === 4 ? "number" : "" }, t || el("span", { className: "unseen" }, "Stacks")));
	const box = section("Bursts and late starts", el("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": "Bursts and late starts" },
		el("table", { className: "moments" }, el("thead", {}, el("tr", {}, ...head)), body)),
	el("p", { className: "dim" }, "Functions with most of their cost in a short time, or that started late and continued."));
	box.classList.add("across");
	return box;
}

function time_split(s) {
	const t = s.time;
	if (!t || !t.wall_ns)
		return null;
	const rest = t.wall_ns - (t.oncpu_ns || 0) - (t.blocked_ns || 0) - (t.runnable_ns || 0) - (t.held_ns || 0);
	return section("Where thread time went", bars([["On a CPU", t.oncpu_ns], ["Blocked", t.blocked_ns],
		["Runnable", t.runnable_ns, "(waiting for a CPU)"], ["Held", t.held_ns, "(before its first instruction)"],
		["Unaccounted", rest > 0 ? rest : 0]], t.wall_ns, "nanoseconds"),
	el("p", { className: "dim" }, format.ns(t.wall_ns) + " of thread time in " + format.ns(s.duration_ns) + (t.throttled_ns ?
		"; held back by CPU quotas for " + format.ns(t.throttled_ns) : "") + "."));
}

const part_names = { live: "In use", live_traced: "In use, allocated in the run", live_preexisting: "In use since before the run",
	free_retained: "Free, retained", metadata: "Allocator metadata", heap_unwalked: "Heap, not walked", other_anonymous: "Other anonymous",
	stacks: "Stacks", file_modified: "File-backed, modified", file: "File-backed", shared_memory: "Shared memory" };

function rss(s) {
	const r = s.rss_breakdown;
	if (!r || !r.parts)
		return null;
	const pss = r.measure === "pss", whole = pss ? r.pss_bytes : r.rss_bytes;
	const parts = Object.entries(r.parts).map(([key, p]) => [part_names[key] || key, pss ? p.pss_bytes : p.resident_bytes]);
	parts.push(["Unexplained", Math.max(0, r.unexplained_bytes)]);
	return section("RSS breakdown", bars(parts, whole, "bytes"), el("p", { className: "dim" }, (pss ? "PSS " : "RSS ") + format.bytes(whole) +
		" at " + format.ns(r.at_ns) + (r.processes > 1 ? ", " + r.processes + " processes" : "") + (r.walked ? "; heaps walked: " + r.walked : "") +
		(r.caveat ? "; " + r.caveat : "") + "."));
}

function top(s) {
	const o = s.oncpu;
	if (!o || !o.samples)
		return null;
	const rows = (o.top_interpreted && o.top_interpreted.length ? o.top_interpreted : o.top_self || []).slice(0, 8);
	const body = el("tbody", {}, ...rows.map((r) => el("tr", {}, el("th", { scope: "row", className: "name" }, r.function,
		el("span", { className: "dim" }, " " + (r.module || ""))), el("td", { className: "number" }, format.percent(r.self, o.samples)),
	el("td", { className: "number" }, format.percent(r.total, o.samples)))));
	return section("Top on-CPU", el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Function"),
		el("th", { scope: "col", className: "number" }, "Self"), el("th", { scope: "col", className: "number" }, "Total"))), body),
	el("p", { className: "dim" }, format.grouped(o.samples) + " samples at " + o.hz + " Hz" + (o.few_samples ? ": few, shares are rough" : "") + "."));
}

function allocations(s) {
	const a = s.alloc;
	if (!a || !a.sites || !a.sites.length)
		return null;
	const body = el("tbody", {}, ...a.sites.slice(0, 8).map((r) => el("tr", {}, el("th", { scope: "row", className: "name" }, r.function,
		el("span", { className: "dim" }, " " + (r.module || ""))), el("td", { className: "number" }, format.bytes(r.bytes)),
	el("td", { className: "number dim" }, r.high ? format.bytes(r.low) + " to " + format.bytes(r.high) : ""))));
	return section("Top allocation sites", el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Function"),
		el("th", { scope: "col", className: "number" }, "Allocated"), el("th", { scope: "col", className: "number" }, a.sites[0].high ? "95% interval" : ""))), body),
	el("p", { className: "dim" }, (a.tier === "exact" ? "Every call was traced" : a.tier === "bursts" ? "Estimates: every call was traced in bursts" :
		a.tier === "sampled" ? "Estimates from samples" : a.tier) + ": " + format.bytes(a.bytes) + " in " + format.grouped(a.objects) + " allocations."));
}

function lost(data, s) {
	const drops = (s.drops || []).filter((d) => d.count > 0), incomplete = (s.stacks || []).map((k) => {
		const all = k.complete + k.truncated + k.guessed + k.no_table + k.unreadable + k.lost;
		return all ? k.source + " " + format.percent(k.complete, all) : null;
	}).filter(Boolean);
	const box = section("Losses", el("p", {}, drops.length ? drops.length + (drops.length > 1 ? " kinds" : " kind") + " of loss: " + drops.slice(0, 4).map((d) =>
		format.grouped(d.count) + " " + d.help).join("; ") + (drops.length > 4 ? " …" : "") + "." : "Nothing was lost."));
	if (incomplete.length)
		box.append(el("p", {}, "Complete stacks: " + incomplete.join(", ") + "."));
	if (document.getElementById("tab-losses")) {
		const button = el("button", { type: "button" }, "Show losses");
		button.addEventListener("click", () => data.go("losses"));
		box.append(button);
	}
	return box;
}

function measured(data, s) {
	const t = s.target || {}, c = s.cost, list = el("dl"), row = (name, ...text) => list.append(el("dt", {}, name), el("dd", {}, ...text));
	for (const p of (t.processes || []).slice(0, 5))
		row("Target", (p.comm || "") + " (pid " + p.pid + ")" + (p.cmdline ? ": " + p.cmdline : ""));
	for (const g of (t.groups || []).slice(0, 5))
		row("Group", g.container || g.path);
	const sources = Object.entries(s.sources || {}), ok = sources.filter(([, k]) => k.state === "ok").map(([name]) => name);
	if (ok.length)
		row("Gathered", ok.join(", "));
	for (const [name, source] of sources)
		if (source.state !== "ok")
			row(name, source.state + (source.why ? ": " + source.why : ""));
	if (s.alloc && s.alloc.reason)
		row("Allocations", s.alloc.reason);
	if (c)
		row("Overhead", (c.profiled_percent || 0).toFixed(1) + "% of one CPU in the target" + (c.limit_percent ? " (limit " + c.limit_percent + "%)" : "") +
			", " + Math.max((c.percent || 0) - (c.profiled_percent || 0), 0).toFixed(1) + "% in others");
	if (s.memscope)
		row("memscope itself", format.ns(s.memscope.cpu_ns) + " of CPU time, " + format.bytes(s.memscope.peak_kb * 1024) + " resident, " +
			format.bytes(s.memscope.map_bytes) + " in the kernel");
	if (s.end)
		row("End", s.end + (s.end_detail ? ": " + s.end_detail : ""));
	const box = section("How it was measured", list);
	if ((s.notes || []).length)
		box.append(el("h3", {}, "Notes"), el("ul", {}, ...s.notes.map((n) => el("li", {}, n))));
	return box;
}

function without_summary(data) {
	return section("Profiles", el("ul", {}, ...data.run.profiles.map((p) => el("li", {}, p.title + " (" + p.id + ")" +
		(p.estimate ? ": estimated from " + p.estimate : "")))), el("p", { className: "dim" },
	"There is no summary.json in this report, so there is no verdict."));
}

panes.add({
	id: "overview",
	title: "Overview",
	available: (d) => !d.comparison,
	make(box, data) {
		const s = data.summary, parts = s ? [verdict(data, s), moments(data), time_split(s), rss(s), top(s), allocations(s), lost(data, s), measured(data, s)] :
			[without_summary(data), moments(data)];
		box.append(el("div", { className: "grid" }, ...parts.filter(Boolean)));
	},
});

return { section, part_names, measured, leaking_functions };
})();
