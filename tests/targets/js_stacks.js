/*
 * JavaScript that prints the stack it is in, and sleeps, spins or allocates on the same line: node js_stacks.js FILE
 * Each stack once, leaf first: what, then "function|file|line" for each frame, between tabs; then "ready".
 */
"use strict";

const fs = require("fs");
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
const out = fs.openSync(isMainThread ? process.argv[2] || "/dev/stdout" : workerData, "a");
const cell = new Int32Array(new SharedArrayBuffer(4));
const said = new Set();
let round = 0, kept;

Error.stackTraceLimit = Infinity;

function frame(site) {
	return `${site.getFunctionName() || ""}|${site.getFileName() || ""}|${site.getLineNumber() || 0}`;
}

/* Neither awaiting, nor WebAssembly, whose frames are addresses. */
function isHere(site) {
	return !(site.isAsync && site.isAsync()) && !/^wasm:/.test(site.getFileName() || "");
}

function say(what) {
	const here = {}, was = Error.prepareStackTrace;

	if (round % 10)
		return; /* printing takes longer than what is measured */
	Error.prepareStackTrace = (error, sites) => sites.filter(isHere).map(frame);
	Error.captureStackTrace(here, say);
	const line = [what, ...here.stack].join("\t") + "\n";
	Error.prepareStackTrace = was;
	if (!said.has(line)) {
		said.add(line);
		fs.writeSync(out, line);
	}
}

function sleeper() { say("sleep"); Atomics.wait(cell, 0, 0, 1); return 1; }

function spinner(n) { say("spin"); let x = n | 1; for (let i = 0; i < 20000; i++) x = (x * 1103515245 + 12345) | 0; return x; }

function allocator() { say("alloc"); kept = Buffer.allocUnsafeSlow(300000); return kept.length; }

function work(n) {
	return sleeper() + spinner(n) + allocator();
}

function recursive(depth, n) {
	if (depth > 0)
		return 1 + recursive(depth - 1, n);
	return work(n);
}

class Shape {
	constructor(n) {
		this.area = work(n);
	}

	measure(n) {
		return [n].map(function inMap(x) {
			return recursive(20, x);
		})[0] + this.area;
	}

	static all(n) {
		return new Shape(n).measure(n);
	}
}

function* generator(n) {
	yield work(n);
	yield Shape.all(n);
}

const arrow = (n) => {
	let sum = 0;

	for (const x of generator(n))
		sum += x;
	return sum;
};

/* (func (export "g") (param i32) (result i32) (call $f (local.get 0))), where $f is imported. */
const wasm = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(
	"0061736d0100000001060160017f017f020701016101660000030201000705010167000" + "10a0801060020001000" + "0b", "hex")),
	{ a: { f: function fromWasm(n) { return work(n); } } });

async function later(n) {
	await null;
	await work(n);
	return work(n);
}

function compare(n) {
	return [3, 1, 2].sort(function bySize(a, b) {
		return kept && a === 1 && b === 3 ? work(n) & 1 : a - b;
	}).length;
}

function outer(n) {
	const bound = arrow.bind(null, n);

	return bound() + compare(n) + wasm.exports.g(n) + JSON.parse("[1]", function reviver(key, value) {
		return key === "0" ? work(n) : value;
	}).length + "x".replace(/x/g, function replacer() {
		return String(recursive(3, n));
	}).length;
}

function turn() {
	round++;
	outer(round);
	later(round);
	if (round === 21)
		ready();
	setTimeout(turn, 0);
}

/* The main thread, when a second one is as far: it has a heap and code of its own. */
function ready() {
	if (!isMainThread)
		return parentPort.postMessage("ready");
	new Worker(__filename, { workerData: process.argv[2] }).on("message", () => fs.writeSync(out, "ready\n"));
}

async function main() {
	await null;
	outer(0);
	turn();
}

main();
