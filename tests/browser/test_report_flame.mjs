/* The flame graph of the report in a browser: every control, the keyboard, the address; and that names do no harm. */
import { join } from "node:path";
import { dir, equal, launch, ok, run_tests, test } from "./chromium.mjs";
import { chance, encode, write_page } from "./report_fixture.mjs";

const browser = await launch();
const file = join(dir, "report.html");
let page, session, errors, dialogs;

const f = (name, module = "app", kind = 0, source = "app.c", line = 1) => ({ name, module, kind, file: source, line });
const main = f("main"), loop = f("loop"), read = f("read", "libc.so.6", 0, ""), sys_read = f("sys_read", "[kernel]", 1, "");
const parse = f("parse", "app", 4), eval_ = f("eval", "[Python]", 2, "eval.py", 7), hash = f("hash", "libx.so");
const labels = (tid) => ({ pid: 1, tid, comm: "app", thread: "t" + tid, container: "" });
const usual = [
	{ stack: [main, loop, read, sys_read], labels: labels(1), values: [30, 30e6], times: [[0, 30e6]] },
	{ stack: [main, loop, read], labels: labels(1), values: [10, 10e6], times: [[1, 10e6]] },
	{ stack: [main, loop, eval_, parse, hash], labels: labels(2), values: [20, 20e6], times: [[10, 20e6]] },
	{ stack: [main, loop, eval_, eval_, hash], labels: labels(2), values: [15, 15e6], times: [[11, 15e6]] },
	{ stack: [main, f("idle")], labels: labels(1), values: [25, 25e6], times: [[12, 25e6]] },
];
const types = [{ name: "samples", unit: "count" }, { name: "cpu", unit: "nanoseconds" }];
const cpu = { id: "oncpu", source: "on-CPU", types, bytes: encode(usual, 1) };
const heap = { id: "alloc", source: "allocations", types: [{ name: "alloc_space", unit: "bytes" }], estimates: true,
	estimate: "one block in 512 KiB", bytes: encode([{ stack: [main, f("malloc", "libc.so.6")], values: [4096] }]) };

async function open(profiles = [cpu, heap], fragment = "", options = {}) {
	write_page(file, profiles);
	if (page)
		await page.context().close();
	const context = await browser.newContext({ viewport: { width: 1240, height: 900 }, ...options });
	page = await context.newPage();
	page.setDefaultTimeout(15000);
	session = await context.newCDPSession(page);
	await session.send("Performance.enable", { timeDomain: "threadTicks" });
	errors = [];
	dialogs = 0;
	page.on("pageerror", (e) => errors.push(e.message));
	page.on("console", (m) => m.type() === "error" && errors.push(m.text()));
	page.on("dialog", (d) => { dialogs++; d.dismiss(); });
	await page.goto("file://" + file + "#pane=flame" + fragment);
	await page.waitForFunction(() => document.querySelector(".flame-title")?.textContent ||
		document.querySelector("p.trouble")?.textContent);
}

const text = (selector) => page.evaluate((s) => document.querySelector(s)?.textContent, selector);
const count = (selector) => page.locator(selector).count();
const figures = () => text(".flame-figures");
const names = () => page.evaluate(() => [...document.querySelectorAll(".flame-table tbody tr")].map((r) => [
	r.cells[2].textContent, r.cells[0].querySelector(".flame-share").textContent,
	r.cells[1].querySelector(".flame-share").textContent]));
const choose = async (label, value) => {
	await page.getByLabel(label, { exact: true }).selectOption(value);
	await page.waitForSelector("#pane-flame:not([aria-busy])"); /* another profile is unpacked first */
};
const matched = () => text("#flame-matched");
const address = async () => {
	await page.waitForTimeout(250);
	return Object.fromEntries(new URLSearchParams((await page.evaluate(() => location.hash)).slice(1)));
};

