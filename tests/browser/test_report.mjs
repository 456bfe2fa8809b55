/* report.html in a browser: opens under its own policy, one time for all panes, tables, keys, the address; names are inert. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { dir, equal, launch, ok, run, run_tests, test } from "./chromium.mjs";
import { pprof } from "./report_fixture.mjs";

const browser = await launch();
const evil = ["<script>window.broken=1</script>", "<img src=x onerror=window.broken=1>", "\u202egnp.exe", "a\u0007\u001b[2Jb", "x".repeat(10000)];
const START = Date.parse("2026-11-21T10:00:00Z") / 1000;
let page, errors;

/* --- a run's directory ------------------------------------------------------------------------------------ */

const stamp = (s) => new Date((START + s) * 1000).toISOString().slice(0, 19).replace("T", " ");

/* A run of 40 s that allocates more and more. */
function make_run(name) {
	const at = join(dir, name), rows = Array.from({ length: 41 }, (x, i) => i);
	mkdirSync(at, { recursive: true });
	const stacks = ["web;main;handle;parse", "web;main;handle;render", "web;main;idle", ...evil.map((e) => "web;main;" + e)];
	writeFileSync(join(at, "in.folded"), stacks.map((s) => s + " 40\n").join(""));
	run("convert", join(at, "in.folded"), "-o", join(at, "oncpu.pb.gz"));
	/* One of each stack's samples in each second. */
	writeFileSync(join(at, "oncpu.times.csv.gz"), gzipSync(`# ${stacks.length} samples, in bins of 1 s\nsample,second,samples/count\n` +
		rows.slice(0, 40).map((i) => stacks.map((s, k) => `${k},${i},1\n`).join("")).join("")));
	writeFileSync(join(at, "trend.csv"), "timestamp,rss_kb,vsz_kb,cpu_percent,minor_faults,major_faults,threads\n" +
		rows.map((i) => `${stamp(i)},${10000 + 100 * i},90000,${i < 20 ? 10 : 90},${1000 * i},0,${3 + i % 2}\n`).join(""));
	writeFileSync(join(at, "alloc_series.csv"), `timestamp,"main;serve;parse","main;serve;render","main;${evil[0]}","main;${evil[4]}",OTHER\n` +
		rows.map((i) => `${stamp(i)},${1000 * i},${i === 30 ? 500000 : 200},7,1,50\n`).join(""));
	writeFileSync(join(at, "workload.csv"), "timestamp,name,value\n" + rows.map((i) => `${stamp(i)},"requests_total",${50 * i}\n${stamp(i)},"cpu_seconds",${.5 * i}\n`).join(""));
	writeFileSync(join(at, "summary.json"), JSON.stringify({ version: "0", start: "2026-11-21T10:00:00+00:00", duration_ns: 40e9, end: "duration",
		verdict: { kind: "cpu-bound", sentence: "web is CPU-bound: " + evil[0], next: evil[1] + " Search report.html (on-CPU flame graph) for it." }, target: { processes: [{ pid: 7, comm: evil[2], cmdline: evil[4] }] },
		time: { wall_ns: 80e9, oncpu_ns: 20e9, blocked_ns: 50e9, runnable_ns: 10e9 }, notes: evil, diagnoses: [], labels: { team: evil[0] },
		oncpu: { samples: 65, hz: 99, top_self: [{ function: evil[0], module: "m", self: 40, total: 50 }] },
		stacks: [{ source: "oncpu", complete: 60, truncated: 3, guessed: 0, no_table: 2, unreadable: 0, lost: 0 }],
		drops: [{ name: "a", count: 0, help: "nothing" }, { name: "b", count: 12, help: evil[3] }],
		offcpu: { waits: Array.from({ length: 40 }, (x, i) => ({ function: i ? "wait" + i : evil[0], module: "libc.so.6", comm: "web", kernel: "do_wait",
			kind: "lock", role: "mutex", blocked_ns: (i * 7919 % 40) * 1e6, count: i })) } }));
	return at;
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
	await page.goto("file://" + file + fragment);
	await shown();
}

