/* The flame graph in a browser: zoom, search, hover, keyboard; and that names cannot do harm. */
import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dir, equal, flame, launch, ok, run, run_tests, test } from "./chromium.mjs";

const WIDTH = 1200, PAD = 10, MAGENTA = "#e600e6";

const browser = await launch();
let page, session, errors, dialogs;

function folded(name, lines) {
	writeFileSync(join(dir, name), lines.join("\n") + "\n");
	return name;
}

/* Makes a picture from folded lines, or a file, and opens it. */
async function open(lines, args = [], fragment = "", options = {}) {
	flame(typeof lines === "string" ? lines : folded("in.folded", lines), "-o", "out.svg", ...args);
	await show(fragment, options);
}

/* The same of the difference of two. */
async function open_diff(before, after, args = []) {
	run("diff", folded("before.folded", before), folded("after.folded", after), "-o", "out.svg", ...args);
	await show();
}

async function show(fragment = "", options = {}) {
	if (page)
		await page.context().close();
	const context = await browser.newContext({ viewport: { width: 1240, height: 700 }, ...options });
	page = await context.newPage();
	session = await context.newCDPSession(page);
	await session.send("Performance.enable", { timeDomain: "threadTicks" });
	errors = [];
	dialogs = 0;
	page.on("pageerror", (e) => errors.push(e.message));
	page.on("dialog", (d) => { dialogs++; d.dismiss(); });
	await page.goto("file://" + join(dir, "out.svg") + fragment);
}

/* CPU time that the page's own thread has had, in ms: what others do on the machine takes none of it. */
async function spent() {
	const { metrics } = await session.send("Performance.getMetrics");
	return 1000 * metrics.find((m) => m.name === "TaskDuration").value;
}

/* Every frame drawn: [title, x, y, width, fill, label, faded]. */
function drawn() {
	return page.evaluate(() => [...document.querySelectorAll("#frames > g")].map((g) => {
		const r = g.querySelector("rect"), t = g.querySelector("text");
		return [g.querySelector("title").textContent, +r.getAttribute("x"), +r.getAttribute("y"),
			+r.getAttribute("width"), r.getAttribute("fill"), t ? t.textContent : "",
			g.getAttribute("class") === "above"];
	}));
}

async function frame(name) {
	const all = (await drawn()).filter((f) => f[0].startsWith(name + " ("));
	ok(all.length > 0, "no frame " + name);
	return { title: all[0][0], x: all[0][1], y: all[0][2], width: all[0][3], fill: all[0][4],
		label: all[0][5], faded: all[0][6], n: all.length };
}

async function centre(name) {
	const f = await frame(name);
	return [f.x + f.width / 2, f.y + 7];
}

async function click(name) {
	await page.mouse.click(...await centre(name));
}

const text = (id) => page.evaluate((i) => document.getElementById(i).textContent, id);
const visible = (id) => page.evaluate((i) =>
	document.getElementById(i).getAttribute("visibility") !== "hidden", id);

const usual = [
	"redis;main;loop;read;sys_read_[k] 30",
	"redis;main;loop;read 10",
	"redis;main;loop;exec;lookup;hash_[i] 20",
	"redis;main;loop;exec;set 15",
	"redis;main;cron 5",
	"bio;start;fsync;sys_fsync_[k] 20",
];

test("the picture is drawn without scripts", async () => {
	await open(usual, [], "", { javaScriptEnabled: false });
	const box = await page.locator("#frames rect").first().boundingBox();
	equal(box.width, WIDTH - 2 * PAD - .5, "root width");
	equal(await page.locator("#frames rect").count(), 15, "frames");
	equal(await page.locator("#search").isVisible(), false, "search button");
});

