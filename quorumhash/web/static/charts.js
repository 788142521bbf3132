// Small charts: bars, lines, a matrix. Each is one picture with a sentence for those who cannot see it.
import { h, svg } from "./dom.js";

const WIDTH = 320, HEIGHT = 120, LEFT = 4, BOTTOM = 18;

const text = (x, y, content, anchor = "middle") => {
  const element = svg("text", { x, y, "text-anchor": anchor });
  element.textContent = content;
  return element;
};

function frame(label, ...parts) {
  return svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, ...parts);
}

// `marked(i)` gives a class to a bar; `ticks` are [position from 0 to 1, words].
export function bars(values, { label, ticks = [], marked = () => "", least = null, top = null, rule = null }) {
  const most = top ?? Math.max(...values, 1e-9);
  const room = HEIGHT - BOTTOM - 6;
  const step = (WIDTH - 2 * LEFT) / values.length;
  const gap = Math.min(2, step * 0.18);
  const drawn = values.map((value, i) => {
    const height = Math.max(value > 0 ? (least ?? 1) : 0, (value / most) * room);
    return svg("rect", { class: `bar-fill ${marked(i)}`, x: LEFT + i * step + gap / 2, width: step - gap,
      y: HEIGHT - BOTTOM - height, height, rx: Math.min(2, step / 4) });
  });
  const lines = [svg("path", { class: "axis", d: `M${LEFT} ${HEIGHT - BOTTOM + 0.5}H${WIDTH - LEFT}` })];
  if (rule !== null) {
    const y = HEIGHT - BOTTOM - (rule / most) * room;
    lines.push(svg("path", { class: "rule", d: `M${LEFT} ${y}H${WIDTH - LEFT}` }));
  }
  const words = ticks.map(([place, word]) =>
    text(LEFT + place * (WIDTH - 2 * LEFT), HEIGHT - 4, word, place < 0.1 ? "start" : place > 0.9 ? "end" : "middle"));
  return frame(label, ...drawn, ...lines, ...words);
}

export function line(values, { label }) {
  const low = Math.min(...values), high = Math.max(...values), room = HEIGHT - BOTTOM - 12;
  const place = (value, i) => {
    const x = LEFT + 4 + (values.length > 1 ? i / (values.length - 1) : 0.5) * (WIDTH - 2 * LEFT - 8);
    return `${x} ${8 + (high > low ? (high - value) / (high - low) : 0.5) * room}`;
  };
  return frame(label,
    svg("path", { class: "axis", d: `M${LEFT} ${HEIGHT - BOTTOM + 0.5}H${WIDTH - LEFT}` }),
    svg("path", { class: "curve", d: `M${values.map(place).join("L")}` }),
    text(LEFT, HEIGHT - 4, "sweep 1", "start"), text(WIDTH - LEFT, HEIGHT - 4, String(values.length), "end"));
}

// Strength from 0 to 1 as paper to ink; drawn anew when the theme changes.
export function matrix(rows, label) {
  const canvas = h("canvas", { className: "matrix", width: rows.length, height: rows.length, role: "img", "aria-label": label });
  const paint = () => {
    const style = getComputedStyle(document.documentElement);
    const from = rgb(style.getPropertyValue("--sunk")), to = rgb(style.getPropertyValue("--accent"));
    const image = new ImageData(rows.length, rows.length);
    rows.flat().forEach((value, i) => {
      const share = Math.min(1, Math.abs(value)) ** 0.7;
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = from[c] + share * (to[c] - from[c]);
      image.data[4 * i + 3] = 255;
    });
    canvas.getContext("2d").putImageData(image, 0, 0);
  };
  paint();
  document.addEventListener("themechange", paint);
  return canvas;
}

const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.trim().slice(i, i + 2), 16));

export const figure = (title, chart, note) =>
  h("figure", { className: "chart-box" }, h("h3", {}, title), chart, note ? h("figcaption", {}, note) : null);
