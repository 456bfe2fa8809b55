/*
 * report.html of 10 minutes and 10,000 sites (report_page.c): its size, what it costs to make, how soon it opens, and what a
 * step of a selection costs in each pane. CPU time of the page's own thread: what others do on the machine takes none of it.
 *
 *   node tests/bench/report.mjs [SITES SECONDS BUSY]
 *   node tests/bench/report.mjs diff [SITES SECONDS BUSY]    the page of a comparison of two such runs (memscope diff -o FILE.html)
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { dir, launch } from "../browser/chromium.mjs";

const STEPS = 30;
const two = process.argv[2] === "diff", given = process.argv.slice(two ? 3 : 2);
const [sites, seconds, busy] = [given[0] || "10000", given[1] || "600", given[2] || "60"];
const file = join(dir, "big.html"), maker = join(process.env.BUILD || resolve("build"), "tests/bench/report_page");

function run(program, ...args) {
	const made = spawnSync(program, args, { encoding: "utf8", cwd: dir, maxBuffer: 1 << 26 });
	if (made.status !== 0)
		throw new Error(program + ": " + (made.stderr || made.error));
	return made.stdout;
}

function make_report() {
	const facts = JSON.parse(run(maker, sites, seconds, file, busy));
	return `${facts.sites} sites, ${facts.seconds} s, ${facts.entries} values over time in bins of ${facts.bin_s} s: ` +
		`${(statSync(file).size / 1e6).toFixed(2)} MB, made in ${facts.cpu_s} s of CPU time, at most ${facts.peak_mib} MiB resident`;
}

function make_comparison() {
	for (const [name, seed] of [["a", "1"], ["b", "2"]]) {
		mkdirSync(join(dir, name));
		run(maker, sites, seconds, join(dir, name), busy, seed);
		const times = join(dir, name, "alloc.times.csv");
		writeFileSync(times + ".gz", gzipSync(readFileSync(times)));
	}
	run(process.env.MEMSCOPE || resolve("build/memscope"), "diff", "a", "b", "-o", file);
	return `${sites} sites and ${seconds} s a side: ${(statSync(file).size / 1e6).toFixed(2)} MB`;
}

console.log((two ? make_comparison : make_report)() + "\n");
console.log("| pane | open, ms (wall) | of CPU time | of script | a step, ms of CPU time | of script |\n|---|---|---|---|---|---|");

const browser = await launch();
for (const pane of ["overview", "timeline", "flame", "composition", "sites", "source"]) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 } }), page = await context.newPage();
	const session = await context.newCDPSession(page);
	await session.send("Performance.enable", { timeDomain: "threadTicks" });
	const spent = async () => {
		const { metrics } = await session.send("Performance.getMetrics");
		return ["TaskDuration", "ScriptDuration"].map((n) => 1000 * metrics.find((m) => m.name === n).value);
	};
	const begin = Date.now();
	await page.goto("file://" + file + "#pane=" + pane);
	await page.waitForFunction((id) => {
		const element = document.getElementById("pane-" + id);
		return element && !element.hasAttribute("aria-busy") && document.querySelector(".u-over");
	}, pane);
	const open = Date.now() - begin, at_first = await spent();
	const over = page.locator(pane === "timeline" ? "#pane-timeline .u-over" : "#strip .u-over").first(), box = await over.boundingBox();
	await page.mouse.move(box.x + 50, box.y + 20);
	await page.mouse.down();
	await page.mouse.move(box.x + 70, box.y + 20);
	await page.waitForTimeout(200);
	const before = await spent();
	for (let i = 0; i < STEPS; i++) {
		await page.mouse.move(box.x + 80 + 15 * i, box.y + 20);
		await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))));
	}
	const after = await spent();
	await page.mouse.up();
	console.log(`| ${pane} | ${open} | ${at_first.map((x) => x.toFixed(0)).join(" | ")} | ` +
		`${after.map((x, i) => ((x - before[i]) / STEPS).toFixed(1)).join(" | ")} |`);
	await context.close();
}
await browser.close();
