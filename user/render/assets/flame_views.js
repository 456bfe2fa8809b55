/* The rest of the function that flame.js begins: search, the address, other views, the menu and the keyboard. */

/* --- search -------------------------------------------------------------------------------------------- */

const box = element("foreignObject", { x: P.width - P.pad - 290, y: 8, width: 290, height: P.fontsize + 10,
	visibility: "hidden" });
const input = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
input.setAttribute("type", "text");
input.setAttribute("spellcheck", "false");
input.setAttribute("placeholder", "search");
const kind = document.createElementNS("http://www.w3.org/1999/xhtml", "button");
kind.textContent = ".*";
const form = document.createElementNS("http://www.w3.org/1999/xhtml", "div");
form.append(input, kind);
box.appendChild(form);
svg.appendChild(box);

function set_plain(on) {
	plain = on;
	kind.setAttribute("aria-pressed", String(!on));
	kind.setAttribute("title", on ? "searches for text; press for regular expressions" :
		"searches for a regular expression; press for text");
	kind.setAttribute("aria-label", "regular expression");
	input.setAttribute("aria-label", on ? "search: text" : "search: a regular expression");
}
set_plain(false);

/* Ignores case unless the term has capitals; a term that is no expression is taken literally. */
function expression(t) {
	const flags = t === t.toLowerCase() ? "i" : "", literal = t.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
	try {
		return new RegExp(plain ? literal : t, flags);
	} catch (error) {
		return new RegExp(literal, flags);
	}
}

/*
 * The share of the whole that lies in stacks with a frame that matches, each counted once. Frames that are not drawn have
 * no names here: where they might match, too, the share is a range.
 */
function matched_share() {
	const all = whole.value[0];
	let sum = 0, unknown = 0;
	for (let i = 0; i < whole.count;) {
		const n = whole.name[i];
		if (n >= 0 && !hits[n]) {
			i++;
			continue;
		}
		if (n >= 0)
			sum += whole.value[i];
		else
			unknown += whole.value[i];
		i = whole.end[i];
	}
	const least = share(sum, all), most = share(sum + unknown, all);
	return "matched: " + least + (least !== most ? " to " + most + " (not all frames are drawn)" : "");
}

function search(t) {
	term = t;
	hits = null;
	matched.textContent = "\u00a0";
	if (t) {
		const e = expression(t);
		hits = P.names.map((n) => e.test(n));
		matched.textContent = matched_share();
	}
	draw();
}

function open_search() {
	box.setAttribute("visibility", "visible");
	for (const id of ["search", "menu_button"])
		$(id).setAttribute("visibility", "hidden");
	input.value = term;
	input.focus();
	input.select();
}

function close_search() {
	box.setAttribute("visibility", "hidden");
	for (const id of ["search", "menu_button"])
		$(id).setAttribute("visibility", "visible");
	input.blur();
}

/* --- the address keeps the state, so that a link shows the same --------------------------------------- */

function remember() {
	const parts = [];
	if (zoomed)
		parts.push("z=" + zoomed);
	if (term)
		parts.push((plain ? "t=" : "s=") + encodeURIComponent(term));
	if (P.inverted !== came.inverted)
		parts.push("i");
	if (callers)
		parts.push("r");
	if (by_module)
		parts.push("m");
	if (svg !== document.documentElement)
		return;
	try {
		history.replaceState(null, "", parts.length ? "#" + parts.join("&") : location.pathname + location.search);
	} catch (error) {
		/* Some browsers refuse this for local files; nothing else depends on it. */
	}
}

function recall() {
	const parts = location.hash.slice(1).split("&");
	let frame = 0;

	callers = parts.includes("r") && !P.changes;
	if (parts.includes("i"))
		P.inverted = !P.inverted;
	if (parts.includes("m"))
		color_by_module();
	use(callers ? leaf_up() : whole);
	for (const part of parts) {
		if (/^z=\d+$/.test(part) && Number(part.slice(2)) < count && name[Number(part.slice(2))] >= 0)
			frame = Number(part.slice(2));
		if (/^[st]=/.test(part)) {
			set_plain(part[0] === "t");
			try {
				term = decodeURIComponent(part.slice(2));
			} catch (error) {
				term = "";
			}
		}
	}
	zoomed = frame;
	if (callers || by_module)
		resize(P.width);
	if (term)
		search(term);
	else if (location.hash.length > 1)
		draw();
}

/* --- other views ---------------------------------------------------------------------------------------- */

/* The modules with the most of their own; hues that eyes without red or green cones tell apart (Okabe and Ito, 2008). */
function color_by_module() {
	const hues = ["#56b4e9", "#e69f00", "#4fc3a1", "#f0e442", "#e2a3c7", "#a9b7e8", "#f08a5d"], rest = "#d0d0cb";
	const own = new Map();
	if (P.changes)
		return;
	for (let i = 0; i < whole.count; i++)
		if (whole.name[i] >= 0) {
			const m = P.modules[whole.name[i]];
			own.set(m, (own.get(m) || 0) + self[i]);
		}
	const order = [...own.keys()].filter((m) => m).sort((a, b) => own.get(b) - own.get(a) || (a < b ? -1 : 1));
	const color_of = new Map(order.slice(0, hues.length).map((m, k) => [m, hues[k]]));
	by_module = P.modules.map((m) => color_of.get(m) || rest);
	module_names = [...color_of].concat(order.length > hues.length ? [["other modules", rest]] : []);
}

