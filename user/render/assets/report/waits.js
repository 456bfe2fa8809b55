/* What threads waited for, which locks and whose, and goroutines: the tables of summary.json. */
(function () {
"use strict";

const name_of = (r) => r.function || "[no user stack]", module_of = (r) => r.module;
const ns = (title, key) => ({ title, number: true, unit: "nanoseconds", key: (r) => r[key], text: (r) => r[key] ? format.ns(r[key]) : "" });
const count = (title, key) => ({ title, number: true, unit: "count", key: (r) => r[key], text: (r) => r[key] ? format.grouped(r[key]) : "" });
const text = (title, key) => ({ title, filter: true, key: (r) => r[key] || "" });

/* Time blocked by function, module and kind, of the bins of a selected time: what off-CPU samples have. */
async function blocked_sites(d) {
	const p = d.sides.length === 1 && d.run.profiles.find((x) => x.id === "offcpu"), choice = p && sites.choice_of(d.run, p);
	if (!choice || !choice.detail.kind_names.length)
		return null;
	const rows = await sites.of_profile(d, choice), key_of = (r) => [r.fn || "", r.module, choice.detail.kind_names[r.wait]].join("\n");
	return (range) => {
		const sums = new Map();
		for (const r of rows)
			sums.set(key_of(r), (sums.get(key_of(r)) || 0) + sites.in_range(r, range));
		return (w) => sums.get([w.function, w.module, w.kind].join("\n")) || 0;
	};
}

function waits(s, n, blocked) {
	const rows = (s.offcpu && s.offcpu.waits) || [], of_range = (range) => {
		const of = range && blocked(range);
		for (const r of rows)
			r.selected_ns = of ? of(r) : r.blocked_ns;
		return rows;
	};
	if (blocked)
		of_range(null);
	return rows.length && ({ caption: "Waits, by where threads wait", filter: true, rows, sort: [4, true], follow: blocked && of_range, columns: [
		{ title: "Function", filter: true, key: name_of, of: module_of }, { title: "For", filter: true, key: (r) => [r.role, r.kind].filter((x) => x && x !== "unknown").join(", ") },
		text("In the kernel", "kernel"), text("Process", "comm"),
		Object.assign(ns("Blocked", "blocked_ns"), { low: (r) => r.low_ns, high: (r) => r.high_ns }),
		...(blocked ? [Object.assign(ns("Selected", "selected_ns"), { hint: "blocked in the selected time" })] : []), count("Times", "count"),
		{ title: "95% interval", number: true, key: (r) => r.low_ns, text: (r) => r.high_ns ? format.ns(r.low_ns) + " to " + format.ns(r.high_ns) : "" },
		{ title: "Idle", same: false, key: (r) => r.idle ? "probably" : "" }] });
}

function locks(s) {
	const rows = s.locks || [];
	return rows.length && ({ caption: "Locks, and their owners", filter: true, rows, sort: [2, true], columns: [
		{ title: "Lock", filter: true, key: (r) => r.name || (r.kind || "lock") + " at 0x" + Number(r.address).toString(16),
			same: (r) => r.name || r.kind || "lock" },
		{ title: "Waited for in", filter: true, key: name_of, of: module_of }, ns("Waited", "waited_ns"), count("Waits", "waits"),
		{ title: "Most often held by", filter: true, same: false, key: (r) => r.owner ? (r.owner_name || "thread") + " (tid " + r.owner + ")" : "not known" },
		ns("Owner known", "owner_known_ns"), { title: "The owner was in", filter: true, same: false, key: (r) => (r.held_in || "") + (r.held_caller && r.held_caller !== r.held_in ? " \u2190 " + r.held_caller : "") }, ns("There", "held_in_ns"),
		{ title: "Released in", filter: true, same: false, key: (r) => r.released_in ? r.released_in + (r.releaser ? " (" + r.releaser + ")" : "") : "" }, text("Place", "place")] });
}

/* Of waits that ended. */
function wakers(s) {
	const rows = (s.wakers && s.wakers.rows) || [];
	return rows.length && ({ caption: "Who ended waits", filter: true, rows, sort: [4, true], columns: [
		{ title: "Function", filter: true, key: name_of, of: module_of }, text("Kind", "kind"),
		{ title: "Ended by", filter: true, key: (r) => r.waker_function, of: (r) => r.waker_module }, text("Thread", "waker"),
		ns("Blocked", "blocked_ns"), count("Wake-ups", "wakeups"), { title: "Idle", same: false, key: (r) => r.idle ? "probably" : "" }] });
}

function tasks(s) {
	const rows = (s.offcpu && s.offcpu.tasks && s.offcpu.tasks.waits) || [];
	return rows.length && ({ caption: "Tasks of asyncio, and what they await", rows, sort: [3, true], columns: [
		{ title: "Function", filter: true, key: (r) => r.function + (r.line ? ":" + r.line : "") }, text("Awaits", "awaits"), text("Kind", "kind"),
		count("Seen", "seen"), Object.assign(ns("Longest", "longest_ns"), { largest: true, state: true })] });
}

function goroutines(s) {
	const rows = (s.goroutines && s.goroutines.rows) || [];
	return rows.length && ({ caption: "Goroutines, by what they wait for and where", filter: true, rows, sort: [3, true], columns: [
		{ title: "Function", filter: true, key: name_of, of: module_of }, text("State", "state"), text("Role", "role"), ns("Time", "time_ns"), Object.assign(count("Now", "now"), { state: true }),
		count("Stops", "stops"), Object.assign(ns("Longest", "longest_ns"), { largest: true, state: true })] });
}

function requests(s) {
	const rows = (s.offcpu && s.offcpu.requests && s.offcpu.requests.peers) || [];
	return rows.length && ({ caption: "Peers with requests outstanding", rows, columns: [text("Peer", "name"), count("Looks", "looks"),
		count("Outstanding", "outstanding"), { title: "Age", number: true, key: (r) => r.age_ms, text: (r) => format.value(r.age_ms, "milliseconds"), state: true, largest: true, unit: "milliseconds" },
		{ title: "Oldest", number: true, key: (r) => r.oldest_ms, text: (r) => format.value(r.oldest_ms, "milliseconds"), state: true, largest: true, unit: "milliseconds" }] });
}

function endpoints(s) {
	const rows = (s.offcpu && s.offcpu.endpoints) || [];
	return rows.length && ({ caption: "Files and peers that threads waited for", filter: true, rows, sort: [2, true],
		columns: [text("Name", "name"), text("Kind", "kind"), count("Seen", "seen")] });
}

let elements = [];
/* Files, devices and peers, of calls that name a descriptor. */
function io_waits(s) {
	const rows = s.io_waits || [];
	return rows.length && ({ caption: "I/O waits, by what they were for", filter: true, rows, sort: [3, true], columns: [
		text("Name", "name"), text("Kind", "kind"), text("Device", "device"), ns("Blocked", "blocked_ns"), count("Waits", "count"),
		{ title: "Most of it in", filter: true, key: name_of, of: module_of }, ns("There", "function_ns")] });
}

/* Who ran while threads waited for a CPU. */
function run_queue(s) {
	const rows = (s.run_queue && s.run_queue.rows) || [], process = (comm, pid, container) => (comm || "[unknown]") + (pid ? " (" + pid + ")" : " [kernel]") +
		(container ? " in " + container : "");
	return rows.length && ({ caption: "Run queue: who ran while threads waited for a CPU", filter: true, rows, sort: [2, true], columns: [
		{ title: "Waited", filter: true, key: (r) => process(r.comm, r.pid, r.container), same: (r) => r.comm },
		{ title: "Ran meanwhile", filter: true, key: (r) => r.ran_pid === r.pid ? "its own threads" : process(r.ran_comm, r.ran_pid, r.ran_container),
			same: (r) => r.ran_pid === r.pid ? "" : r.ran_comm },
		ns("Delay", "delay_ns"), count("Runs", "runs")] });
}

const all = [waits, io_waits, locks, wakers, run_queue, tasks, goroutines, requests, endpoints];

function monitors(side) {
	const m = side.runs[0].summary && side.runs[0].summary.offcpu && side.runs[0].summary.offcpu.monitors;
	return m && m.waits && format.el("p", {}, (side.name ? side.name + ": monitors" : "Monitors") + " of Java: " + format.grouped(m.waits) +
		" waits, held in " + format.grouped(m.held) + (m.owner ? ", most often by " + m.owner : "") + ".");
}

panes.add({
	id: "waits",
	title: "Waits and locks",
	available: (d) => tables.any(d, all),
	async make(box, d) {
		const blocked = await blocked_sites(d);
		elements = tables.of(d, [(s, n) => waits(s, n, blocked), ...all.slice(1)]);
		box.append(...elements, ...d.sides.map(monitors).filter(Boolean), format.el("p", { className: "dim" }, blocked ?
			"The column Selected follows the selected time. Counts, locks, files, peers and tasks have no times and are of the whole run." :
			"Of the whole run: these tables do not follow the selected time."));
	},
	select: (range) => tables.follow(range, elements),
});

/* --- processes, threads, labels, sizes and lifetimes ------------------------------------------------------------ */

function processes(s) {
	const rows = s.by_process || [];
	return rows.length && ({ caption: "Processes", rows, sort: [2, true], columns: [
		{ title: "Process", filter: true, key: (r) => r.comm + " (pid " + r.pid + ")" + (r.container ? " in " + r.container : ""),
			same: (r) => r.comm + (r.container ? " in " + r.container : "") },
		count("Samples", "samples"), ns("On a CPU", "cpu_ns"), ns("Blocked", "blocked_ns"), ns("Runnable", "runnable_ns")] });
}

const sums_of_threads = [["oncpu", "cpu", "nanoseconds", "cpu"], ["offcpu", "blocked", "nanoseconds", "blocked"],
	["offcpu", "runnable", "nanoseconds", "runnable"], ["alloc", "alloc_space", "bytes", "allocated"]];

/* Adds what each thread's samples have, in `range` where they have times, to the rows of its run. */
function add_threads(of, key, { samples, sets, strings }, type, entry, range) {
	for (let i = 0; i < samples.n; i++) {
		const set = samples.set[i], tid = sets.tid[set], run = of[sets.run ? sets.run[set] : 0];
		let value = samples.values[type][i];
		if (!tid)
			continue;
		if (range && entry) {
			value = 0;
			for (let t = entry.first[i]; t < entry.first[i + 1]; t++)
				if (entry.bin[t] >= range.from_bin && entry.bin[t] < range.to_bin)
					value += entry.value[t];
		}
		const name = strings[sets.thread[set]] || strings[sets.comm[set]], label = name + " (tid " + tid + ")";
		if (!run.has(label))
			run.set(label, { name, label, comm: strings[sets.comm[set]], process: strings[sets.comm[set]] + " (pid " + sets.pid[set] + ")",
				cpu: 0, blocked: 0, runnable: 0, allocated: 0 });
		run.get(label)[key] += value;
	}
}

/* By thread of the profiles, whose samples carry their thread: what makes the table of the n-th run. */
async function threads(d) {
	const there = [];
	for (const [id, name, unit, key] of sums_of_threads) {
		const p = d.run.profiles.find((x) => x.id === id), type = p ? p.types.findIndex((t) => t.name === name && t.unit === unit) : -1;
		if (type < 0)
			continue;
		const profile = await d.load(p);
		there.push({ key, profile, type, entry: times.of_type(profile, type) });
	}
	const rows_of = (range) => {
		const of = d.sides.flatMap((side) => side.runs.map(() => new Map()));
		for (const { key, profile, type, entry } of there)
			add_threads(of, key, profile, type, entry, range);
		return of.map((run) => [...run.values()]);
	};
	const all = rows_of(null), follow = d.sides.length === 1 && d.run.n_bins ? (range) => rows_of(range)[0] : null;
	return (s, n) => threads_table(all[n], follow, there.every((t) => t.entry));
}

function threads_table(rows, follow, whole) {
	return rows.length && ({ caption: !follow ? "Threads" : whole ? "Threads, in the selected time" : "Threads, in the selected time where samples have times",
		complete: true, filter: true, rows, follow, sort: [2, true], columns: [
		Object.assign(text("Thread", "label"), { same: (r) => r.name }), Object.assign(text("Process", "process"), { same: (r) => r.comm }),
		ns("On a CPU", "cpu"), ns("Blocked", "blocked"), ns("Runnable", "runnable"),
		{ title: "Allocated", number: true, unit: "bytes", key: (r) => r.allocated, text: (r) => r.allocated ? format.bytes(r.allocated) : "" }] });
}

function labels(s) {
	const rows = (s.program_labels || []).flatMap((l) => l.top.map((t) => ({ key: l.key, value: t.value, samples: t.samples, blocked_ns: t.blocked_ns })));
	return rows.length && ({ caption: "Labels that programs set themselves", rows, columns: [text("Label", "key"), text("Value", "value"),
		count("Samples", "samples"), ns("Blocked", "blocked_ns")] });
}

const titles = { up_to_bytes: "Up to", under_ns: "Under", function: "Function", comm: "Process", name: "Thread", tid: "tid", pid: "pid" };

/* A list of summary.json as it is, a column for each of its keys. */
function list(rows, caption) {
	return rows && rows.length && ({ caption, rows, complete: /^(Sizes|Lifetimes)/.test(caption), columns: Object.keys(rows[0]).filter((k) => k !== "module").map((k) => ({
		alone: /^(pid|tid|share|low|high)/.test(k), state: /^(live|heap|longest|processes)/.test(k), largest: /^longest/.test(k), identity: /^(up_to|under)_/.test(k),
		unit: /_ns$/.test(k) ? "nanoseconds" : /bytes$/.test(k) ? "bytes" : "count",
		title: titles[k] || k[0].toUpperCase() + k.slice(1).replace(/_/g, " "), filter: typeof rows[0][k] === "string", of: k === "function" ? module_of : null,
		number: typeof rows[0][k] === "number", key: (r) => k === "function" ? name_of(r) : r[k],
		text: (r) => k === "function" ? name_of(r) : typeof r[k] !== "number" ? String(r[k] === null ? "" : r[k]) : /_ns$/.test(k) ? format.ns(r[k]) :
			/bytes$/.test(k) ? format.bytes(r[k]) : /id$/.test(k) ? String(r[k]) : format.grouped(r[k]) })) });
}

let thread_elements = [];
const of_alloc = (s, key, caption) => list(s.alloc && s.alloc[key], caption);
const collections = (s) => list((s.gc || []).map((g) => ({ runtime: g.runtime, processes: g.processes, count: g.count,
	major_count: g.major_count, time_ns: g.time_ns, longest_pause_ns: g.longest_pause_ns, live_bytes: g.live_bytes, heap_bytes: g.heap_bytes })),
"Garbage collections");

panes.add({
	id: "tables",
	title: "Threads and sizes",
	available: (d) => d.sides.some((side) => side.runs.some((r) => r.summary)) || d.run.profiles.length > 0,
	async make(box, d) {
		const of_threads = await threads(d);
		thread_elements = tables.of(d, [processes, of_threads, collections, (s) => of_alloc(s, "threads", "Threads that allocate"), labels,
			(s) => of_alloc(s, "temporary_sites", "Temporary allocations, by site"), (s) => of_alloc(s, "call_sites", "Most calls, by site"),
			(s) => of_alloc(s, "sizes", "Sizes of allocations"), (s) => of_alloc(s, "lifetimes", "Lifetimes of blocks that were freed")]);
		box.append(...thread_elements, format.el("p", { className: "dim" }, !thread_elements.length ? "Neither the samples nor the summary have threads or sizes." :
			thread_elements.some((e) => e.follow) ? "Threads follow the selected time. The other tables have no times and are of the whole run." :
				"Of the whole run: these tables do not follow the selected time."));
	},
	select: (range) => tables.follow(range, thread_elements),
});
})();
