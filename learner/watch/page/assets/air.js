// What changes fast: spectrum, waterfall and frames.
import { byId, setText, frequency } from "./dom.js";
import { Area, latticeLines } from "./canvas.js";

// lightness grows with the level, so that the waterfall is read without colour, too.
function palette() {
  const table = new Uint32Array(256), bytes = new Uint8Array(table.buffer);
  const stops = [[0, 4, 4, 22], [64, 40, 20, 95], [128, 150, 45, 105], [192, 240, 130, 50], [255, 253, 250, 200]];
  for (let v = 0, s = 0; v < 256; v++) {
    while (v > stops[s + 1][0]) s++;
    const [a, ...from] = stops[s], [b, ...to] = stops[s + 1];
    for (let c = 0; c < 3; c++) bytes[4 * v + c] = from[c] + ((to[c] - from[c]) * (v - a)) / (b - a);
    bytes[4 * v + 3] = 255;
  }
  return table;
}

export class AirView {
  constructor(send) {
    this.colours = palette();
    this.lines = document.createElement("canvas"); // the waterfall's, a pixel a column and line
    this.held = false;
    this.cursor = null;
    byId("reset").onclick = () => send({ air: "reset" });
    byId("hold").onclick = () => {
      this.held = !this.held;
      byId("hold").setAttribute("aria-pressed", this.held);
      setText(byId("hold"), this.held ? "Held: go on" : "Hold");
    };
    byId("auto").onclick = () => this.auto();
    for (const id of ["low", "high"]) byId(id).oninput = () => this.again();
    const canvas = byId("spectrum");
    canvas.onpointermove = (e) => this.point((e.offsetX - canvas.dataset.left) / (canvas.dataset.right - canvas.dataset.left));
    canvas.onpointerleave = () => this.point(null);
    canvas.onkeydown = (e) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: 20, PageDown: -20 }[e.key];
      if (!step || !this.spectrum) return;
      e.preventDefault();
      this.point((this.cursor ?? 0.5) + step / this.spectrum.columns);
    };
    new ResizeObserver(() => this.again()).observe(canvas);
    new ResizeObserver(() => this.later("frame")).observe(byId("eye"));
    this.due = new Set();
  }

  // columns is how many pixels the spectrum has room for.
  columns() { return Math.round(Math.max(64, byId("spectrum").clientWidth - 66)); }

  clear() {
    this.spectrum = this.frame = null;
    this.lines.width = this.lines.width; // which empties it
    this.tops = [];
    setText(byId("frame-name"), "No frame yet.");
    for (const id of ["spectrum", "waterfall", "constellation", "soft", "eye", "density", "phase"]) {
      const c = byId(id);
      c.getContext("2d").clearRect(0, 0, c.width, c.height);
    }
  }

  take(header, data, at) {
    if (this.held) return;
    const rest = data.slice(at); // which begins at a multiple of 4
    if (header.kind === "spectrum") {
      const all = new Float32Array(rest), n = header.columns;
      this.spectrum = { ...header, now: all.subarray(0, n), average: all.subarray(n, 2 * n), peak: all.subarray(2 * n, 3 * n) };
    } else if (header.kind === "waterfall") {
      this.addLines(header, new Uint8Array(rest));
    } else if (header.kind === "frame") {
      this.frame = this.parts(header, new Float32Array(rest));
    }
    this.later(header.kind);
  }

  parts(header, all) {
    let at = 0;
    const next = (n) => all.subarray(at, (at += n));
    return {
      ...header,
      points: next(2 * header.symbols), order: next(header.soft), eye: next(header.traces * header.trace_points),
      counts: next(header.bins), phases: next(3 * header.phase_points),
    };
  }

  // addLines puts new lines above the others, in a picture of bounded size.
  addLines(h, bytes) {
    const c = this.lines, most = 240;
    if (c.width !== h.columns || c.height !== most) {
      c.width = h.columns;
      c.height = most;
      this.tops = [];
    }
    const g = c.getContext("2d");
    this.levels = { low: h.low_db, high: h.high_db };
    const n = Math.min(h.lines, most);
    g.drawImage(c, 0, n);
    const low = Number(byId("low").value), high = Math.max(low + 1, Number(byId("high").value));
    const image = g.createImageData(h.columns, n), out = new Uint32Array(image.data.buffer);
    for (let l = 0; l < n; l++) {
      const from = (h.lines - 1 - l) * h.columns; // the newest is above
      for (let k = 0; k < h.columns; k++) {
        const db = h.low_db + (bytes[from + k] / 255) * (h.high_db - h.low_db);
        out[l * h.columns + k] = this.colours[Math.max(0, Math.min(255, Math.round((255 * (db - low)) / (high - low))))];
      }
    }
    g.putImageData(image, 0, 0);
    this.tops = [...h.seconds.slice(-most).reverse(), ...(this.tops || [])].slice(0, most);
    this.band = h;
  }

  // later has something drawn with the next picture of the screen.
  later(kind) {
    this.due.add(kind);
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      const due = this.due;
      this.due = new Set();
      if (document.hidden || byId("air").hidden || byId("view-air").hidden) return;
      if (due.has("spectrum")) this.drawSpectrum();
      if (due.has("waterfall")) this.drawWaterfall();
      if (due.has("frame")) this.drawFrame();
    });
  }

  again() {
    for (const kind of ["spectrum", "waterfall", "frame"]) this.later(kind);
  }

  auto() {
    if (!this.spectrum) return;
    const sorted = Float32Array.from(this.spectrum.average).sort(), peak = Math.max(...this.spectrum.peak);
    byId("low").value = Math.floor(sorted[Math.floor(sorted.length / 4)] / 5) * 5;
    byId("high").value = Math.ceil(peak / 5) * 5;
  }

  drawSpectrum() {
    const s = this.spectrum;
    if (!s) return;
    let low = Infinity, high = -Infinity;
    for (let k = 0; k < s.columns; k++) {
      low = Math.min(low, s.average[k], s.now[k]);
      high = Math.max(high, s.peak[k]);
    }
    // Axes that move only by whole steps do not flicker.
    const bottom = Math.max(-160, Math.floor(low / 10) * 10), top = Math.max(bottom + 20, Math.ceil((high + 3) / 10) * 10);
    const text = (f) => (s.centre_hz ? `${Number(((s.centre_hz + f) / 1e6).toFixed(4))}` : frequency(f));
    const a = new Area(byId("spectrum"), { low: s.low_hz, high: s.high_hz, bottom, top, xLabel: s.centre_hz ? "MHz" : "from the carrier", yLabel: "dBFS", left: 58, xText: text });
    const at = (k) => s.low_hz + ((k + 0.5) / s.columns) * (s.high_hz - s.low_hz);
    a.line(s.columns, at, (k) => s.peak[k], a.colours.peak, 1, [3, 2]);
    a.line(s.columns, at, (k) => s.now[k], a.colours.now, 1);
    a.line(s.columns, at, (k) => s.average[k], a.colours.average, 2);
    if (this.cursor !== null) a.vertical(s.low_hz + this.cursor * (s.high_hz - s.low_hz), a.colours.text);
    this.read();
  }

  point(share) {
    this.cursor = share === null ? null : Math.max(0, Math.min(1, share));
    this.later("spectrum");
    if (share === null) setText(byId("readout"), "");
  }

  // read writes what is at the cursor, and once a second what the spectrum has.
  read() {
    const s = this.spectrum;
    if (this.cursor !== null) {
      const k = Math.min(s.columns - 1, Math.floor(this.cursor * s.columns));
      const f = s.low_hz + this.cursor * (s.high_hz - s.low_hz);
      const where = s.centre_hz ? `${((s.centre_hz + f) / 1e6).toFixed(4)} MHz (${frequency(f)} from the carrier)` : frequency(f);
      setText(byId("readout"), `${where}: ${s.now[k].toFixed(1)} dBFS, average ${s.average[k].toFixed(1)}, peak ${s.peak[k].toFixed(1)}`);
    }
    const now = Date.now();
    if (now - (this.said || 0) < 1000) return;
    this.said = now;
    let k = 0;
    for (let i = 1; i < s.columns; i++) if (s.average[i] > s.average[k]) k = i;
    byId("spectrum").setAttribute("aria-label", `Spectrum: the average is strongest at ${frequency(s.low_hz + ((k + 0.5) / s.columns) * (s.high_hz - s.low_hz))} from the carrier, ${s.average[k].toFixed(1)} dBFS; a bin is ${frequency(s.bin_hz)} wide`);
  }

  drawWaterfall() {
    const h = this.band;
    if (!h || !this.tops?.length) return;
    const n = this.tops.length;
    const centre = this.spectrum?.centre_hz || 0;
    const text = (f) => (centre ? `${Number(((centre + f) / 1e6).toFixed(4))}` : frequency(f));
    const a = new Area(byId("waterfall"), { low: h.low_hz, high: h.high_hz, bottom: this.lines.height, top: 0, xLabel: centre ? "MHz" : "from the carrier", yLabel: "s", left: 58, xText: text, yText: (v) => (v < n ? this.tops[v].toFixed(2) : "") });
    a.inside((g) => {
      g.imageSmoothingEnabled = false;
      g.drawImage(this.lines, 0, 0, this.lines.width, this.lines.height, a.x0, a.y0, a.x1 - a.x0, a.y1 - a.y0);
    });
    byId("waterfall").setAttribute("aria-label", `Waterfall of ${n} lines, from ${this.tops[n - 1].toFixed(3)} s to ${this.tops[0].toFixed(3)} s of the receiver's time`);
  }

  drawFrame() {
    const f = this.frame;
    if (!f) return;
    const unit = f.alpha > 0 ? "αy" : "y";
    const known = f.alpha > 0 ? `α = ${Number(f.alpha.toPrecision(5))}` : "no scale known";
    const snr = f.snr_db === null ? "" : `, ${f.snr_db.toFixed(1)} dB by the preamble`;
    setText(byId("frame-name"), `${f.name}: ${f.failure ? `not read: ${f.failure}` : "read"}; ${known}${snr}`);
    let reach = 1;
    for (const y of f.order) if (isFinite(y)) reach = Math.max(reach, Math.abs(y));
    reach = Math.min(reach, 1e4);
    const lattice = f.alpha > 0 ? latticeLines(reach, byId("soft").clientHeight - 42) : { lines: null, note: "" };
    this.drawPlane(f, reach, unit);
    const order = new Area(byId("soft"), { low: 0, high: Math.max(1, f.soft), bottom: -reach * 1.05, top: reach * 1.05, xLabel: "symbol", yLabel: unit + lattice.note, lines: lattice.lines });
    order.dots(f.soft, (k) => k, (k) => f.order[k], order.colours.now);
    this.drawEye(f);
    this.drawDensity(f, unit);
    this.drawPhase(f);
    byId("constellation").setAttribute("aria-label", `Constellation of ${f.symbols} symbols of ${f.name}, ${known}${snr}`);
    byId("soft").setAttribute("aria-label", `${f.soft} symbols in their order, up to ${reach.toFixed(2)}`);
    byId("density").setAttribute("aria-label", `Density of ${unit} with ${f.teeth.length} teeth, margin ${f.margin.toFixed(3)}`);
  }

  drawPlane(f, reach, unit) {
    const canvas = byId("constellation"), tall = Math.max(0.5, (reach * (canvas.clientHeight - 42)) / Math.max(100, canvas.clientWidth - 54));
    const lattice = latticeLines(reach, canvas.clientWidth - 54);
    const a = new Area(canvas, { low: -reach * 1.05, high: reach * 1.05, bottom: -tall * 1.05, top: tall * 1.05, xLabel: `${unit} along the common axis${f.alpha > 0 ? lattice.note : ""}`, yLabel: "beside it" });
    if (f.alpha > 0) for (const k of lattice.lines) a.vertical(k, a.colours.lattice);
    a.dots(f.symbols, (k) => f.points[2 * k], (k) => f.points[2 * k + 1], a.colours.now);
  }

  drawEye(f) {
    let high = 0;
    for (const y of f.eye) if (isFinite(y)) high = Math.max(high, Math.abs(y));
    const a = new Area(byId("eye"), { low: -1, high: 1, bottom: -high * 1.1 || -1, top: high * 1.1 || 1, xLabel: "symbols", yLabel: "" });
    const n = f.trace_points;
    for (let t = 0; t < f.traces; t++) a.line(n, (k) => (2 * k) / (n - 1) - 1, (k) => f.eye[t * n + k], a.colours.now, 0.6);
    byId("eye").setAttribute("aria-label", `Eye of ${f.traces} stretches of two symbols`);
  }

  drawDensity(f, unit) {
    let high = 1;
    for (const c of f.counts) high = Math.max(high, c);
    const a = new Area(byId("density"), { low: 0, high: Math.max(1e-9, f.bins * f.bin_width) || 1, bottom: 0, top: high * 1.1, xLabel: `|${unit}|`, yLabel: "symbols" });
    a.inside((g) => {
      f.teeth.forEach((t, k) => {
        g.fillStyle = k % 2 ? a.colours.average : a.colours.lattice;
        g.globalAlpha = 0.3;
        g.fillRect(a.x(t.from), a.y0, Math.max(1, a.x(t.to) - a.x(t.from)), a.y1 - a.y0);
        g.globalAlpha = 1;
        g.fillStyle = a.colours.text;
        g.textAlign = "center";
        if (f.teeth.length < 20) g.fillText(String(t.integer), (a.x(t.from) + a.x(t.to)) / 2, a.y0 + 12);
      });
    });
    a.line(f.bins, (k) => k * f.bin_width, (k) => f.counts[k], a.colours.text);
  }

  drawPhase(f) {
    const n = f.phase_points;
    let low = Infinity, high = -Infinity;
    for (let k = 0; k < n; k++) {
      for (const v of [f.phases[3 * k + 1], f.phases[3 * k + 2]]) {
        if (isFinite(v)) { low = Math.min(low, v); high = Math.max(high, v); }
      }
    }
    if (!(high >= low)) { low = -1; high = 1; }
    const room = Math.max(0.05, (high - low) * 0.1);
    const end = n ? f.phases[3 * (n - 1)] * 1e3 : 1;
    const a = new Area(byId("phase"), { low: 0, high: end || 1, bottom: low - room, top: high + room, xLabel: "ms", yLabel: "rad" });
    a.dots(n, (k) => f.phases[3 * k] * 1e3, (k) => f.phases[3 * k + 1], a.colours.now, 3);
    a.line(n, (k) => f.phases[3 * k] * 1e3, (k) => f.phases[3 * k + 2], a.colours.average, 2);
    byId("phase").setAttribute("aria-label", `Common phase of ${n} stretches, from ${low.toFixed(3)} to ${high.toFixed(3)} rad`);
  }
}