function toggle_colors() {
	if (by_module)
		by_module = null;
	else
		color_by_module();
	view();
	say(by_module ? "Colours: by module" : "Colours: by kind of frame");
}

function toggle_callers() {
	if (P.changes)
		return;
	callers = !callers;
	view();
	say(callers ? "Leaf-up: functions at the root, their callers above them" : cut(note, room()));
}

function toggle_inverted() {
	P.inverted = !P.inverted;
	view();
	scroll_to_root();
}

function fit() {
	P.width = P.width === came.width ? Math.max(320, document.documentElement.clientWidth) : came.width;
	view();
}

/* Name, figures and path of a frame, for other people. */
function copy() {
	const i = under >= 0 ? under : zoomed, path = [];
	if (name[i] < 0)
		return;
	for (let at = i; at >= 0; at = parent[at])
		path.unshift(P.names[name[at]]);
	const text = describe(i, Infinity) + "\n" + path.join(";") + "\n";
	const done = () => say("Copied: " + cut(P.names[name[i]], room() - 8));
	const old_way = () => {
		const area = document.createElementNS("http://www.w3.org/1999/xhtml", "textarea");
		area.value = text;
		form.appendChild(area);
		area.select();
		if (document.execCommand("copy"))
			done();
		area.remove();
	};
	if (navigator.clipboard && navigator.clipboard.writeText)
		navigator.clipboard.writeText(text).then(done, old_way);
	else
		old_way();
}

/* The next frame that matches, in the order of the picture. */
function next_hit(step) {
	for (let k = 1; hits && k <= count; k++) {
		const i = ((under < 0 ? 0 : under) + step * k + 2 * count) % count;
		if (name[i] >= 0 && hits[name[i]] && shown(i) && i >= zoomed && i < end[zoomed]) {
			mark(i);
			return;
		}
	}
}

/* --- the menu ------------------------------------------------------------------------------------------- */

const items = [
	["Search", "/", () => open_search()], ["Next match", "n", () => next_hit(1)],
	["Reset zoom", "Esc", () => zoom(0)], ["Zoom out to the caller", "Backspace", () => zoom(parent[zoomed])],
	["Root at the top, or bottom", "i", toggle_inverted],
	["Leaf-up, or root-up", "r", P.changes ? null : toggle_callers],
	["Colours by module, or kind", "m", P.changes ? null : toggle_colors],
	["Fit to the window", "f", fit], ["Copy the frame", "c", copy],
	["Walk the frames", "arrows", null], ["Zoom to the frame", "Enter", null],
].filter(([, key, act]) => act || key.length > 1);
const menu = element("g", { id: "menu", role: "menu", visibility: "hidden" });

function button_like(id) {
	const wide = 6 * P.fontsize * P.charwidth, x = P.width - P.pad - 21 * P.fontsize * P.charwidth - wide - 8;
	const g = element("g", { id, class: "button", role: "button", tabindex: 0, "aria-haspopup": "menu",
		"aria-expanded": "false" });
	g.appendChild(element("rect", { x, y: 8, width: wide, height: P.fontsize + 10, rx: 4, fill: "#efede6" }));
	g.appendChild(element("text", { x: x + wide / 2, y: 8 + P.fontsize + 3, "text-anchor": "middle", fill: "#333" },
		"Menu"));
	return g;
}

function draw_menu() {
	const line = P.fontsize + 10, wide = 40 * P.fontsize * P.charwidth, x = Math.max(0, P.width - P.pad - wide);
	const y = 8 + P.fontsize + 14;
	menu.replaceChildren(element("rect", { class: "panel", x, y, width: wide, height: items.length * line + 10, rx: 6 }));
	items.forEach(([text, key, act], k) => {
		const g = element("g", act ? { class: "item", role: "menuitem", tabindex: 0 } : { class: "item" });
		g.appendChild(element("rect", { x: x + 4, y: y + 5 + k * line, width: wide - 8, height: line, rx: 4 }));
		g.appendChild(element("text", { x: x + 12, y: y + 5 + k * line + P.fontsize + 3 }, text));
		g.appendChild(element("text", { x: x + wide - 12, y: y + 5 + k * line + P.fontsize + 3,
			"text-anchor": "end", class: "key" }, key));
		if (act)
			g.addEventListener("click", () => { show_menu(false); act(); });
		menu.appendChild(g);
	});
}

function show_menu(on) {
	if (on)
		draw_menu();
	menu.setAttribute("visibility", on ? "visible" : "hidden");
	least_high = on ? 8 + P.fontsize + 34 + items.length * (P.fontsize + 10) : 0;
	resize(P.width);
	$("menu_button").setAttribute("aria-expanded", String(on));
	if (on && menu.querySelector("[tabindex]").focus)
		menu.querySelector("[tabindex]").focus();
}

