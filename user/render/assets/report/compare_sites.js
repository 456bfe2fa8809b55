/*
 * The sites pane of a comparison: a row for each function, or each whole stack, with what memscope diff computed of it: before, after, change, the 95 %
 * interval of the change, and what that means. The figures are those of `memscope diff --json`, and are of all of the time.
 */
(function () {
"use strict";

const el = format.el;
const WORDS = ["all", "changed", "added", "removed", "more", "less", "within noise", "uncertain", "as the rest", "little", "equal"];
let data = null, box = null, table = null, note = null, controls = null;
const state = { of: "", by: "functions", what: "all" };

/* Every value type that can be compared. */
const choices = (d) => d.run.profiles.flatMap((p) => p.types.map((t, i) => ({ id: p.id + "/" + t.name + "/" + t.unit, p, type: i, f: d.comparison.figure(p.id, t) }))).filter((c) => c.f);

const title = (c) => c.p.source + ": " + c.f.type + (c.f.unit === "count" ? " (count)" : "");
const by = (r) => r.self[1] - r.self[0];

function frames_of(r) {
	return r.stack ? r.stack.split(";").reverse() : [];
}

function unfold(c, r, td) {
	const show = (v) => format.value(v, c.f.unit), facts = [];
	if (r.p !== null)
		facts.push("p = " + r.p.toPrecision(2));
	facts.push("in it and all it called: " + show(r.total[0]) + " \u2192 " + show(r.total[1]) + (r.total_noise === null ? "" : " \u00b1 " + show(r.total_noise)));
	td.append(el("p", {}, facts.join("; ") + "."));
	if (r.stack) {
		td.append(el("ol", { className: "stack" }, ...frames_of(r).map((f) => el("li", { className: "frame" }, f))));
		return;
	}
	const button = el("button", { type: "button" }, "Callers and callees");
	button.addEventListener("click", () => data.go("flame", { source: c.p.id, value: String(c.type), function: r.function }));
	td.append(button);
}

function make_table(c, rows) {
	const show = (v) => format.value(v, c.f.unit), noisy = !c.f.exact;
	const number = (name, key, text, hint) => ({ title: name, number: true, key, text, hint });
	return tables.make({ caption: title(c) + ", by " + (state.by === "stacks" ? "stack" : "function"), rows, page: 25, filter: "Filter sites", unfold: (r, td) => unfold(c, r, td),
		changed: () => data.changed(), sort: [3, true], columns: [
			{ title: "Site", filter: true, key: (r) => r.stack ? frames_of(r).slice(0, 2).join(" \u2190 ") : r.function || "[unknown]", of: (r) => r.module },
			number("Before", (r) => r.self[0], (r) => show(r.self[0])), number("After", (r) => r.self[1], (r) => show(r.self[1])),
			number("Change", (r) => Math.abs(by(r)), (r) => compare.change(r.self[0], r.self[1], c.f.unit)),
			number("%", (r) => r.self[0] > 0 ? by(r) / r.self[0] : r.self[1] > 0 ? Infinity : 0, (r) => compare.percent(...r.self)),
			...(noisy ? [number("\u00b1 95%", (r) => r.self_noise, (r) => r.self_noise === null ? "" : show(r.self_noise), "half the 95% interval of the change")] : []),
			{ title: "What", className: "word", key: (r) => r.what, hint: "added, removed, more, less: beyond chance and the least change" },
			...(state.by === "functions" ? [number("Total, change", (r) => Math.abs(r.total[1] - r.total[0]), (r) => compare.change(r.total[0], r.total[1], c.f.unit), "with all it called")] : [])] });
}

/* How the values were compared, as the terminal says it. */
function note_of(c) {
	const { f } = c, all = state.by === "stacks" ? f.n_stacks : f.n_functions, most = state.by === "stacks" ? 2000 : 5000, noises = { counted: "Every value is a count: differences are exact.",
		samples: "Changes were tested against sampling noise.", bursts: "Changes were tested against the variation between bursts.",
		runs: "Changes were tested against the variation between runs (" + f.runs.join(" before, ") + " after)." };
	return [compare.scale_text(data.comparison, null), noises[f.noise] || "", f.spread > 1 ? "These profiles vary by " + f.spread.toFixed(1) + " times that variance, which is taken into account." : "",
		format.grouped(f.changed) + " of " + format.grouped(f.compared) + " functions changed.", all > most ? "The " + format.grouped(most) + " largest changes of " + format.grouped(all) + " are here." : "",
		data.range() ? "These figures are of all of the time: they do not follow the selected time." : ""].filter(Boolean).join(" ");
}

async function rebuild() {
	const c = controls.all.find((x) => x.id === state.of);
	if (state.by === "stacks" && !c.f.stacks)
		state.by = controls.by.value = "functions";
	controls.by.querySelector("[value=stacks]").disabled = !c.f.stacks;
	const rows = (await data.comparison.rows_of(c.f, state.by)).filter((r) => r.self[0] || r.self[1] || r.changed), shown = state.what === "all" ? rows : rows.filter((r) => state.what === "changed" ? r.changed : r.what === state.what);
	const next = make_table(c, shown);
	if (table)
		table.el.remove();
	table = next;
	note.textContent = note_of(c);
	box.append(table.el);
	data.changed();
}

function select_of(id, text, options, key) {
	const select = el("select", { id }, ...options.map(([v, t]) => el("option", { value: v }, t)));
	select.value = state[key];
	select.addEventListener("change", () => {
		state[key] = select.value;
		box.setAttribute("aria-busy", "true");
		rebuild().finally(() => box.removeAttribute("aria-busy"));
	});
	return [el("span", {}, el("label", { htmlFor: id }, text + " "), select), select];
}

panes.add({
	id: "sites",
	title: "Sites",
	available: (d) => !!d.comparison && choices(d).length > 0,
	async make(element, d) {
		data = d;
		box = element;
		const all = choices(d), first = all.find((c) => c.f.changed && c.type === c.p.shown_type) || all.find((c) => c.type === c.p.shown_type) || all[0];
		state.of = first.id;
		const [of_box, of] = select_of("sites-of", "Of", all.map((c) => [c.id, title(c)]), "of");
		const [by_box, by_select] = select_of("sites-by", "by", [["functions", "function"], ["stacks", "stack"]], "by");
		const [what_box, what] = select_of("sites-what", "Show", WORDS.map((w) => [w, w]), "what");
		controls = { of, by: by_select, what, all };
		note = el("p", { className: "dim" });
		box.append(el("div", { className: "tools" }, of_box, by_box, what_box), note);
		await rebuild();
	},
	select() {
		const c = controls && controls.all.find((x) => x.id === state.of);
		if (c && table)
			note.textContent = note_of(c);
	},
	state: () => ({ of: state.of, by: state.by, what: state.what === "all" ? "" : state.what, sort: table ? table.sorted()[0] + (table.sorted()[1] ? "-" : "+") : "",
		find: table ? table.text() : "" }),
	async restore(s) {
		const order = /^(\d+)([+-])$/.exec(s.sort || ""), has = (select, v) => [...select.options].some((o) => o.value === v);
		for (const key of ["of", "by", "what"])
			if (s[key] && has(controls[key], s[key]))
				state[key] = controls[key].value = s[key];
		await rebuild();
		if (order && +order[1] < table.n_columns)
			table.sort(+order[1], order[2] === "-");
		if (s.find)
			table.filter(s.find);
	},
});
})();
