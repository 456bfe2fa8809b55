/*
 * The page of memscope diff -o FILE.html in a browser: every pane shows both sides and their difference, its figures are those of
 * diff --json, names are inert, and every control works.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { dir, equal, launch, ok, run_tests, test } from "./chromium.mjs";
import { pprof } from "./report_fixture.mjs";

const browser = await launch();
const memscope = process.env.MEMSCOPE || resolve("build/memscope");
const evil = ["<script>window.broken=1</script>", "<img src=x onerror=window.broken=1>", "\u202egnp.exe", "a\u0007\u001b[2Jb", "x".repeat(10000)];
const START = Date.parse("2026-11-21T10:00:00Z") / 1000, PERIOD = 10101010;
const cpu = [["samples", "count"], ["cpu", "nanoseconds"]], alloc = [["alloc_objects", "count"], ["alloc_space", "bytes"]];
let page, errors;
process.env.TZ = "UTC";

/* --- runs ---------------------------------------------------------------------------------------------------- */

const stamp = (s) => new Date((START + s) * 1000).toISOString().slice(0, 19).replace("T", " ");

/* A profile with its times: of each stack [stack, samples, first second, last second] as many samples, spread over its seconds. */
function write_profile(at, source, types, seconds, stacks, value_of) {
	const samples = stacks.map(([stack, n]) => ({ stack: stack.split(";"), values: [n, n * value_of], labels: { comm: "web", pid: 7, tid: 7 } }));
	const rows = stacks.flatMap(([, n, from = 0, to = seconds], k) => {
		const out = [], whole = to - from;
		for (let b = 0, done = 0; b < whole; b++) {
			const part = Math.floor(n * (b + 1) / whole) - done;
			done += part;
			if (part)
				out.push([from + b, k, part]);
		}
		return out;
	}).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
	writeFileSync(join(at, source + ".pb.gz"), gzipSync(pprof(types, samples, { time_ns: BigInt(START) * 1000000000n,
		duration_ns: seconds * 1e9, period: source === "oncpu" ? PERIOD : 1, file: "/src/web.c" })));
	writeFileSync(join(at, source + ".times.csv.gz"), gzipSync(`# ${samples.length} samples, in bins of 1 s\nsample,second,${types[1].join("/")},${types[0].join("/")}\n` +
		rows.map(([b, k, n]) => `${k},${b},${n * value_of},${n}\n`).join("")));
}

/* `work`: of each stack its samples on a CPU; `allocated`: its objects of 1,000 bytes. */
function make_run(name, { seconds, work, allocated, more = {} }) {
	const at = join(dir, name), rows = Array.from({ length: seconds + 1 }, (x, i) => i);
	mkdirSync(at, { recursive: true });
	write_profile(at, "oncpu", cpu, seconds, work, PERIOD);
	write_profile(at, "alloc", alloc, seconds, allocated, 1000);
	writeFileSync(join(at, "trend.csv"), "timestamp,rss_kb,vsz_kb,cpu_percent,minor_faults,major_faults,threads\n" +
		rows.map((i) => `${stamp(i)},${10000 + 100 * i},90000,50,${1000 * i},0,${3 + i % 2}\n`).join(""));
	writeFileSync(join(at, "summary.json"), JSON.stringify({ version: "0", start: "2026-11-21T10:00:00+00:00", duration_ns: seconds * 1e9, end: "duration", sources: { oncpu: { state: "ok" } },
		verdict: { kind: "cpu-bound", sentence: "web is CPU-bound: " + evil[0], next: evil[1] }, target: { processes: [{ pid: 7, comm: evil[2], cmdline: evil[4] }] },
		time: { wall_ns: 2e9 * seconds, oncpu_ns: 5e8 * seconds, blocked_ns: 1e9 * seconds, runnable_ns: 1e8 }, notes: evil, diagnoses: [], labels: { team: evil[0] },
		oncpu: { samples: 65, hz: 99, top_self: [{ function: evil[0], module: "m", self: 40, total: 50 }] },
		stacks: [{ source: "oncpu", complete: 60, truncated: 3, guessed: 0, no_table: 2, unreadable: 0, lost: 0 }], drops: [{ name: "b", count: 12, help: evil[3] }],
		offcpu: { waits: [{ function: evil[0], module: "libc.so.6", comm: "web", kernel: "do_wait", kind: "lock", role: "mutex", blocked_ns: 2e9, count: 4 }] }, ...more }));
	return at;
}