/* Moves over frame rows of the graph: at a share of the width, on a row from the root. */
async function over(share, row, act = "move", graph = 0) {
	const at = await page.evaluate(([k, s, r]) => {
		const e = document.querySelectorAll(".flame-scroll")[k], b = e.getBoundingClientRect();
		const high = matchMedia("(pointer: coarse)").matches ? 26 : 19;
		return [b.left + 1 + s * e.clientWidth, b.top + 1 + (r + .5) * high];
	}, [graph, share, row]);
	await page.mouse[act](...at);
}

/* CPU time of the page's own thread, in ms: what others do on the machine takes none of it. */
async function spent() {
	const { metrics } = await session.send("Performance.getMetrics");
	return 1000 * metrics.find((m) => m.name === "TaskDuration").value;
}

test("what is under the pointer is said: total, self, share, module, file and line", async () => {
	await open();
	equal(await text(".flame-title"), "all", "at first");
	equal(await figures(), "100 samples, 100.0% of all · self 0 samples, 0.0%", "the whole");
	await over(.4, 3);
	equal([await text(".flame-title"), await text(".flame-where")], ["eval", "interpreted · [Python] · eval.py:7"], "eval");
	equal(await figures(), "35 samples, 35.0% of all · self 0 samples, 0.0%", "eval");
	await over(.8, 3);
	equal([await text(".flame-title"), await figures()], ["read", "40 samples, 40.0% of all · self 10 samples, 10.0%"], "read");
	await page.mouse.move(5, 5);
	equal(await text(".flame-title"), "all", "afterwards");
	equal(errors, [], "errors");
});

test("a click zooms, the path leads back, and nothing beside the graph moves", async () => {
	await open();
	const place = () => page.evaluate(() => [".flame-scroll", ".flame-table"].map((s) =>
		document.querySelector(s).getBoundingClientRect().toJSON()));
	const before = await place();
	await over(.4, 3, "click");
	await over(.2, 4);
	equal(await figures(), "15 samples, 15.0% of all · 42.9% of the zoomed frame · self 0 samples, 0.0%", "within the zoomed frame");
	equal(await page.locator(".flame-crumbs button").allTextContents(), ["all", "main", "loop", "eval"], "path");
	equal(await place(), before, "places");
	await page.locator(".flame-crumbs button", { hasText: "main" }).click();
	equal(await page.locator(".flame-crumbs button").allTextContents(), ["all", "main"], "path back");
	equal((await address()).zoom, "1", "address");
	await page.locator(".flame-crumbs button", { hasText: "all" }).click();
	equal((await address()).zoom, undefined, "address of the whole");
	equal(errors, [], "errors");
});

test("the keyboard reaches every frame, zooms, searches, and leaves the page's own keys alone", async () => {
	await open();
	await page.locator(".flame-scroll").focus();
	const press = async (...keys) => {
		for (const key of keys)
			await page.keyboard.press(key);
		return text(".flame-title");
	};
	equal(await press("ArrowDown"), "main", "down");
	equal(await press("ArrowDown"), "loop", "down: the widest");
	equal(await press("ArrowLeft"), "idle", "left");
	equal(await press("ArrowRight", "ArrowDown"), "read", "right, down");
	equal(await press("ArrowLeft"), "eval", "left");
	await press("Enter");
	equal(await page.locator(".flame-crumbs button").last().textContent(), "eval", "zoomed");
	ok(/eval, .*35 samples, 35\.0% of all/.test(await text(".flame-announce")), "announced: " + await text(".flame-announce"));
	await press("Backspace");
	equal(await page.locator(".flame-crumbs button").last().textContent(), "loop", "zoomed out once");
	await press("Escape");
	equal(await page.locator(".flame-crumbs button").count(), 1, "zoomed out");
	await press("/");
	equal(await page.evaluate(() => document.activeElement.type), "search", "the search has the focus");
	await page.keyboard.type("hash");
	equal(await matched(), "35.0% matched, 35 samples", "matched");
	await press("Enter");
	equal(await text(".flame-title"), "hash", "first match");
	await press("Escape");
	equal([await matched(), await page.evaluate(() => document.activeElement.className)], ["", "flame-scroll"], "search ended");
	equal(errors, [], "errors");
});