test("a click zooms: the frame fills the width, its callers fade, the rest is gone", async () => {
	await open(usual);
	const before = await frame("exec");
	ok(before.width < 500, "exec is narrow at first");
	equal(await visible("reset"), false, "reset button before");
	await click("exec");
	const after = await frame("exec");
	equal([after.x, after.width], [PAD, WIDTH - 2 * PAD - .5], "exec");
	equal((await frame("main")).faded, true, "main is faded");
	equal((await frame("main")).width, WIDTH - 2 * PAD - .5, "main");
	const names = (await drawn()).map((f) => f[0].replace(/ \(.*/, ""));
	equal(names.includes("read"), false, "read is shown");
	equal(names.includes("bio"), false, "bio is shown");
	const lookup = await frame("lookup");
	equal(Math.round(lookup.width), Math.round((WIDTH - 2 * PAD) * 20 / 35), "lookup");
	equal(await visible("reset"), true, "reset button after");
	equal(errors, [], "errors");
});

test("reset zoom draws exactly what was there at first", async () => {
	await open(usual);
	const first = await drawn();
	await click("loop");
	await click("lookup");
	await page.click("#reset");
	equal((await drawn()), first, "frames");
	equal(await visible("reset"), false, "reset button");
});

test("the script draws as the program does: large pictures, both ways up, units and sizes", async () => {
	const lines = [];
	for (let i = 0; i < 4000; i++)
		lines.push(`p;main;f${i % 7};g${i % 61}${i % 3 ? "" : "_[k]"};a_rather_long_name_${i} ${1 + i * i % 9973}`);
	for (const args of [[], ["--inverted", "--width", "2400", "--fontsize", "16", "--colors", "hot"],
		["--width", "777", "--fontsize", "9", "--minwidth", "0", "--countname", "us"]]) {
		await open(lines, args);
		const first = await drawn();
		const paths = (f) => page.evaluate(() =>
			[...document.querySelectorAll("#frames > path")].map((e) => e.getAttribute("stroke") +
				" " + e.getAttribute("stroke-width") + e.getAttribute("transform") +
				e.getAttribute("d").replace(/([ hM])0\./g, "$1.")).sort());
		const thin = await paths();
		ok(thin.length > 0, "strokes");
		await page.mouse.click(first[2][1] + 3, first[2][2] + 3);
		await page.keyboard.press("Escape");
		const again = await drawn();
		for (let i = 0; i < first.length; i++)
			equal(again[i], first[i], "frame " + i);
		equal(again.length, first.length, "number of frames");
		const thin_again = await paths();
		for (let i = 0; i < thin.length; i++)
			equal(thin_again[i], thin[i], "strokes");
		equal(thin_again.length, thin.length, "colours of strokes");
	}
	equal(errors, [], "errors");
});

test("hover shows name, module, value and share, also under a pixel", async () => {
	const lines = ["p;main;big 100000"];
	for (let i = 0; i < 300; i++)
		lines.push(`p;main;thin${String(i).padStart(3, "0")} 20`);
	await open(lines);
	await page.mouse.move(...await centre("big"));
	ok(/^big\b.* 100,000 samples, 94\.3%$/.test(await text("details")), await text("details"));
	const main = await frame("main");
	await page.mouse.move(main.x + main.width - 30, (await frame("big")).y + 7);
	ok(/^thin\d+\b.* 20 samples, <0\.1%$/.test(await text("details")), await text("details"));
	await page.mouse.move(600, 30);
	equal((await text("details")).trim(), "", "details away from frames");
});

test("hover names the module, and values as the profile counts them", async () => {
	await open(join(new URL(".", import.meta.url).pathname, "..", "golden", "oncpu", "input.pb.gz"), ["--value", "cpu"]);
	await page.mouse.move(...await centre("__read"));
	equal(await text("details"), "__read  [libc.so.6]  252.5 ms (252,525,250 ns), 25.0%", "details");
	await page.mouse.move(...await centre("ksys_read"));
	equal(await text("details"), "ksys_read  [kernel]  252.5 ms (252,525,250 ns), 25.0%", "details");
	await page.mouse.move(...await centre("event_loop"));
	equal(await text("details"), "event_loop  [prog]  858.6 ms (858,585,850 ns), 85.0%", "details");
});

test("Ctrl-F searches: matches turn magenta and their share is shown", async () => {
	await open(usual);
	await page.keyboard.press("Control+f");
	await page.keyboard.type("^sys_");
	const hits = (await drawn()).filter((f) => f[4] === MAGENTA).map((f) => f[0].replace(/ \(.*/, ""));
	equal(hits.sort(), ["sys_fsync", "sys_read"], "magenta frames");
	equal(await text("matched"), "matched: 50.0%", "matched");
	await page.keyboard.press("Enter");
	equal(await text("matched"), "matched: 50.0%", "matched after Enter");
	await page.keyboard.press("Escape");
	equal((await drawn()).filter((f) => f[4] === MAGENTA).length, 0, "magenta frames after Esc");
	equal((await text("matched")).trim(), "", "matched after Esc");
	equal(dialogs, 0, "dialogs");
});

test("nested matches count once; case is ignored unless typed; bad expressions are literal", async () => {
	await open(["p;Main;loop;loop 40", "p;Main;other 40", "p;a(b;c 20"]);
	await page.click("#search");
	await page.keyboard.type("loop");
	equal(await text("matched"), "matched: 40.0%", "loop");
	await page.keyboard.press("Control+a");
	await page.keyboard.type("main");
	equal(await text("matched"), "matched: 80.0%", "main");
	await page.keyboard.press("Control+a");
	await page.keyboard.type("MAIN");
	equal(await text("matched"), "matched: 0.0%", "MAIN");
	await page.keyboard.press("Control+a");
	await page.keyboard.type("a(");
	equal(await text("matched"), "matched: 20.0%", "a(");
	equal(errors, [], "errors");
});

test("search stays while zooming, and Esc clears it before it resets the zoom", async () => {
	await open(usual);
	await page.keyboard.press("Control+f");
	await page.keyboard.type("hash");
	await page.keyboard.press("Enter");
	await click("exec");
	equal((await frame("hash")).fill, MAGENTA, "hash");
	await page.keyboard.press("Escape");
	ok((await frame("hash")).fill !== MAGENTA, "hash is cleared");
	equal(await visible("reset"), true, "still zoomed");
	await page.keyboard.press("Escape");
	equal(await visible("reset"), false, "reset");
});

test("arrows walk the frames and Enter zooms", async () => {
	await open(usual);
	for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp"])
		await page.keyboard.press(key);
	ok((await text("details")).startsWith("loop"), await text("details"));
	await page.keyboard.press("ArrowLeft");
	ok((await text("details")).startsWith("cron"), await text("details"));
	await page.keyboard.press("ArrowRight");
	await page.keyboard.press("ArrowUp");
	await page.keyboard.press("Enter");
	equal((await frame("read")).width, WIDTH - 2 * PAD - .5, "read");
});

test("the address keeps zoom and search", async () => {
	await open(usual);
	await click("exec");
	await page.keyboard.press("/");
	await page.keyboard.type("set");
	await page.keyboard.press("Enter");
	const state = await drawn(), fragment = new URL(page.url()).hash;
	await open(usual, [], fragment);
	equal(await drawn(), state, "frames");
	equal(await text("matched"), "matched: 15.0%", "matched");
});

test("i turns the picture over and back, and the address keeps it", async () => {
	await open(usual);
	const first = await drawn();
	await page.keyboard.press("i");
	ok((await frame("all")).y < (await frame("main")).y, "icicle graph");
	const fragment = new URL(page.url()).hash, state = await drawn();
	await page.keyboard.press("i");
	equal(await drawn(), first, "flame graph again");
	await open(usual, [], fragment);
	equal(await drawn(), state, "icicle graph by the address");
});

test("leaf-up: what a function has itself, below its callers; what is not drawn stays apart", async () => {
	const lines = ["p;a;x 30", "p;b;x 20", "p;b 10", "p;a;y;x 5", "q;x 15", "q;a 20"];
	await open(lines);
	await page.keyboard.press("r");
	const all = await drawn(), at = (name) => all.filter((f) => f[0].startsWith(name + " ("));
	equal(at("all")[0][0], "all (100 samples, 100.0%)", "root");
	/* x has 70 of its own: 30 from p;a, 20 from p;b, 5 from p;a;y, 15 from q. */
	ok(at("x").some((f) => f[0] === "x (70 samples, 70.0%)"), "x: " + at("x").map((f) => f[0]));
	equal(at("a").map((f) => f[0]).sort(), ["a (20 samples, 20.0%)", "a (30 samples, 30.0%)", "a (5 samples, 5.0%)"], "a");
	equal(at("y").map((f) => f[0]), ["y (5 samples, 5.0%)"], "y");
	equal(at("b").map((f) => f[0]).sort(), ["b (10 samples, 10.0%)", "b (20 samples, 20.0%)"], "b");
	/* A search counts stacks, whichever way up they are. */
	await page.keyboard.press("/");
	await page.keyboard.type("^a$");
	equal(await text("matched"), "matched: 55.0%", "matched");
	await page.keyboard.press("Enter");
	const state = await drawn();
	await open(lines, [], new URL(page.url()).hash);
	equal(await drawn(), state, "by the address");
	await page.keyboard.press("Escape");
	await page.keyboard.press("r");
	ok((await frame("p")).y > (await frame("b")).y, "root-up again");
	equal(errors, [], "errors");
	await open(["p;wide 99990", ...Array.from({ length: 40 }, (_, i) => `p;main;thin${i} 1`)], ["--minwidth", "1"]);
	await page.keyboard.press("r");
	const gap = (await drawn()).filter((f) => f[0].startsWith("wide"))[0];
	equal(gap[0], "wide (99,990 samples, 100.0%)", "what is drawn");
	ok(gap[3] < WIDTH - 2 * PAD - .5 || gap[1] > PAD, "the rest is not its");
});

test("frames under a pixel are counted in the foot, and searches say what they cannot know", async () => {
	const lines = ["p;main;big 700", ...Array.from({ length: 300 }, (_, i) => `p;main;thin${i} 1`)];
	await open(lines, ["--minwidth", "2"]);
	equal(await text("details"), "300 frames narrower than 2 px are not drawn", "foot");
	await page.mouse.move(...await centre("big"));
	ok((await text("details")).startsWith("big"), "details");
	await page.mouse.move(600, 30);
	equal(await text("details"), "300 frames narrower than 2 px are not drawn", "foot again");
	await page.keyboard.press("/");
	await page.keyboard.type("thin");
	equal(await text("matched"), "matched: 0.0% to 30.0% (not all frames are drawn)", "matched");
	await page.keyboard.press("Control+a");
	await page.keyboard.type("main");
	equal(await text("matched"), "matched: 100.0%", "what is above a match is in it");
	await open(lines, ["--minwidth", "0"]);
	equal((await text("details")).trim(), "", "nothing is left out");
});

test("colours by module: each its own, named in the legend", async () => {
	await open(join(new URL(".", import.meta.url).pathname, "..", "golden", "oncpu", "input.pb.gz"));
	const before = await drawn();
	await page.keyboard.press("m");
	equal((await frame("main")).fill, (await frame("event_loop")).fill, "one module");
	ok((await frame("main")).fill !== (await frame("__read")).fill, "two modules");
	const names = await page.evaluate(() => [...document.querySelectorAll("#modules text")].map((t) => t.textContent));
	equal(names.sort(), ["[kernel]", "libc.so.6", "libclosed.so.3", "prog"], "legend");
	equal(await visible("legend"), false, "the other legend");
	await page.keyboard.press("m");
	equal(await drawn(), before, "by kind again");
	equal(await visible("legend"), true, "its legend");
});

test("search for text takes it as it is, for an expression as one; n goes from match to match", async () => {
	await open(["p;f(a.b) 10", "p;f(aXb) 20", "p;other 70"]);
	await page.keyboard.press("/");
	await page.keyboard.type("a.b");
	equal(await text("matched"), "matched: 30.0%", "expression");
	await page.click("foreignObject button");
	equal(await text("matched"), "matched: 10.0%", "text");
	equal(new URL(page.url()).hash, "#t=a.b", "address");
	await page.click("foreignObject button");
	equal(await text("matched"), "matched: 30.0%", "expression again");
	await page.keyboard.press("Enter");
	for (const wanted of ["f(a.b)", "f(aXb)", "f(a.b)"]) {
		await page.keyboard.press("n");
		ok((await text("details")).startsWith(wanted), wanted + ": " + await text("details"));
	}
});

test("the menu names each key, does what it says, and is reached by keys alone", async () => {
	await open(usual);
	await page.keyboard.press("?");
	equal(await visible("menu"), true, "menu");
	const items = await page.evaluate(() => [...document.querySelectorAll("#menu .item")].map((g) =>
		[...g.querySelectorAll("text")].map((t) => t.textContent)));
	ok(items.length >= 10 && items.every(([name, key]) => name && key), JSON.stringify(items));
	const box = await page.evaluate(() => [document.querySelector("#menu rect").getBoundingClientRect().bottom,
		document.documentElement.getBoundingClientRect().bottom]);
	ok(box[0] <= box[1], "the picture ends before its menu");
	for (let i = 0; i < items.findIndex(([, key]) => key === "i"); i++)
		await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Enter");
	equal(await visible("menu"), false, "menu after a choice");
	ok((await frame("all")).y < (await frame("main")).y, "icicle graph");
	await click("exec");
	await page.keyboard.press("Backspace");
	equal((await frame("loop")).faded, false, "Backspace zooms out to the caller");
	await page.click("#menu_button");
	await page.keyboard.press("Escape");
	equal(await visible("menu"), false, "menu after Escape");
	equal(await visible("reset"), true, "still zoomed");
	equal(errors, [], "errors");
});

test("c copies a frame's figures and path", async () => {
	await open(usual, [], "", { permissions: ["clipboard-read", "clipboard-write"] });
	await page.mouse.move(...await centre("exec"));
	await page.keyboard.press("c");
	await page.waitForFunction(() => document.getElementById("details").textContent.startsWith("Copied: exec"));
	equal(await page.evaluate(() => navigator.clipboard.readText()),
		"exec  35 samples, 35.0%\nall;redis;main;loop;exec\n", "clipboard");
});

test("a small window has all of the picture, dark or light, and paper has it without buttons", async () => {
	await open(usual, [], "", { viewport: { width: 390, height: 700 }, colorScheme: "dark" });
	equal(await page.evaluate(() => document.documentElement.scrollWidth <= 390), true, "no scrolling");
	equal((await frame("all")).width, 390 - 2 * PAD - .5, "root");
	await click("exec");
	equal((await frame("exec")).width, 390 - 2 * PAD - .5, "zoomed");
	const fill = (id) => page.evaluate((i) => getComputedStyle(document.querySelector(i)).fill, id);
	equal([await fill(".back"), await fill("#title")], ["rgb(27, 27, 25)", "rgb(240, 239, 233)"], "dark");
	await page.emulateMedia({ media: "print", colorScheme: "dark" });
	equal(await fill(".back"), "rgb(253, 252, 249)", "paper");
	equal(await page.locator("#search").isVisible(), false, "a button on paper");
	await page.emulateMedia({ media: "screen", colorScheme: "light" });
	await page.setViewportSize({ width: 1300, height: 700 });
	await page.waitForFunction(() => document.documentElement.getAttribute("width") === "1200");
	equal((await frame("exec")).width, WIDTH - 2 * PAD - .5, "wide again");
	await page.keyboard.press("f");
	equal((await frame("exec")).width, 1300 - 2 * PAD - .5, "as wide as the window");
	equal(errors, [], "errors");
});

test("--inverted puts the root at the top", async () => {
	await open(usual);
	ok((await frame("all")).y > (await frame("main")).y, "flame graph");
	await open(usual, ["--inverted"]);
	ok((await frame("all")).y < (await frame("main")).y, "icicle graph");
	await click("main");
	ok((await frame("all")).y < (await frame("main")).y, "icicle graph, zoomed");
});

test("labels begin where names differ, as drawn by the program and by the script", async () => {
	await open(["all;com.example.tools.main.JavaCompiler.compile_[p];Perl::Critic::Policy::Long::violates_[p] 1",
		"all;other 12"]);
	const labels = async () => (await drawn()).map((f) => f[5]).filter((l) => l && l !== "all" && l !== "other").sort();
	const first = await labels();
	ok(first.some((l) => l.startsWith("JavaC")) && first.some((l) => l.startsWith("Long::")), "labels " + first);
	await click("other");
	await page.click("#reset");
	equal(await labels(), first, "labels by the script");
});

test("labels are cut to their frames", async () => {
	await open(["p;main;" + "x".repeat(400) + " 50", "p;main;" + "y".repeat(400) + " 50"]);
	const over = await page.evaluate(() => [...document.querySelectorAll("#frames > g")].filter((g) => {
		const t = g.querySelector("text");
		return t && t.getBBox().x + t.getBBox().width > g.querySelector("rect").getBBox().x +
			g.querySelector("rect").getBBox().width;
	}).length);
	equal(over, 0, "labels wider than their frame");
	ok((await frame("x".repeat(400))).label.length > 60, "and not cut more than needed");
	ok((await frame("x".repeat(400))).label.endsWith("\u2026"), "with an ellipsis");
});

test("title, buttons, subtitle and legend do not overlap, however wide the picture and long the names", async () => {
	const lines = ["p;main;read;sys_read_[k] 50", "p;main;inner_[i] 30", "p;[unknown] 20"];
	const file = "a name of a file that is rather long, and has no end for some time to come.folded";
	writeFileSync(join(dir, file), ["# Label: env=" + "prod ".repeat(30) + "#", ...lines].join("\n") + "\n");
	for (const width of [400, 600, 1200, 2000]) {
		await open(file, ["--width", width]);
		await click("main");
		ok(await visible("reset"), "both buttons are there");
		const over = await page.evaluate(() => {
			const box = (id) => document.getElementById(id).getBoundingClientRect();
			return [["title", "reset"], ["title", "search"], ["subtitle", "legend"]].filter(([a, b]) =>
				document.getElementById(b) && box(a).right > box(b).left &&
				box(a).bottom > box(b).top && box(a).top < box(b).bottom);
		});
		equal(over, [], "overlaps at " + width);
		equal(await page.locator("#legend").count(), width < 600 ? 0 : 1, "legends at " + width);
	}
});

test("names from the target are text, whatever they hold", async () => {
	const names = ["<script>alert(1)</script>", "</title><script>alert(2)</script>",
		"]]></script><script>alert(3)</script>", "\"onmouseover=\"alert(4)", "'\"><img src=x onerror=alert(5)>",
		"&lt&amp", "a\u202eb", "\\u003cscript\\u003e", "__proto__", "constructor"];
	await open(names.map((n) => `p;main;${n} 10`));
	for (const n of names.filter((x) => x !== "a\u202eb"))
		equal((await frame(n)).n, 1, n);
	await page.mouse.move(...await centre(names[0]));
	await click("main");
	await page.keyboard.press("Control+f");
	await page.keyboard.type("alert");
	ok((await text("matched")) === "matched: 50.0%", await text("matched"));
	await click(names[0]);
	equal(dialogs, 0, "dialogs");
	equal(errors, [], "errors");
	equal(await page.evaluate(() => document.querySelectorAll("script, img").length), 1, "scripts");
});

test("fifty thousand stacks are drawn and opened within 5 s each and zoom within 1 s", async () => {
	const lines = [];
	let seed = 1;
	const random = (n) => (seed = seed * 48271 % 2147483647) % n;
	for (let i = 0; i < 50000; i++) {
		const stack = ["redis", "main"];
		for (let d = 0; d < 28; d++)
			stack.push("function_" + (d * 40 + (d < 4 ? random(6) : random(2) + (random(9) ? 0 : random(30)))));
		lines.push(stack.join(";") + "_" + i + " " + (1 + random(20)));
	}
	await open(lines);
	ok(statSync(join(dir, "out.svg")).size < 1e6, "a file of more than 1 MB");
	const opened = await spent();
	await page.mouse.click(600, (await frame("main")).y - 16 + 7 - await page.evaluate(() => window.scrollY));
	ok(await visible("reset"), "zoomed");
	const zoomed = await spent() - opened;
	console.log(`# opened in ${opened.toFixed()} ms of CPU time, zoomed in ${zoomed.toFixed()}`);
	ok(opened > 0 && zoomed > 0, "no time was measured");
	ok(opened < 5000 && zoomed < 1000, "too slow");
	equal(errors, [], "errors");
});

test("a stack of 3,000 frames is drawn to its tip, and the details stay in sight", async () => {
	await open(["p;" + Array.from({ length: 3000 }, (_, i) => "f" + i).join(";") + " 1"]);
	equal((await drawn()).length, 3002, "frames");
	await page.evaluate(() => window.scrollTo(0, 9000));
	await page.waitForFunction(() => window.scrollY === 9000);
	await page.mouse.move(300, 300);
	await page.waitForFunction(() => document.getElementById("details").textContent.startsWith("f"));
	const box = await page.locator("#details").boundingBox();
	ok(box.y > 0 && box.y + box.height <= 700, "details at " + box.y);
});

test("a difference is drawn by the script as by the program, and says what was before and after", async () => {
	const before = ["main;parse;next 500", "main;draw 800", "main;mix 200", "main;old 400", "main;idle 50"];
	const after = ["main;parse;next 1000", "main;draw 800", "main;mix 40", "main;fresh 150", "main;idle 52"];
	for (let i = 0; i < 500; i++)
		(i % 2 ? before : after).push(`main;many;f${i} 1`);
	for (const args of [[], ["--inverted", "--normalize"]]) {
		await open_diff(before, after, args);
		const first = await drawn();
		await click("parse");
		await page.keyboard.press("Escape");
		equal(await drawn(), first, "frames");
		equal(errors, [], "errors");
	}
	await open_diff(before, after);
	const [more, gone, fresh, same] = [await frame("next"), await frame("old"), await frame("fresh"),
		await frame("draw")];
	equal(more.title, "next (500 samples \u2192 1,000 samples: +500 samples, +100.0%)", "title");
	equal(gone.title, "old (400 samples \u2192 0 samples: \u2212400 samples, gone)", "title");
	equal(same.title, "draw (800 samples \u2192 800 samples)", "title");
	ok(/new\)$/.test(fresh.title), fresh.title);
	equal((await frame("parse")).fill, more.fill, "the caller carries what its callee gained");
	ok(gone.width > 100 && fresh.width > 40, "what is in one of them only is not at its full width");
	const red = (f) => parseInt(f.fill.slice(1, 3), 16) - parseInt(f.fill.slice(5, 7), 16);
	ok(red(fresh) > red(more) && red(more) > red(same) && red(same) > red(gone), "colours");
	await page.mouse.move(...await centre("next"));
	equal(await text("details"), "next  500 samples \u2192 1,000 samples: +500 samples, +100.0%", "details");
	/* The other way round it is the same picture in the other colours. */
	await open_diff(after, before);
	equal((await frame("old")).fill, fresh.fill, "fill of what is new the other way round");
	equal((await frame("old")).width, gone.width, "width of what is new the other way round");
});

await run_tests(browser);