const menu_open = () => menu.getAttribute("visibility") === "visible";

svg.appendChild(button_like("menu_button"));
svg.appendChild(menu);

/* --- keyboard ------------------------------------------------------------------------------------------- */

function shown(i) {
	return name[i] >= 0 && value[i] >= P.minwidth / scale();
}

/* From the frame `i`: the one below or above it, or its neighbour, as far as there is one. */
function neighbour(i, key) {
	const deeper = P.inverted ? "ArrowDown" : "ArrowUp", back = P.inverted ? "ArrowUp" : "ArrowDown";

	if (i < 0)
		return zoomed;
	if (key === deeper) {
		let best = i;
		for (let c = i + 1; c < end[i]; c = end[c])
			if (shown(c) && (best === i || value[c] > value[best]))
				best = c;
		return best;
	}
	if (key === back)
		return parent[i] < 0 ? i : parent[i];
	let before = -1;
	if (level[i] <= level[zoomed])
		return i;
	for (let c = parent[i] + 1; c < end[parent[i]]; c = end[c]) {
		if (!shown(c))
			continue;
		if (key === "ArrowLeft" && c === i)
			return before < 0 ? i : before;
		if (key === "ArrowRight" && c > i)
			return c;
		before = c;
	}
	return i;
}

function on_key(event) {
	const find = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "f";
	const typing = event.target === input, other = event.ctrlKey || event.altKey || event.metaKey;
	const letter = !typing && !other && items.find(([, key, act]) => act && key === event.key);

	if ((find && !typing) || (event.key === "/" && !typing && !event.ctrlKey)) {
		open_search();
	} else if (event.key === "Escape") {
		if (menu_open()) {
			show_menu(false);
		} else if (typing || term) {
			close_search();
			search("");
		} else {
			zoom(0);
		}
	} else if (typing) {
		if (event.key !== "Enter")
			return;
		close_search();
	} else if (event.key === "Enter" || event.key === " ") {
		if (event.target === kind)
			return;
		if (event.target.id === "reset")
			zoom(0);
		else if (event.target.id === "menu_button")
			show_menu(!menu_open());
		else if (event.target.getAttribute("role") === "menuitem")
			event.target.dispatchEvent(new Event("click"));
		else if (event.target.id === "search")
			open_search();
		else if (under >= 0)
			zoom(under);
		else
			return;
	} else if (menu_open() && /^Arrow(Up|Down)/.test(event.key)) {
		const all = [...menu.querySelectorAll("[tabindex]")], by = event.key === "ArrowDown" ? 1 : -1;
		all[(all.indexOf(document.activeElement) + by + all.length) % all.length].focus();
	} else if (/^Arrow/.test(event.key) && !other) {
		mark(neighbour(under, event.key));
	} else if (letter) {
		letter[2]();
	} else if (event.key === "N" && !other) {
		next_hit(-1);
	} else if ((event.key === "Menu" || event.key === "?") && !other) {
		show_menu(!menu_open());
	} else {
		return;
	}
	event.preventDefault();
}

/* --- the details stay in sight when the picture is taller than the window ------------------------------- */

function keep_in_sight() {
	const area = svg.getBoundingClientRect(), hidden = area.bottom - window.innerHeight;
	const shift = hidden > 0 ? Math.min(hidden * high / area.height, high - 60) : 0;

	$("foot").setAttribute("transform", "translate(0 " + -shift + ")");
	$("bar").setAttribute("visibility", shift && (under >= 0 || term) ? "visible" : "hidden");
}

svg.addEventListener("mousemove", (event) => mark(place(event)));
svg.addEventListener("mouseleave", () => mark(-1));
frames.addEventListener("click", (event) => zoom(place(event)));
$("reset").addEventListener("click", () => zoom(0));
$("search").addEventListener("click", open_search);
input.addEventListener("input", () => search(input.value));
kind.addEventListener("click", () => {
	set_plain(!plain);
	search(input.value);
	input.focus();
});
$("menu_button").addEventListener("click", () => show_menu(!menu_open()));
(svg === document.documentElement ? document : svg).addEventListener("keydown", on_key);
window.addEventListener("scroll", keep_in_sight);
window.addEventListener("resize", keep_in_sight);

$("search").setAttribute("visibility", "visible");
recall();

function scroll_to_root() {
	if (svg === document.documentElement && high > 2 * window.innerHeight)
		window.scrollTo(0, P.inverted ? 0 : high);
}

/* Narrower than the picture is the window only where it is small: then labels are to be read without scrolling. */
function fit_if_small() {
	const width = document.documentElement.clientWidth;
	const wanted = Math.max(320, Math.min(came.width, width || came.width));
	if (P.fit && svg === document.documentElement && wanted !== P.width && (wanted < came.width || P.width < came.width)) {
		P.width = wanted;
		view();
	}
}
window.addEventListener("resize", fit_if_small);
fit_if_small();
scroll_to_root();
keep_in_sight();
})();