const hostile = evil.map((e) => ["main;" + e, 20]);
const wait = (fn, ns, count) => ({ function: fn, module: "web", comm: "web", kernel: "futex_wait", kind: "lock", role: "mutex", blocked_ns: ns, count });
const before = make_run("before", { seconds: 40, work: [["main;handle;parse", 800], ["main;handle;render", 400], ["main;handle;old_path", 400, 0, 20], ...hostile],
	allocated: [["main;handle;parse;malloc", 4000], ["main;old_path;malloc", 1000], ["main;" + evil[0] + ";malloc", 10]],
	more: { offcpu: { waits: [wait("take", 4e9, 40), wait("old_wait", 1e9, 10)] } } });
const after = make_run("after", { seconds: 20, work: [["main;handle;parse", 800], ["main;handle;render", 200], ["main;handle;new_path", 200], ...hostile],
	allocated: [["main;handle;parse;malloc", 4000], ["main;new_path;malloc", 500], ["main;" + evil[0] + ";malloc", 5]],
	more: { offcpu: { waits: [wait("take", 4e9, 40), wait("new_wait", 5e8, 10)] }, drops: [{ name: "b", count: 600, help: evil[3] }],
		verdict: { kind: "lock-bound", sentence: "web is held up by a lock" } } });
const runs = [0, 1, 2].map((i) => [make_run("a" + i, { seconds: 20, work: [["main;handle;parse", 300 + 4 * i], ["main;steady", 200 + 10 * i]], allocated: [["main;keep;malloc", 100 + i]] }),
	make_run("b" + i, { seconds: 20, work: [["main;handle;parse", 600 + 5 * i], ["main;steady", 205 + 10 * i]], allocated: [["main;keep;malloc", 101 + i]] })]);

/* What memscope printed, with the page written beside. */
function diff(...args) {
	const r = spawnSync(memscope, ["diff", ...args], { encoding: "utf8", cwd: dir, maxBuffer: 1 << 26 });
	if (r.status !== 0)
		throw new Error("memscope diff " + args.join(" ") + ": " + r.stderr);
	return r.stdout;
}

async function open(file, fragment = "", options = {}) {
	if (page)
		await page.context().close();
	const context = await browser.newContext({ viewport: { width: 1240, height: 900 }, timezoneId: "UTC", ...options });
	page = await context.newPage();
	page.setDefaultTimeout(20000);
	errors = [];
	page.on("pageerror", (e) => errors.push(e.message));
	page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
	page.on("request", (r) => r.url().startsWith("file:") || errors.push("asked for " + r.url()));
	await page.goto("file://" + join(dir, file) + fragment);
	await shown();
}

const shown = () => page.waitForFunction(() => {
	const pane = document.querySelector("main > section:not([hidden])");
	return pane && !pane.hasAttribute("aria-busy");
});
const tab = async (name) => {
	await page.getByRole("tab", { name, exact: true }).click();
	await shown();
};
const text = (selector) => page.locator(selector).first().textContent();
/* The texts of the n-th table of a pane, a row each. */
const table = (pane, n = 0) => page.evaluate(([p, k]) => [...document.querySelectorAll(`#pane-${p} .table`)[k].querySelectorAll("tbody tr")]
	.map((tr) => [...tr.cells].map((c) => c.textContent)), [pane, n]);
