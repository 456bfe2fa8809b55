/* Profiles as pprof's profile.proto has them, for tests: as little of it as memscope needs to take one for a run's. */
import { gzipSync } from "node:zlib";

const varint = (v) => {
	const out = [];
	for (let n = BigInt(v); ; n >>= 7n) {
		if (n < 128n)
			return [...out, Number(n)];
		out.push(Number(n & 127n) | 128);
	}
};
const number = (field, v) => [...varint(field << 3), ...varint(v)];
const bytes = (field, list) => [...varint(field << 3 | 2), ...varint(list.length), ...list];
const utf8 = (s) => [...new TextEncoder().encode(s)];

/*
 * samples: [{ stack: ["main", …] root first, values }] in functions of module `module`; types [[name, unit]]. What is counted and of what period:
 * `period` of the last type. A gzipped file, in whose order sample_times of a run count them.
 */
export function pprof({ samples, types, seconds, started, period = 10101010, module = "/bin/web", comment = [] }) {
	const strings = [""], out = [], functions = new Map();
	const string = (s) => { if (!strings.includes(s)) strings.push(s); return strings.indexOf(s); };
	const fn = (name) => { if (!functions.has(name)) functions.set(name, functions.size + 1); return functions.get(name); };
	const value_type = ([name, unit]) => [...number(1, string(name)), ...number(2, string(unit))];

	for (const t of types)
		out.push(...bytes(1, value_type(t)));
	for (const s of samples)
		out.push(...bytes(2, [...bytes(1, s.stack.map(fn).reverse().flatMap(varint)), ...bytes(2, s.values.flatMap(varint)),
			...bytes(3, [...number(1, string("comm")), ...number(2, string("web"))]),
			...bytes(3, [...number(1, string("tid")), ...number(3, s.tid || 7)]), ...bytes(3, [...number(1, string("pid")), ...number(3, 7)])]));
	out.push(...bytes(3, [...number(1, 1), ...number(2, 4096), ...number(3, 1 << 20), ...number(5, string(module)), ...number(7, 1)]));
	for (const [, id] of functions)
		out.push(...bytes(4, [...number(1, id), ...number(2, 1), ...number(3, 4096 + id), ...bytes(4, [...number(1, id), ...number(2, 1)])]));
	for (const [name, id] of functions)
		out.push(...bytes(5, [...number(1, id), ...number(2, string(name))]));
	const last = [...number(9, BigInt(started) * 1000000000n), ...number(10, BigInt(Math.round(seconds * 1e9))),
		...bytes(11, value_type(types[types.length - 1])), ...number(12, period), ...comment.flatMap((c) => number(13, string(c)))];
	for (const s of strings)
		out.push(...bytes(6, utf8(s)));
	return gzipSync(Uint8Array.from([...out, ...last]));
}
