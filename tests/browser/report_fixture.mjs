/*
 * What tests of the HTML report share: the page's scripts run under node, an encoder of profiles as
 * user/render/html/page_data.h has them, and profiles drawn by a seed.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateRawSync } from "node:zlib";

export const assets = join(dirname(fileURLToPath(import.meta.url)), "../../user/render/assets/report");

/* The objects that scripts of the page define, by name, all from one evaluation. */
export function scripts(files, names) {
	const source = files.map((f) => readFileSync(join(assets, f), "utf8")).join("\n");
	return new Function(source + "\nreturn {" + names.join(",") + "};")();
}

/* --- bytes ---------------------------------------------------------------------------------------- */

export class Writer {
	constructor() {
		this.bytes = [];
	}

	number(v) {
		for (; v >= 128; v = Math.floor(v / 128))
			this.bytes.push(v % 128 + 128);
		this.bytes.push(v);
		return this;
	}

	signed(v) {
		return this.number(v < 0 ? -2 * v - 1 : 2 * v);
	}

	column(values, write = (v) => this.number(v)) {
		values.forEach(write);
		return this;
	}
}

/*
 * A profile of samples {stack: [frame, …] root first, labels, values: [number per type], times: [[bin, value], …]}
 * with frames {name, module, file, line, kind}, labels {pid, tid, comm, thread, container}; `timed` is the value type
 * that the times are of, -1: none.
 */
export function encode(samples, timed = -1) {
	const w = new Writer(), strings = [""], numbers = new Map([["", 0]]);
	const string = (s = "") => {
		if (!numbers.has(s)) {
			numbers.set(s, strings.length);
			strings.push(s);
		}
		return numbers.get(s);
	};
	const numbered = (list, keys, key, row) => {
		if (!keys.has(key)) {
			keys.set(key, list.length);
			list.push(row);
		}
		return keys.get(key);
	};
	const frames = [], frame_keys = new Map(), nodes = [null], node_keys = new Map(), sets = [], set_keys = new Map();
	const rows = samples.map((s) => {
		let node = 0;
		for (const f of s.stack) {
			const row = [string(f.name), string(f.module), string(f.file), f.line || 0, f.kind || 0];
			const frame = numbered(frames, frame_keys, row.join(), row);
			node = numbered(nodes, node_keys, node + "," + frame, [nodes.length - node, frame]);
		}
		const l = s.labels || {};
		const set = [l.pid || 0, l.tid || 0, string(l.comm), string(l.thread), string(l.container)];
		return { node, set: numbered(sets, set_keys, set.join(), set), s };
	}).sort((a, b) => a.node - b.node);

	w.number(1).number(strings.length);
	for (const s of strings) {
		const utf8 = new TextEncoder().encode(s);
		w.number(utf8.length);
		for (const b of utf8)
			w.bytes.push(b);
	}
	w.number(frames.length);
	for (let c = 0; c < 5; c++)
		w.column(frames.map((f) => f[c]));
	w.number(nodes.length - 1);
	for (let c = 0; c < 2; c++)
		w.column(nodes.slice(1).map((n) => n[c]));
	w.number(sets.length);
	for (let c = 0; c < 5; c++)
		w.column(sets.map((s) => s[c]));
	w.number(rows.length);
	let last = 0;
	for (const r of rows) {
		w.signed(r.node - last);
		last = r.node;
	}
	w.column(rows.map((r) => r.set));
	for (let t = 0; rows.length && t < rows[0].s.values.length; t++)
		w.column(rows.map((r) => r.s.values[t]), (v) => w.signed(v));
	w.number(timed >= 0 ? 1 : 0);
	if (timed >= 0) {
		w.number(timed);
		for (const r of rows) {
			let at = 0;
			w.number((r.s.times || []).length);
			for (const [bin, value] of r.s.times || []) {
				w.number(bin - at).signed(value);
				at = bin;
			}
		}
	}
	return Uint8Array.from(w.bytes);
}

export function packed(bytes) {
	return deflateRawSync(bytes).toString("base64");
}

/* --- profiles by chance ------------------------------------------------------------------------------ */

/* Numbers in 0 … 1, the same for the same seed (mulberry32). */
export function chance(seed) {
	return () => {
		seed = seed + 0x6d2b79f5 | 0;
		let t = Math.imul(seed ^ seed >>> 15, 1 | seed);
		t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
		return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
	};
}

/*
 * Samples of few functions, so that stacks have recursion, functions of one name in two modules, and
 * frames that differ by line or kind alone.
 */
export function random_samples(seed, n) {
	const random = chance(seed), below = (k) => Math.floor(random() * k);
	const frame = () => {
		const name = "abcdef"[below(6)];
		return { name, module: name < "c" ? ["m1", "m2"][below(2)] : "m1", kind: [0, 0, 1, 4][below(4)],
			file: ["", name + ".c", name + ".py"][below(3)], line: below(3) };
	};
	return Array.from({ length: n }, () => {
		const times = [];
		for (let bin = below(4); bin < 20; bin += 1 + below(9))
			times.push([bin, 1 + below(50)]);
		const tid = 10 + below(3);
		return {
			stack: Array.from({ length: below(8) }, frame), times,
			labels: { pid: 1 + tid % 2, tid, comm: "p" + tid % 2, thread: ["", "w"][below(2)],
				container: ["", "c1"][below(2)] },
			values: [1 + below(9), times.reduce((sum, [, v]) => sum + v, 0)],
		};
	});
}

