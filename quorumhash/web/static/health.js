// Data health: what the audit found, by kind, by view, item by item.
import { bars, figure } from "./charts.js";
import { ask, byId, count, h, pValue, percent, sentence } from "./dom.js";
import { describe, picture, title } from "./items.js";

const KINDS = {
  swap: ["Swapped", "holds another item’s data"],
  noise: ["Noise", "unlike any other item’s"],
  shift: ["Shifted", "a stretch of rows moved on"],
  model_version: ["Other version", "made by another model"],
  placeholder: ["Placeholder", "the same for many items"],
  zero: ["Zeros", "nothing but zeros"],
  constant: ["Constant", "one value throughout"],
  missing: ["Missing", "no value at all"],
};
const kindName = (kind) => KINDS[kind]?.[0] ?? sentence(kind);
const MOST = 18; // of all kinds together; a kind alone is shown whole
let isDone = false;

export async function show() {
  if (isDone) return;
  let answer;
  try {
    answer = await ask("/api/health");
  } catch (error) {
    byId("health-status").textContent = error.message;
    return;
  }
  if (answer.state === "running") {
    byId("health-status").textContent = "Checking every view of every item …";
    byId("health-status").classList.add("busy");
    setTimeout(show, 800);
    return;
  }
  isDone = true;
  byId("health-status").classList.remove("busy");
  if (answer.state === "unavailable") {
    byId("health-status").textContent = sentence(answer.reason);
    return;
  }
  byId("health-status").textContent = `${count(answer.n_items, "item")} in ${count(answer.views.length, "view")} checked in ${answer.seconds.toFixed(1)} s.`;
  byId("health-body").replaceChildren(summary(answer), findings(answer), histograms(answer), suspicious(answer));
}

function summary(answer) {
  const tile = (value, name, note) => h("div", { className: "tile" }, h("strong", {}, value), h("span", {}, name), note ? h("span", { className: "hint" }, note) : null);
  return h("div", { className: "tiles" },
    tile(answer.n_damaged.toLocaleString("en"), "items with damage", `${percent(answer.n_damaged / Math.max(1, answer.n_items))} of all`),
    ...Object.entries(answer.kinds).map(([kind, n]) => tile(n.toLocaleString("en"), kindName(kind), KINDS[kind]?.[1])));
}

function findings(answer) {
  const line = (found) => h("li", {}, h("span", { className: `kind ${found.kind}` }, kindName(found.kind)), h("span", {}, sentence(found.sentence)));
  const first = answer.findings.slice(0, 5), rest = answer.findings.slice(5);
  return h("section", { className: "panel", "aria-labelledby": "findings-title" },
    h("div", { className: "bar" }, h("h2", { id: "findings-title" }, "What was found"),
      h("a", { className: "button small", href: "/api/health.csv", download: "health.csv" }, "Download CSV")),
    answer.findings.length ? h("ul", { className: "findings" }, first.map(line)) : h("p", { className: "hint" }, "Nothing. Every view goes with the others."),
    rest.length ? h("details", {}, h("summary", {}, `${count(rest.length, "more finding")}`), h("ul", { className: "findings" }, rest.map(line))) : null);
}

function histograms(answer) {
  const chart = (view) => {
    const n = Object.values(view.kinds).reduce((sum, value) => sum + value, 0);
    const label = `${view.view}: reliability of ${view.n_there} items in 20 steps from 0 to 1; ${view.histogram[0]} in the lowest`;
    return figure(view.view, bars(view.histogram, { label, marked: (i) => (i === 0 ? "bad" : ""), ticks: [[0, "0 suspicious"], [1, "1 typical"]] }),
      `Damaged in ${count(n, "item")}.`);
  };
  return h("section", { className: "panel", "aria-labelledby": "hist-title" },
    h("h2", { id: "hist-title" }, "Reliability of each view"),
    h("p", { className: "hint" }, "Healthy items lie mostly to the right. A tall first bar is damage."),
    h("div", { className: "charts" }, answer.views.map(chart)));
}

function suspicious(answer) {
  const list = h("ul", { className: "suspects" });
  const fill = (kind) => list.replaceChildren(...answer.suspicious.filter((pair) => !kind || pair.kind === kind).slice(0, kind ? undefined : MOST).map(suspect));
  const kinds = [...new Set(answer.suspicious.map((pair) => pair.kind))];
  const chips = [null, ...kinds].map((kind) => h("button", {
    type: "button", className: "chip", "aria-pressed": String(kind === null),
    onclick: (event) => {
      for (const chip of chips) chip.setAttribute("aria-pressed", String(chip === event.currentTarget));
      fill(kind);
    },
  }, kind === null ? "All kinds" : kindName(kind)));
  fill(null);
  return h("section", { className: "panel", "aria-labelledby": "suspects-title" },
    h("h2", { id: "suspects-title" }, "Most suspicious items"),
    h("div", { className: "chips", role: "group", "aria-label": "Show one kind only" }, chips), list);
}

function suspect(pair) {
  const link = (item, words) => h("a", { href: `#search/${item.id}`, title: words, "aria-label": words }, picture(item));
  const partners = pair.partners.slice(0, 3);
  return h("li", { className: "suspect" },
    link(pair, describe(pair)),
    h("div", { className: "suspect-words" }, h("strong", {}, title(pair)),
      h("span", {}, h("span", { className: `kind ${pair.kind}` }, kindName(pair.kind)), ` ${pair.view}`),
      h("span", { className: "hint" }, pair.p_value === null ? KINDS[pair.kind]?.[1] ?? "" : `reliability ${pValue(pair.p_value)}`)),
    partners.length ? h("div", { className: "partners" }, h("span", { className: "hint" }, "belongs to"),
      h("div", {}, partners.map((partner) => link(partner, `Proposed partner: ${describe(partner)}`)))) : null);
}

export const begin = () => {};
