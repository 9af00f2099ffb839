// Elements by name, and new ones. Text is always text.
export const byId = (id) => document.getElementById(id);

export function make(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

export function show(e, on) {
  if (e.hidden === on) e.hidden = !on;
}

// span writes a time in words.
export function span(seconds) {
  if (seconds < 0) return "";
  if (seconds < 90) return `about ${Math.round(seconds)} s left`;
  if (seconds < 5400) return `about ${Math.round(seconds / 60)} min left`;
  return `about ${(seconds / 3600).toFixed(1)} h left`;
}

// frequency writes hertz with a unit.
export function frequency(f, digits = 4) {
  const size = Math.abs(f);
  if (size >= 1e6) return `${Number((f / 1e6).toPrecision(digits + 2))} MHz`;
  if (size >= 1e3) return `${Number((f / 1e3).toPrecision(digits))} kHz`;
  return `${Number(f.toPrecision(digits))} Hz`;
}