/* The pane that is shown has been made. */
const shown = () => page.waitForFunction(() => {
	const pane = document.querySelector("main > section:not([hidden])");
	return pane && !pane.hasAttribute("aria-busy");
});
const tab = async (name) => {
	await page.getByRole("tab", { name, exact: true }).click();
	await shown();
};
const text = (selector) => page.locator(selector).first().textContent();
const column = (pane, n) => page.evaluate(([p, k]) => [...document.querySelector(`#pane-${p} .table`).querySelectorAll("tbody tr")]
	.map((tr) => tr.cells[k] && tr.cells[k].textContent), [pane, n]);

process.env.TZ = "UTC";
const at = make_run("a");
run("report", at, "-o", "a.html");
const file = join(dir, "a.html"), html = readFileSync(file, "utf8"), has_charts = html.includes("leeoniya/uPlot");

/* --- facts ------------------------------------------------------------------------------------------------- */

test("every pane opens from a file without an error, and nothing is asked for", async () => {
	await open(file);
	const tabs = await page.getByRole("tab").allTextContents();
	equal(tabs, ["Overview", "Timeline", "Flame graph", "Composition", "Heap", "Sites", "Source", "Waits and locks", "Threads and sizes", "Losses"], "tabs");
	for (const name of tabs) {
		await tab(name);
		equal((await page.locator("main > section:not([hidden]) p.trouble[role=alert]").allTextContents()).filter(Boolean), [], name + ": trouble");
	}
	equal(errors, [], "errors");
});

test("names of targets are text: none runs, none is drawn as markup, none turns the text around", async () => {
	await open(file);
	for (const name of await page.getByRole("tab").allTextContents()) {
		await tab(name);
		equal(await page.evaluate(() => [window.broken, document.querySelectorAll("main img, main script").length]), [null, 0], name);
		const body = await page.evaluate(() => document.body.innerText);
		ok(!/[\u202a-\u202e\u2066-\u2069\u0007\u001b]/.test(body), name + " shows control or direction characters");
		const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
		ok(wide <= 0, `${name} is ${wide} px wider than the window`);
	}
	ok((await text("#facts")).includes("team=<script>"), "the label is shown as it is");
	equal(errors, [], "errors");
});

test("the verdict comes first, with what to look at", async () => {
	await open(file);
	ok((await text("#pane-overview .sentence")).startsWith("web is CPU-bound"), "verdict");
	await page.getByRole("button", { name: "the on-CPU flame graph", exact: true }).click();
	await shown();
	equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true", "the graph that it names");
	await tab("Overview");
	await page.getByRole("button", { name: "Show flame graph" }).click();
	await shown();
	equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true", "flame graph shown");
});

/* A run of 40 s with a fault: of 21 to 24 s `recompute` has a CPU; `send` and `reply` rise and fall together. */
function make_faults(name) {
	const at = join(dir, name), seconds = Array.from({ length: 40 }, (x, i) => i);
	const samples = { "web;main;serve": () => 30, "web;main;recompute": (i) => i >= 21 && i < 24 ? 90 : 0,
		"web;main;send": (i) => i * 7919 % 13, "web;main;reply": (i) => 2 * (i * 7919 % 13) };
	mkdirSync(at, { recursive: true });
	writeFileSync(join(at, "in.folded"), Object.entries(samples).map(([s, n]) => s + " " + seconds.reduce((sum, i) => sum + n(i), 0) + "\n").join(""));
	run("convert", join(at, "in.folded"), "-o", join(at, "oncpu.pb.gz"));
	writeFileSync(join(at, "oncpu.times.csv.gz"), gzipSync("# 4 samples, in bins of 1 s\nsample,second,samples/count\n" +
		seconds.map((i) => Object.values(samples).map((n, k) => n(i) ? `${k},${i},${n(i)}\n` : "").join("")).join("")));
	writeFileSync(join(at, "summary.json"), JSON.stringify({ version: "0", start: "2026-11-21T10:00:00+00:00", duration_ns: 40e9,
		verdict: { kind: "nothing", sentence: "Nothing." } }));
	run("report", at, "-o", name + ".html");
	return join(dir, name + ".html");
}