test("search: text, expressions, and what is none; a stack counts once", async () => {
	await open();
	const search = page.locator(".flame-search input");
	await search.fill("eval");
	equal(await matched(), "35.0% matched, 35 samples", "recursion counts once");
	await page.waitForTimeout(250);
	equal((await names()).map((r) => r[0]), ["eval"], "the table lists matches");
	await search.fill("e(ad|val)$");
	equal(await matched(), "0.0% matched, 0 samples", "as text");
	await page.getByRole("button", { name: "Regular expression" }).click();
	equal(await matched(), "75.0% matched, 75 samples", "as an expression");
	await search.fill("e(ad");
	ok(/^Not a regular expression: .+\.$/.test(await matched()), await matched());
	equal(await search.getAttribute("aria-invalid"), "true", "said to be invalid");
	await search.fill("module:libx");
	equal(await matched(), "35.0% matched, 35 samples", "by module");
	equal((await address()).q, "module:libx", "address");
	equal(errors, [], "errors");
});

test("forms: leaf-up and the sandwich of a function from the table, the graph, and the keyboard", async () => {
	await open();
	await choose("Form", "leaves");
	await over(.05, 1);
	equal([await text(".flame-title"), await figures()], ["hash", "35 samples, 35.0% of all"], "a leaf");
	await choose("Form", "calls");
	await page.locator(".flame-name", { hasText: "eval" }).click();
	equal(await count(".flame-scroll"), 2, "callers and callees");
	equal([await text(".flame-title"), await figures()], ["eval", "35 samples, 100.0% of this function · self 0 samples, 0.0%"], "the function");
	await over(.2, 1, "move", 1);
	ok(/^(parse|eval)$/.test(await text(".flame-title")), "a callee");
	equal((await address()).view, "sandwich", "address");
	await choose("Form", "calls");
	await page.locator(".flame-scroll").focus();
	for (const key of ["ArrowDown", "ArrowDown", "s"])
		await page.keyboard.press(key);
	equal(await text(".flame-title"), "loop", "by key");
	equal(errors, [], "errors");
});

test("the table sorts by each column, and says so to readers of the screen", async () => {
	await open();
	equal((await names()).slice(0, 3), [["hash", "35.0%", "35.0%"], ["sys_read", "30.0%", "30.0%"], ["idle", "25.0%", "25.0%"]], "self");
	await page.getByRole("button", { name: "Total", exact: true }).click();
	equal((await names()).slice(0, 4), [["main", "–", "100.0%"], ["loop", "–", "75.0%"], ["read", "10.0%", "40.0%"],
		["hash", "35.0%", "35.0%"]], "total");
	equal(await page.getAttribute(".flame-table th:nth-child(2)", "aria-sort"), "descending", "aria-sort");
	await page.getByRole("button", { name: "Function", exact: true }).click();
	equal((await names())[0][0], "eval", "by name");
	equal(await page.getAttribute(".flame-table th:nth-child(3)", "aria-sort"), "ascending", "aria-sort");
	equal(errors, [], "errors");
});

test("values, profiles, roots, directions, order and colours can be chosen", async () => {
	await open();
	await choose("Value", "1");
	equal(await figures(), "100.0 ms, 100.0% of all · self 0 ns, 0.0%", "nanoseconds");
	await choose("Root by", "thread");
	await over(.01, 1);
	equal([await text(".flame-title"), await figures()], ["t1 (1)", "65.0 ms, 65.0% of all · self 0 ns, 0.0%"], "a thread");
	for (const colors of ["module", "change", "kind"])
		await choose("Colours", colors);
	for (const name of ["Heaviest first", "Lines", "Upwards"])
		await page.getByRole("button", { name, exact: true }).click();
	equal((await address()), { pane: "flame", source: "oncpu", value: "1", root: "thread", up: "1", lines: "1", heavy: "1" }, "address");
	await choose("Profile", "alloc");
	equal(await figures(), "4.0 KiB, 100.0% of all · self 0 B, 0.0%", "bytes");
	ok((await text(".flame-note")).includes("one block in 512 KiB"), "an estimate is said to be one");
	equal(errors, [], "errors");
});