/* The figures of the frame in focus; their noise is there once the page's rows are read. */
const figures_are = (want) => page.waitForFunction((source) => new RegExp(source).test(document.querySelector(".flame-figures").textContent), want.source)
	.catch(async () => { throw new Error(`figures: ${await text(".flame-figures")}, wanted ${want}`); });
const choose = async (selector, option) => {
	await page.locator(selector).selectOption(option);
	await shown();
};
const PANES = ["Overview", "Timeline", "Flame graph", "Composition", "Heap", "Sites", "Source", "Waits and locks", "Threads and sizes", "Losses"];

diff(before, after, "-o", "ab.html");
const has_charts = readFileSync(join(dir, "ab.html"), "utf8").includes("leeoniya/uPlot");

/* --- every pane ------------------------------------------------------------------------------------------------ */

test("every pane of a report shows two sides without an error, and nothing is asked for", async () => {
	await open("ab.html");
	equal(await page.getByRole("tab").allTextContents(), PANES, "tabs");
	for (const name of PANES) {
		await tab(name);
		equal((await page.locator("main > section:not([hidden]) p.trouble[role=alert]").allTextContents()).filter(Boolean), [], name + ": trouble");
	}
	equal(errors, [], "errors");
});

test("names of both sides' targets are inert in every pane, and no pane is wider than the window", async () => {
	for (const width of [390, 1240]) {
		await open("ab.html", "", { viewport: { width, height: 800 } });
		for (const name of PANES) {
			await tab(name);
			equal(await page.evaluate(() => [window.broken, document.querySelectorAll("main img, main script").length]), [null, 0], name);
			ok(!/[\u202a-\u202e\u2066-\u2069\u0007\u001b]/.test(await page.evaluate(() => document.body.innerText)), name + " shows control or direction characters");
			const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
			ok(wide <= 0, `${name} is ${wide} px wider than a window of ${width} px`);
		}
		equal(errors, [], "errors");
	}
});

/* --- figures ----------------------------------------------------------------------------------------------------- */

/* By function what the page's own samples add up to, with its factors; and each source's totals. */
const sums_of_page = () => page.evaluate(async () => {
	const d = compare.begin(JSON.parse(document.getElementById("run").textContent)), out = {};
	for (const p of d.run.profiles) {
		const type = p.types.findIndex((t) => d.comparison.figure(p.id, t) && t.name === p.types[p.shown_type].name), profile = await d.load(p);
		const model = new flame_model.Model(profile), tree = model.tree({}), weights = flame_compare.split(profile.samples.values[type], profile, d.comparison.factors(p.id, p.types[type], null));
		flame_compare.sum_up(tree, weights, "both");
		const two = tree.sides.map((side, k) => model.functions_of(tree, weights[k], side)), functions = {};
		for (let f = 0; f < model.functions.n; f++)
			functions[model.name(f)] = { self: two.map((s) => s.self[f]), total: two.map((s) => s.total[f]) };
		out[p.id] = { total: tree.sides.map((side) => side[0]), functions };
	}
	return out;
});

const near = (got, want, what) => ok(Math.abs(got - want) <= 1e-9 * Math.max(1, Math.abs(want)), `${what}: the page has ${got}, diff --json ${want}`);

test("totals and functions of the page are those of diff --json, however it is scaled, of one run a side and of several", async () => {
	const several = [...runs.map((r) => r[0]), "--", ...runs.map((r) => r[1])];
	for (const [operands, options] of [[[before, after], []], [[before, after], ["--normalize"]], [[before, after], ["--absolute"]], [several, []], [several, ["--normalize"]]]) {
		const json = JSON.parse(diff("--json", "-n", "1000", ...options, "-o", "x.html", ...operands)), what = options.join(" ") + (operands.length > 2 ? " several" : "");
		await open("x.html");
		const sums = await sums_of_page();
		equal(Object.keys(sums).sort(), json.profiles.map((p) => p.source).sort(), what + ": sources");
		for (const p of json.profiles) {
			p.total.forEach((v, k) => near(sums[p.source].total[k], v, `${what} ${p.source}: total`));
			/* Allocations are charged to who asked; those selfs are in no frame. The page cuts names of 10 kB. */
			for (const r of p.source === "oncpu" ? p.rows.filter((x) => x.function.length < 4000) : [])
				for (const key of ["self", "total"])
					r[key].forEach((v, k) => near((sums[p.source].functions[r.function] || { self: [0, 0], total: [0, 0] })[key][k], v, `${what} ${r.function.slice(0, 20)}: ${key}`));
		}
	}
});

