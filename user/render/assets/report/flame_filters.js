/* The filters of the flame graph: the form that adds one, the list that removes them, and their text in the address. */
const flame_filters = (function () {
"use strict";

const HOW = [["through", "only stacks through"], ["without", "no stacks through"], ["hide", "leave out frames of"],
	["only", "only frames of"]];
const WHAT = [["name", "function"], ["module", "module"], ["kind", "kind"], ["language", "language"], ["file", "file"],
	["process", "process"], ["thread", "thread"], ["container", "container"]];
const ROOTS = { process: "process", thread: "thread", container: "container" };
const MOST_CHOICES = 1000, LONGEST = 400;

/* A filter as flame_model.js takes it, {error}, or null: nothing was typed. Names, files and modules match in part. */
function make(how, what, value) {
	if (!value || !HOW.some(([h]) => h === how) || !WHAT.some(([w]) => w === what))
		return null;
	if (Object.hasOwn(ROOTS, what))
		return how === "through" || how === "without" ? { how, what, value } : null;
	const expression = /^\/(.+)\/$/.exec(value);
	if (!expression && (what === "kind" || what === "language"))
		return { how, what, value };
	const e = flame_search.compile(expression ? expression[1] : value, !!expression);
	return e.error ? e : { how, what, value, test: e.test };
}

/* The filter for exactly this function name. */
function of_name(how, name) {
	return { how, what: "name", value: "/^" + name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&") + "$/",
		test: (text) => text === name, shown: name };
}

/* Opens by a click. `choices(what)`: values to propose; `add(filter)`. */
function form(choices, add) {
	const { el } = format, option = ([value, text]) => el("option", { value }, text);
	const how = el("select", { "aria-label": "What the filter does" }, ...HOW.map(option));
	const what = el("select", { "aria-label": "What the filter looks at" }, ...WHAT.map(option));
	const list = el("datalist", { id: "flame-filter-values" });
	const said = el("output", { id: "flame-filter-said", className: "trouble" });
	const input = el("input", { type: "text", spellcheck: false, autocomplete: "off", placeholder: "text or /expression/",
		"aria-label": "Value of the filter", "aria-describedby": said.id });
	input.setAttribute("list", list.id);

	function offer() {
		const label = Object.hasOwn(ROOTS, what.value);
		for (const o of how.options)
			o.disabled = label && (o.value === "hide" || o.value === "only");
		if (how.selectedOptions[0].disabled)
			how.value = "through";
		list.replaceChildren(...choices(what.value).slice(0, MOST_CHOICES)
			.map((value) => el("option", { value: value.slice(0, LONGEST) })));
	}
	what.addEventListener("change", offer);
	input.addEventListener("focus", offer);
	const element = el("form", { className: "flame-filter" }, how, what, input, list,
		el("button", { type: "submit" }, "Add"), said);
	element.addEventListener("submit", (event) => {
		event.preventDefault();
		const filter = make(how.value, what.value, input.value.trim());
		said.textContent = filter && filter.error || "";
		if (!filter || filter.error)
			return;
		input.value = "";
		add(filter);
	});
	return el("details", { className: "flame-filters" }, el("summary", {}, "Filter"), element);
}

/* An item for each filter, with a button that removes it. */
function chips(filters, remove) {
	const { el } = format;
	return filters.map((f) => {
		const text = HOW.find(([h]) => h === f.how)[1] + " " + WHAT.find(([w]) => w === f.what)[1] + " " +
			(f.shown || f.value).slice(0, 80);
		const b = el("button", { type: "button", title: "Remove this filter", "aria-label": "Remove the filter: " + text }, "\u00d7");
		b.addEventListener("click", () => remove(f));
		return el("li", {}, el("span", { className: "frame" }, text), b);
	});
}

function to_text(filters) {
	return filters.map((f) => [f.how, f.what, f.value].map(encodeURIComponent).join(",")).join("|");
}

function from_text(text) {
	const list = [];
	for (const part of text.split("|"))
		try {
			const filter = make(...part.split(",").map(decodeURIComponent));
			if (filter && !filter.error)
				list.push(filter);
		} catch (error) { /* a link that was cut */ }
	return list;
}

return { make, of_name, form, chips, to_text, from_text, ROOTS };
})();