test("filters keep, drop and leave out, and can be removed", async () => {
	await open();
	const add = async (how, what, value) => {
		await choose("What the filter looks at", what);
		await choose("What the filter does", how);
		await page.getByLabel("Value of the filter").fill(value);
		await page.getByRole("button", { name: "Add" }).click();
	};
	await page.getByText("Filter", { exact: true }).click();
	await add("through", "name", "eval");
	equal(await figures(), "35 samples, 100.0% of all · self 0 samples, 0.0%", "only through eval");
	await add("without", "kind", "inlined");
	equal(await figures(), "15 samples, 100.0% of all · self 0 samples, 0.0%", "without inlined frames");
	equal(await count(".flame-chips li"), 2, "filters shown");
	await add("through", "name", "/(/");
	ok(/^Not a regular expression/.test(await text("#flame-filter-said")), "an invalid one is refused");
	const link = await page.evaluate(() => new Promise((done) => setTimeout(() => done(location.hash), 250)));
	await open([cpu, heap], link.replace("#pane=flame", ""));
	equal([await figures(), await count(".flame-chips li")], ["15 samples, 100.0% of all · self 0 samples, 0.0%", 2], "from a link");
	for (let k = 0; k < 2; k++)
		await page.locator(".flame-chips button").first().click();
	equal(await figures(), "100 samples, 100.0% of all · self 0 samples, 0.0%", "removed");
	await page.locator(".flame-filters summary").click();
	await add("through", "thread", "t2 (2)");
	equal(await figures(), "35 samples, 100.0% of all · self 0 samples, 0.0%", "a thread");
	await page.locator(".flame-chips button").first().click();
	await over(.4, 3, "click");
	await page.getByRole("button", { name: "Without it" }).click();
	equal(await figures(), "40 samples, 61.5% of all · self 0 samples, 0.0%", "without what was zoomed: its caller is");
	equal(errors, [], "errors");
});

test("filters by module, kind and language keep, drop, hide and leave alone what they say", async () => {
	await open();
	await page.getByText("Filter", { exact: true }).click();
	const totals = [];
	for (const [how, what, value] of [["through", "module", "libc"], ["without", "module", "libc"], ["through", "kind", "kernel"], ["through", "language", "Python"],
		["without", "language", "Python"], ["through", "file", "eval.py"], ["without", "process", "app (1)"]]) {
		await choose("What the filter looks at", what);
		await choose("What the filter does", how);
		await page.getByLabel("Value of the filter").fill(value);
		await page.getByRole("button", { name: "Add" }).click();
		totals.push((await figures()).split(" ")[0]);
		await page.locator(".flame-chips button").click();
	}
	equal(totals, ["40", "60", "30", "35", "65", "35", "0"], "samples");
	await choose("What the filter looks at", "module");
	await choose("What the filter does", "hide");
	await page.getByLabel("Value of the filter").fill("app");
	await page.getByRole("button", { name: "Add" }).click();
	equal((await names()).map((n) => n[0]).filter((n) => ["main", "loop", "idle"].includes(n)), [], "hidden frames");
	equal((await figures()).split(" ")[0], "100", "what was in them stays");
	equal(errors, [], "errors");
});

