/* axe-core finds nothing serious in any pane of report.html and of a comparison, in light and dark, on a phone and on a wide screen. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { dir, install, launch, ok, run, run_tests, test } from "./chromium.mjs";
import { pprof } from "./report_fixture.mjs";

const axe = readFileSync(join(install(["axe-core"], "axe"), "axe-core", "axe.min.js"), "utf8");
const browser = await launch();
const START = Date.parse("2026-11-21T10:00:00Z") / 1000, SECOND = 1e9, seconds = Array.from({ length: 40 }, (x, i) => i);

/* A run that has something for every pane. */
function make_run() {
	const at = join(dir, "all"), meta = { time_ns: START * SECOND, duration_ns: 40 * SECOND, period: 10101010 };
	mkdirSync(at, { recursive: true });
	const in_second = (stack, i) => !stack.includes("recompute") || (i >= 20 && i < 22) ? 1 : 0;
	const profile = (id, types, stacks, each) => {
		writeFileSync(join(at, id + ".pb.gz"), gzipSync(pprof(types, stacks.map((stack, k) => ({ stack, values: [40, seconds.reduce((sum, i) => sum + in_second(stack, i), 0) * each * (k + 1)],
			labels: { pid: 7, tid: 8 + k, comm: "web", thread: "worker" } })), meta)));
		writeFileSync(join(at, id + ".times.csv.gz"), gzipSync(`# ${stacks.length} samples, in bins of 1 s\nsample,second,${types[1].join("/")}\n` +
			seconds.map((i) => stacks.map((s, k) => in_second(s, i) ? `${k},${i},${each * (k + 1)}\n` : "").join("")).join("")));
	};
	profile("oncpu", [["samples", "count"], ["cpu", "nanoseconds"]], [["main", "serve", "parse"], ["main", "serve", "sys_read_[k]"], ["main", "recompute"]], 40 * 10101010);
	profile("offcpu", [["blocked", "count"], ["blocked", "nanoseconds"]], [["main", "serve", "futex_wait_[k]"], ["main", "rest", "do_nanosleep_[k]"]], SECOND / 4);
	profile("alloc", [["alloc_objects", "count"], ["alloc_space", "bytes"]], [["main", "serve", "malloc"], ["main", "load", "malloc"]], 4096);
	const stamp = (s) => new Date((START + s) * 1000).toISOString().slice(0, 19).replace("T", " ");
	writeFileSync(join(at, "trend.csv"), "timestamp,rss_kb,vsz_kb,cpu_percent,minor_faults,threads\n" + seconds.map((i) => `${stamp(i)},${1000 + i},9000,${i},${i},3\n`).join(""));
	writeFileSync(join(at, "live_series.csv"), `timestamp,"main;load;malloc",OTHER\n` + seconds.map((i) => `${stamp(i)},${1000 * i},50\n`).join(""));
	const site = { function: "load", module: "web", bytes: 4000, objects: 4 };
	writeFileSync(join(at, "summary.json"), JSON.stringify({ version: "0", start: "2026-11-21T10:00:00+00:00", duration_ns: 40e9, sources: { oncpu: { state: "ok" } }, verdict: { kind: "leaking", sentence: "web leaks.", next: "Look." },
		diagnoses: [{ kind: "leak", evidence: "It grows." }], time: { wall_ns: 80e9, oncpu_ns: 20e9, blocked_ns: 50e9, runnable_ns: 10e9 },
		oncpu: { samples: 65, hz: 99, top_self: [{ function: "parse", module: "web", self: 40, total: 50 }] },
		alloc: { tier: "exact", bytes: 8000, objects: 8, sites: [site], live_sites: [site], leaks: [{ function: "load", module: "web", live_bytes: 4000, bytes_s: 100, low: 90, high: 110, since_s: 3 }],
			sizes: [{ up_to_bytes: 512, blocks: 3 }], lifetimes: [{ under_ns: 10000, blocks: 4 }], temporary_sites: [site], threads: [{ pid: 7, tid: 8, name: "worker", objects: 3, bytes: 40 }] },
		offcpu: { waits: [{ function: "serve", module: "web", kernel: "futex_wait", kind: "lock", blocked_ns: 10e9, count: 40 }], endpoints: [{ name: "/var/log/x", kind: "file", seen: 3 }] },
		locks: [{ name: "table_lock", function: "serve", module: "web", waited_ns: 2e9, waits: 2 }], by_process: [{ pid: 7, comm: "web", samples: 65, cpu_ns: 1e9 }],
		stacks: [{ source: "oncpu", complete: 60, truncated: 3, guessed: 0, no_table: 2, unreadable: 0, lost: 0 }], incomplete_stacks: [{ module: "m", verdict: "no_table", events: 2 }],
		symbols: { locations: 10, symbolized: 8, worst: [{ module: "m", locations: 2, reason: "stripped" }] }, drops: [{ name: "b", count: 12, help: "lost" }], notes: ["A note."] }));
	run("report", at, "-o", "all.html");
	run("diff", at, at, "-o", "both.html");
}

make_run();

const phone = { colorScheme: "dark", viewport: { width: 390, height: 844 } };
for (const [what, file, options] of [["on a laptop, light", "all.html", { colorScheme: "light", viewport: { width: 1280, height: 900 } }],
	["on a phone, dark", "all.html", phone], ["of a comparison, on a phone, dark", "both.html", phone]])
	test("axe-core finds nothing serious in any pane " + what, async () => {
		const context = await browser.newContext(options), page = await context.newPage(), found = [];
		page.setDefaultTimeout(20000);
		await page.goto("file://" + join(dir, file));
		await page.evaluate(axe);
		ok(file !== "all.html" || await page.locator(".moments tbody tr").count() === 1, "something stands out in time");
		for (const tab of await page.getByRole("tab").all()) {
			await tab.click();
			await page.waitForFunction(() => !document.querySelector("main > section:not([hidden])[aria-busy]"));
			const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
			for (const v of violations)
				if (v.impact === "serious" || v.impact === "critical")
					found.push(`${await tab.textContent()}: ${v.id}: ${v.nodes.slice(0, 2).map((n) => n.html.slice(0, 120)).join(" | ")}`);
			const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
			if (wide > 0)
				found.push(`${await tab.textContent()}: ${wide} px wider than the window`);
		}
		await context.close();
		ok(!found.length, found.join("\n"));
	});

await run_tests(browser);
