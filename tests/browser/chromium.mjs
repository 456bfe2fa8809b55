/*
 * What the browser tests share: a headless Chromium driven through npm's playwright-core, and TAP.
 *
 * The packages are installed once below the build directory. Without chromium, npm or a registry
 * that answers, the whole file is skipped with the reason.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

export const memscope = process.env.MEMSCOPE || resolve("build/memscope");
const build = process.env.BUILD || resolve("build");
const packages = ["playwright-core", "speedscope"];
/* Debian 12 has Node.js 18, which the newest of these refuses. */
const versions = parseInt(process.versions.node) < 20 ? { "playwright-core": "@1.50.0" } : {};
const flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
	"--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const modules = join(build, "node", "node_modules");
export const dir = mkdtempSync(join(tmpdir(), "memscope-browser-"));
process.on("exit", () => rmSync(dir, { recursive: true, force: true }));

function skip_all(reason) {
	console.log("1..0 # SKIP " + reason);
	process.exit(0);
}

/* Packages of npm, below the build directory in a place of their own. */
export function install(wanted, place) {
	const there = () => wanted.every((p) => existsSync(join(build, place, "node_modules", p.replace(/@\d+$/, ""))));
	if (there())
		return join(build, place, "node_modules");
	/* Another test may be at it, too: what is being installed has a place of its own until it is whole. */
	const part = join(build, place + "-" + process.pid);
	mkdirSync(join(part, "node_modules"), { recursive: true });
	const npm = spawnSync("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--prefix", part,
		...wanted.map((p) => p + (versions[p] || ""))],
	{ encoding: "utf8", timeout: 180e3 });
	try {
		if (npm.status === 0)
			renameSync(part, join(build, place));
	} catch { /* the other test was first */ }
	rmSync(part, { recursive: true, force: true });
	if (npm.error && npm.error.code === "ETIMEDOUT")
		skip_all("npm did not end within three minutes");
	if (npm.error)
		skip_all("npm is not installed (apt-get install npm)");
	if (!there())
		skip_all("npm cannot install " + wanted.join(" and "));
	return join(build, place, "node_modules");
}

/* A browser; the caller closes it. */
export async function launch() {
	const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"]
		.find(existsSync);
	if (!executablePath)
		skip_all("no chromium (apt-get install chromium)");
	install(packages, "node");
	const { chromium } = await import(join(modules, "playwright-core", "index.mjs"));
	return chromium.launch({ executablePath, args: flags });
}

/* Runs memscope, for 5 s of CPU time at most; throws what it said when it fails. */
export function run(...args) {
	const r = spawnSync("sh", ["-c", 'ulimit -t 5; exec "$0" "$@"', memscope, ...args],
		{ encoding: "utf8", cwd: dir });
	if (r.status !== 0)
		throw new Error("memscope " + args.join(" ") + ": " + r.stderr);
}

export function flame(...args) {
	run("flame", ...args);
}

/* --- TAP ----------------------------------------------------------------------------------------- */

const tests = [];

export function test(fact, run) {
	tests.push({ fact, run });
}

export function equal(got, want, what = "value") {
	if (JSON.stringify(got) !== JSON.stringify(want))
		throw new Error(`${what}: got ${JSON.stringify(got).slice(0, 300)}, ` +
			`wanted ${JSON.stringify(want).slice(0, 300)}`);
}

export function ok(condition, what) {
	if (!condition)
		throw new Error(what);
}

/* Runs every test; the exit status says whether all passed. */
export async function run_tests(browser) {
	let failed = 0;
	console.log("1.." + tests.length);
	for (const [i, t] of tests.entries()) {
		try {
			await t.run();
			console.log(`ok ${i + 1} - ${t.fact}`);
		} catch (error) {
			failed++;
			console.log("# " + String(error.message || error).split("\n").slice(0, 12).join("\n# "));
			console.log(`not ok ${i + 1} - ${t.fact}`);
		}
	}
	await browser.close();
	process.exit(failed ? 1 : 0);
}