/* Of 40 s: `serve` waits for a lock in the seconds 10 and 11, `rest` for a timer in all; two threads. */
function make_waits(name) {
	const at = join(dir, name), second = 1e9, seconds = Array.from({ length: 40 }, (x, i) => i);
	mkdirSync(at, { recursive: true });
	const of = (tid, thread, stack, n) => ({ stack: ["main", stack[0], "futex_wait_[k]", "schedule_[k]"].map((f) => f === "futex_wait_[k]" ? stack[1] : f), values: [n, n * second],
		labels: { pid: 7, tid, comm: "web", thread } });
	writeFileSync(join(at, "offcpu.pb.gz"), gzipSync(pprof([["blocked", "count"], ["blocked", "nanoseconds"]], [of(8, "worker", ["serve", "futex_wait_[k]"], 2),
		of(9, "clock", ["rest", "do_nanosleep_[k]"], 40)], { time_ns: START * 1e9, duration_ns: 40 * second })));
	writeFileSync(join(at, "offcpu.times.csv.gz"), gzipSync("# 2 samples, in bins of 1 s\nsample,second,blocked/nanoseconds\n" + seconds.map((i) =>
		(i === 10 || i === 11 ? `0,${i},${second}\n` : "") + `1,${i},${second}\n`).join("")));
	writeFileSync(join(at, "summary.json"), JSON.stringify({ version: "0", start: "2026-11-21T10:00:00+00:00", duration_ns: 40e9, verdict: { kind: "nothing", sentence: "Nothing." },
		offcpu: { waits: [{ function: "rest", module: "web", kernel: "do_nanosleep", kind: "timer", blocked_ns: 40e9, count: 40 },
			{ function: "serve", module: "web", kernel: "futex_wait", kind: "lock", role: "unknown", blocked_ns: 2e9, count: 2 }] },
		locks: [{ name: "table_lock", function: "serve", module: "web", waited_ns: 2e9, waits: 2, owner: 9, owner_name: "clock", held_in: "rest", held_caller: "rotate" }],
		drops: [{ name: "b", count: 12, help: "lost" }] }));
	run("report", at, "-o", name + ".html");
	return join(dir, name + ".html");
}

test("a leak is named once for a function, with all its stacks", async () => {
	const at = join(dir, "leaks"), leak = { function: "keep", module: "web", growth: "leak", live_bytes: 1048576, bytes_s: 2048, low: 1024, high: 3072, since_s: 16 };
	mkdirSync(at);
	writeFileSync(join(at, "summary.json"), JSON.stringify({ version: "0", start: "2026-11-21T10:00:00+00:00", duration_ns: 40e9, verdict: { kind: "leaking", sentence: "web leaks." },
		alloc: { leaks: [leak, leak, { ...leak, function: "other" }] } }));
	run("report", at, "-o", join(dir, "leaks.html"));
	await page.goto("file://" + join(dir, "leaks.html"));
	await page.waitForSelector("#pane-overview .bad");
	const said = await page.locator("#pane-overview .bad").allTextContents();
	equal(said.length, 2, "functions");
	ok(said[0].startsWith("Leak: keep grows by 4.0 KiB/s (95% interval 2.0 KiB/s to 6.0 KiB/s), steadily since 0:16") && said[0].endsWith("2.0 MiB live."), said[0]);
});

test("waits and threads follow the selected time; what has no times says so", async () => {
	await open(make_waits("waits"), "#pane=waits&time=5-11");
	equal(await column("waits", 0), ["restweb", "serveweb"], "waits");
	equal([await column("waits", 4), await column("waits", 5)], [["40.0 s", "2.0 s"], ["6.0 s", "1.0 s"]], "blocked, in all and in the selected time");
	ok((await text("#pane-waits > p")).includes("have no times"), "what does not follow");
	ok((await page.locator("#pane-waits").textContent()).includes("rest \u2190 rotate"), "where the lock was held");
	await tab("Overview");
	ok((await text(".moments tbody")).includes("waited for a lock (futex) held by clock in rest \u2190 rotate"), "who held it: " + await text(".moments tbody"));
	await tab("Threads and sizes");
	equal(await column("tables", 0), ["worker (tid 8)", "clock (tid 9)"], "threads");
	equal(await column("tables", 3), ["1.0 s", "6.0 s"], "blocked in the selected time");
	await page.keyboard.press("Escape");
	equal(await column("tables", 3), ["2.0 s", "40.0 s"], "of all of the run");
	await tab("Losses");
	ok((await page.locator("#pane-losses").textContent()).includes("does not follow the selected time"), "losses");
	equal(errors, [], "errors");
});

