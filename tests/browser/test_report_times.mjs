/* Intervals over time in report.html, under node: against the reference, and as parts that add up. */
import { equal, ok, run_tests, test } from "./chromium.mjs";
import { chance, scripts } from "./report_fixture.mjs";

const { times } = scripts(["times.js"], ["times"]);

const near = (got, want, what) => ok(Math.abs(got - want) <= 1e-9 * Math.max(1, Math.abs(want)), `${what}: ${got}, wanted ${want}`);

/* The formula of model/estimate.h with 40 digits (Python's decimal, 2026-11-24). */
test("an interval equals the reference", async () => {
	for (const [x, v, c, low, high] of [[524288, 274877906944, 524288, 92549.7058578414689893670810316442948450, 2970057.056326239957424639524109339513156],
		[0, 0, 10101010, 0, 38802613.96241956392101696941107774516000], [3e6, 4e12, 1e5, 0, 7116703.789592850820066481488372432095403],
		[100, 1e6, 0, 0, 2059.963984540054]]) {
		const got = times.interval(x, v, c);
		near(got.low, low, "low");
		near(got.high, high, "high");
	}
});

/* `n` sites of one sample each, in 40 bins. */
function random_rows(n) {
	const random = chance(7), first = [0], bin = [], value = [], rows = [], entry = { first, bin, value };
	for (let r = 0; r < n; r++) {
		let integral = 0;
		for (let b = 0; b < 40; b++)
			if (random() < .5) {
				bin.push(b);
				value.push(Math.floor(1 + 1000 * random()));
				integral += value[value.length - 1];
			}
		first.push(bin.length);
		rows.push({ samples: [r], entry, integral, variance: 1e5 * random(), weight: 10 + 100 * random(), group: r % 3 });
	}
	return rows;
}

test("the variances of a site's bins add up to the site's, whatever the groups", async () => {
	const rows = random_rows(30), sum = (a) => a.reduce((x, y) => x + y, 0);
	const one = times.variances(rows, 40, false, () => 0, 1)[0], three = times.variances(rows, 40, false, (r) => r.group, 3);
	near(sum(one.v), sum(rows.map((r) => r.variance)), "all");
	one.v.forEach((v, b) => near(three.reduce((x, g) => x + g.v[b], 0), v, "bin " + b));
	const mean = sum(rows.map((r) => r.variance * r.weight)) / sum(rows.map((r) => r.variance));
	near(one.c, mean, "what one more sample adds");
	equal(times.by_rows(rows, 40, (r) => r.group, 3).flatMap((s) => [...s]).reduce((x, y) => x + y, 0), sum(rows.map((r) => r.integral)), "values");
});

test("sites that rest on the same bursts err together", async () => {
	const rows = random_rows(30), single = rows.map((r) => times.variances([r], 40, true, () => 0, 1)[0].v), all = times.variances(rows, 40, true, () => 0, 1)[0].v;
	all.forEach((v, b) => near(v, single.reduce((x, own) => x + Math.sqrt(own[b]), 0) ** 2, "bin " + b));
});

test("what was counted has no interval, and the rest of a bin at the end none either", async () => {
	equal(times.variances(random_rows(3).map((r) => ({ ...r, variance: NaN })), 40, false, () => 0, 1), null, "counted");
	const { low, high } = times.interval_rates([10, 10], { v: [4, 4], c: 1 }, [1, .06], 1);
	ok(low[0] < 10 && high[0] > 10 && low[1] === null && high[1] === null, `${low} ${high}`);
});

test("what lives has the interval of the end there, and half of its width where a quarter lives", async () => {
	const { low, high } = times.live_interval([0, 250, null, 1000], { total: 1000, low: 600, high: 1800 });
	equal([low, high], [[null, 50, null, 600], [null, 650, null, 1800]], "low and high");
	equal(times.live_interval([1, 2], { total: 5, low: 5, high: 5 }), null, "counted");
});

await run_tests({ close: async () => {} });
