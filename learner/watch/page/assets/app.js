// The page: what the program says, in views.
import { byId, make, setText, show, span } from "./dom.js";
import { Socket } from "./socket.js";
import { AirView } from "./air.js";
import { MatrixView } from "./matrix.js";
import { PlayerView } from "./player.js";

const views = ["learning", "air", "bench", "matrix", "events", "config"];
const names = { learning: "Learning", air: "Air", bench: "Bench", matrix: "Runs", events: "Events", config: "Config" };
const states = { preparing: "preparing", running: "running", stopping: "stopping", ended: "ended", stopped: "stopped, can go on", failed: "⚠ failed" };
const kinds = { info: "info", round: "round", void: "⚠ void", lost: "⚠ lost", warning: "⚠ warning" };
const mostEvents = 500;

let scene = "", view = "", scenes = [], parts = {}, events = [], connected = false, chosen = false;

const socket = new Socket({
  hear,
  frames: (header, data, at) => air.take(header, data, at),
  state: (s) => {
    connected = s === "open";
    tellConnection();
  },
  wish: () => ({ scene, view, columns: air ? air.columns() : 1024 }),
});
const send = (wish) => socket.send(wish);
const air = new AirView(send), matrix = new MatrixView(), player = new PlayerView(send);

function tellConnection() {
  const final = ["ended", "stopped", "failed"].includes(parts.status?.state);
  show(byId("lost"), !connected);
  if (!connected) setText(byId("lost"), final ? "The program has ended: this is what it said last." : "The program does not answer: trying again. What is shown may be old.");
  for (const id of ["off", "stop"]) byId(id).disabled = !connected && id === "stop";
}

function hear(m) {
  if (m.part === "hello") return hello(m.value);
  if (m.scene !== scene) return;
  parts[m.part] = m.value;
  (handlers[m.part] || (() => {}))(m.value);
  offerViews();
}

function hello(h) {
  scenes = h.scenes;
  setText(byId("program"), h.program);
  const select = byId("scene");
  select.replaceChildren(...scenes.map((s) => Object.assign(make("option", "", s.title), { value: s.id })));
  show(byId("scene-label"), scenes.length > 1);
  const newest = scenes[scenes.length - 1]?.id || "";
  if (!scenes.some((s) => s.id === scene) || (!chosen && scene !== newest)) look(newest);
  select.value = scene;
  setTitle();
}

function setTitle() {
  const s = scenes.find((x) => x.id === scene);
  setText(byId("title"), s ? s.title : "Ringwave");
  document.title = s ? `${s.title} – Ringwave` : "Ringwave";
}

// look turns to another scene.
function look(id) {
  scene = id;
  parts = {};
  events = [];
  byId("events").replaceChildren();
  for (const name of ["learning", "bench"]) byId(`view-${name}`).replaceChildren();
  byId("view-air").querySelectorAll(".made").forEach((e) => e.remove());
  air.clear();
  player.clear();
  show(byId("air"), false);
  setText(byId("config"), "");
  setTitle();
  for (const id of ["off", "stop"]) show(byId(id), false);
  send(socket.wish());
}

const handlers = {
  status(s) {
    setText(byId("state"), states[s.state] || s.state);
    byId("progress").value = s.share;
    byId("progress").setAttribute("aria-label", `${Math.round(100 * s.share)} % done`);
    setText(byId("done"), s.of ? `${s.unit} ${s.done} of ${s.of}` : "");
    setText(byId("left"), span(s.seconds_left));
    setText(byId("why"), s.text || "");
    byId("why").classList.toggle("alarm", s.state === "failed");
    show(byId("why"), !!s.text);
    tellConnection();
  },
  controls(c) {
    show(byId("off"), c.carriers_off);
    show(byId("stop"), c.stop);
  },
  air(on) {
    show(byId("air"), on);
  },
  figures() { fill(); },
  tables() { fill(); },
  plots() { fill(); },
  matrix(m) { matrix.take(m); },
  player(p) { player.take(p); },
  config(text) { showConfig(text); },
  events(list) {
    events = [...events, ...list].slice(-mostEvents);
    showEvents();
  },
};

