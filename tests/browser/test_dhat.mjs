/* DHAT's viewer shows what convert made of a run's sites. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { dir, launch, ok, equal, run, run_tests, test } from "./chromium.mjs";

const viewer = "/usr/libexec/valgrind/dh_view.html";
if (!existsSync(viewer)) {
	console.log("1..0 # SKIP no " + viewer + " (apt-get install valgrind)");
	process.exit(0);
}
const browser = await launch();

test("dh_view opens a profile of sites, and its totals are ours", async () => {
	run("convert", resolve("tests/golden/sites/input.pb.gz"), "-o", "sites.dhat");
	const bytes = JSON.parse(readFileSync(join(dir, "sites.dhat"))).pps.reduce((sum, p) => sum + p.tb, 0);
	const page = await browser.newPage(), errors = [];
	page.on("pageerror", (e) => errors.push(e.message));
	await page.goto("file://" + viewer);
	await page.setInputFiles("input[type=file]", join(dir, "sites.dhat"));
	await page.waitForFunction(() => /At t-end|Error/.test(document.body.textContent), null, { timeout: 60000 });
	const text = await page.textContent("body");
	equal(errors, [], "errors of the page");
	ok(text.includes("tsort"), "who: " + text.slice(0, 300));
	ok(text.includes(bytes.toLocaleString("en") + " bytes (100%"), "total of " + bytes + ": " + text.slice(0, 900));
	ok(/PP 1(\.1)*\/\d+ .*children/.test(text), "no tree: " + text.slice(0, 900));
	await page.close();
});

await run_tests(browser);