test("roots by process and container; colours by module and kind, with what they mean", async () => {
	const of = (comm, pid, container, samples) => samples.map((s) => ({ ...s, labels: { ...s.labels, comm, pid, container } }));
	const two = { ...cpu, bytes: encode([...of("app", 1, "web", usual.slice(0, 3)), ...of("db", 2, "store", usual.slice(3))], 1) };
	await open([two]);
	for (const [root, name, samples] of [["process", "app (1)", "60 samples"], ["container", "store", "40 samples"]]) {
		await choose("Root by", root);
		await over(.01, 1);
		const first = [await text(".flame-title"), (await figures()).split(",")[0]];
		await over(.99, 1);
		const last = [await text(".flame-title"), (await figures()).split(",")[0]];
		ok([first, last].some((x) => x[0] === name && x[1] === samples), `${root}: ${first} and ${last}`);
	}
	await choose("Root by", "none");
	const legend = () => page.locator(".flame-legend li .frame").allTextContents(), pixels = () => page.evaluate(() => {
		const c = document.querySelector(".flame-scroll canvas"), { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
		return new Set(new Uint32Array(data.buffer)).size;
	});
	const seen = {};
	for (const colors of ["kind", "module"]) {
		await choose("Colours", colors);
		seen[colors] = await legend();
		ok(await pixels() > seen[colors].length, "colours by " + colors);
	}
	ok(["native", "kernel", "interpreted"].every((k) => seen.kind.includes(k)), "kinds: " + seen.kind);
	ok(["app", "[kernel]", "libx.so"].every((m) => seen.module.includes(m)), "modules: " + seen.module);
	await choose("Colours", "change");
	ok((await text(".flame-note")).includes("Select a time"), "a change needs a time");
	equal(errors, [], "errors");
});

test("a name and a link can be copied, and the link opens what was shown", async () => {
	await open();
	await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: { writeText: async (t) => { window.copied = t; } } }));
	await over(.4, 3, "click");
	const title = await text(".flame-title");
	await page.getByRole("button", { name: "Copy name" }).click();
	await page.waitForFunction(() => window.copied);
	equal(await page.evaluate(() => window.copied), title, "name");
	await page.getByRole("button", { name: "Copy link" }).click();
	await page.waitForFunction((before) => window.copied !== before, title);
	const link = await page.evaluate(() => window.copied);
	await open([cpu, heap], link.slice(link.indexOf("#")).replace("#pane=flame", ""));
	equal(await text(".flame-title"), title, "opened from the link");
	equal(errors, [], "errors");
});

test("a selected time changes sums and leaves frames in their order; without times it says so", async () => {
	await open([cpu, heap], "&value=1&time=10-12");
	equal(await figures(), "35.0 ms, 100.0% of all · self 0 ns, 0.0%", "of two seconds");
	await page.waitForTimeout(250);
	equal((await names())[0], ["hash", "100.0%", "100.0%"], "the table follows");
	await choose("Colours", "change");
	await over(.5, 3);
	equal(await figures(), "35.0 ms, 100.0% of all · self 0 ns, 0.0% · 35.0% in the whole run", "beside the whole run");
	await choose("Value", "0");
	equal(await figures(), "100 samples, 100.0% of all · self 0 samples, 0.0%", "a value without times");
	ok(/times of this value are not known/.test(await text(".flame-note")), "said");
	await choose("Value", "1");
	await page.getByRole("button", { name: "All of the run" }).click();
	equal(await figures(), "100.0 ms, 100.0% of all · self 0 ns, 0.0%", "the whole again");
	await open([cpu, heap], "&value=1&time=15-16");
	equal(await text(".flame-empty"), "Nothing of this value in the selected time.", "an empty time");
	equal(errors, [], "errors");
});