// has reports whether a view has something to show.
function has(name) {
  if (name === "air" && (parts.air || parts.player)) return true;
  if (name === "matrix") return !!parts.matrix || of("figures", name) || of("tables", name) || of("plots", name);
  if (name === "events") return true;
  if (name === "config") return !!parts.config;
  return of("figures", name) || of("tables", name) || of("plots", name);
}

const of = (part, name) => (parts[part] || []).some((x) => x.view === name);

function offerViews() {
  const offered = views.filter(has);
  const tabs = byId("tabs"), key = offered.join();
  if (tabs.dataset.offered !== key) {
    tabs.dataset.offered = key;
    const focused = document.activeElement?.dataset?.view;
    tabs.replaceChildren(...offered.map((name) => {
      const b = make("button", "", names[name]);
      b.id = `tab-${name}`;
      b.dataset.view = name;
      b.setAttribute("role", "tab");
      b.setAttribute("aria-controls", `view-${name}`);
      b.title = `Key ${views.indexOf(name) + 1}`;
      b.onclick = () => go(name);
      return b;
    }));
    if (focused) byId(`tab-${focused}`)?.focus();
  }
  const wanted = location.hash.slice(1);
  const next = offered.includes(wanted) ? wanted : offered.includes("matrix") ? "matrix" : offered[0]; // what was chosen is in the address
  if (next !== view) turn(next);
  mark();
}

function mark() {
  for (const b of byId("tabs").children) {
    const on = b.dataset.view === view;
    b.setAttribute("aria-selected", on);
    b.tabIndex = on ? 0 : -1;
  }
}

function go(name) {
  history.replaceState(null, "", `#${name}`);
  turn(name);
  mark();
}

function turn(name) {
  view = name;
  for (const v of views) show(byId(`view-${v}`), v === name);
  fill();
  matrix.draw();
  send(socket.wish());
  air.again();
}

// Figures, tables and plots of the view that is shown.
function fill() {
  if (!["learning", "air", "bench", "matrix"].includes(view)) return;
  const section = byId(`view-${view}`);
  fillFigures(section);
  fillPlots(section);
  fillTables(section);
}

// readable writes a number in five digits; words and whole numbers as they are.
function readable(value) {
  if (value === "") return "–";
  const x = Number(value);
  return value.trim() === "" || !isFinite(x) || Number.isInteger(x) ? value : Math.abs(x) < 1e-3 ? x.toExponential(4) : String(Number(x.toPrecision(5)));
}

function place(section, className) {
  let box = section.querySelector(`:scope > .made.${className}`);
  if (!box) {
    box = make("div", `made ${className}`);
    section.append(box);
  }
  return box;
}

function fillFigures(section) {
  const list = (parts.figures || []).filter((f) => f.view === view);
  const box = place(section, "figures");
  show(box, list.length > 0);
  const keys = list.map((f) => f.key).join();
  if (box.dataset.keys !== keys) {
    box.dataset.keys = keys;
    box.replaceChildren(...list.map((f) => {
      const card = make("div", "figure");
      card.dataset.key = f.key;
      card.append(make("div", "label", f.label), make("div", "value"));
      return card;
    }));
  }
  list.forEach((f, k) => {
    const card = box.children[k], value = card.lastChild;
    if (value.dataset.value !== f.value || value.dataset.unit !== (f.unit || "")) {
      value.dataset.value = f.value;
      value.dataset.unit = f.unit || "";
      value.replaceChildren(make("span", "", readable(f.value)), document.createTextNode(" "), make("span", "unit", f.unit || ""));
    }
    card.title = [f.note, f.value && readable(f.value) !== f.value ? `exactly ${f.value}` : ""].filter(Boolean).join("; ");
    card.classList.toggle("alarm", !!f.alarm);
  });
}