if (has_charts)
	test("the timeline has waits by what they are for", async () => {
		await open(join(dir, "waits.html"), "#pane=timeline");
		const chart = page.locator("#pane-timeline figure").filter({ hasText: "Waiting threads" });
		await chart.locator(".legend .item").nth(1).waitFor(); /* drawn once the chart has a width */
		await chart.locator(".legend .item").nth(1).waitFor();
		equal((await chart.locator(".legend .item").allTextContents()).map((t) => t.trim()), ["a timer", "a lock (futex)"], "kinds");
		await chart.locator("summary").click();
		await chart.locator("tbody tr").nth(12).waitFor();
		const rows = await chart.locator("tbody tr").evaluateAll((all) => all.slice(9, 13).map((tr) => [...tr.cells].map((c) => c.textContent)));
		equal(rows.map((r) => r[2]), ["0.00 threads", "1.00 threads", "1.00 threads", "0.00 threads"], "threads that wait for the lock");
	});

test("what stands out in time is named first, and leads to the stacks of that time", async () => {
	await open(make_faults("faults"));
	const row = page.locator(".moments tbody tr");
	equal(await row.count(), 1, "moments");
	const cells = await row.locator("td, th").allTextContents();
	ok(cells[0].startsWith("0:21 to 0:24") && cells[1].startsWith("recompute"), "moment: " + cells);
	await row.getByRole("button").click();
	await shown();
	ok(/^Time 21\.0 s.* to 24\.0 s/.test(await text("#range")), "selected: " + await text("#range"));
	await page.waitForFunction(() => document.querySelector("#pane-flame .rows, #pane-flame table tbody tr"));
	ok((await text("#pane-flame table tbody tr")).includes("recompute"), "most of that time: " + await text("#pane-flame table tbody tr"));
	equal(errors, [], "errors");
});

test("rows that rise and fall together are marked, and one with a burst", async () => {
	await open(join(dir, "faults.html"), "#pane=sites");
	const of = async (name) => (await page.locator("#pane-sites tbody tr").filter({ hasText: name }).locator(".mark").allTextContents());
	const rank = async (name) => +(await page.locator("#pane-sites tbody tr").filter({ hasText: name }).locator("td").nth(1).textContent());
	equal(await of("send"), ["with " + await rank("reply")], "send");
	equal(await of("reply"), ["with " + await rank("send")], "reply");
	equal(await of("recompute"), ["burst"], "recompute");
	equal(await of("serve"), [], "serve");
});

test("a time that is selected is selected in every pane, in the address and after it is opened again", async () => {
	await open(file, "#pane=timeline");
	await page.locator("#time-from").fill("10");
	await page.locator("#time-from").press("Enter");
	await page.locator("#time-to").fill("20");
	await page.locator("#time-to").press("Enter");
	ok(/^Time 10\.0 s \(10:00:10\) to 20\.0 s/.test(await text("#range")), "range: " + await text("#range"));
	await tab("Sites");
	const selected = await column("sites", 4), all = await column("sites", 5);
	ok(selected[0] !== all[0], `the table does not follow: ${selected[0]} of ${all[0]}`);
	await page.waitForTimeout(250);
	const hash = new URL(page.url()).hash;
	ok(hash.includes("time=10-20"), "address: " + hash);
	await open(file, hash);
	equal(await column("sites", 4), selected, "the same table after it is opened again");
	await page.keyboard.press("Escape");
	equal(await text("#range"), "", "range after Esc");
	equal(await column("sites", 4), all, "the table of the whole run");
});

if (has_charts)
	test("dragging over a chart selects its time, and the other charts show it", async () => {
		await open(file, "#pane=timeline");
		const over = page.locator("#pane-timeline .u-over").first(), box = await over.boundingBox();
		await page.mouse.move(box.x + box.width / 4, box.y + 30);
		await page.mouse.down();
		await page.mouse.move(box.x + box.width / 2, box.y + 30, { steps: 5 });
		await page.waitForFunction(() => document.querySelector("#range").textContent);
		const brushes = await page.evaluate(() => [...document.querySelectorAll("#pane-timeline .brush")].map((b) => !b.hidden && parseFloat(b.style.width)));
		ok(brushes.length > 3 && brushes.every((w) => Math.abs(w - box.width / 4) < 3), "brushes: " + brushes);
		await page.mouse.up();
		const [from, to] = (await page.locator("#pane-timeline input").evaluateAll((all) => all.map((i) => +i.value)));
		ok(Math.abs(from - 10) < .2 && Math.abs(to - 20) < .2, `from ${from} to ${to}`);
		await tab("Overview");
		await page.locator("#strip .brush").waitFor({ state: "visible" }); /* the line above the pane shows it, too */
	});