test("fine times have a heat map: dragging selects, a search shows where it matches, keys work", async () => {
	const fine = usual.map((s, k) => ({ ...s, times: [[128 * k + 64, s.values[1]]] }));
	const pixels = () => page.evaluate(() => {
		const c = document.querySelector(".flame-heat canvas"), { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
		const colors = {};
		for (let i = 0; i < data.length; i += 4)
			colors[data.slice(i, i + 3)] = (colors[data.slice(i, i + 3)] || 0) + 1;
		return [c.width, c.height, Object.values(colors).reduce((a, b) => a + b) - Math.max(...Object.values(colors))];
	});
	await open([{ ...cpu, fineness: 128, bytes: encode(fine, 1) }, heap], "&value=1");
	equal(await pixels(), [5, 128, 5], "five seconds, of which one bin each has samples");
	equal(await page.locator(".flame-heat-seconds span").allTextContents(), ["0:00", "0:02", "0:04"], "seconds of the columns");
	equal(await page.locator(".flame-heat-within span").allTextContents(), ["0 ms", "250", "500", "750", "1 s"], "within a second");
	ok(/^In each 7\.8 ms: 0\s+10\.0 ms|^In each 7\.8 ms: 0 /.test(await page.locator(".flame-heat-scale").textContent()), "what colours mean");
	await page.locator(".flame-search input").fill("hash");
	equal(await pixels(), [5, 128, 2], "seconds with matches");
	await page.locator(".flame-search input").fill("");
	const area = await page.locator(".flame-heat canvas").boundingBox(), width = area.width / 5;
	const at = (second, part) => [area.x + (second + .5) * width, area.y + part * area.height];
	await page.mouse.move(...at(1, .25));
	await page.mouse.down();
	await page.mouse.move(...at(2, .25));
	await page.mouse.move(...at(2, .75));
	await page.mouse.up();
	await page.waitForFunction(() => /^30\.0 ms/.test(document.querySelector(".flame-figures").textContent));
	equal((await address()).time, "1.25-2.757813", "selected");
	await page.mouse.click(...at(3, .1));
	await page.waitForFunction(() => /^15\.0 ms/.test(document.querySelector(".flame-figures").textContent));
	equal((await address()).time, "3-4", "a click selects its second");
	await page.locator(".flame-heat-area").focus();
	for (const key of ["ArrowRight", "ArrowRight", "Enter"])
		await page.keyboard.press(key);
	equal(await figures(), "10.0 ms, 100.0% of all · self 0 ns, 0.0%", "by keys");
	await choose("Profile", "alloc");
	equal(await page.locator(".flame-heat").isVisible(), false, "hidden without fine times");
	equal(errors, [], "errors");
});

test("a link restores the view; one that asks for what is not there does no harm", async () => {
	await open([cpu, heap], "&view=leaves&q=read&re=1&colors=module&up=1&zoom=2");
	equal([await page.getByLabel("Form", { exact: true }).inputValue(), await matched(),
		await page.locator(".flame-crumbs button").count()], ["leaves", "40.0% matched, 40 samples", 3], "restored");
	for (const bad of ["&view=nothing&fn=99999&zoom=99999999&at=-1&root=constructor&colors=__proto__",
		"&view=sandwich", "&view=sandwich&fn=77", "&source=none&value=9&filter=a,b,c|through,name|%25|,,", "&q=(&re=1", "&node=5",
		"&node=999", "&function=nobody"]) {
		await open([cpu, heap], bad);
		equal(errors, [], bad);
		ok(/of all|of the zoomed|of this function/.test(await figures()), bad + ": " + await figures());
	}
	await open([cpu, heap], "&function=eval");
	equal(await text(".flame-title"), "eval", "a function by name");
	await open([cpu, heap], "&node=4");
	equal(await text(".flame-title"), "sys_read", "a node of the profile");
});

test("names cannot do harm: markup, 10 kB, other directions", async () => {
	const evil = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "\"'><b>bold</b>", "x".repeat(10000),
		"\u05d0\u05d1\u05d2", "a\nb\tc", "__proto__", "constructor", "%s${alert(3)}"];
	const bytes = encode(evil.map((name, k) => ({ stack: [f(name, name, 0, name), f("leaf" + k)],
		labels: { pid: 1, tid: k + 1, comm: name, thread: name, container: name }, values: [k + 1, k + 1] })));
	await open([{ ...cpu, title: evil[0], source: evil[1], bytes }], "&root=thread&colors=module");
	for (const view of ["leaves", "sandwich", "calls"])
		await choose("Form", view);
	for (let row = 0; row < 4; row++)
		await over(.9, row, "click");
	await page.getByRole("button", { name: "Only through it" }).click();
	await page.waitForTimeout(300);
	equal([errors, dialogs, await count("#panes img, #panes b, #panes script")], [[], 0, 0], "errors, dialogs, elements");
	ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is not wider than the window");
});

