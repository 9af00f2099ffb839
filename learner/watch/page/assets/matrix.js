// The runs of a sweep: a cell each, by letter, colour and pattern.
import { byId, setText, show } from "./dom.js";
import { colours } from "./canvas.js";

const kinds = {
  ".": { name: "waiting", letter: "" },
  r: { name: "running", letter: "▶" },
  d: { name: "done", letter: "✓" },
  u: { name: "unusable", letter: "!" },
  x: { name: "set aside", letter: "✕" },
};

export class MatrixView {
  constructor() {
    const canvas = byId("matrix");
    canvas.onpointermove = (e) => this.point(Math.floor((e.offsetX - this.left) / this.size), Math.floor((e.offsetY - this.top) / this.size));
    canvas.onkeydown = (e) => {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
      if (!step) return;
      e.preventDefault();
      const [c, r] = this.at || [0, 0];
      this.point(c + step[0], r + step[1]);
    };
  }

  take(matrix) {
    this.matrix = matrix;
    const counts = {};
    for (const row of matrix.rows) for (const s of row.states) counts[s] = (counts[s] || 0) + 1;
    setText(byId("matrix-counts"), Object.entries(kinds).filter(([s]) => counts[s]).map(([s, k]) => `${counts[s]} ${k.name}${k.letter ? ` (${k.letter})` : ""}`).join(", "));
    setText(byId("matrix-note"), matrix.note || "");
    show(byId("matrix-note"), !!matrix.note);
    this.draw();
  }

  draw() {
    const m = this.matrix, canvas = byId("matrix");
    if (!m || byId("view-matrix").hidden) return;
    const columns = m.columns.length, rows = m.rows.length;
    const g = canvas.getContext("2d"), ratio = window.devicePixelRatio || 1;
    this.size = Math.max(5, Math.min(30, Math.floor(1100 / Math.max(1, columns))));
    const labelled = this.size >= 12;
    g.font = "12px system-ui, sans-serif";
    this.left = labelled ? Math.min(320, 0.45 * window.innerWidth, 12 + Math.max(0, ...m.rows.map((r) => g.measureText(r.label).width))) : 4;
    this.top = 20;
    const w = this.left + columns * this.size + 4, h = this.top + rows * this.size + 4;
    canvas.style.width = `${w}px`;
    canvas.style.height = `${h}px`;
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    Object.assign(canvas.dataset, { left: this.left, upper: this.top, size: this.size });
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const c = colours();
    g.fillStyle = c.back;
    g.fillRect(0, 0, w, h);
    g.font = "12px system-ui, sans-serif";
    g.textBaseline = "middle";
    const fills = { ".": c.grid, r: c.now, d: c.average, u: c.lattice, x: c.peak };
    m.rows.forEach((row, k) => {
      const y = this.top + k * this.size;
      if (labelled) {
        g.fillStyle = c.text;
        g.textAlign = "left";
        g.fillText(row.label, 4, y + this.size / 2, this.left - 8);
      }
      [...row.states].forEach((s, i) => {
        if (!kinds[s]) return;
        const x = this.left + i * this.size;
        g.fillStyle = fills[s];
        g.fillRect(x + 1, y + 1, this.size - 2, this.size - 2);
        g.fillStyle = c.back;
        g.textAlign = "center";
        if (labelled) g.fillText(kinds[s].letter, x + this.size / 2, y + this.size / 2);
        else if (s === "x" || s === "u") g.fillRect(x + 2, y + Math.floor(this.size / 2), this.size - 4, 1);
      });
    });
    if (labelled) {
      g.fillStyle = c.soft;
      g.textAlign = "center";
      m.columns.forEach((name, i) => g.fillText(name, this.left + (i + 0.5) * this.size, 10, this.size - 2));
    }
    canvas.setAttribute("aria-label", `Runs: ${byId("matrix-counts").textContent}`);
  }

  point(c, r) {
    const m = this.matrix;
    if (!m) return;
    c = Math.max(0, Math.min(m.columns.length - 1, c));
    r = Math.max(0, Math.min(m.rows.length - 1, r));
    if (!m.rows[r]) return;
    this.at = [c, r];
    const kind = kinds[m.rows[r].states[c]];
    setText(byId("matrix-cell"), `${m.rows[r].label}, ${m.columns[c]}: ${kind ? kind.name : "no run"}`);
  }
}
