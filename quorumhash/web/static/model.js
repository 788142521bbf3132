// Model: views, bits, and how it came about.
import { bars, figure, line, matrix } from "./charts.js";
import { ask, byId, count, h, percent, sentence } from "./dom.js";

let isDone = false;

export async function show() {
  if (isDone) return;
  try {
    const model = await ask("/api/model");
    isDone = true;
    byId("model-body").replaceChildren(tiles(model), views(model), bitCharts(model), history(model), parameters(model));
  } catch (error) {
    byId("model-status").textContent = error.message;
  }
}

function tiles(model) {
  const tile = (value, name, note) => h("div", { className: "tile" }, h("strong", {}, value), h("span", {}, name), h("span", { className: "hint" }, note));
  return h("div", { className: "tiles" },
    tile(model.method, "method", model.kind),
    tile(String(model.n_bits), "bits a code", `${Math.ceil(model.n_bits / 8)} bytes an item`),
    tile(model.n_items.toLocaleString("en"), "items stored", `${model.n_distinct.toLocaleString("en")} distinct codes`),
    tile(model.fingerprint.slice(0, 8), "fingerprint", "same codes, same fingerprint"),
    tile(model.kernel, "search kernel", `${(model.code_bytes / 1024).toLocaleString("en", { maximumFractionDigits: 0 })} KB of codes in memory`));
}

function views(model) {
  const most = Math.max(...model.views.map((view) => view.weight ?? 0), 1e-9);
  const row = (view) => {
    const fill = h("span", { className: "fill plain" });
    fill.style.width = `${100 * ((view.weight ?? 0) / most)}%`;
    const meter = h("span", { className: "meter", role: "meter", "aria-label": `Worth of ${view.view}`, "aria-valuemin": "0", "aria-valuemax": String(most), "aria-valuenow": String(view.weight ?? 0) }, fill);
    return h("tr", {}, h("th", { scope: "row" }, view.view), h("td", { className: "num" }, view.width.toLocaleString("en")),
      h("td", {}, view.weight === null ? "–" : h("span", { className: "worth" }, meter, h("span", { className: "number" }, view.weight.toFixed(2)))));
  };
  return h("section", { className: "panel", "aria-labelledby": "views-title" }, h("h2", { id: "views-title" }, "Views"),
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "View"), h("th", { scope: "col", className: "num" }, "Features"), h("th", { scope: "col" }, "Worth"))),
      h("tbody", {}, model.views.map(row))));
}

function bitCharts(model) {
  const off = model.balance.map((share) => Math.abs(share - 0.5));
  const worst = Math.max(...off);
  const n = model.correlation.length;
  const pairs = model.correlation.flatMap((row, i) => row.slice(i + 1).map(Math.abs));
  const mean = pairs.length ? pairs.reduce((sum, value) => sum + value, 0) / pairs.length : 0;
  const total = model.distances.reduce((sum, value) => sum + value, 0) || 1;
  const middle = model.distances.reduce((sum, value, i) => sum + value * i, 0) / total;
  const ends = [[0, "bit 1"], [1, `bit ${model.n_bits}`]];
  return h("section", { className: "panel", "aria-labelledby": "bits-title" }, h("h2", { id: "bits-title" }, "Bits"),
    h("div", { className: "charts" },
      figure("Balance", bars(model.balance, { label: `Share of ones of each bit; the furthest from a half is off by ${percent(worst, 1)}`, top: 1, rule: 0.5, ticks: ends }),
        `Share of ones. Half is best; the worst bit is off by ${percent(worst, 1)}.`),
      figure("Correlation", matrix(model.correlation, `Correlation of ${n} bits; on average ${mean.toFixed(3)} in size`),
        `Bit against bit. Faint is best; ${mean.toFixed(2)} on average${n < model.n_bits ? `, first ${n} bits` : ""}.`),
      figure("Distances", bars(model.distances, { label: `Bits between random items, ${middle.toFixed(1)} on average`, ticks: [[0, "0 bits"], [1, String(model.n_bits)]] }),
        `Bits between random items: ${middle.toFixed(1)} on average.`)));
}

function history(model) {
  const series = Object.entries(model.history);
  return h("section", { className: "panel", "aria-labelledby": "history-title" }, h("h2", { id: "history-title" }, "Convergence"),
    series.length
      ? h("div", { className: "charts" }, series.map(([name, values]) => figure(sentence(name),
        line(values, { label: `${name} over ${count(values.length, "sweep")}: from ${values[0].toPrecision(3)} to ${values.at(-1).toPrecision(3)}` }),
        `${values[0].toPrecision(3)} → ${values.at(-1).toPrecision(3)}`)))
      : h("p", { className: "hint" }, `${model.method} is solved step by step, once; there are no sweeps to watch.`));
}

function parameters(model) {
  return h("section", { className: "panel", "aria-labelledby": "parameters-title" },
    h("details", {}, h("summary", {}, h("h2", { id: "parameters-title" }, "Parameters")),
      h("dl", { className: "facts" }, Object.entries(model.parameters).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))));
}

export const begin = () => {};
