/* The Firefox Profiler's own reader, its command line, opens what convert makes and finds our functions and totals. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dir, equal, install, ok, run, run_tests, test } from "./chromium.mjs";

/* It needs a newer Node.js than Debian 12 has. */
const modules = install(["node@24", "@firefox-devtools/profiler-cli"], "firefox");
let session;

function reader(...words) {
	return spawnSync(join(modules, ".bin", "node"),
		[join(modules, "@firefox-devtools/profiler-cli/dist/profiler-cli.js"), ...words],
		{ encoding: "utf8", cwd: dir, timeout: 120e3, env: { ...process.env, HOME: dir } });
}

function ask(...words) {
	const r = reader(...words, "--session", session);
	if (r.status !== 0)
		throw new Error(words.join(" ") + ": " + (r.stderr || r.stdout).slice(0, 600));
	return r.stdout;
}

/* Its daemon gets half a second to begin, which is too short on a busy machine: then it is asked for another one. */
async function load(file) {
	let r;
	for (let i = 0; i < 30; i++) {
		session = "try-" + i;
		r = reader("load", file, "--session", session);
		if (r.status === 0 || !/did not become ready/.test(r.stderr + r.stdout))
			break;
		await new Promise((done) => setTimeout(done, 1000));
	}
	if (r.status !== 0)
		throw new Error("load: " + (r.stderr || r.stdout).slice(0, 600));
}

const odd = 'we<ird> "quoted"';
const stacks = [["server;main;parse", 30], ["server;main;read;sys_read_[k]", 50], [`server;main;${odd};main`, 20]];
writeFileSync(join(dir, "in.folded"), stacks.map(([s, n]) => `${s} ${n}`).join("\n") + "\n");

test("profiler-cli opens it, and its self and total are ours, also of a recursive function", async () => {
	run("convert", "in.folded", "-o", "out.firefox.json");
	try {
		await load("out.firefox.json");
		const text = ask("thread", "functions", "--thread", "t-0", "--limit", "0", "--include-idle");
		const rows = Object.fromEntries([...text.matchAll(/^\s*f-\d+\. (.*) - self: (\d+) .*total: (\d+)/gm)]
			.map(([, name, self, total]) => [name.replace(/^.*!/, ""), [+self, +total]]));
		equal(rows.parse, [30, 30], "parse");
		equal(rows.read, [0, 50], "read");
		equal(rows.main, [20, 100], "main, which calls itself by another");
		equal(rows[odd], [0, 20], "a name with signs");
		ok(/sys_read - self: 50/.test(text), text);
	} finally {
		reader("stop", "--all");
	}
});

test("columns are as long as their tables say, and times grow", () => {
	const profile = JSON.parse(readFileSync(join(dir, "out.firefox.json")));
	for (const [name, table] of Object.entries(profile.shared))
		for (const [column, values] of Object.entries(table))
			if (Array.isArray(values))
				equal(values.length, table.length, name + "." + column);
	for (const { samples } of profile.threads) {
		equal([samples.time.length, samples.weight.length], [samples.length, samples.length], "samples");
		ok(samples.time.every((t, i) => !i || t >= samples.time[i - 1]), "times: " + samples.time);
	}
});

await run_tests({ close() {} });
