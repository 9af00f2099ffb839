// Plots on canvases: axes, grid, and where data lie.

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// colours are those of the theme.
export function colours() {
  const c = {};
  for (const name of ["back", "text", "soft", "grid", "now", "average", "peak", "lattice"]) c[name] = style(`--${name}`);
  return c;
}

// ticks returns about n round numbers from low to high.
export function ticks(low, high, n) {
  const raw = (high - low) / Math.max(1, n);
  if (!(raw > 0) || !isFinite(raw)) return [];
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * size).find((s) => s >= raw);
  const list = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9 && list.length < 200; k++) list.push(k * step);
  return list;
}

// Area is the part of a canvas where data are drawn, in CSS pixels.
export class Area {
  constructor(canvas, { low, high, bottom, top, xLabel, yLabel, left = 46, under = 34, xText, yText, lines }) {
    const ratio = window.devicePixelRatio || 1;
    const w = canvas.clientWidth, h = canvas.clientHeight;
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
    }
    const g = canvas.getContext("2d");
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.colours = colours();
    Object.assign(this, { g, w, h, low, high, bottom, top, x0: left, x1: w - 8, y0: 8, y1: h - under });
    g.fillStyle = this.colours.back;
    g.fillRect(0, 0, w, h);
    const d = canvas.dataset;
    d.left = this.x0; d.right = this.x1; d.upper = this.y0; d.lower = this.y1;
    d.low = low; d.high = high; d.bottom = bottom; d.top = top;
    this.axes(xLabel, yLabel, xText, yText, lines);
  }

  x(v) { return this.x0 + ((v - this.low) / (this.high - this.low)) * (this.x1 - this.x0); }
  y(v) { return this.y1 - ((v - this.bottom) / (this.top - this.bottom)) * (this.y1 - this.y0); }

  axes(xLabel, yLabel, xText, yText, lines) {
    const { g } = this;
    g.font = "11px system-ui, sans-serif";
    g.lineWidth = 1;
    g.textAlign = "center";
    g.textBaseline = "top";
    const write = xText || ((v) => String(Number(v.toPrecision(6))));
    for (const v of ticks(this.low, this.high, (this.x1 - this.x0) / 80)) {
      this.vertical(v, this.colours.grid);
      g.fillStyle = this.colours.soft;
      g.fillText(write(v), Math.min(this.x1 - 14, Math.max(this.x0 + 8, this.x(v))), this.y1 + 4);
    }
    g.textAlign = "right";
    g.textBaseline = "middle";
    let last = null;
    for (const v of lines || ticks(this.bottom, this.top, (this.y1 - this.y0) / 32)) {
      this.horizontal(v, lines ? this.colours.lattice : this.colours.grid);
      g.fillStyle = this.colours.soft;
      const y = this.y(v);
      if (last !== null && Math.abs(last - y) < 12) continue;
      last = y;
      g.fillText(yText ? yText(v) : String(Number(v.toPrecision(4))), this.x0 - 5, y);
    }
    g.fillStyle = this.colours.soft;
    g.textAlign = "center";
    g.textBaseline = "bottom";
    if (xLabel) g.fillText(xLabel, (this.x0 + this.x1) / 2, this.h - 1);
    if (!yLabel) return;
    g.save();
    g.translate(11, (this.y0 + this.y1) / 2);
    g.rotate(-Math.PI / 2);
    g.fillText(yLabel, 0, 4);
    g.restore();
  }

  // Lines lie on whole pixels, so that they are seen and found.
  horizontal(v, colour) {
    this.g.fillStyle = colour;
    this.g.fillRect(this.x0, Math.round(this.y(v)), this.x1 - this.x0, 1);
  }

  vertical(v, colour) {
    this.g.fillStyle = colour;
    this.g.fillRect(Math.round(this.x(v)), this.y0, 1, this.y1 - this.y0);
  }

  // inside draws what must not leave the area.
  inside(draw) {
    const { g } = this;
    g.save();
    g.beginPath();
    g.rect(this.x0, this.y0, this.x1 - this.x0, this.y1 - this.y0);
    g.clip();
    draw(g);
    g.restore();
  }

  line(n, at, value, colour, width = 1, dash = []) {
    this.inside((g) => {
      g.strokeStyle = colour;
      g.lineWidth = width;
      g.setLineDash(dash);
      g.beginPath();
      let on = false;
      for (let k = 0; k < n; k++) {
        const v = value(k);
        if (!isFinite(v)) { on = false; continue; }
        const x = this.x(at(k)), y = this.y(v);
        if (on) g.lineTo(x, y); else g.moveTo(x, y);
        on = true;
      }
      g.stroke();
    });
  }

  dots(n, at, value, colour, size = 2) {
    this.inside((g) => {
      g.fillStyle = colour;
      for (let k = 0; k < n; k++) g.fillRect(this.x(at(k)) - size / 2, this.y(value(k)) - size / 2, size, size);
    });
  }
}

// latticeLines returns whole numbers up to a reach, each step-th of them: so that lines on so
// many pixels do not hide what lies between.
export function latticeLines(reach, pixels) {
  const last = Math.round(reach), step = Math.max(1, Math.ceil((6 * (2 * last + 1)) / Math.max(60, pixels)));
  const lines = [];
  for (let k = -Math.floor(last / step) * step; k <= last; k += step) lines.push(k);
  return { lines, note: step > 1 ? `, a line each ${step}` : "" };
}
