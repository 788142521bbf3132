// Items as the page draws them: pictures, bit strips, bars of trust.
import { ask, h, pValue, state, svg } from "./dom.js";

const ROW = 64; // bits in a row of a strip

export const title = (item) => item.name || `Item ${item.id.toLocaleString("en")}`;

export function picture(item, alt = "") {
  if (item.url) return h("img", { src: item.url, alt, className: "picture" });
  if (item.has_picture) {
    return h("img", { loading: "lazy", decoding: "async", alt, className: "picture", src: `/api/items/${item.id}/picture` });
  }
  return h("div", { className: "picture none", "aria-hidden": "true" }, `#${item.id ?? "?"}`);
}

export const describe = (item) => `${title(item)}${item.label === null || item.label === undefined ? "" : `, label ${item.label}`}`;

// An item drawn at random, never the one that is shown unless there is no other; undefined where there is none at all.
export async function anotherItem(onlyNew = false) {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const drawn = await ask(`/api/items?limit=2&seed=${seed}&only_new=${onlyNew}`);
  return drawn.find((item) => item.id !== state.item) ?? drawn[0];
}

export function bits(hex, n) {
  const found = [];
  for (const digit of hex) {
    const value = parseInt(digit, 16);
    for (let place = 3; place >= 0; place--) found.push((value >> place) & 1);
  }
  return found.slice(0, n);
}

// Ones are filled; where `other` is given, bits that differ from it stand out.
export function strip(hex, n, other = null) {
  const own = bits(hex, n);
  const theirs = other ? bits(other, n) : own;
  const width = Math.min(n, ROW);
  const rows = Math.ceil(n / ROW);
  const cell = (i) => `M${i % ROW} ${Math.floor(i / ROW) * 5}h.86v4h-.86z`;
  const path = (test) => own.map((bit, i) => (test(bit, theirs[i]) ? cell(i) : "")).join("");
  const differing = own.filter((bit, i) => bit !== theirs[i]).length;
  const label = other ? `Code of ${n} bits, ${differing} of them differ from the query` : `Code of ${n} bits`;
  return svg(
    "svg",
    { class: "strip", viewBox: `0 0 ${width} ${rows * 5 - 1}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("path", { class: "zero", d: path((bit, twin) => bit === twin && !bit) }),
    svg("path", { class: "one", d: path((bit, twin) => bit === twin && bit) }),
    svg("path", { class: "differs", d: path((bit, twin) => bit !== twin) }),
  );
}

export function verdict(p) {
  if (p === null) return { word: "not there", tone: "none" };
  if (p < 0.01) return { word: "not believed", tone: "bad" };
  return p < 0.05 ? { word: "doubtful", tone: "warn" } : { word: "believed", tone: "good" };
}

// A bar on a logarithmic scale from 0.0001 to 1; the mark stands at 0.01.
export function trustBar(view, p, note = "") {
  const { word, tone } = verdict(p);
  const share = p === null ? 0 : Math.max(0.015, Math.min(1, 1 + Math.log10(Math.max(p, 1e-4)) / 4));
  const fill = h("span", { className: `fill ${tone}` });
  fill.style.width = `${100 * share}%`;
  const meter = h("span", { className: "meter", role: "meter", "aria-label": `${view}: ${word}`, "aria-valuemin": "0",
    "aria-valuemax": "1", "aria-valuenow": String(p ?? 0), "aria-valuetext": `${word}, ${pValue(p)}` }, fill);
  return h("div", { className: "trust-row" },
    h("span", { className: "trust-name" }, view, note ? h("span", { className: "tag" }, note) : null),
    h("span", { className: `trust-word ${tone}` }, word, h("span", { className: "number" }, pValue(p))),
    meter);
}

export function trustBars(reliability) {
  if (!reliability) return null;
  return h("div", { className: "trusts" }, reliability.map((part) => trustBar(part.view, part.value)));
}