test("figures of a chart are there as a table", async () => {
	await open(file, "#pane=timeline");
	const chart = page.locator("#pane-timeline figure").filter({ hasText: "Memory" });
	if (has_charts)
		await chart.locator("summary").click();
	await chart.locator("tbody tr").first().waitFor();
	equal(await chart.locator("tbody tr").first().locator("td").allTextContents(), ["0 ns", "9.8 MiB"], "first row");
	equal(await chart.locator("tbody tr").count(), 20, "rows of a page");
});

test("counters of --series are shown as rates", async () => {
	await open(file, "#pane=timeline");
	const chart = page.locator("#pane-timeline figure").filter({ hasText: "requests_total" }).first();
	if (has_charts)
		await chart.locator("summary").click();
	await chart.locator("tbody tr").first().waitFor();
	ok((await chart.locator("tbody").textContent()).includes("50/s"), "50 requests a second");
	const cost = page.locator("#pane-timeline figure").filter({ hasText: "CPU time for each of requests_total" });
	if (has_charts)
		await cost.locator("summary").click();
	await cost.locator("tbody tr").nth(2).waitFor();
	equal(await cost.locator("tbody tr").nth(2).locator("td").last().textContent(), "10.0 ms", "CPU time of a request");
});

test("composition adds up to the whole, whatever is shown", async () => {
	await open(file, "#pane=composition&n=5");
	const shares = (await page.locator("#pane-composition > div:last-child tbody tr > :nth-child(4)").allTextContents()).map((s) => parseFloat(s.replace("<", "")));
	ok(Math.abs(shares.reduce((a, b) => a + b, 0) - 100) < .5, "shares: " + shares);
	const first = page.locator("#pane-composition .swatch").first();
	await first.click();
	equal(await first.getAttribute("aria-pressed"), "false", "hidden");
});

test("parts of a profile are its values, of all of the time and of what is selected", async () => {
	await open(file, "#pane=composition&of=oncpu%2Fsamples%2Fcount");
	const total = () => page.locator("#pane-composition > div:last-child tbody tr > :nth-child(5)").allTextContents();
	equal(await total(), Array(8).fill("40"), "of all of the run");
	await open(file, "#pane=composition&of=oncpu%2Fsamples%2Fcount&n=5&time=10-20");
	equal(await total(), ["30", ...Array(5).fill("10")], "of ten seconds; three are in OTHER");
	await tab("Sites");
	await page.locator("#sites-of").selectOption("oncpu");
	await page.waitForFunction(() => document.querySelectorAll("#pane-sites tbody tr").length === 8);
	equal([(await column("sites", 4))[0], (await column("sites", 5))[0]], ["10", "40"], "selected and total of a site");
});

if (has_charts)
	test("a click on a spike names the stacks behind it", async () => {
		await open(file, "#pane=composition");
		const box = await page.locator("#pane-composition .u-over").boundingBox();
		await page.mouse.click(box.x + box.width * 30 / 40, box.y + 40);
		const names = await page.locator("#pane-composition [aria-live] tbody th, #pane-composition [aria-live] tbody td.name").allTextContents();
		ok(names[0].startsWith("render"), "largest then: " + names.slice(0, 3));
		await page.locator("#pane-composition").getByRole("button", { name: "Flame graph of this time" }).click();
		await shown();
		ok(/^Time (29|30)\.[05]00 to|^Time 30\.0/.test(await text("#range")), "selected: " + await text("#range"));
	});

