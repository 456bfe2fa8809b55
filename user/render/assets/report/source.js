/*
 * Lines of source and instructions, with what each cost in the selected time. Costs are summed here from the samples; the text of
 * lines and instructions was read by the memscope that made the page, of the functions with the most self cost (page_data.h).
 */
(function () {
"use strict";

const el = format.el;
let data = null, box = null, text = null, view = null, chosen = null, shown = null, table = null, select = null, sum = null;
let with_lines = true, of_all = false;

/* --- a profile, made ready once --------------------------------------------------------------------------- */

/* Numbers things by a key of several numbers. */
function numberer() {
	const numbers = new Map();
	return { of(key) {
		if (!numbers.has(key))
			numbers.set(key, numbers.size);
		return numbers.get(key);
	}, get size() { return numbers.size; } };
}

/* Is there the same number further up on the way to the root? What is recursive counts once a sample. */
function repeated(nodes, number_of_frame) {
	const out = new Uint8Array(nodes.n);
	for (let i = 1; i < nodes.n; i++) {
		const own = number_of_frame[nodes.frame[i]];
		for (let at = nodes.parent[i]; at > 0 && !out[i]; at = nodes.parent[at])
			if (number_of_frame[nodes.frame[at]] === own)
				out[i] = 1;
	}
	return out;
}

async function read_rows(entry, p) {
	const id = data.run.source.rows[entry.id], n = p.samples.n, node = new Int32Array(n), place = new Int32Array(n);
	const r = new report_data.Reader(await data.bytes(id));
	if (r.number("the version") !== 1 || r.number("the number of samples") !== n)
		throw new Error("The lines in this page are not those of its profile.");
	for (let i = 0; i < n; i++) {
		let at = p.samples.node[i];
		for (let up = r.number("how far up a value belongs"); up > 0 && at > 0; up--)
			at = p.nodes.parent[at];
		node[i] = at;
	}
	for (let i = 0; i < n; i++)
		place[i] = r.index(text.n_rows + 1, "an instruction");
	return { node, place };
}

const loaded = new Map();
async function prepare(entry) {
	if (loaded.has(entry.id))
		return loaded.get(entry.id);
	const p = await data.load(entry), { frames, nodes } = p, rows = await read_rows(entry, p);
	const line_numbers = numberer(), function_numbers = numberer(), line = new Int32Array(frames.n), fn = new Int32Array(frames.n);
	const lines = [], functions = [];
	for (let f = 0; f < frames.n; f++) {
		fn[f] = function_numbers.of(frames.name[f] + " " + frames.module[f]);
		line[f] = line_numbers.of(fn[f] + " " + frames.file[f] + " " + frames.line[f]);
		if (fn[f] === functions.length)
			functions.push({ name: p.strings[frames.name[f]], module: p.strings[frames.module[f]].replace(/^\[|\]$/g, ""), kind: frames.kind[f], lines: [] });
		if (line[f] === lines.length) {
			lines.push({ file: p.strings[frames.file[f]], line: frames.line[f] });
			functions[fn[f]].lines.push(line[f]);
		}
		if (report_data.KINDS[frames.kind[f]] === "interpreted")
			functions[fn[f]].kind = frames.kind[f];
	}
	const ready = { entry, p, rows, line, fn, lines, functions, line_again: repeated(nodes, line), fn_again: repeated(nodes, fn),
		type: entry.shown_type, times: times.of_type(p, entry.shown_type) };
	loaded.set(entry.id, ready);
	return ready;
}

/* --- sums in the selected time ------------------------------------------------------------------------------ */

function values_in(v, range) {
	const all = v.p.samples.values[v.type];
	if (!range || !v.times)
		return all;
	const out = new Float64Array(all.length), t = v.times;
	for (let s = 0; s < out.length; s++)
		for (let i = t.first[s]; i < t.first[s + 1]; i++)
			if (t.bin[i] >= range.from_bin && t.bin[i] < range.to_bin)
				out[s] += t.value[i];
	return out;
}

function sums(v, range) {
	const values = values_in(v, range), { nodes, samples } = v.p, node = new Float64Array(nodes.n);
	const out = { line_self: new Float64Array(v.lines.length), line_total: new Float64Array(v.lines.length),
		fn_self: new Float64Array(v.functions.length), fn_total: new Float64Array(v.functions.length), place: new Float64Array(text.n_rows + 1), all: 0 };
	for (let s = 0; s < samples.n; s++) {
		const value = values[s];
		if (!(value > 0))
			continue;
		const frame = nodes.frame[v.rows.node[s]];
		out.all += value;
		node[samples.node[s]] += value;
		if (frame >= 0) {
			out.line_self[v.line[frame]] += value;
			out.fn_self[v.fn[frame]] += value;
		}
		out.place[v.rows.place[s]] += value;
	}
	for (let i = nodes.n - 1; i > 0; i--) {
		const frame = nodes.frame[i];
		node[nodes.parent[i]] += node[i];
		if (!v.line_again[i])
			out.line_total[v.line[frame]] += node[i];
		if (!v.fn_again[i])
			out.fn_total[v.fn[frame]] += node[i];
	}
	return out;
}

/* --- source -------------------------------------------------------------------------------------------------- */

const unit = () => view.entry.types[view.type].unit;
const show = (n) => format.value(n, unit());

function cost(value, whole, title) {
	const td = el("td", { className: "cost", title: value ? title + " " + show(value) : "" }, value ? format.percent(value, whole) : "");
	td.style.setProperty("--share", whole > 0 ? Math.min(1, value / whole).toFixed(3) : 0);
	return td;
}

function table_of(caption, heads, rows) {
	const body = el("tbody");
	body.append(...rows);
	return el("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": caption }, el("table", { className: "code" },
		el("caption", { className: "unseen" }, caption), el("thead", {}, el("tr", {}, ...heads.map((h) => el("th", { scope: "col" }, h)))), body));
}

function source_row(number, costs, line_text) {
	const whole = of_all ? sum.all : sum.fn_total[shown];
	return el("tr", {}, cost(costs ? costs.self : 0, whole, "self"), cost(costs ? costs.total : 0, whole, "total"),
		el("th", { scope: "row", className: "line" }, String(number)), el("td", { className: "text" }, line_text));
}

const gap_row = (columns) => el("tr", { className: "gap" }, el("td", { colSpan: columns }, "…"));

/* The parts of a file that are in the page, near the function's lines. */
function file_rows(file, by_line) {
	const source = text.by_path.get(file), rows = [], left = new Set([...by_line.keys()].filter((n) => n > 0));
	let last = 0;
	const numbers = [...left].sort((a, b) => a - b), near = (n) => numbers.some((m) => Math.abs(m - n) <= 8);
	for (const [first, lines] of source ? source.parts : [])
		lines.forEach((line, i) => {
			const n = first + i;
			if (!near(n))
				return;
			if (last && n > last + 1)
				rows.push(gap_row(4));
			rows.push(source_row(n, by_line.get(n), line));
			last = n;
			left.delete(n);
		});
	return rows.concat([...left].sort((a, b) => a - b).map((n) => source_row(n, by_line.get(n), "")));
}

function file_note(file) {
	const source = text.by_path.get(file);
	return data.run.source.no_source ? "Its text was left out on request (--no-source)." : !source ? "It is not in the page: its function is not among those with the most self cost." :
		source.problem ? "Its lines are not in the page: " + source.problem + "." : source.left_out ? "Its lines were left out to limit the size of the page." :
			source.newer ? "It was changed after the program was built, or after the profile was taken: lines may have moved." : "";
}

function source_panels(f) {
	const files = new Map();
	let unknown = 0;
	for (const number of f.lines) {
		const { file, line } = view.lines[number], costs = { self: sum.line_self[number], total: sum.line_total[number] };
		if (!file || !line) {
			unknown += costs.self;
			continue;
		}
		if (!costs.total && !costs.self)
			continue;
		if (!files.has(file))
			files.set(file, new Map());
		files.get(file).set(line, costs);
	}
	const out = [...files].map(([file, by_line]) => el("div", { className: "panel" }, el("h3", { className: "name" }, file),
		file_note(file) ? el("p", { className: "dim" }, file_note(file)) : null, table_of("Lines of " + file, ["Self", "Total", "Line", "Source"], file_rows(file, by_line))));
	if (unknown)
		out.push(el("p", { className: "dim" }, show(unknown) + " of its self cost has no source line" + (files.size ? "." : ": it has no debug info, or none was found.")));
	return out;
}

/* --- instructions ---------------------------------------------------------------------------------------------- */

function origin_row(origins) {
	const [name, file, line] = origins[0], source = typeof file === "number" ? text.texts[file] : null;
	const path = source ? source.path : file || "?", part = source && source.parts.find(([first, lines]) => line >= first && line < first + lines.length);
	return el("tr", { className: "origin" }, el("td", { colSpan: 3 }), el("td", { className: "text" }, el("span", { className: "dim" }, path.replace(/^.*\//, "") + ":" + line +
		(origins.length > 1 ? " (" + name + ", inlined) " : " ")), part ? part[1][line - part[0]].trim() : ""));
}

function instruction_row(code, row, value, whole, at) {
	const [, offset, words, target, jump, lanes] = row, cell = el("td", { className: "text" });
	const there = jump >= 0 ? at.get(jump) : null;
	cell.append(el("span", { className: "lanes", "aria-hidden": "true" }, lanes + " "));
	if (there) {
		const button = el("button", { type: "button", className: "jump", "aria-label": words + ", go to the jump's target" }, words);
		button.addEventListener("click", () => {
			const to = there.element;
			to.scrollIntoView({ block: "nearest" });
			to.classList.add("found");
			to.querySelector("th").tabIndex = -1;
			to.querySelector("th").focus();
			setTimeout(() => to.classList.remove("found"), 1500);
		});
		cell.append(button);
	} else
		cell.append(words);
	if (target)
		cell.append(el("span", { className: "dim" }, " <" + target + ">"));
	return el("tr", {}, cost(value, whole, "self"), el("th", { scope: "row", className: "line" }, (BigInt("0x" + code.start) + BigInt(offset)).toString(16)),
		el("td", { className: "dim" }, jump >= 0 ? (jump > row[0] ? "↓" : "↑") : ""), cell);
}

function code_panel(code) {
	const whole = code.rows.reduce((a, r, i) => a + sum.place[code.first + i], 0), base = of_all ? sum.all : whole, at = new Map(), rows = [];
	let last = -1, origins = null;
	code.rows.forEach((row) => at.set(row[0], { element: null }));
	code.rows.forEach((row, i) => {
		if (row[0] !== last + 1)
			rows.push(gap_row(4));
		last = row[0];
		if (row[6] !== 0) {
			origins = row[6];
			if (with_lines && origins.length)
				rows.push(origin_row(origins));
		}
		rows.push(at.get(row[0]).element = instruction_row(code, row, sum.place[code.first + i], base, at));
	});
	if (last + 1 < code.n)
		rows.push(gap_row(4));
	return el("div", { className: "panel" }, el("h3", { className: "name" }, "Instructions of " + code.name),
		el("p", { className: "dim" }, "Self " + show(whole) + " (" + format.percent(whole, sum.all) + " of all) in this code, inlined calls included" +
			(of_all ? "." : "; percent of that.") + (code.no_lines ? " No lines: " + code.no_lines + "." : "") + (code.cut ? " It is too long; its end is left out." : "")),
		table_of("Instructions of " + code.name, ["Self", "Address", "Jump", "Instruction"], rows));
}

function code_panels(f) {
	if (report_data.KINDS[f.kind] === "interpreted")
		return [el("p", { className: "dim" }, "It is interpreted and has no instructions of its own.")];
	const here = text.codes.filter((c) => c.module.replace(/^\[|\]$/g, "") === f.module && (c.name === f.name || c.rows.some((r, i) => r[6] && r[6].some((o) => o[0] === f.name) &&
		sum.place[c.first + i] > 0) || c.functions.has(f.name)));
	const why = text.problems.filter(([path]) => path.replace(/^.*\//, "") === f.module);
	return here.map(code_panel).concat(why.map(([path, words]) => el("p", { className: "dim" }, "Instructions are missing from " + path + ": " + words + ".")),
		here.length || why.length ? [] : [el("p", { className: "dim" }, "Its instructions are not in this page: " +
			(text.codes_left_out || text.functions_left_out ? "only the functions with the most self cost have them." : "it has no self cost, is not native code, or its file was not found."))]);
}

/* --- the pane ----------------------------------------------------------------------------------------------------- */

function show_function() {
	const f = view.functions[shown];
	view.place.replaceChildren();
	if (!f)
		return;
	view.place.append(el("h2", { className: "name" }, f.name + (f.module ? "  [" + f.module + "]" : "")),
		el("p", {}, "Self " + show(sum.fn_self[shown]) + " (" + format.percent(sum.fn_self[shown], sum.all) + " of all), total " + show(sum.fn_total[shown]) + " (" +
			format.percent(sum.fn_total[shown], sum.all) + ")" + (of_all ? "; percentages are of all." : "; percentages of lines are of its total.")),
		el("div", { className: "sources" }, ...source_panels(f), ...code_panels(f)));
}

function function_rows() {
	return view.functions.map((f, number) => ({ f, number, self: sum.fn_self[number], total: sum.fn_total[number] }))
		.filter((r) => r.total > 0 && !["marker", "kernel"].includes(report_data.KINDS[r.f.kind]));
}

function open(number) {
	shown = number;
	show_function();
	data.changed();
}

function make_table() {
	return tables.make({ caption: "Functions, by self", rows: function_rows(), page: 10, filter: "Filter functions", sort: [2, true], empty: "No function has a name.", columns: [
		{ title: "Function", filter: true, key: (r) => r.f.name, cell: (r, td) => {
			const button = el("button", { type: "button", className: "link" }, r.f.name);
			button.addEventListener("click", () => open(r.number));
			td.append(button);
		} },
		{ title: "Module", filter: true, key: (r) => r.f.module },
		{ title: "Self", number: true, key: (r) => r.self, text: (r) => show(r.self), of: (r) => format.percent(r.self, sum.all) },
		{ title: "Total", number: true, key: (r) => r.total, text: (r) => show(r.total), of: (r) => format.percent(r.total, sum.all) }] });
}

function follow(range) {
	sum = sums(view, range);
	table.update(function_rows());
	show_function();
}

const first_function = () => function_rows().reduce((best, r) => !best || r.self > best.self ? r : best, null);

async function choose(entry) {
	chosen = entry;
	select.value = entry.id;
	view = await prepare(entry);
	sum = sums(view, data.range());
	view.place = el("div", { className: "function" });
	const next = make_table(), best = first_function();
	table = next;
	shown = best ? best.number : -1;
	box.lists.replaceChildren(table.el, view.place);
	show_function();
	data.changed();
}

async function read_text() {
	text = JSON.parse(new TextDecoder().decode(await data.bytes(data.run.source.data)));
	text.by_path = new Map(text.texts.map((t) => [t.path, t]));
	text.n_rows = 0;
	for (const code of text.codes) {
		code.first = text.n_rows + 1;
		text.n_rows += code.rows.length;
		code.functions = new Set(code.rows.flatMap((r) => r[6] ? r[6].map((o) => o[0]) : []));
	}
}

function toggle(title, on, changed) {
	const button = el("button", { type: "button", "aria-pressed": String(on) }, title);
	button.addEventListener("click", () => {
		const next = button.getAttribute("aria-pressed") !== "true";
		button.setAttribute("aria-pressed", String(next));
		changed(next);
		show_function();
	});
	return button;
}

const ids = (f) => f.name + (f.module ? "@" + f.module : "");

panes.add({
	id: "source",
	title: "Source",
	available: (d) => !!d.run.source,
	async make(element, d) {
		data = d;
		await read_text();
		const all = d.run.profiles.filter((p) => d.run.source.rows[p.id]);
		select = el("select", { id: "source-of" }, ...all.map((p) => el("option", { value: p.id }, p.source)));
		select.addEventListener("change", () => choose(all.find((p) => p.id === select.value)));
		box = { lists: el("div") };
		element.append(el("div", { className: "tools" }, el("span", {}, el("label", { htmlFor: "source-of" }, "Of "), select),
			toggle("Lines among instructions", with_lines, (on) => { with_lines = on; }), toggle("Percent of all", of_all, (on) => { of_all = on; })), box.lists);
		const left = [[text.functions_left_out, "functions were not read"], [text.codes_left_out, "functions' instructions had no room"],
			[text.texts_left_out, "files' lines had no room"]].filter(([n]) => n).map(([n, what]) => format.grouped(n) + " " + what);
		if (left.length)
			element.append(el("p", { className: "dim" }, "Left out: " + left.join(", ") + ". memscope annotate FUNCTION shows any."));
		await choose(all[0]);
	},
	select(range) {
		follow(range);
	},
	state: () => ({ of: chosen.id, fn: view.functions[shown] ? ids(view.functions[shown]) : "" }),
	async restore(s) {
		const entry = data.run.profiles.find((p) => p.id === s.of && data.run.source.rows[p.id]);
		if (entry && entry !== chosen)
			await choose(entry);
		const number = s.fn ? view.functions.findIndex((f) => ids(f) === s.fn || f.name === s.fn) : -1;
		if (number >= 0)
			open(number);
	},
});
})();
