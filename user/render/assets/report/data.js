/*
 * The profiles embedded in the page: base64 of raw deflate of columns of varints, as
 * user/render/html/page_data.h specifies them. Decoded into typed arrays; strings stay text that
 * nobody has checked, so they may only become textContent or pixels.
 *
 * What is damaged throws an Error of one sentence. Every count is compared with the bytes that are
 * left before anything of that size is allocated, so no page makes the browser hang.
 */
const report_data = (function () {
"use strict";

const VERSION = 1;
const MOST_BYTES = 1 << 30; /* of one profile, inflated */
const MOST_BINS = 1 << 22;
const KINDS = ["native", "kernel", "interpreted", "JIT-compiled", "inlined", "marker", "guessed"];

function damaged(what, at) {
	return new Error("The profile in this page is damaged: " + what +
		(at === undefined ? "." : " (at byte " + at + ")."));
}

/* Reads numbers from bytes; `need` names what was expected where they end. */
class Reader {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}

	/* An unsigned varint, exact up to 2^53. */
	number(need) {
		const bytes = this.bytes;
		let at = this.at, byte, value = 0, factor = 1;

		do {
			if (at >= bytes.length)
				throw damaged("it ends within " + need, at);
			byte = bytes[at++];
			value += (byte & 127) * factor;
			factor *= 128;
			if (factor > 2 ** 70)
				throw damaged(need + " is longer than a number can be", this.at);
		} while (byte & 128);
		this.at = at;
		return value;
	}

	/* A signed one: 0, -1, 1, -2 … are written as 0, 1, 2, 3 … */
	signed(need) {
		const v = this.number(need);
		return v % 2 ? -(v + 1) / 2 : v / 2;
	}

	/* How many follow, each of `least` bytes or more. */
	count(need, least) {
		const at = this.at, n = this.number(need);
		if (n > (this.bytes.length - this.at) / least)
			throw damaged("it has fewer bytes left than " + need + " (" + n + ")", at);
		return n;
	}

	/* A number below `limit`. */
	index(limit, need) {
		const at = this.at, v = this.number(need);
		if (v >= limit)
			throw damaged(need + " is " + v + ", where there are " + limit, at);
		return v;
	}

	column(n, limit, need, into = new Int32Array(n)) {
		for (let i = 0; i < n; i++)
			into[i] = this.index(limit, need);
		return into;
	}
}

function read_strings(r) {
	const n = r.count("the number of strings", 1), text = new TextDecoder(), strings = new Array(n);

	for (let i = 0; i < n; i++) {
		const length = r.count("the length of a string", 1);
		strings[i] = text.decode(r.bytes.subarray(r.at, r.at + length));
		r.at += length;
	}
	if (!n || strings[0] !== "")
		throw damaged("its first string is not the empty one");
	return strings;
}

function read_frames(r, n_strings) {
	const n = r.count("the number of frames", 5);

	return {
		n,
		name: r.column(n, n_strings, "the name of a frame"),
		module: r.column(n, n_strings, "the module of a frame"),
		file: r.column(n, n_strings, "the file of a frame"),
		line: r.column(n, 2 ** 31, "the line of a frame"),
		kind: r.column(n, 256, "the kind of a frame", new Uint8Array(n)),
	};
}

/* Node 0 is the root of all; parents come before children. */
function read_nodes(r, n_frames) {
	const n = r.count("the number of nodes", 2) + 1;
	const parent = new Int32Array(n), frame = new Int32Array(n);

	parent[0] = frame[0] = -1;
	for (let i = 1; i < n; i++) {
		const back = r.number("the parent of a node");
		if (back < 1 || back > i)
			throw damaged("node " + i + " has no parent before it", r.at);
		parent[i] = i - back;
	}
	for (let i = 1; i < n; i++)
		frame[i] = r.index(n_frames, "the frame of a node");
	return { n, parent, frame };
}

function read_sets(r, n_strings) {
	const n = r.count("the number of label sets", 5);

	return {
		n,
		pid: r.column(n, 2 ** 31, "a process ID"),
		tid: r.column(n, 2 ** 31, "a thread ID"),
		comm: r.column(n, n_strings, "the name of a process"),
		thread: r.column(n, n_strings, "the name of a thread"),
		container: r.column(n, n_strings, "the name of a container"),
	};
}

function read_samples(r, n_nodes, n_sets, n_types) {
	const n = r.count("the number of samples", 2 + n_types);
	const node = new Int32Array(n), values = [];

	for (let i = 0, last = 0; i < n; i++) {
		last += r.signed("the node of a sample");
		if (!(last >= 0 && last < n_nodes))
			throw damaged("sample " + i + " has no node", r.at);
		node[i] = last;
	}
	const set = r.column(n, n_sets, "the label set of a sample");
	for (let t = 0; t < n_types; t++) {
		const column = new Float64Array(n);
		for (let i = 0; i < n; i++)
			column[i] = r.signed("the value of a sample");
		values.push(column);
	}
	return { n, node, set, values };
}

/*
 * When the values of one type came: those of sample i are first[i] … first[i + 1] - 1. `bin` counts the page's bins,
 * `fine_bin` the profile's own, of which `fineness` make one of the page's.
 */
function read_times(r, n_samples, n_types, fineness) {
	const type = r.index(n_types, "the value type of times");
	const most = (r.bytes.length - r.at) >> 1;
	const first = new Int32Array(n_samples + 1), bin = new Int32Array(most);
	const value = new Float64Array(most);
	let n = 0, n_bins = 0;

	for (let i = 0; i < n_samples; i++) {
		const k = r.count("the number of a sample's times", 2);
		for (let j = 0, at = 0; j < k; j++) {
			at += r.number("the time of a sample");
			if (at >= MOST_BINS)
				throw damaged("a time is past the end of any run", r.at);
			bin[n] = at;
			value[n++] = r.signed("the value at a time");
			if (at >= n_bins)
				n_bins = at + 1;
		}
		first[i + 1] = n;
	}
	const fine_bin = bin.slice(0, n);
	return { type, n, n_bins: Math.ceil(n_bins / fineness), n_fine_bins: n_bins, first, fine_bin, value: value.slice(0, n),
		bin: fineness > 1 ? fine_bin.map((b) => b / fineness) : fine_bin }; /* whole numbers: it is an Int32Array */
}

/*
 * One profile of `n_types` value types; `fineness` as its entry in the page has it. In the result, `frames`, `nodes`, `sets` and `samples` are
 * columns of length n; names, modules, files and labels are indices into `strings`, where 0 is none;
 * `times` has an entry for each value type whose times are known.
 */
function decode(bytes, n_types, fineness = 1) {
	const r = new Reader(bytes), version = r.number("the version");

	if (version !== VERSION)
		throw new Error("The profile in this page has version " + version + ", and this page reads " +
			VERSION + ".");
	const strings = read_strings(r);
	const frames = read_frames(r, strings.length);
	const nodes = read_nodes(r, frames.n);
	const sets = read_sets(r, strings.length);
	const samples = read_samples(r, nodes.n, sets.n, n_types);
	const times = [];
	for (let k = r.index(n_types + 1, "the number of types with times"); k > 0; k--)
		times.push(read_times(r, samples.n, n_types, fineness));
	if (r.at !== bytes.length)
		throw damaged("bytes follow its end", r.at);
	return { strings, frames, nodes, sets, samples, times };
}

/* --- from the page ----------------------------------------------------------------------------- */

function from_base64(text) {
	let raw;

	try {
		raw = atob(text.trim());
	} catch (error) {
		throw damaged("it is not base64");
	}
	const bytes = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++)
		bytes[i] = raw.charCodeAt(i);
	return bytes;
}