test("the page's rows are diff --json's, with verdicts and noise", async () => {
	const json = JSON.parse(diff("--json", "-n", "1000", before, after));
	await open("ab.html", "#pane=sites");
	const rows = await page.evaluate(async () => {
		const d = compare.begin(JSON.parse(document.getElementById("run").textContent)), p = d.run.profiles.find((x) => x.id === "oncpu");
		return d.comparison.rows_of(d.comparison.figure("oncpu", p.types[p.shown_type]), "functions");
	});
	equal(rows, json.profiles.find((p) => p.source === "oncpu").rows, "rows");
});

/* --- panes ----------------------------------------------------------------------------------------------------------- */

test("the overview has both verdicts, says what changed and by how much more than noise, and warns of different losses", async () => {
	await open("ab.html");
	const overview = await text("#pane-overview");
	for (const part of ["From cpu-bound to lock-bound", "web is CPU-bound", "web is held up by a lock", "Durations differ, 40.0 s and 20.0 s", "compared per second",
		"figures may not be comparable", "With one run a side"])
		ok(overview.includes(part), "missing: " + part);
	const changed = await page.evaluate(() => [...document.querySelectorAll("#pane-overview .verdict table tbody tr")].map((tr) => [tr.cells[0].textContent, tr.cells[5].textContent,
		tr.querySelector("button").textContent]));
	ok(changed.some((r) => r[0] === "on-CPU" && r[1] === "added" && r[2] === "new_path"), "new_path: " + JSON.stringify(changed).slice(0, 300));
	ok(changed.some((r) => r[0] === "on-CPU" && r[1] === "removed" && r[2] === "old_path"), "old_path");
	ok(!changed.some((r) => r[2] === "render"), "render has the same rate, and did not change");
	await page.getByRole("button", { name: "new_path" }).first().click();
	await shown();
	equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true", "its callers and callees are shown");
});

test("the flame graph has what only one side has, says each frame's change, and is as wide as was chosen", async () => {
	await open("ab.html", "#pane=flame");
	const graph = page.locator(".flame-scroll").first(), figures = () => text(".flame-figures"), name = () => text(".flame-title");
	await page.getByLabel("Value", { exact: true }).selectOption({ label: "samples" });
	/* 800 in 40 s are 400 in 20 s. */
	await page.locator(".flame-table button.flame-name", { hasText: /^parse$/ }).click();
	await page.waitForFunction(() => document.querySelector(".flame-title").textContent === "parse");
	await figures_are(/^400 \u2192 800, \+400 \(\+100\.0%\) \u00b1 /);
	for (const [fn, want] of [["old_path", /^200 \u2192 0, \u2212200 \(gone\)/], ["new_path", /^0 \u2192 200, \+200 \(new\)/], ["render", /^200 \u2192 200, no change/]]) {
		await page.getByLabel("Form", { exact: true }).selectOption("calls");
		await page.getByLabel("Search for functions; after module: or file: for those").fill(fn);
		await page.getByRole("button", { name: "The next match" }).click();
		equal(await name(), fn, "the match");
		await figures_are(want);
		ok(/matched/.test(await text("#flame-matched")), "matched: " + await text("#flame-matched"));
	}
	await page.getByLabel("Search for functions; after module: or file: for those").fill("");
	const widths = async (width) => {
		await page.getByLabel("Width", { exact: true }).selectOption(width);
		await graph.focus();
		await page.keyboard.press("Home");
		const seen = new Set();
		for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", ...Array(12).fill("ArrowLeft"), ...Array(12).fill("ArrowRight")]) {
			await page.keyboard.press(key);
			seen.add(await name());
		}
		return ["old_path", "new_path"].filter((n) => seen.has(n));
	};
	equal([await widths("both"), await widths("before"), await widths("after")], [["old_path", "new_path"], ["old_path"], ["new_path"]], "what is wide enough to be reached");
	for (const [label, value] of [["Form", "leaves"], ["Colours", "change"], ["Colours", "module"], ["Colours", "kind"], ["Colours", "sure"], ["Root by", "thread"]]) {
		if (await page.getByLabel(label, { exact: true }).isVisible())
			await page.getByLabel(label, { exact: true }).selectOption(value);
		ok(/ \u2192 /.test(await figures()), `${label} ${value}: ${await figures()}`);
	}
	equal(errors, [], "errors");
});