test("a damaged profile is one sentence, and the others still open", async () => {
	await open([{ ...cpu, bytes: cpu.bytes.subarray(0, 150) }, heap]);
	ok(/^The profile in this page is damaged: .+\.$/.test(await text("p.trouble:not([hidden])")), await text("p.trouble"));
	await choose("Profile", "alloc");
	equal(await figures(), "4.0 KiB, 100.0% of all · self 0 B, 0.0%", "the other one");
	await open([{ ...cpu, text: "@@@" }]);
	equal(await text("p.trouble:not([hidden])"), "The profile in this page is damaged: it is not base64.", "not base64");
	equal(errors, [], "errors");
});

test("on a phone, a touch shows a frame and the next one zooms", async () => {
	await open([cpu, heap], "", { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true });
	const tap = async (share, row) => {
		const b = await page.locator(".flame-scroll").boundingBox();
		await page.touchscreen.tap(b.x + share * b.width, b.y + 1 + (row + .5) * 26);
	};
	await page.locator(".flame-scroll").scrollIntoViewIfNeeded();
	await tap(.4, 3);
	equal([await text(".flame-title"), await count(".flame-crumbs button")], ["eval", 1], "first touch");
	await tap(.4, 3);
	equal(await count(".flame-crumbs button"), 4, "second touch");
	ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page is not wider than the screen");
	equal(errors, [], "errors");
});

test("stacks far deeper than any screen are drawn and reached", async () => {
	const deep = Array.from({ length: 2500 }, (_, k) => f("level" + k % 7));
	await open([{ ...cpu, bytes: encode([{ stack: deep, values: [1, 1] }, { stack: [main], values: [1, 1] }]) }]);
	await page.locator(".flame-scroll").focus();
	for (let k = 0; k < 60; k++)
		await page.keyboard.press("ArrowDown");
	equal(await text(".flame-title"), "level" + 59 % 7, "60 rows down");
	await page.evaluate(() => { document.querySelector(".flame-scroll").scrollTop = 1e6; });
	await page.waitForTimeout(100);
	await over(.1, 2);
	ok(/^level/.test(await text(".flame-title")), "at the end: " + await text(".flame-title"));
	equal(errors, [], "errors");
});

test("20,000 stacks: a zoom, a search and a step of a selection take little of the page's time", async () => {
	const random = chance(5), list = [];
	for (let k = 0; k < 20000; k++) {
		const stack = [main];
		for (let d = 0, h = 0; d < 15; d++)
			stack.push(f("f" + (h = (h * 5 + Math.floor(random() * random() * 4)) % 997)));
		list.push({ stack, values: [2, 2e6], times: [[k % 10, 1e6], [10 + k % 10, 1e6]] });
	}
	await open([{ ...cpu, bytes: encode(list, 1) }], "&value=1");
	const before = await spent(), steps = 20;
	for (let k = 0; k < steps; k++)
		await page.evaluate((from) => { panes.list.find((p) => p.id === "flame").select({ from, to: from + 4, from_bin: from,
			to_bin: from + 4 }); }, k % 16);
	const step = (await spent() - before) / steps;
	console.log("# " + step.toFixed(1) + " ms for a step of a selection");
	ok(step < 100, "a step takes " + step + " ms"); /* 16 ms are asked for where nothing else runs */
	equal(errors, [], "errors");
});

await run_tests(browser);
