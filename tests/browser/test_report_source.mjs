/*
 * The pane of source lines and instructions, of a program that is compiled here and a profile that is written here: costs of lines and of
 * instructions, in the selected time; text of files is inert; another build is not shown.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { dir, equal, launch, ok, run, run_tests, test } from "./chromium.mjs";
import { Writer } from "./report_fixture.mjs";

const browser = await launch();
const evil = "</script><script>window.broken=1</script><img src=x onerror=window.broken=1> \u202egnp";
// What root shows of sources is what everybody may read.
chmodSync(dir, 0o755);
const source = join(dir, "<img src=x onerror=broken=1>.c"), program = join(dir, "prog"), script = join(dir, "app.py");
const lines = ["static inline __attribute__((always_inline)) unsigned step(unsigned h)", "{", "\treturn h * 77; /* " + evil + " */", "}", "unsigned mix(unsigned n)", "{", "\tunsigned h = 1;",
	"\twhile (n--)", "\t\th = step(h) ^ n;", "\treturn h;", "}", "int main(int c, char **v)", "{", "\treturn mix(c);", "}"];

function made(command, ...args) {
	const r = spawnSync(command, args, { encoding: "utf8", cwd: dir });
	if (r.error || r.status)
		throw new Error(command + ": " + (r.error || r.stderr));
	return r.stdout;
}

writeFileSync(source, lines.join("\n") + "\n");
writeFileSync(script, "def work(n):\n    return sum(range(n))\n");
made("gcc", "-O1", "-g", "-fno-inline", "-Wl,--build-id", "-o", program, source);
const mix = parseInt(/^([0-9a-f]+) T mix$/m.exec(made("nm", program))[1], 16);
const second = parseInt(/<mix>:\n.*\n *([0-9a-f]+):/.exec(made("objdump", "-d", "--no-show-raw-insn", program))[1], 16);
const build_id = /Build ID: ([0-9a-f]+)/.exec(made("readelf", "-n", program))[1];

/* --- a profile, by model/profile.proto ------------------------------------------------------------------ */

const number = (field, v) => new Writer().number(field * 8).number(v).bytes;
const message = (field, bytes) => new Writer().number(field * 8 + 2).number(bytes.length).bytes.concat(bytes);
const packed = (field, values) => message(field, new Writer().column(values).bytes);

/* locations: [mapping, address, [[function, file, line]]]; stacks: [[location, leaf first], count]; numbers count from 1. */
function profile(mappings, locations, stacks) {
	const strings = [""], functions = [], out = [];
	const text = (s) => strings.includes(s) ? strings.indexOf(s) : strings.push(s) - 1;
	const fn = (name, file) => {
		const key = JSON.stringify([text(name), text(file)]);
		return functions.includes(key) ? functions.indexOf(key) + 1 : functions.push(key);
	};
	out.push(...message(1, [...number(1, text("samples")), ...number(2, text("count"))]));
	for (const [stack, value] of stacks)
		out.push(...message(2, [...packed(1, stack), ...packed(2, [value])]));
	mappings.forEach(([path, id], i) => out.push(...message(3, [...number(1, i + 1), ...number(2, i ? 0 : 0x1000), ...number(3, i ? 0 : 0x100000),
		...number(5, text(path)), ...number(6, text(id))])));
	locations.forEach(([mapping, address, all], i) => out.push(...message(4, [...number(1, i + 1), ...number(2, mapping), ...number(3, address),
		...all.flatMap(([name, file, line]) => message(4, [...number(1, fn(name, file)), ...number(2, line)]))])));
	functions.forEach((key, i) => {
		const [name, file] = JSON.parse(key);
		out.push(...message(5, [...number(1, i + 1), ...number(2, name), ...number(4, file)]));
	});
	out.push(...number(9, 1.9e18), ...number(10, 4e9));
	for (const s of strings)
		out.push(...message(6, [...Buffer.from(s)]));
	return gzipSync(Buffer.from(out));
}

/* A run of 4 s: the first instruction of mix, 6 samples in the first second; step, inlined, 3 in the third; Python, 1. */
function make_run(name, id) {
	const at = join(dir, name);
	mkdirSync(at);
	writeFileSync(join(at, "oncpu.pb.gz"), profile([[program, id], ["[Python]", ""]],
		[[1, mix, [["mix", source, 7]]], [1, second, [["step", source, 3], ["mix", source, 9]]], [2, 0, [["work", script, 2]]], [1, mix + 0x40000, [["main", source, 14]]]],
		[[[1, 4], 6], [[2, 4], 3], [[3], 1]]));
	writeFileSync(join(at, "oncpu.times.csv.gz"), gzipSync("# 3 samples, in bins of 1 s\nsample,second,samples/count\n0,0,6\n1,2,3\n2,3,1\n"));
	return at;
}

let page, errors;
async function open(file, fragment) {
	if (page)
		await page.context().close();
	page = await (await browser.newContext({ viewport: { width: 1240, height: 900 } })).newPage();
	page.setDefaultTimeout(20000);
	errors = [];
	page.on("pageerror", (e) => errors.push(e.message));
	page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
	page.on("request", (r) => r.url().startsWith("file:") || errors.push("asked for " + r.url()));
	await page.goto("file://" + join(dir, file) + fragment);
	await page.waitForFunction(() => {
		const pane = document.querySelector("main > section:not([hidden])");
		return pane && !pane.hasAttribute("aria-busy");
	});
}

/* Cells of the rows of the n-th panel that have a cost. */
const costs = (n) => page.evaluate((k) => [...document.querySelectorAll("#pane-source .panel")[k].querySelectorAll("tbody tr")]
	.map((tr) => [...tr.cells].map((c) => c.textContent)).filter((c) => /%/.test(c[0] + c[1])), n);
