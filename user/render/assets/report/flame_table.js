/*
 * The table beside the flame graph: functions by self and total, as a native table whose headers sort. A name opens
 * the function's sandwich.
 */
const flame_table = (function () {
"use strict";

const PAGE = 25;
const COLUMNS = [
	{ id: "self", title: "Self", number: true },
	{ id: "total", title: "Total", number: true },
	{ id: "name", title: "Function" },
	{ id: "module", title: "Module" },
];

/* Self and total of both sides of a comparison, and their changes. `two`: sums of Model.functions_of() of each side. */
function changes(two) {
	const by = (key) => two[1][key].map((v, f) => v - two[0][key][f]);
	return { self: by("self"), total: by("total"), two };
}

/* `on`: open(fn), sorted(): the order changed, text(v): a value with its unit; `change`: numbers are changes() */
class Table {
	constructor(on, change = false) {
		const el = format.el;
		this.on = on;
		this.change = change;
		this.sort = "self";
		this.descending = true;
		this.most = PAGE;
		this.caption = el("caption");
		this.buttons = new Map();
		const head = COLUMNS.map((c) => {
			const button = el("button", { type: "button" }, c.title + (change && c.number ? ", change" : ""));
			const th = el("th", { scope: "col", className: c.number ? "number" : "" }, button);
			button.addEventListener("click", () => this.sort_by(c));
			this.buttons.set(c.id, th);
			return th;
		});
		this.body = el("tbody");
		this.more = el("button", { type: "button", className: "flame-more" });
		this.more.addEventListener("click", () => {
			this.most += 4 * PAGE;
			this.draw();
		});
		this.element = el("div", { className: "flame-table" + (change ? " flame-changes" : "") },
			el("table", {}, this.caption, el("thead", {}, el("tr", {}, ...head)), this.body), this.more);
	}

	sort_by(column) {
		this.descending = this.sort === column.id ? !this.descending : !!column.number;
		this.sort = column.id;
		this.most = PAGE;
		this.draw();
		this.on.sorted();
	}

	/* `sums` of Model.functions_of(); `whole`: what shares are parts of; `matches`: null, or 1 for each function to list. */
	set(model, sums, whole, matches) {
		Object.assign(this, { model, sums, whole, matches });
		this.draw();
	}

	order() {
		const { model, sums } = this, by = this.sort, list = [];
		for (let f = 0; f < model.functions.n; f++)
			if ((this.change ? sums.two.some((side) => side.total[f] > 0) : sums.total[f] > 0) && (!this.matches || this.matches[f]))
				list.push(f);
		const text = by === "name" ? (f) => model.name(f) : (f) => model.module(f);
		const other = sums[by === "self" ? "total" : "self"], sign = this.descending ? -1 : 1;
		const size = this.change ? Math.abs : (v) => v; /* of changes the largest come first, whichever way they go */
		list.sort(by === "self" || by === "total" ?
			(a, b) => sign * (size(sums[by][a]) - size(sums[by][b])) || other[b] - other[a] || a - b :
			(a, b) => sign * text(a).localeCompare(text(b), "en") || sums.self[b] - sums.self[a] || a - b);
		return list;
	}

	number(v) {
		const share = this.whole > 0 ? v / this.whole : 0;
		const bar = format.el("span", { className: "flame-bar" });
		bar.style.width = (100 * Math.min(1, share)).toFixed(1) + "%";
		return format.el("td", { className: "number" }, bar, format.el("span", { className: "flame-share" },
			v ? format.percent(v, this.whole) : "\u2013"), format.el("span", { className: "dim" }, v ? this.on.text(v) : ""));
	}

	/* "+1.2 s", and below it "3.1 s → 4.3 s". */
	number_of_change(f, key) {
		const { el } = format, v = this.sums[key][f], bar = el("span", { className: "flame-bar " + (v > 0 ? "flame-more-bar" : "flame-less-bar") });
		const [before, after] = this.sums.two.map((side) => side[key][f]);
		bar.style.width = (100 * Math.min(1, this.whole > 0 ? Math.abs(v) / this.whole : 0)).toFixed(1) + "%";
		return el("td", { className: "number" }, bar, el("span", { className: "flame-share" }, v ? (v > 0 ? "+" : "\u2212") + this.on.text(Math.abs(v)) : "\u2013"),
			el("span", { className: "dim flame-two" }, before || after ? this.on.text(before) + " \u2192 " + this.on.text(after) : ""));
	}

	draw() {
		if (!this.model)
			return;
		const { model, sums } = this, list = this.order(), el = format.el;
		for (const [id, th] of this.buttons)
			if (id === this.sort)
				th.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
			else
				th.removeAttribute("aria-sort");
		this.caption.textContent = (this.matches ? "Functions that match the search" : "Functions") + ": " +
			format.grouped(list.length);
		this.body.replaceChildren(...list.slice(0, this.most).map((f) => {
			const name = el("button", { type: "button", className: "flame-name frame", title: model.name(f).slice(0, 500) },
				model.name(f).slice(0, 500) || "(no name)");
			name.addEventListener("click", () => this.on.open(f));
			const numbers = this.change ? [this.number_of_change(f, "self"), this.number_of_change(f, "total")] :
				[this.number(sums.self[f]), this.number(sums.total[f])];
			return el("tr", {}, ...numbers, el("td", {}, name),
				el("td", { className: "dim flame-module", title: model.module(f).slice(0, 500) }, model.module(f).slice(0, 200)));
		}));
		this.more.hidden = list.length <= this.most;
		this.more.textContent = "Show more of " + format.grouped(list.length) + " functions";
	}
}

return { Table, changes };
})();
