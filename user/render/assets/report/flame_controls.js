/* Small controls of the flame graph. */
const flame_controls = (function () {
"use strict";

const { el } = format;

function choice(label, list, chosen, change) {
	const select = el("select", { "aria-label": label }, ...list.map(([value, text]) => el("option", { value }, text)));
	select.value = chosen;
	select.addEventListener("change", () => change(select.value));
	return { select, element: el("label", { className: "flame-choice" }, el("span", {}, label), select) };
}

function button(text, title, press) {
	const b = el("button", { type: "button", title }, text);
	b.addEventListener("click", () => press(b));
	return b;
}

/* Puts text into the clipboard; false: the browser refuses. */
async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch (error) { /* pages from files have no clipboard in some browsers: the old way */
		const box = el("textarea", { value: text, className: "flame-copy" });
		document.body.append(box);
		box.select();
		const done = document.execCommand("copy");
		box.remove();
		return done;
	}
}

return { choice, button, copy };
})();
