/* speedscope imports our pprof and folded files, and finds in them what we put there. */
import { createServer } from "node:http";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { dir, flame, launch, modules, ok, equal, run, run_tests, test } from "./chromium.mjs";

const browser = await launch();
const release = join(modules, "speedscope", "dist", "release");
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/* speedscope itself, and our files under /p/. */
const server = createServer((request, response) => {
	const path = new URL(request.url, "http://x").pathname;
	const file = path.startsWith("/p/") ? join(dir, path.slice(3)) : join(release, path.slice(1) || "index.html");
	if (!existsSync(file)) {
		response.writeHead(404).end();
		return;
	}
	response.writeHead(200, { "content-type": types[extname(file)] || "application/octet-stream" });
	response.end(readFileSync(file));
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const base = "http://127.0.0.1:" + server.address().port;

/* Opens a file in speedscope; what it said, and the names of its profiles as the title shows them. */
async function opened(file) {
	const page = await (await browser.newContext({ viewport: { width: 1200, height: 800 } })).newPage();
	const said = [], errors = [];
	page.on("console", (m) => said.push(m.text()));
	page.on("pageerror", (e) => errors.push(e.message));
	await page.goto(`${base}/#profileURL=${encodeURIComponent(base + "/p/" + file)}`);
	await page.waitForFunction(() => document.querySelector("canvas") !== null &&
		document.title !== "speedscope", null, { timeout: 120000 });
	/* The sandwich view is a table of text: total, self, name. */
	await page.keyboard.press("3");
	await page.waitForSelector("table tr td");
	const rows = await page.$$eval("table tr", (all) => all.map((r) =>
		[...r.querySelectorAll("td")].map((c) => c.textContent)).filter((r) => r.length));
	const title = await page.title();
	await page.context().close();
	return { said, errors, rows, title };
}

const total = (rows, name) => rows.find((r) => r[r.length - 1].includes(name));

const lines = ["server;main;parse 30", "server;main;read;sys_read_[k] 50", "server;main 20"];
writeFileSync(join(dir, "in.folded"), lines.join("\n") + "\n");

test("folded stacks are imported with our totals", async () => {
	flame("in.folded", "-o", "out.folded");
	const s = await opened("out.folded");
	equal(s.errors, [], "page errors");
	ok(s.said.some((m) => /Importing as/.test(m)), "nothing imported: " + s.said.join(" | "));
	ok(/50/.test(total(s.rows, "sys_read_[k]")[0]), JSON.stringify(s.rows));
	ok(/20/.test(total(s.rows, "main")[1]), JSON.stringify(s.rows));
});

test("pprof is imported with our totals, showing the default value type", async () => {
	flame("in.folded", "-o", "out.pb.gz");
	const s = await opened("out.pb.gz");
	equal(s.errors, [], "page errors");
	ok(s.said.some((m) => /Importing as protobuf/.test(m)), "not as pprof: " + s.said.join(" | "));
	ok(/50/.test(total(s.rows, "sys_read")[0]), JSON.stringify(s.rows));
	ok(/20/.test(total(s.rows, "main")[1]), JSON.stringify(s.rows));
});

const golden = join(new URL(".", import.meta.url).pathname, "..", "golden");

test("a heap profile opens on live bytes, not on the last or the first value type", async () => {
	flame(join(golden, "heap", "input.pb.gz"), "-o", "heap.pb.gz");
	const s = await opened("heap.pb.gz");
	equal(s.errors, [], "page errors");
	ok(/^100\.00 KB \(100%\)/.test(total(s.rows, "cache_add")[0]), JSON.stringify(s.rows));
});

/* Speedscope shows three digits; "12.34ms (5.0%)" in milliseconds. */
const milliseconds = (text) => {
	const [, n, unit] = /^([\d.]+)(ns|µs|ms|s|min) ?/.exec(text);
	return n * { ns: 1e-6, "µs": 1e-3, ms: 1, s: 1000, min: 60000 }[unit];
};

test("what memscope reads of an evented and of a sampled file is what speedscope has", async () => {
	const schema = "https://www.speedscope.app/file-format-schema.json", open = [], events = [];
	const frames = ["alpha", "beta", "gamma", "delta"].map((name) => ({ name }));
	let at = 0;
	for (let i = 0; i < 300; i++) {
		const opens = open.length < 2 || (i * 7919 % 13 < 7 && open.length < 12);
		events.push({ type: opens ? "O" : "C", frame: opens ? i * 31 % 4 : open[open.length - 1], at });
		if (opens)
			open.push(i * 31 % 4);
		else
			open.pop();
		at += i * 17 % 9;
	}
	events.push(...open.reverse().map((frame) => ({ type: "C", frame, at })));
	const samples = Array.from({ length: 200 }, (_, i) => [0, 1 + i % 3, ...(i % 5 ? [2] : [])]);
	const profiles = {
		evented: { type: "evented", name: "p", unit: "milliseconds", startValue: 0, endValue: at, events },
		sampled: { type: "sampled", name: "p", unit: "milliseconds", startValue: 0, endValue: 200 * 199 / 2, samples,
			weights: samples.map((s, i) => i) },
	};
	for (const [kind, profile] of Object.entries(profiles)) {
		writeFileSync(join(dir, kind + ".json"), JSON.stringify({ $schema: schema, shared: { frames }, profiles: [profile] }));
		run("convert", kind + ".json", "-o", kind + ".csv");
		const ours = readFileSync(join(dir, kind + ".csv"), "utf8").trim().split("\n").map((line) => line.split(","));
		const column = (name) => ours[0].findIndex((c) => c.includes(name) && c.includes("time"));
		const s = await opened(kind + ".json");
		equal(s.errors, [], kind + ": page errors");
		for (const { name } of frames) {
			const mine = ours.find((r) => r[0] === `"${name}"`), theirs = total(s.rows, name);
			for (const [what, cell] of [["total", theirs[0]], ["self", theirs[1]]]) {
				const n = Number(mine[column(what)]) / 1e6;
				ok(Math.abs(n - milliseconds(cell)) <= 0.006 * n, `${kind}, ${name}, ${what}: ${n} ms here, ${cell} there`);
			}
		}
	}
});

test("names that nobody expects are imported", async () => {
	for (const file of ["hostile.pb.gz", "hostile.folded"]) {
		flame(join(golden, "hostile", "input.pb.gz"), "-o", file);
		const s = await opened(file);
		equal(s.errors, [], file + ": page errors");
		ok(total(s.rows, "<script>alert(1)</script>"), file + ": " + JSON.stringify(s.rows).slice(0, 200));
	}
});

await run_tests(browser);
