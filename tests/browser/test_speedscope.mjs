/* speedscope imports our pprof and folded files, and finds in them what we put there. */
import { createServer } from "node:http";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { dir, flame, launch, modules, ok, equal, run_tests, test } from "./chromium.mjs";

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

test("names that nobody expects are imported", async () => {
	for (const file of ["hostile.pb.gz", "hostile.folded"]) {
		flame(join(golden, "hostile", "input.pb.gz"), "-o", file);
		const s = await opened(file);
		equal(s.errors, [], file + ": page errors");
		ok(total(s.rows, "<script>alert(1)</script>"), file + ": " + JSON.stringify(s.rows).slice(0, 200));
	}
});

await run_tests(browser);
