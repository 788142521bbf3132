// Which view is shown: the address after # names it, and the item: #search/812.
import * as damage from "./damage.js";
import { ask, byId, count, state } from "./dom.js";
import * as health from "./health.js";
import * as model from "./model.js";
import * as search from "./search.js";

const VIEWS = { search, damage, health, model };
const TITLES = { search: "Search", damage: "Damage lab", health: "Data health", model: "Model" };

function wanted() {
  const [view, item] = location.hash.slice(1).split("/");
  const number = item !== undefined && /^-?\d{1,18}$/.test(item) ? Number(item) : null;
  return { view: view in VIEWS ? view : "search", item: number };
}

async function route(isFirst = false) {
  if (location.hash === "#main") return; // the skip link
  const { view, item } = wanted();
  if (item !== null) state.item = item;
  for (const name of Object.keys(VIEWS)) byId(`view-${name}`).hidden = name !== view;
  for (const link of document.querySelectorAll("nav a")) {
    const isHere = link.dataset.view === view;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    const keeps = ["search", "damage"].includes(link.dataset.view) && state.item !== null;
    link.setAttribute("href", keeps ? `#${link.dataset.view}/${state.item}` : `#${link.dataset.view}`);
  }
  document.title = `${TITLES[view]} · quorumhash`;
  if (!isFirst) {
    byId(`${view}-title`).focus({ preventScroll: true });
    window.scrollTo({ top: 0 });
  }
  await VIEWS[view].show(state.item);
}

async function begin() {
  try {
    state.facts = await ask("/api/collection");
    const fresh = await ask("/api/items?limit=1&seed=7&only_new=true");
    const first = fresh[0] ?? (await ask("/api/items?limit=1&seed=7"))[0];
    state.item = first.id;
  } catch (error) {
    byId("view-search").hidden = false;
    byId("search-status").textContent = error.message;
    return;
  }
  const { facts } = state;
  byId("facts").textContent = `${facts.title} · ${count(facts.n_items, "item")} · ${facts.n_bits} bits · ${count(facts.views.length, "view")}`;
  byId("version").textContent = `quorumhash ${facts.version}`;
  for (const view of Object.values(VIEWS)) view.begin();
  window.addEventListener("hashchange", () => route());
  await route(true);
  document.body.dataset.ready = "yes";
}

begin();
