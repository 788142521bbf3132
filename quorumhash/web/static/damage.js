// Damage lab: sliders damage the views of one item; the model and a rival answer side by side.
import { ask, byId, duration, h, latest, percent, showError, state } from "./dom.js";
import { anotherItem, describe, picture, title, trustBar } from "./items.js";

const SLIDERS = ["swapped", "noisy", "strength", "missing"];
const WORDS = { intact: "", swapped: "swapped", noisy: "noise", missing: "left out", absent: "not there" };
const request = latest();
let own = { label: null }; // the item that is damaged

export async function begin() {
  const { facts } = state;
  if (!facts.has_views) {
    byId("damage-body").hidden = true;
    byId("damage-none").hidden = false;
    byId("damage-none").textContent = "To damage an item its views must be here: start the page with --views views.npz.";
    return;
  }
  byId("swapped").max = byId("noisy").max = facts.views.length;
  byId("missing").max = facts.views.length - 1;
  for (const id of SLIDERS) byId(id).addEventListener("input", run);
  byId("redraw").addEventListener("click", () => {
    state.draw += 1;
    run();
  });
  byId("damage-reset").addEventListener("click", () => {
    for (const id of ["swapped", "noisy", "missing"]) byId(id).value = 0;
    run();
  });
  byId("damage-random").addEventListener("click", async () => {
    // one that is not stored, where there is one: it is found by its likes only
    location.hash = `damage/${((await anotherItem(true)) ?? (await anotherItem())).id}`;
  });
}

export async function show(item) {
  if (!state.facts.has_views) return;
  try {
    const told = await ask(`/api/items/${item}`);
    own = told;
    byId("damage-item").replaceChildren(h("figure", { className: "hero small" }, picture(told, describe(told)),
      h("figcaption", {}, h("strong", {}, title(told)),
        told.label === null ? null : h("span", { className: "tag" }, `label ${told.label}`),
        h("span", { className: "tag" }, told.is_stored ? "stored" : "new, not stored"))));
  } catch (error) {
    showError(byId("damage-error"), error);
    return;
  }
  await run();
}

async function run() {
  const n = state.facts.views.length;
  for (const id of SLIDERS) byId(`${id}-value`).textContent = id === "strength" ? byId(id).value : `${byId(id).value} of ${n}`;
  const values = SLIDERS.map((id) => `${id}=${byId(id).value}`).join("&");
  showError(byId("damage-error"), null);
  try {
    const answer = await request(`/api/damage?item=${state.item}&${values}&draw=${state.draw}&k=12`);
    byId("trust").replaceChildren(...answer.views.map(bar));
    byId("damage-status").textContent = `Judged, encoded and searched twice in ${duration(answer.seconds)}.`;
    byId("duel").replaceChildren(...answer.methods.map((method, i) => side(method, i === 0)));
  } catch (error) {
    showError(byId("damage-error"), error);
  }
}

function bar(part) {
  const note = part.state === "swapped" ? `swapped with ${part.partner}` : WORDS[part.state];
  return trustBar(part.view, part.reliability, note);
}

function side(method, isOurs) {
  const share = method.precision ?? method.kept;
  const before = method.precision_before ?? 1;
  const what = method.precision === null ? "found as before the damage" : "have the item’s label";
  const tone = share >= before - 0.05 ? "good" : share >= before - 0.35 ? "warn" : "bad";
  const fill = h("span", { className: `fill ${tone}` });
  fill.style.width = `${100 * share}%`;
  return h("section", { className: `panel method${isOurs ? " ours" : ""}`, "aria-label": `Found by ${method.name}` },
    h("div", { className: "bar" }, h("h2", {}, method.name), isOurs ? h("span", { className: "tag" }, "this model") : h("span", { className: "tag" }, "rival")),
    h("p", { className: "score" }, h("strong", { className: tone }, percent(share)), h("span", {}, what)),
    h("span", { className: "meter", role: "meter", "aria-label": `Precision of ${method.name}`, "aria-valuemin": "0", "aria-valuemax": "1", "aria-valuenow": String(share) }, fill),
    h("p", { className: "hint" }, `${percent(before)} before the damage; ${method.flipped} of ${state.facts.n_bits} bits flipped.`),
    h("ul", { className: "thumbs tight" }, method.matches.map((match) => {
      const isRight = method.precision === null ? match.is_kept : match.label === own.label;
      const words = `${describe(match)}, ${isRight ? "right" : "wrong"}`;
      return h("li", { className: isRight ? "right" : "wrong" }, h("a", { href: `#search/${match.id}`, title: words, "aria-label": words }, picture(match),
        h("span", { className: "mark", "aria-hidden": "true" }, isRight ? "✓" : "✕")));
    })));
}
