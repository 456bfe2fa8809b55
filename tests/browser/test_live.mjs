/*
 * The live page of `memscope serve`: what it shows of a program that is known, that its buttons do what they say, that it loads nothing
 * from elsewhere, fits a phone, and that axe-core finds nothing serious in light and dark. As root.
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { dir, equal, install, launch, memscope, ok, run_tests, test } from "./chromium.mjs";

if (process.getuid() !== 0) {
	console.log("1..0 # SKIP serve needs root");
	process.exit(0);
}
const axe = readFileSync(join(install(["axe-core"], "axe"), "axe-core", "axe.min.js"), "utf8");
const browser = await launch();
const port = await new Promise((resolve) => {
	const s = createServer().listen(0, "127.0.0.1", () => { const { port: p } = s.address(); s.close(() => resolve(p)); });
});
const busy = spawn("python3", ["-c", "import ctypes\nctypes.CDLL(None).prctl(15, b'busy <b>&', 0, 0, 0)\nwhile 1: sum(range(1000))"], { stdio: "ignore" });
const serve = spawn(memscope, ["serve", "-a", "--only", "oncpu,offcpu", "--archive", join(dir, "archive"), "--every", "4", "--interval", "1", "-F", "99",
	"--max-overhead", "50", "--listen", `127.0.0.1:${port}`], { stdio: ["ignore", "ignore", "inherit"] });
process.on("exit", () => { busy.kill("SIGKILL"); serve.kill("SIGKILL"); });
const url = `http://127.0.0.1:${port}/`;

async function open(options) {
	const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options }), page = await context.newPage();
	page.said = [];
	page.setDefaultTimeout(90000); /* a window is written beside all else that the machine does */
	page.on("console", (m) => { if (m.type() === "error") page.said.push(m.text()); });
	page.on("pageerror", (e) => page.said.push(String(e)));
	page.on("request", (r) => { if (!r.url().startsWith(url) && !/^(blob|data):/.test(r.url())) page.said.push("asked for " + r.url()); });
	for (let i = 0; i < 100; i++) {
		try {
			await page.goto(url);
			break;
		} catch {
			await new Promise((resolve) => setTimeout(resolve, 100));
		}
	}
	page.said.length = 0; /* of the time before it listened */
	await page.locator("#targets tbody tr", { hasText: "busy <b>&" }).waitFor();
	return page;
}

const quiet = (page) => ok(!page.said.length, page.said.join("; "));

test("a busy program is among the first, with its CPU time", async () => {
	const page = await open({}), row = page.locator("#targets tbody tr", { hasText: "busy <b>&" });
	await page.waitForFunction(() => [...document.querySelectorAll("#targets tbody tr")].some((tr) => tr.textContent.includes("busy") && parseFloat(tr.cells[2].textContent) > 10));
	ok(/MiB/.test(await row.locator("td").nth(3).textContent()), "no RSS");
	ok(await row.locator("svg").count() === 4, "lines are missing");
	quiet(page);
	await page.context().close();
});

test("Collect draws the target's next seconds, and gives the same as a file", async () => {
	const page = await open({});
	await page.locator("#seconds").selectOption("2");
	await page.locator("#targets tbody tr", { hasText: "busy <b>&" }).getByRole("button").click();
	await page.locator("#picture").waitFor();
	const picture = page.frameLocator("#picture");
	ok((await picture.locator("svg").first().textContent()).includes("busy"), "the program is not in the picture");
	const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#download").click()]);
	const bytes = readFileSync(await download.path());
	ok(bytes[0] === 0x1f && bytes[1] === 0x8b, "the file is no gzip");
	quiet(page);
	await page.context().close();
});

test("what has no samples is said, and is no empty picture", async () => {
	const page = await open({});
	await page.locator("#seconds").selectOption("2");
	await page.evaluate(() => document.getElementById("who").add(new Option("nobody", "comm=nobody", true, true)));
	await page.locator("#go").click();
	await page.locator("#said", { hasText: "nothing to draw" }).waitFor();
	ok(await page.locator("#picture").isHidden(), "a frame without a picture is shown");
	await page.context().close();
});

test("who it is stays in sight where the table is wider than the screen", async () => {
	const page = await open({ viewport: { width: 390, height: 844 } }), name = page.locator("#targets tbody td.name").first();
	const before = await name.boundingBox();
	await page.locator("#targets").evaluate((table) => { table.parentElement.scrollLeft = 10000; });
	equal((await name.boundingBox()).x, before.x, "where the name is");
	await page.context().close();
});

test("windows are listed when they are written, and can be drawn and downloaded", async () => {
	const page = await open({});
	const button = page.locator("#windows tbody tr").first().getByRole("button").first();
	await button.waitFor();
	await button.click();
	await page.locator("#picture").waitFor();
	await page.frameLocator("#picture").locator("svg").first().waitFor();
	const link = page.locator("#windows tbody a").first();
	const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
	ok(/^\w+-\d{8}-\d{6}(-\d+)?\.pb\.gz$/.test(download.suggestedFilename()), download.suggestedFilename());
	quiet(page);
	await page.context().close();
});

for (const [what, options] of [["on a phone, dark", { colorScheme: "dark", viewport: { width: 390, height: 844 } }], ["on a laptop, light", { colorScheme: "light" }],
	["on a wide screen, dark", { colorScheme: "dark", viewport: { width: 1920, height: 1080 } }]])
	test("it fits, and axe-core finds nothing serious, " + what, async () => {
		const page = await open(options);
		ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "it is wider than the screen");
		const result = await page.evaluate(axe + ";axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.filter((v) => v.impact === 'serious' || v.impact === 'critical').map((v) => v.id + ': ' + v.nodes[0].html))");
		ok(!result.length, result.join("; "));
		if (process.env.SHOTS)
			await page.screenshot({ path: join(process.env.SHOTS, what.replace(/\W+/g, "-") + ".png"), fullPage: true });
		quiet(page);
		await page.context().close();
	});

await run_tests(browser);