function fillTables(section) {
  const list = (parts.tables || []).filter((t) => t.view === view);
  const box = place(section, "tables");
  show(box, list.length > 0);
  const kept = new Map([...box.children].map((e) => [e.dataset.name, e]));
  const now = list.map((t) => {
    const div = kept.get(t.name) || make("div");
    div.dataset.name = t.name;
    if (div.dataset.title !== t.title || !div.firstChild) {
      div.dataset.title = t.title;
      div.replaceChildren(make("h2", "", t.title), make("div", "scroll"), make("p", "note"));
      div.children[1].tabIndex = 0;
      div.children[1].append(make("table"));
    }
    fillTable(div.querySelector("table"), t);
    setText(div.lastChild, t.note || "");
    return div;
  });
  if (now.length !== box.children.length || now.some((e, k) => e !== box.children[k])) box.replaceChildren(...now);
}

function fillTable(table, t) {
  const heads = t.columns.map((c) => (c.unit ? `${c.label} (${c.unit})` : c.label));
  if (table.dataset.heads !== heads.join("\u0000")) {
    table.dataset.heads = heads.join("\u0000");
    const head = make("thead"), row = make("tr");
    heads.forEach((text, k) => {
      const th = make("th", t.columns[k].numeric ? "number" : "", text);
      th.scope = "col";
      row.append(th);
    });
    head.append(row);
    table.replaceChildren(head, make("tbody"));
  }
  const body = table.tBodies[0];
  while (body.rows.length > t.rows.length) body.deleteRow(-1);
  t.rows.forEach((cells, r) => {
    const row = body.rows[r] || body.insertRow();
    while (row.cells.length > cells.length) row.deleteCell(-1);
    cells.forEach((text, c) => {
      const cell = row.cells[c] || row.insertCell();
      cell.className = t.columns[c]?.numeric ? "number" : "";
      setText(cell, text);
    });
  });
}

const seen = new IntersectionObserver((list) => {
  for (const e of list) {
    e.target.dataset.seen = e.isIntersecting ? "1" : "";
    if (e.isIntersecting) refresh(e.target);
  }
}, { rootMargin: "200px" });

function fillPlots(section) {
  const list = (parts.plots || []).filter((p) => p.view === view);
  const box = place(section, "plots");
  show(box, list.length > 0);
  const kept = new Map([...box.children].map((e) => [e.dataset.plot, e]));
  const now = list.map((p) => {
    let button = kept.get(p.name);
    if (!button) {
      button = make("button");
      button.dataset.plot = p.name;
      button.append(make("img"));
      button.onclick = () => enlarge(button);
      seen.observe(button);
    }
    button.title = p.title;
    button.firstChild.alt = p.title + (p.caption ? `. ${p.caption}` : "");
    button.dataset.version = p.version;
    button.dataset.caption = p.caption || "";
    refresh(button);
    return button;
  });
  if (now.length !== box.children.length || now.some((e, k) => e !== box.children[k])) box.replaceChildren(...now);
}

// refresh loads a plot that is seen, if there is a newer one, behind the one that is there.
function refresh(button) {
  const version = button.dataset.version;
  if (button.dataset.seen !== "1" || button.dataset.shown === version || button.dataset.loading || document.hidden) return;
  button.dataset.loading = version;
  const next = new Image();
  const url = `/scenes/${encodeURIComponent(scene)}/plots/${encodeURIComponent(button.dataset.plot)}.svg?v=${version}`;
  next.onload = () => {
    button.firstChild.src = url;
    button.dataset.shown = version;
    delete button.dataset.loading;
    if (byId("large").open && byId("large").dataset.plot === button.dataset.plot) byId("picture").src = url;
    setTimeout(() => refresh(button), 1000);
  };
  next.onerror = () => {
    delete button.dataset.loading;
    setTimeout(() => refresh(button), 2000);
  };
  next.src = url;
}

function enlarge(button) {
  byId("picture").src = button.firstChild.src;
  byId("picture").alt = button.firstChild.alt;
  setText(byId("caption"), button.dataset.caption);
  byId("large").dataset.plot = button.dataset.plot;
  byId("large").showModal();
}
byId("close").onclick = () => byId("large").close();