test("of a selected time both sides have the same seconds, in the flame graph as in the composition", async () => {
	await open("ab.html", "#pane=flame&time=0-10");
	ok((await text(".flame-note")).includes("nothing is scaled"), await text(".flame-note"));
	ok(/^\S+ .*\u2192/.test(await text(".flame-figures")), "figures");
	/* Before: 200 of parse, 100 of render, 200 of old_path and 5 of each of five names; after: 400, 100, 100 and 10. */
	await page.getByLabel("Value", { exact: true }).selectOption({ label: "samples" });
	await figures_are(/^525 \u2192 650,/);
	await tab("Composition");
	await choose("#parts-of", { label: "on-CPU: samples (count)" });
	await page.waitForFunction(() => [...document.querySelectorAll("#pane-composition .table tbody tr")].some((tr) => /parse/.test(tr.cells[2].textContent) && tr.cells[3].textContent === "200"));
	/* A page without charts has their figures as tables, too. */
	const parts = await page.evaluate(() => [...document.querySelectorAll("#pane-composition .table")].findIndex((t) => !t.closest("figure")));
	const rows = (await table("composition", parts)).map((r) => [r[2].replace(/ \[.*/, ""), r[3], r[4]]);
	ok(rows.some((r) => JSON.stringify(r) === '["parse","200","400"]') && rows.some((r) => JSON.stringify(r) === '["old_path","200","0"]'), JSON.stringify(rows).slice(0, 400));
	await page.keyboard.press("Escape");
	/* Of the whole run what was before is scaled to the seconds after. */
	await page.waitForFunction(() => [...document.querySelectorAll("#pane-composition .table tbody tr")].some((tr) => /parse/.test(tr.cells[2].textContent) && tr.cells[3].textContent === "400"));
});

test("the composition has both sides in the same colours and order, and a part is hidden on both", async () => {
	await open("ab.html", "#pane=composition");
	equal(await page.locator("#pane-composition .pair > figure").count(), 2, "charts");
	const titles = await page.locator("#pane-composition .pair .what").allTextContents();
	ok(titles[0].startsWith("Before: ") && titles[1].startsWith("After: "), titles.join());
	await choose("#parts-as", "lines");
	await choose("#parts-by", "module");
	await choose("#parts-by", "site");
	await choose("#parts-n", "5");
	await page.locator("#pane-composition .swatch").first().click();
	equal(await page.locator("#pane-composition .swatch").first().getAttribute("aria-pressed"), "false", "hidden");
	await page.locator("#pane-composition .unfold").first().click();
	ok(await page.locator("#pane-composition .stack li").count() > 0, "the part's stack");
	equal(errors, [], "errors");
});

if (has_charts)
	test("the timeline draws both sides on one axis, a drag selects for all panes, and a click says what both had then", async () => {
		await open("ab.html", "#pane=timeline");
		const titles = await page.locator("#pane-timeline .chart .what").allTextContents();
		ok(titles.includes("On a CPU") && titles.includes("Memory") && titles.includes("Allocation rate"), titles.join());
		await page.locator("#pane-timeline .chart").first().locator(".legend .item").nth(1).waitFor(); /* drawn once the chart has a width */
		equal(await page.locator("#pane-timeline .chart").first().locator(".legend .item").allTextContents().then((l) => l.map((s) => s.trim())), ["Before", "After"], "legend");
		const over = page.locator("#pane-timeline .u-over").first(), box = await over.boundingBox();
		await page.mouse.click(box.x + box.width / 40 * 5.5, box.y + 30);
		await page.waitForFunction(() => /in this second/.test((document.querySelector("#pane-timeline .moment") || document.body).textContent));
		const rows = await table("timeline", await page.evaluate(() => [...document.querySelectorAll("#pane-timeline .table")].indexOf(document.querySelector("#pane-timeline .moment .table"))));
		ok(rows.some((r) => /^parse/.test(r[0])), JSON.stringify(rows).slice(0, 300));
		await page.mouse.move(box.x + box.width / 4, box.y + 30);
		await page.mouse.down();
		await page.mouse.move(box.x + box.width / 2, box.y + 30, { steps: 5 });
		await page.waitForFunction(() => /to 2\d/.test(document.querySelector("#range").textContent) || /to 1\d/.test(document.querySelector("#range").textContent));
		await page.mouse.up();
		equal(errors, [], "errors");
	});

test("sites are sorted by change, filtered by text and by what they are, and unfold", async () => {
	await open("ab.html", "#pane=sites");
	await choose("#sites-of", { label: "on-CPU: samples (count)" });
	let rows = await table("sites");
	equal(rows.slice(0, 3).map((r) => [r[1].split(" ")[0].replace(/web$/, ""), r[2], r[3], r[4], r[7]]).sort(), [["new_path", "0", "200", "+200", "added"], ["old_path", "200", "0", "\u2212200", "removed"],
		["parse", "400", "800", "+400", "more"]], "largest changes");
	ok(rows.find((r) => r[1].startsWith("parse"))[6] !== "", "an interval");
	await choose("#sites-what", "removed");
	equal((await table("sites")).length, 1, "those that were removed");
	await choose("#sites-what", "all");
	await page.getByLabel("Filter sites").fill("render");
	rows = await table("sites");
	equal([rows.length, rows[0][7]], [1, "equal"], "filtered");
	await page.getByLabel("Filter sites").fill("");
	await choose("#sites-by", "stacks");
	await page.locator("#pane-sites .unfold").first().click();
	const stack = await page.locator("#pane-sites .stack li").allTextContents();
	equal(stack.slice(1), ["handle", "main"], "a stack, leaf first");
	await page.waitForFunction(() => /by=stacks/.test(location.hash)); /* the address follows once things are quiet */
	const hash = new URL(page.url()).hash;
	await open("ab.html", hash);
	ok(/by stack/.test(await text("#pane-sites caption")), "the address has the choice");
});

test("lines of source are compared by what they cost themselves, in the selected time as well", async () => {
	await open("ab.html", "#pane=source");
	const parse = async () => (await table("source")).find((r) => r[1] === "parse").slice(1, 6);
	equal(await parse(), ["parse", "400", "800", "+400", "+100.0%"], "of all of the time");
	ok((await table("source")).every((r) => /^web\.c:\d+\/src\/web\.c$/.test(r[0])), "files and lines");
	await page.keyboard.press("2");
	await shown();
	await page.locator("#time-to").fill("10");
	await page.locator("#time-to").press("Enter");
	await tab("Source");
	await page.waitForFunction(() => /in the selected time/.test(document.querySelector("#pane-source caption").textContent));
	equal(await parse(), ["parse", "200", "400", "+200", "+100.0%"], "of ten seconds");
	await choose("#lines-of", "alloc");
	ok(/^allocations/.test(await text("#pane-source caption")), await text("#pane-source caption"));
	equal(errors, [], "errors");
});

test("tables have what was before, after and the change; what one list lacks is not called gone", async () => {
	await open("ab.html", "#pane=waits");
	const rows = await table("waits"), take = rows.find((r) => r[0].startsWith("take"));
	/* 4 s of 40 are 2 s of 20. */
	equal(take.slice(-7, -2).filter((c) => c !== ""), ["2.0 s", "4.0 s", "+2.0 s", "+100.0%", "higher"], "take: " + take.join("|"));
	ok(rows.some((r) => r[0].startsWith("old_wait") && r.includes("only before")) && rows.some((r) => r[0].startsWith("new_wait") && r.includes("only after")), "one side alone");
	await page.locator("#pane-waits").getByRole("button", { name: "Change" }).first().click();
	await tab("Threads and sizes");
	ok((await text("#pane-tables")).includes("Threads"), "threads");
	await tab("Losses");
	ok((await text("#pane-losses")).includes("figures may not be comparable") && (await text("#pane-losses")).includes("Lost 6 before and 600 after"), await text("#pane-losses"));
	await tab("Heap");
	ok((await page.locator("#pane-heap .chart .what").allTextContents()).includes("RSS"), "RSS of both");
});

test("of several runs a side changes are held against how much runs differ", async () => {
	diff(...runs.map((r) => r[0]), "--", ...runs.map((r) => r[1]), "-o", "several.html");
	await open("several.html", "#pane=flame");
	const search = page.getByLabel("Search for functions; after module: or file: for those");
	await page.getByLabel("Value", { exact: true }).selectOption({ label: "samples" });
	for (const [fn, want] of [["parse", /^304 \u2192 605, \+301 \(\+99\.0%\) \u00b1 /], ["steady", /^210 \u2192 215, \+5 \(\+2\.4%\), within noise \(\u00b1 /]]) {
		await search.fill(fn);
		await page.getByRole("button", { name: "The next match" }).click();
		await figures_are(want);
	}
	ok((await text(".flame-note")).includes("Means of 3 runs before and 3 after"), await text(".flame-note"));
	for (const name of PANES) {
		await tab(name);
		equal((await page.locator("main > section:not([hidden]) p.trouble[role=alert]").allTextContents()).filter(Boolean), [], name + ": trouble");
	}
	ok((await text("#facts")).includes("Before: 3 runs"), await text("#facts"));
	equal(errors, [], "errors");
});

test("profiles without a run, and a run beside a profile file, have a page as well", async () => {
	for (const [operands, panes] of [[[join(before, "oncpu.pb.gz"), join(after, "oncpu.pb.gz")], 3], [[before, join(after, "oncpu.pb.gz")], 3], [[join(before, "alloc.pb.gz"), after], 3]]) {
		diff(...operands, "-o", "files.html");
		await open("files.html");
		const tabs = await page.getByRole("tab").allTextContents();
		ok(tabs.length >= panes && tabs.includes("Flame graph") && tabs.includes("Sites"), tabs.join());
		for (const name of tabs)
			await tab(name);
		equal(errors, [], operands.join(" ") + ": errors");
	}
});

test("keys choose panes and colours, and the address keeps what is shown", async () => {
	await open("ab.html");
	await page.keyboard.press("3");
	await shown();
	equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true", "3");
	await page.getByLabel("Width", { exact: true }).selectOption("after");
	await page.getByLabel("Colours", { exact: true }).selectOption("change");
	await page.locator(".flame-scroll").focus();
	await page.keyboard.press("t");
	equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark", "theme");
	await page.waitForFunction(() => /width=after/.test(location.hash) && /colors=change/.test(location.hash));
	const hash = new URL(page.url()).hash;
	await open("ab.html", hash);
	equal([await page.getByLabel("Width", { exact: true }).inputValue(), await page.getByLabel("Colours", { exact: true }).inputValue()], ["after", "change"], "restored");
	await page.keyboard.press("?");
	ok(await page.locator("#keys").isVisible(), "list of keys");
});

await run_tests(browser);