const panels = () => page.locator("#pane-source .panel h3").allTextContents();
const notes = async () => (await page.locator("#pane-source p.dim").allTextContents()).join(" ");
const choose = (name) => page.locator("#pane-source .link", { hasText: new RegExp("^" + name + "$") }).click();

const right = make_run("right", build_id), wrong = make_run("wrong", "0".repeat(40));
run("report", right, "-o", "right.html");
run("report", right, "--no-source", "-o", "none.html");
run("report", wrong, "-o", "wrong.html");

/* --- facts ------------------------------------------------------------------------------------------------------ */

test("lines have self and total, and instructions the costs of their own", async () => {
	await open("right.html", "#pane=source");
	equal(await page.locator("#pane-source .link").allTextContents(), ["mix", "step", "work", "main"], "functions by self");
	const lines_of_mix = await costs(0);
	equal(lines_of_mix.map((c) => c.slice(0, 3)), [["66.7%", "66.7%", "7"], ["", "33.3%", "9"]], "of mix");
	equal(lines_of_mix[1][3], "                h = step(h) ^ n;", "the line, its tabs as columns");
	equal((await panels())[1], "Instructions of mix", "second panel");
	const code = await costs(1);
	equal(code[0].slice(0, 2), ["66.7%", mix.toString(16)], "first instruction");
	equal(code.reduce((sum, c) => sum + parseFloat(c[0]), 0).toFixed(0), "100", "they add up");
	ok(await page.locator("#pane-source .origin", { hasText: "step, inlined" }).count() > 0, "the inlined call is named");
	await choose("step");
	equal((await costs(0)).map((c) => c.slice(0, 3)), [["100.0%", "100.0%", "3"]], "of step");
	equal((await panels())[1], "Instructions of mix", "where it was inlined");
	equal(errors, [], "errors");
});

test("the selected time is that of lines and instructions, and the address keeps the function", async () => {
	await open("right.html", "#pane=source&fn=step&time=2-3");
	equal(await page.locator("#pane-source .function h2").textContent(), "step  [prog]", "function");
	equal((await page.locator("#pane-source .function > p").first().textContent()).slice(0, 26), "Self 3 (100.0% of all), to", "its cost in that second");
	equal((await costs(1)).length, 1, "instructions with cost");
	await page.keyboard.press("Escape");
	equal((await page.locator("#pane-source .function > p").first().textContent()).slice(0, 22), "Self 3 (30.0% of all),", "of the whole run");
	equal((await costs(1)).length, 2, "instructions with cost in the whole run");
	equal(errors, [], "errors");
});

test("the flame graph leads to a function's lines", async () => {
	await open("right.html", "#pane=flame");
	const button = page.locator("#pane-flame").getByRole("button", { name: "Source", exact: true });
	await page.locator("#pane-flame .flame-scroll").focus();
	for (let i = 0; i < 6 && !/^(main|mix|step|work)/.test(await page.locator("#pane-flame .flame-title").textContent()); i++)
		await page.keyboard.press("ArrowDown");
	const name = /^\w+/.exec(await page.locator("#pane-flame .flame-title").textContent())[0];
	await button.click();
	await page.locator("#pane-source .function h2", { hasText: name }).waitFor();
	equal(await page.locator("#tab-source").getAttribute("aria-selected"), "true", "the pane that is shown");
	equal(errors, [], "errors");
});

test("a jump leads to where it jumps, by the keyboard, too", async () => {
	await open("right.html", "#pane=source&fn=mix");
	const jump = page.locator("#pane-source .jump").first();
	await jump.focus();
	await page.keyboard.press("Enter");
	const to = parseInt(/0x([0-9a-f]+)/.exec(await jump.textContent())[1], 16);
	equal(await page.evaluate(() => document.activeElement.textContent), to.toString(16), "address that has the focus");
	equal(errors, [], "errors");
});

test("what is in a source file, and its name, is text", async () => {
	await open("right.html", "#pane=source&fn=step");
	equal(await page.evaluate(() => [window.broken, document.querySelectorAll("main img, main script").length]), [null, 0], "elements");
	const shown = await page.evaluate(() => document.body.innerText);
	ok(shown.includes("</script><script>window.broken=1") && shown.includes("<img src=x onerror=broken=1>.c"), "it is shown");
	ok(!/[\u202a-\u202e]/.test(shown), "characters that turn text around are not");
	ok(!readFileSync(join(dir, "right.html"), "utf8").includes("onerror=window"), "it stands nowhere in the page as it is");
	equal(errors, [], "errors");
});

test("functions of an interpreter have lines and no instructions", async () => {
	await open("right.html", "#pane=source&fn=work");
	equal(await costs(0), [["100.0%", "100.0%", "2", "    return sum(range(n))"]], "lines");
	ok((await notes()).includes("It is interpreted"), await notes());
});

test("another build's instructions are not shown, and that is said", async () => {
	await open("wrong.html", "#pane=source&fn=mix");
	ok((await notes()).includes("file changed"), await notes());
	equal((await panels()).filter((h) => h.startsWith("Instructions")), [], "panels");
	equal((await costs(0)).length, 2, "lines, which the profile itself names");
});

test("--no-source leaves the text out, and the costs in", async () => {
	await open("none.html", "#pane=source&fn=mix");
	ok((await notes()).includes("--no-source"), await notes());
	equal((await costs(0)).map((c) => c.slice(2)), [["7", ""], ["9", ""]], "lines");
	ok(!(await page.evaluate(() => document.body.innerText)).includes("step(h)"), "text of the file");
	equal((await panels())[1], "Instructions of mix", "instructions");
});

await run_tests(browser);
