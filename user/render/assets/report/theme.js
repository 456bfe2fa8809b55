/* Before the first paint: the colours that were chosen here before, else those of the system (report.css). */
(function () {
"use strict";

let chosen = /(?:^#|&)theme=(dark|light)(?:&|$)/.exec(location.hash);
try {
	chosen = chosen ? chosen[1] : localStorage.getItem("memscope-theme");
} catch (error) {
	chosen = chosen ? chosen[1] : null; /* a page from a file may have no storage */
}
if (chosen === "dark" || chosen === "light")
	document.documentElement.dataset.theme = chosen;
})();