if (has_charts)
	test("a click on a chart of the timeline selects that second, names its functions and leads to their stacks", async () => {
		await open(file, "#pane=timeline");
		const chart = page.locator("#pane-timeline figure").filter({ hasText: "Memory" }), box = await chart.locator(".u-over").boundingBox();
		await page.mouse.click(box.x + box.width * 12.5 / 40, box.y + 40);
		const found = page.locator("#pane-timeline .moment");
		await found.waitFor();
		ok((await found.locator("caption").textContent()).startsWith("At 0:12"), "when: " + await found.locator("caption").textContent());
		equal(await found.locator("tbody tr").count(), 6, "functions of a page");
		equal(await page.locator("#pane-timeline input").evaluateAll((all) => all.map((i) => +i.value)), [12, 13], "selected");
		await found.getByRole("button", { name: /^Flame graph/ }).click();
		await shown();
		equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true", "flame graph shown");
		equal(errors, [], "errors");
	});

test("tables sort, filter, turn pages and unfold by keyboard alone", async () => {
	await open(file, "#pane=waits");
	const head = page.locator("#pane-waits th", { hasText: "Times" }).first();
	const blocked = (await column("waits", 4)).map(parseFloat);
	equal(blocked, [...blocked].sort((a, b) => b - a), "sorted by time blocked at first");
	await head.locator("button").focus();
	await page.keyboard.press("Enter");
	equal(await head.getAttribute("aria-sort"), "descending", "aria-sort");
	equal((await column("waits", 5)).slice(0, 3), ["39", "38", "37"], "sorted by times");
	await page.keyboard.press("Enter");
	equal(await head.getAttribute("aria-sort"), "ascending", "aria-sort");
	ok((await text("#pane-waits .pager p")).includes("1 to 25 of 40"), "page");
	await page.getByRole("button", { name: "Next" }).first().click();
	equal((await column("waits", 0)).length, 15, "rows of the second page");
	await page.getByLabel("Filter").first().fill("wait13");
	equal(await column("waits", 0), ["wait13libc.so.6"], "filtered");
	await open(file, "#pane=sites");
	const unfold = page.locator("#pane-sites .unfold").first();
	await unfold.focus();
	await page.keyboard.press("Enter");
	equal(await unfold.getAttribute("aria-expanded"), "true", "aria-expanded");
	ok(await page.locator("#pane-sites .stack li").count() >= 2, "its stack");
});

test("keys choose panes and colours; light and dark follow the system at first", async () => {
	await open(file, "", { colorScheme: "dark" });
	const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	const dark = await ground();
	await page.keyboard.press("t");
	ok(await ground() !== dark, "the colours did not change");
	await page.keyboard.press("2");
	await shown();
	equal(await page.locator("#tab-timeline").getAttribute("aria-selected"), "true", "second pane");
	await page.keyboard.press("]");
	equal(await page.locator("#tab-flame").getAttribute("aria-selected"), "true", "the next");
	await page.keyboard.press("?");
	ok(await page.locator("#keys").isVisible(), "list of keys");
	await page.keyboard.press("Escape");
	ok(!await page.locator("#keys").isVisible(), "it closes");
	equal(errors, [], "errors");
});

test("paper is light, and the screen is as before afterwards", async () => {
	await open(file, "#pane=timeline", { colorScheme: "dark" });
	const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor), dark = await ground();
	const [printed, after] = await page.evaluate(() => {
		window.dispatchEvent(new Event("beforeprint"));
		const paper = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
		window.dispatchEvent(new Event("afterprint"));
		return [paper, getComputedStyle(document.documentElement).getPropertyValue("--ink").trim()];
	});
	ok(printed !== after, "ink on paper is that of the dark screen: " + printed);
	equal(await ground(), dark, "ground afterwards");
	equal(errors, [], "errors");
});

test("a run with nothing to show has a page that says so", async () => {
	const empty = join(dir, "empty");
	mkdirSync(empty);
	writeFileSync(join(empty, "summary.json"), JSON.stringify({ verdict: { kind: "nothing", sentence: "Nothing was seen." } }));
	run("report", empty, "-o", "empty.html");
	await open(join(dir, "empty.html"));
	equal(await text("#pane-overview .sentence"), "Nothing was seen.", "sentence");
	equal(errors, [], "errors");
});

test("with scripts off it says where the findings are", async () => {
	const context = await browser.newContext({ javaScriptEnabled: false });
	const still = await context.newPage();
	await still.goto("file://" + file);
	ok((await still.locator("main").textContent()).includes("summary.txt"), "the page names summary.txt");
	await context.close();
});

await run_tests(browser);