let asked = false;
function showEvents() {
  if (asked) return;
  asked = true;
  setTimeout(() => {
    asked = false;
    const kind = byId("kind");
    const there = [...new Set(events.map((e) => e.kind))].sort(), value = kind.value;
    if (kind.dataset.kinds !== there.join()) {
      kind.dataset.kinds = there.join();
      kind.replaceChildren(Object.assign(make("option", "", "all"), { value: "" }), ...there.map((k) => Object.assign(make("option", "", kinds[k] || k), { value: k })));
      kind.value = there.includes(value) ? value : "";
    }
    const list = events.filter((e) => !kind.value || e.kind === kind.value).reverse();
    byId("events").replaceChildren(...list.map((e) => {
      const li = make("li");
      li.append(make("span", "when", new Date(e.time).toLocaleTimeString()), make("span", "kind", kinds[e.kind] || e.kind), make("span", "text", e.text));
      return li;
    }));
  }, 200);
}
byId("kind").onchange = showEvents;

function showConfig(text) {
  const pre = byId("config"), wanted = byId("find").value.toLowerCase();
  if (!wanted) {
    setText(byId("found"), "");
    return setText(pre, text || "");
  }
  pre.replaceChildren();
  let at = 0, n = 0;
  const low = text.toLowerCase();
  for (let k = low.indexOf(wanted); k >= 0; k = low.indexOf(wanted, k + wanted.length)) {
    pre.append(text.slice(at, k), make("mark", "", text.slice(k, k + wanted.length)));
    at = k + wanted.length;
    n++;
  }
  pre.append(text.slice(at));
  setText(byId("found"), n === 1 ? "found once" : `found ${n} times`);
  pre.querySelector("mark")?.scrollIntoView({ block: "nearest" });
}
byId("find").oninput = () => showConfig(parts.config || "");

byId("scene").onchange = () => {
  chosen = true;
  look(byId("scene").value);
};

async function control(name, said) {
  try {
    const answer = await fetch(`/scenes/${encodeURIComponent(scene)}/${name}`, { method: "POST" });
    setText(byId("told"), answer.ok ? said : `not done: ${await answer.text()}`);
  } catch {
    setText(byId("told"), "not done: the program does not answer");
  }
}
const off = () => control("carriers-off", "carriers off: asked for");
byId("off").onclick = off;
byId("stop").onclick = () => byId("ask").showModal();
byId("no").onclick = () => byId("ask").close();
byId("yes").onclick = () => {
  byId("ask").close();
  control("stop", "stop: asked for");
};

function theme(name) {
  document.documentElement.dataset.theme = name;
  air.again();
  matrix.draw();
}
const preferred = () => (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
function remembered() {
  try { return localStorage.getItem("theme"); } catch { return null; }
}
byId("theme").onclick = () => {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  try { localStorage.setItem("theme", next); } catch { /* it lasts as long as the page */ }
  theme(next);
};
matchMedia("(prefers-color-scheme: dark)").onchange = () => { if (!remembered()) theme(preferred()); };
theme(remembered() || preferred());

document.addEventListener("keydown", (e) => {
  if (e.key === "Escape" && e.shiftKey && !byId("off").hidden) {
    e.preventDefault();
    return off();
  }
  if (e.ctrlKey || e.altKey || e.metaKey || document.querySelector("dialog[open]")) return;
  const field = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
  const tab = e.target.closest?.("#tabs button");
  if (tab && (e.key === "ArrowRight" || e.key === "ArrowLeft")) {
    const list = [...byId("tabs").children], next = list[(list.indexOf(tab) + (e.key === "ArrowRight" ? 1 : list.length - 1)) % list.length];
    next.focus();
    return go(next.dataset.view);
  }
  if (field) return;
  const name = views[Number(e.key) - 1];
  if (name && byId(`tab-${name}`)) return go(name);
  if (e.key === " " && e.target.tagName !== "BUTTON" && player.state && view === "air") {
    e.preventDefault();
    player.toggle();
  }
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  air.again();
  fill();
});
window.addEventListener("hashchange", offerViews);
let resized = 0;
window.addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => { send(socket.wish()); matrix.draw(); }, 300);
});
