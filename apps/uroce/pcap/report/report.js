// SPDX-License-Identifier: BSD-3-Clause
// The plots of `uroce pcap report`: drawn from the numbers in the page, again for each time that is chosen. Text is only ever set as text.
"use strict";
(function () {
	const WIDE = 1000, LEFT = 96, RIGHT = 976, TOP = 46, GAP = 34, MARK_ROW = 15;
	const PSN = 1 << 24;
	const PANELS = { seq: 340, rate: 96, flight: 96, rtt: 96 };
	const KEYS = [
		["sent", "sent for the first time"], ["again", "sent again"], ["responses", "response"], ["acked", "answered up to here"],
		["has", "arrived beyond a loss"], ["window", "the most in flight so far"]
	];

	function svg(parent, name, attributes, text) {
		const e = document.createElementNS("http://www.w3.org/2000/svg", name);
		for (const key of Object.keys(attributes))
			e.setAttribute(key, attributes[key]);
		if (text !== undefined)
			e.textContent = text;
		parent.appendChild(e);
		return e;
	}

	// --- numbers ---

	// From differences to points {from, to, low, high}.
	function points(flat) {
		const out = [];
		let when = 0, low = 0;
		for (let i = 0; i + 3 < flat.length; i += 4) {
			when += flat[i];
			low += flat[i + 2];
			out.push({ from: when, to: when + flat[i + 1], low: low, high: low + flat[i + 3] });
		}
		return out;
	}

	function step(span, n) {
		let s = Math.pow(10, Math.floor(Math.log10(span / n)));
		for (const k of [1, 2, 5, 10])
			if (span / (s * k) <= n)
				return s * k;
		return s * 10;
	}

	// The round values of an axis, about n of them. They are counted: where one step is less than what a double tells apart, adding it
	// would never end.
	function ticks(low, high, n) {
		const s = step(high - low, n), first = Math.ceil(low / s), out = [];
		for (let i = 0; i <= n && (first + i) * s <= high; i++)
			out.push((first + i) * s);
		return out;
	}

	// The least time that can be drawn near this one: some steps of what a double tells apart.
	function leastSpan(when) { return Math.max(1, when * Number.EPSILON * 1024); }

	function digits(v) { return String(Number(v.toPrecision(6))); }
	function timeText(ns) {
		const a = Math.abs(ns);
		if (a >= 1e9) return digits(ns / 1e9) + " s";
		if (a >= 1e6) return digits(ns / 1e6) + " ms";
		if (a >= 1e3) return digits(ns / 1e3) + " us";
		return digits(ns) + " ns";
	}
	function rateText(v) {
		for (const [unit, k] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]])
			if (v >= k) return digits(v / k) + " " + unit + "bit/s";
		return digits(v) + " bit/s";
	}
	function psnOf(plot, v) { return (((plot.psn + v) % PSN) + PSN) % PSN; }

	// --- one plot ---

	// What of a curve lies in the view, and the value that held when it began.
	function inView(curve, view) {
		let first = 0, last = curve.length;
		while (first < last && curve[first].to < view.begin)
			first++;
		while (last > first && curve[last - 1].from > view.end)
			last--;
		return curve.slice(Math.max(0, first - 1), Math.min(curve.length, last + 1));
	}

	function extent(curves, view, least) {
		let low = Infinity, high = -Infinity;
		for (const c of curves)
			for (const p of inView(c, view)) {
				if (p.to < view.begin || p.from > view.end)
					continue;
				low = Math.min(low, p.low);
				high = Math.max(high, p.high);
			}
		if (low > high)
			return [0, 1];
		return least === undefined ? [low, Math.max(high, low + 1)] : [least, Math.max(high, least + 1)];
	}

	function clampedX(view, when) {
		const at = (when - view.begin) / (view.end - view.begin);
		return LEFT + (RIGHT - LEFT) * Math.min(1, Math.max(0, at));
	}
	function y(panel, v) {
		const at = (v - panel.low) / (panel.high - panel.low);
		return panel.top + panel.tall * (1 - Math.min(1, Math.max(0, at)));
	}

	function strokes(g, plot, view, panel, name) {
		let d = "";
		for (const p of inView(plot[name], view)) {
			if (p.to < view.begin || p.from > view.end)
				continue;
			const x1 = clampedX(view, p.from), x2 = clampedX(view, p.to), top = y(panel, p.high);
			const bottom = Math.max(y(panel, p.low), top + 1.4);
			d += "M" + x1.toFixed(1) + " " + top.toFixed(1) + "V" + bottom.toFixed(1);
			if (x2 - x1 > 1.5) // several that were merged
				d += "H" + x2.toFixed(1) + "V" + top.toFixed(1) + "z";
		}
		if (d)
			svg(g, "path", { class: name, d: d });
	}

	function steps(g, plot, view, panel, name) {
		let d = "", end = view.begin;
		for (const p of inView(plot[name], view)) {
			const x = clampedX(view, p.from).toFixed(1), low = y(panel, p.low).toFixed(1), high = y(panel, p.high).toFixed(1);
			if (p.from > view.end)
				break;
			d += (d ? "H" + x + "V" + low : "M" + x + " " + low) + (high !== low ? "V" + high : "");
			end = p.to;
		}
		if (d)
			svg(g, "path", { class: name, d: d + "H" + clampedX(view, end).toFixed(1) });
	}

	function bars(g, plot, view, panel, values, name) {
		const b = plot.bins, floor = panel.top + panel.tall;
		let d = "", any = false;
		for (let i = 0; i < values.length; i++) {
			const from = b.begin + i * b.width, to = from + b.width;
			if (to < view.begin || from > view.end)
				continue;
			const at = y(panel, values[i] * 8e9 / b.width).toFixed(1);
			d += (d ? "V" + at : "M" + clampedX(view, from).toFixed(1) + " " + floor + "V" + at) +
				"H" + clampedX(view, to).toFixed(1);
			any = any || values[i] > 0;
		}
		if (any)
			svg(g, "path", { class: name, d: d + "V" + floor + "z" });
	}

	function frame(g, panel, name, label) {
		const from = panel.origin || 0;
		for (const tick of ticks(panel.low + from, panel.high + from, panel.tall > 200 ? 8 : 4)) {
			const v = tick - from, at = y(panel, v);
			svg(g, "line", { class: "grid", x1: LEFT, x2: RIGHT, y1: at, y2: at });
			svg(g, "text", { class: "tick", x: LEFT - 6, y: at + 4, "text-anchor": "end" }, label(v));
		}
		svg(g, "rect", { class: "edge", x: LEFT, y: panel.top, width: RIGHT - LEFT, height: panel.tall });
		svg(g, "text", { class: "name", x: LEFT, y: panel.top - 6 }, name);
	}

	function timeAxis(g, view, top, bottom) {
		for (const v of ticks(view.begin, view.end, 9)) {
			const x = clampedX(view, v);
			svg(g, "line", { class: "grid", x1: x, x2: x, y1: top, y2: bottom });
			svg(g, "text", { class: "tick", x: x, y: bottom + 16, "text-anchor": "middle" }, timeText(v));
		}
	}

	function marks(g, plot, view, seq, top) {
		let row = top;
		for (const kind of Object.keys(plot.marks)) {
			const m = plot.marks[kind], word = kind.split(" ")[0];
			svg(g, "text", { class: "tick", x: LEFT - 6, y: row + 4, "text-anchor": "end" }, kind + ": " + m.count);
			let last = -9;
			for (let i = 0; i + 2 < m.at.length; i += 3) {
				const when = m.at[i], x = clampedX(view, when);
				if (when < view.begin || when > view.end || x < last + 3)
					continue;
				last = x;
				for (const at of kind === "ECN mark" || kind === "CNP" ? [row] : [row, y(seq, m.at[i + 1])]) {
					const dot = svg(g, "circle", { class: word, cx: x.toFixed(1), cy: at.toFixed(1), r: 3.4 });
					svg(dot, "title", {}, kind + ", " + timeText(when) + ", PSN " + psnOf(plot, m.at[i + 1]) +
						(m.at[i + 2] > 1 ? " and " + (m.at[i + 2] - 1) + " more" : ""));
				}
			}
			row += MARK_ROW;
		}
	}

	function legend(g, plot) {
		let x = LEFT;
		for (const [name, text] of KEYS) {
			if (!plot[name].length)
				continue;
			svg(g, "path", { class: name, d: "M" + x + " 14h24" });
			svg(g, "text", { class: "tick", x: x + 29, y: 18 }, text);
			x += 150;
		}
	}

	function draw(figure) {
		const plot = figure.plot, view = figure.view, rows = Object.keys(plot.marks).length;
		const seqCurves = ["sent", "again", "responses"].map(function (n) { return plot[n]; });
		const range = extent(seqCurves, view), psns = range[1] - range[0];
		const seq = { top: TOP, tall: PANELS.seq, low: range[0] - psns * 0.02, high: range[1] + psns * 0.05, origin: plot.psn };
		const lower = TOP + PANELS.seq + 16 + rows * MARK_ROW + GAP;
		const panels = ["rate", "flight", "rtt"].map(function (name, i) {
			return { top: lower + i * (PANELS.rate + GAP), tall: PANELS[name], low: 0 };
		});
		let most = 1;
		for (const v of plot.bins.bytes.concat(plot.bins.again))
			most = Math.max(most, v * 8e9 / plot.bins.width);
		panels[0].high = most * 1.05;
		panels[1].high = extent([plot.flight], view, 0)[1] * 1.05;
		panels[2].high = extent([plot.rtt], view, 0)[1] * 1.05;
		const bottom = panels[2].top + panels[2].tall, picture = figure.picture;

		picture.textContent = "";
		picture.setAttribute("viewBox", "0 0 " + WIDE + " " + (bottom + 26));
		legend(picture, plot);
		timeAxis(picture, view, TOP, bottom);
		frame(picture, seq, "PSN", function (v) { return String(psnOf(plot, Math.round(v))); });
		steps(picture, plot, view, seq, "window");
		for (const name of ["sent", "responses", "has"])
			strokes(picture, plot, view, seq, name);
		steps(picture, plot, view, seq, "acked");
		strokes(picture, plot, view, seq, "again");
		marks(picture, plot, view, seq, TOP + PANELS.seq + 16);
		frame(picture, panels[0], "rate of data; orange: sent again", rateText);
		bars(picture, plot, view, panels[0], plot.bins.bytes, "rate");
		bars(picture, plot, view, panels[0], plot.bins.again, "repeat");
		frame(picture, panels[1], "PSNs in flight", digits);
		steps(picture, plot, view, panels[1], "flight");
		frame(picture, panels[2], "round trip", timeText);
		strokes(picture, plot, view, panels[2], "rtt");
		figure.element.dataset.begin = Math.round(view.begin);
		figure.element.dataset.end = Math.round(view.end);
	}

	// --- zooming ---

	function show(figure, begin, end) {
		const all = figure.all, least = Math.min(Math.max(1000, leastSpan(all.end)), all.end - all.begin);
		const span = Math.min(Math.max(end - begin, least), all.end - all.begin);
		begin = Math.min(Math.max(begin, all.begin), all.end - span);
		figure.view = { begin: begin, end: begin + span };
		draw(figure);
	}
	function zoom(figure, factor, around) {
		const v = figure.view, at = around === undefined ? (v.begin + v.end) / 2 : around;
		show(figure, at - (at - v.begin) * factor, at + (v.end - at) * factor);
	}
	function move(figure, share) {
		const v = figure.view, by = (v.end - v.begin) * share;
		show(figure, v.begin + by, v.end + by);
	}
	function whole(figure) { show(figure, figure.all.begin, figure.all.end); }

	const ACTIONS = [
		["+", "zoom in", ["+", "="], function (f) { zoom(f, 0.5); }], ["-", "zoom out", ["-"], function (f) { zoom(f, 2); }],
		["<", "earlier", ["ArrowLeft"], function (f) { move(f, -0.25); }],
		[">", "later", ["ArrowRight"], function (f) { move(f, 0.25); }],
		["all", "show all of it", ["0", "Escape"], whole]
	];

	function whenOf(figure, e) {
		const box = figure.picture.getBoundingClientRect(), v = figure.view;
		const x = (e.clientX - box.left) / box.width * WIDE;
		return v.begin + (v.end - v.begin) * Math.min(1, Math.max(0, (x - LEFT) / (RIGHT - LEFT)));
	}

	function listen(figure) {
		const p = figure.picture;
		let from = null, box = null;

		p.addEventListener("pointerdown", function (e) {
			if (e.button !== 0 || e.pointerType === "touch")
				return;
			from = whenOf(figure, e);
			p.setPointerCapture(e.pointerId);
		});
		p.addEventListener("pointermove", function (e) {
			if (from === null)
				return;
			const a = clampedX(figure.view, from), b = clampedX(figure.view, whenOf(figure, e));
			if (!box)
				box = svg(p, "rect", { class: "selection", y: TOP, height: PANELS.seq });
			box.setAttribute("x", Math.min(a, b));
			box.setAttribute("width", Math.abs(a - b));
		});
		p.addEventListener("pointerup", function (e) {
			const to = whenOf(figure, e);
			const far = from !== null && Math.abs(clampedX(figure.view, from) - clampedX(figure.view, to)) > 6;
			if (box)
				box.remove();
			if (far)
				show(figure, Math.min(from, to), Math.max(from, to));
			from = box = null;
		});
		p.addEventListener("pointercancel", function () {
			if (box)
				box.remove();
			from = box = null;
		});
		p.addEventListener("dblclick", function () { whole(figure); });
		p.addEventListener("wheel", function (e) {
			if (!e.ctrlKey)
				return;
			e.preventDefault();
			zoom(figure, e.deltaY > 0 ? 1.25 : 0.8, whenOf(figure, e));
		}, { passive: false });
		p.addEventListener("keydown", function (e) {
			for (const [, , keys, act] of ACTIONS)
				if (keys.indexOf(e.key) >= 0 && !e.ctrlKey && !e.altKey && !e.metaKey) {
					e.preventDefault();
					act(figure);
				}
		});
	}

	function begin(element, plot) {
		for (const name of ["sent", "again", "responses", "acked", "has", "window", "flight", "rtt"])
			plot[name] = points(plot[name]);
		const end = Math.max(plot.end, plot.begin + leastSpan(plot.begin));
		const figure = { element: element, plot: plot, all: { begin: plot.begin, end: end } };
		const buttons = document.createElement("div");
		for (const [text, label, , act] of ACTIONS) {
			const b = document.createElement("button");
			b.type = "button";
			b.textContent = text;
			b.title = label;
			b.setAttribute("aria-label", label);
			b.addEventListener("click", function () { act(figure); });
			buttons.appendChild(b);
		}
		element.appendChild(buttons);
		figure.picture = svg(element, "svg", { tabindex: 0, role: "img", "aria-label": plot.title });
		listen(figure);
		whole(figure);
	}

	// --- links to packets ---

	// The row that a link leads to, which the browser shows and focuses, shows its fields.
	function openTarget() {
		const summary = /^#f[0-9]+$/.test(location.hash) ? document.getElementById(location.hash.slice(1)) : null;
		if (!summary)
			return;
		summary.parentElement.open = true;
		summary.scrollIntoView({ block: "center" });
	}

	const data = JSON.parse(document.getElementById("data").textContent);
	document.querySelectorAll("figure[data-plot]").forEach(function (element) {
		begin(element, data.plots[Number(element.dataset.plot)]);
	});
	window.addEventListener("hashchange", openTarget);
	openTarget();
})();
