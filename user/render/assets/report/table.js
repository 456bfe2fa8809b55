/*
 * Tables that sort, filter, page and unfold. Native ones: a screen reader reads headers, order and rows as in any document.
 *
 *   tables.make({ caption, columns, rows, page = 25, filter = false, unfold, sort: [column, descending], empty })
 *
 *   columns  [{ title, key(row): number or text, by which it sorts, text(row): what is shown (key), cell(row, td): fills the
 *            cell itself, of(row): dimmed behind it, number: aligned right, filter: its text is searched }]
 *   unfold   (row, element) fills what opens below a row
 *   follow   (range) the rows of a selected time, as panes have it (main.js); tables.follow(range, elements) asks for them
 *
 *   of       (data, makers) the elements of the tables that `makers` describe: functions of a run's summary and its
 *            number among all runs that return such options, or nothing where the run has no such rows. Tables of a comparison have
 *            both sides' rows beside each other (compare_tables.js), from the same options
 *   any      (data, makers) does any of them describe a table?
 *
 * The result of make: { el, n_columns, update(rows), sorted(): what it is sorted by, sort(column, descending), filter(text), text() }.
 */
const tables = (function () {
"use strict";

const el = format.el;
let next_id = 0;

function compare(a, b) {
	if (typeof a === "number" || typeof b === "number") {
		const x = Number.isFinite(a) ? a : -Infinity, y = Number.isFinite(b) ? b : -Infinity;
		return x - y;
	}
	return String(a).localeCompare(String(b));
}

function make(options) {
	const { columns, unfold } = options, id = "table-" + ++next_id, page = options.page || 25;
	let rows = options.rows || [], [by, down] = options.sort || [-1, false], at = 0, wanted = "", shown = [];
	const caption = el("caption", {}, options.caption || ""), body = el("tbody");
	const status = el("p", { className: "dim", role: "status" });
	const heads = columns.map((c, i) => {
		const button = el("button", { type: "button", className: "sort" }, c.title);
		const th = el("th", { scope: "col", className: c.number ? "number" : "" }, button);
		if (c.hint)
			button.title = c.hint;
		button.addEventListener("click", () => sort(i, by === i ? !down : !!c.number));
		return th;
	});
	const head = el("tr", {}, ...(unfold ? [el("th", { scope: "col" }, el("span", { className: "unseen" }, "Open"))] : []), ...heads);
	const table = el("table", { id, className: "rows" }, caption, el("thead", {}, head), body);
	const wide = el("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": options.caption || "Table" }, table);
	const back = el("button", { type: "button" }, "Previous"), on = el("button", { type: "button" }, "Next");
	const pager = el("div", { className: "pager" }, back, on, status);
	const box = el("div", { className: "table" });

	back.addEventListener("click", () => turn(-1));
	on.addEventListener("click", () => turn(1));
	if (options.filter) {
		const input = el("input", { type: "search", id: id + "-filter", autocomplete: "off", spellcheck: false });
		input.addEventListener("input", () => filter(input.value));
		box.input = input;
		box.append(el("p", { className: "filter" }, el("label", { htmlFor: input.id }, options.filter === true ? "Filter " : options.filter + " "), input));
	}
	box.append(wide, pager);

	const text_of = (c, row) => String(c.text ? c.text(row) : c.key(row));

	function arrange() {
		shown = rows;
		if (wanted) {
			const small = wanted.toLowerCase(), searched = columns.filter((c) => c.filter);
			shown = rows.filter((row) => searched.some((c) => text_of(c, row).toLowerCase().includes(small)));
		}
		if (by >= 0) {
			const key = columns[by].key;
			shown = shown.map((row, i) => [key(row), i, row])
				.sort((a, b) => (down ? compare(b[0], a[0]) : compare(a[0], b[0])) || a[1] - b[1]).map((x) => x[2]);
		}
		heads.forEach((th, i) => th.setAttribute("aria-sort", i !== by ? "none" : down ? "descending" : "ascending"));
	}

	function line(row) {
		const tr = el("tr");
		if (unfold) {
			const button = el("button", { type: "button", className: "unfold", "aria-expanded": "false", "aria-label":
				"Details of " + text_of(columns.find((c) => c.filter) || columns[0], row).slice(0, 80) }, "▸");
			let below = null;
			button.addEventListener("click", () => {
				if (!below) {
					const td = el("td", { colSpan: columns.length + 1 });
					below = el("tr", { className: "below", hidden: true }, td);
					tr.after(below);
					unfold(row, td);
				}
				below.hidden = !below.hidden;
				button.setAttribute("aria-expanded", String(!below.hidden));
				button.textContent = below.hidden ? "▸" : "▾";
			});
			tr.append(el("td", {}, button));
		}
		columns.forEach((c, i) => {
			const cell = i === 0 && !c.number ? el("th", { scope: "row" }) : el("td");
			cell.className = (c.number ? "number" : c.filter ? "name" : "") + (c.className ? " " + c.className : "");
			if (c.cell)
				c.cell(row, cell);
			else
				cell.textContent = text_of(c, row);
			if (c.of && c.of(row))
				cell.append(el("span", { className: "of" }, c.of(row)));
			tr.append(cell);
		});
		return tr;
	}

	function draw() {
		const last = Math.max(0, Math.ceil(shown.length / page) - 1);
		at = Math.min(at, last);
		const from = at * page, part = shown.slice(from, from + page);
		body.replaceChildren(...part.map(line));
		if (!part.length)
			body.append(el("tr", {}, el("td", { colSpan: columns.length + (unfold ? 1 : 0), className: "dim" },
				wanted ? "No row has that in it." : options.empty || "Nothing.")));
		pager.hidden = rows.length <= page && !wanted;
		status.textContent = shown.length ? format.grouped(from + 1) + " to " + format.grouped(from + part.length) +
			" of " + format.grouped(shown.length) : "";
		back.disabled = at === 0;
		on.disabled = at === last;
	}

	function turn(by_pages) {
		at = Math.max(0, at + by_pages);
		draw();
	}

	function sort(column, descending) {
		by = column;
		down = descending;
		at = 0;
		arrange();
		draw();
		if (options.changed)
			options.changed();
	}

	function filter(text) {
		wanted = text.trim();
		if (box.input && box.input.value !== text)
			box.input.value = text;
		at = 0;
		arrange();
		draw();
		if (options.changed)
			options.changed();
	}

	/* Other rows, in the order and on the page of before. */
	function update(others) {
		rows = others;
		arrange();
		draw();
	}

	if (options.follow)
		box.follow = (range) => update(options.follow(range));
	update(rows);
	return { el: box, n_columns: columns.length, update, sort, filter, sorted: () => [by, down], text: () => wanted };
}

function describe(data, maker) {
	let n = 0;
	return data.sides.map((side) => side.runs.map((r) => maker(r.summary || {}, n++) || null));
}

const any = (data, makers) => makers.some((maker) => describe(data, maker).some((side) => side.some(Boolean)));

function of(data, makers) {
	if (data.comparison)
		return compare_tables.of(data, makers.map((maker) => describe(data, maker)));
	return makers.map((maker) => describe(data, maker)[0][0]).filter(Boolean).map((o) => make(o).el);
}

/* A time was selected: those of these tables that follow it do. */
function follow(range, elements) {
	for (const element of elements)
		if (element.follow)
			element.follow(range);
}

return { make, of, any, follow };
})();