/* --- pages ---------------------------------------------------------------------------------------------- */

/* The page's scripts in the order in which the build joins them, and its styles. */
function joined(ending) {
	const first = ["main.js", "data.js", "format.js"];
	const rest = readdirSync(assets).filter((f) => f.endsWith(ending) && f !== "theme.js" && !first.includes(f)).sort();
	return [...(ending === ".js" ? first : []), ...rest].map((f) => readFileSync(join(assets, f), "utf8") + "\n").join("");
}

/*
 * Writes a page with these profiles [{id, source, types, bytes, …}] and nothing else, under a policy as strict as the
 * real one. `run` adds to what the page knows of the run.
 */
export function write_page(path, profiles, run = {}) {
	const hash = (text) => "'sha256-" + createHash("sha256").update(text).digest("base64") + "'";
	const script = joined(".js"), style = joined(".css"), theme = readFileSync(join(assets, "theme.js"), "utf8");
	const list = profiles.map((p) => ({ title: p.source, shown_type: 0, estimates: false, estimate: null,
		data: "profile-" + p.id, ...p, bytes: undefined, text: undefined }));
	const json = JSON.stringify({ title: "a test", memscope: "0", started: 0, seconds: 20, bin_seconds: 1, n_bins: 20,
		charts: false, series: [], details: [], summary: null, profiles: list, ...run }).replaceAll("<", "\\u003c");
	const data = `<script type="application/json" id="run">${json}</script>` + profiles.map((p) =>
		`<script type="application/octet-stream" id="profile-${p.id}">${p.text || packed(p.bytes)}</script>`).join("");
	const parts = { TITLE: "a test", STYLE: style, THEME: theme, SCRIPT: script, DATA: data,
		POLICY: `default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src ${hash(style)}; ` +
			`script-src ${hash(theme)} ${hash(script)}` };
	writeFileSync(path, readFileSync(join(assets, "page.html"), "utf8").replace(/@([A-Z]+)@/g, (_, name) => parts[name]));
}

/* --- profile.proto ------------------------------------------------------------------------------------------------ */

/*
 * A pprof file, not gzipped: `types` are [name, unit], `samples` {stack: names from the root on, values, labels: {key: text or number}},
 * a name ending in _[k] is the kernel's. `meta`: {time_ns, duration_ns, period, file: of all functions, each on a line of its own}.
 */
export function pprof(types, samples, meta = {}) {
	const strings = [""], functions = [], varint = (n) => {
		const out = [];
		for (let v = BigInt(n); ; v >>= 7n) {
			out.push(Number(v & 127n) | (v > 127n ? 128 : 0));
			if (v <= 127n)
				return out;
		}
	};
	const text = (s) => strings.includes(s) ? strings.indexOf(s) : strings.push(s) - 1;
	const number = (field, n) => n ? [...varint(field << 3), ...varint(n)] : [];
	const bytes = (field, list) => [...varint(field << 3 | 2), ...varint(list.length), ...list];
	const location = (name) => (functions.includes(name) ? functions.indexOf(name) : functions.push(name) - 1) + 1;
	const body = [];
	for (const s of samples) {
		const labels = Object.entries(s.labels || {}).flatMap(([key, v]) => bytes(3, [...number(1, text(key)),
			...(typeof v === "number" ? number(3, v) : number(2, text(v)))]));
		body.push(...bytes(2, [...bytes(1, [...s.stack].reverse().flatMap((name) => varint(location(name)))), ...bytes(2, s.values.flatMap((v) => varint(v))), ...labels]));
	}
	const mapping = (id, file) => bytes(3, [...number(1, id), ...number(2, 4096), ...number(3, 1 << 20), ...number(5, text(file)), ...number(7, 1)]);
	functions.forEach((name, i) => {
		const kernel = name.endsWith("_[k]"), shown = text(name.replace(/_\[k\]$/, ""));
		body.push(...bytes(4, [...number(1, i + 1), ...number(2, kernel ? 2 : 1), ...number(3, 8192 + 16 * i), ...bytes(4, [...number(1, i + 1), ...(meta.file ? number(2, 10 + i) : [])])]),
			...bytes(5, [...number(1, i + 1), ...number(2, shown), ...number(3, shown), ...(meta.file ? number(4, text(meta.file)) : [])]));
	});
	body.push(...mapping(1, "/usr/bin/web"), ...mapping(2, "[kernel.kallsyms]"), ...number(9, meta.time_ns || 0), ...number(10, meta.duration_ns || 0),
		...(meta.period ? [...bytes(11, [...number(1, text(types[0][0])), ...number(2, text(types[0][1]))]), ...number(12, meta.period)] : []));
	const head = types.flatMap(([name, unit]) => bytes(1, [...number(1, text(name)), ...number(2, text(unit))]));
	return Buffer.from([...head, ...body, ...strings.flatMap((s) => bytes(6, [...Buffer.from(s)]))]);
}