async function inflate(bytes) {
	if (typeof DecompressionStream === "undefined")
		throw new Error("This browser cannot unpack the profile: it has no DecompressionStream " +
			"(Chrome 103, Firefox 113 and Safari 16.4 have).");
	const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
	const parts = [];
	let length = 0;

	for (;;) {
		let part;
		try {
			part = await reader.read();
		} catch (error) {
			throw damaged("it cannot be inflated");
		}
		if (part.done)
			break;
		length += part.value.length;
		if (length > MOST_BYTES) {
			reader.cancel();
			throw damaged("it inflates to more than 1 GiB");
		}
		parts.push(part.value);
	}
	const all = new Uint8Array(length);
	let at = 0;
	for (const p of parts) {
		all.set(p, at);
		at += p.length;
	}
	return all;
}

/* The inflated bytes of the element `id`. */
async function bytes_of(id) {
	const element = document.getElementById(id);

	if (!element)
		throw damaged("the element " + id + " is missing");
	return inflate(from_base64(element.textContent));
}

/* A profile of the page, `p` being its entry in the list of profiles; decoded once. */
const loaded = new Map();
function load(p) {
	if (!loaded.has(p.data))
		loaded.set(p.data, bytes_of(p.data).then((bytes) => decode(bytes, p.types.length, p.fineness || 1)));
	return loaded.get(p.data);
}

return { decode, load, read_strings, bytes_of, from_base64, inflate, Reader, KINDS };
})();
