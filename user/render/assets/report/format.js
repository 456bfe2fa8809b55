/* Numbers for people, as user/base/units.c writes them on every other screen; and small pieces of the page. */
const format = (function () {
"use strict";

function grouped(n) {
	return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

function scaled(n, scales) {
	let i = 0;
	const size = Math.abs(n);
	while (i + 1 < scales.length && size >= scales[i + 1][0])
		i++;
	/* 1023.96 KiB would read as 1024.0 KiB. */
	if (i + 1 < scales.length && i && +(size / scales[i][0]).toFixed(1) * scales[i][0] >= scales[i + 1][0])
		i++;
	const x = n / scales[i][0];
	return (i === 0 && Number.isInteger(n) ? grouped(n) : Math.abs(x) >= 1000 ? grouped(x) : x.toFixed(Math.abs(x) < .995 && x ? 2 : 1)) +
		" " + scales[i][1];
}

const byte_scales = [[1, "B"], [1024, "KiB"], [1024 ** 2, "MiB"], [1024 ** 3, "GiB"], [1024 ** 4, "TiB"], [1024 ** 5, "PiB"]];
const time_scales = [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]];

const bytes = (n) => scaled(n, byte_scales);
const ns = (n) => scaled(n, time_scales);
const seconds = (s) => ns(s * 1e9);
const count = (n) => Math.abs(n) >= 100 || Number.isInteger(n) ? grouped(n) : n.toPrecision(3);

/* A value in a unit as pprof spells it, or as the series of the page do. */
function value(n, unit) {
	if (n === null || n === undefined || Number.isNaN(n))
		return "–";
	if (unit === "byte-milliseconds/s") /* what was held, on average over that time */
		return bytes(n / 1000);
	const per = /^(.*)(\/s|·s)$/.exec(unit || ""); /* a second, times seconds */
	if (per)
		return value(n, per[1]) + per[2];
	switch (unit) {
	case "nanoseconds": return ns(n);
	case "microseconds": return ns(n * 1e3);
	case "milliseconds": return ns(n * 1e6);
	case "seconds": return seconds(n);
	case "bytes": return bytes(n);
	case "byte-milliseconds": return bytes(n / 1000) + "·s";
	case "KiB": return bytes(n * 1024);
	case "percent": return n.toFixed(1) + "%";
	case "CPUs": return n.toFixed(2) + " CPUs";
	case "threads": return n.toFixed(2) + " threads";
	case "count": case "": case undefined: return count(n);
	default: return count(n) + " " + unit;
	}
}

/* Of an axis: 0:05, 12:30, 1:02:00; where seconds are divided, 0.5 s, 1 s. */
function ticks(all) {
	if (all.some((s) => s % 1))
		return all.map((s) => +s.toFixed(4) + " s");
	return all.map((s) => {
		const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
		return (h ? h + ":" + two(m) : String(m)) + ":" + two(Math.floor(s % 60));
	});
}

/* A moment of the run, to the second or finer where it is not a whole one: 0:08, 0:08.5, 1:02:00. */
function clock(s) {
	const tenth = Math.round(s * 10) / 10;
	return ticks([Math.floor(tenth)])[0] + (tenth % 1 ? (tenth % 1).toFixed(1).slice(1) : "");
}

function percent(part, whole) {
	if (!(whole > 0))
		return "–";
	const p = 100 * part / whole;
	return p > 0 && p < .1 ? "<0.1%" : p.toFixed(1) + "%";
}

const two = (n) => String(n).padStart(2, "0");
function time_of_day(unix_s) {
	const d = new Date(unix_s * 1000);
	return two(d.getHours()) + ":" + two(d.getMinutes()) + ":" + two(d.getSeconds());
}
function date(unix_s) {
	const d = new Date(unix_s * 1000);
	return d.getFullYear() + "-" + two(d.getMonth() + 1) + "-" + two(d.getDate()) + " " + time_of_day(unix_s);
}

/* An element with text, or with what else is in it. Text is never read as markup. */
function el(name, properties, ...inside) {
	const e = document.createElement(name);
	for (const [key, v] of Object.entries(properties || {}))
		if (key in e)
			e[key] = v;
		else
			e.setAttribute(key, v);
	e.append(...inside.filter((x) => x !== null && x !== undefined));
	return e;
}

return { grouped, bytes, ns, seconds, count, value, percent, time_of_day, date, ticks, clock, el };
})();
