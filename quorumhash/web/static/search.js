// Search: pick or upload an item; its neighbours as pictures with distance and bit strip.
import { ask, byId, count, duration, h, latest, showError, state } from "./dom.js";
import { anotherItem, describe, picture, strip, title, trustBars } from "./items.js";

const request = latest();
let upload = null; // {file, url} while the query is an uploaded picture
let shuffles = 0;

export function begin() {
  const { facts } = state;
  byId("search-lead").textContent = `Each item is ${facts.n_bits} bits. Alike items have codes that differ in few of them.`;
  byId("radius").max = facts.n_bits;
  byId("radius").value = Math.round(facts.n_bits / 6);
  byId("item-number").min = facts.first_id;
  byId("item-number").max = facts.last_id;
  byId("upload-hint").textContent = facts.takes_uploads
    ? `PNG, JPEG or WebP, up to ${facts.max_upload_bytes / 1e6} MB; or drop it here.`
    : "This model’s views are not made from pictures here, so none can be uploaded.";
  byId("upload-file").disabled = !facts.takes_uploads;
  byId("upload-box").classList.toggle("off", !facts.takes_uploads);
  listen(facts);
  choose();
}

function listen(facts) {
  for (const id of ["k", "radius"]) {
    byId(id).addEventListener("input", () => {
      byId(`${id}-value`).textContent = byId(id).value;
      search();
    });
  }
  byId("radius-value").textContent = byId("radius").value;
  for (const radio of document.querySelectorAll("input[name=mode]")) {
    radio.addEventListener("change", () => {
      byId("k-box").hidden = radius() !== null;
      byId("radius-box").hidden = radius() === null;
      search();
    });
  }
  byId("item-number").addEventListener("change", (event) => {
    if (event.target.value !== "") location.hash = `search/${Number(event.target.value)}`;
  });
  byId("random-item").addEventListener("click", async () => {
    location.hash = `search/${(await anotherItem()).id}`;
  });
  byId("shuffle").addEventListener("click", choose);
  byId("upload-file").addEventListener("change", (event) => send(event.target.files[0]));
  const box = byId("upload-box");
  box.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.classList.add("over");
  });
  box.addEventListener("dragleave", () => box.classList.remove("over"));
  box.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    if (facts.takes_uploads) send(event.dataTransfer.files[0]);
  });
}

const radius = () => (byId("mode-radius").checked ? Number(byId("radius").value) : null);

function question() {
  return radius() === null ? `k=${byId("k").value}` : `radius=${radius()}`;
}

async function choose() {
  const items = await ask(`/api/items?limit=24&seed=${shuffles++}`);
  byId("choice").replaceChildren(...items.map((item) =>
    h("li", {}, h("a", { href: `#search/${item.id}`, title: describe(item), "aria-label": describe(item) }, picture(item)))));
}

function send(file) {
  if (!file) return;
  showError(byId("search-error"), null);
  if (file.size > state.facts.max_upload_bytes) {
    showError(byId("search-error"), new Error(`${file.name} is larger than ${state.facts.max_upload_bytes / 1e6} MB: make it smaller.`));
    return;
  }
  if (!/^image\/(png|jpeg|webp)$/.test(file.type)) {
    showError(byId("search-error"), new Error(`${file.name} is no picture: give a PNG, JPEG or WebP.`));
    return;
  }
  if (upload) URL.revokeObjectURL(upload.url);
  upload = { file, url: URL.createObjectURL(file) };
  search();
}

export function show(item) {
  upload = null;
  byId("upload-file").value = "";
  byId("item-number").value = item;
  return search();
}

async function search() {
  showError(byId("search-error"), null);
  try {
    if (upload) await searchPicture();
    else if (state.item !== null) await searchItem(state.item);
  } catch (error) {
    showError(byId("search-error"), error);
  }
}

async function searchItem(id) {
  const answer = await request(`/api/search?item=${id}&${question()}`);
  const item = await ask(`/api/items/${id}`);
  if (id !== state.item || upload) return;
  draw(item, answer);
}

async function searchPicture() {
  const { file, url } = upload;
  const path = `/api/search?name=${encodeURIComponent(file.name.slice(0, 200))}&${question()}`;
  const answer = await request(path, { method: "POST", body: file, headers: { "content-type": file.type } });
  draw({ name: file.name, url, label: null, code: answer.code, reliability: answer.reliability, is_upload: true }, answer);
}

function draw(query, answer) {
  const n = state.facts.n_bits;
  const kind = query.is_upload ? "uploaded" : query.is_stored ? "stored" : "new, not stored";
  byId("query-item").replaceChildren(
    h("figure", { className: "hero" }, picture(query, describe(query)),
      h("figcaption", {}, h("strong", {}, title(query)), h("span", { className: "tag" }, kind),
        query.label === null ? null : h("span", { className: "tag" }, `label ${query.label}`))),
    strip(query.code, n),
    ...(query.reliability ? [h("h3", {}, "How far each view is believed"), trustBars(query.reliability)] : []));
  const shown = answer.matches.length < answer.n_found ? `, the nearest ${answer.matches.length} are shown` : "";
  byId("search-status").textContent = answer.n_found
    ? `${count(answer.n_found, "item")} found among ${state.facts.n_items.toLocaleString("en")} in ${duration(answer.seconds)}${shown}.`
    : "No item is that near. Widen the radius.";
  byId("results").replaceChildren(...answer.matches.map((match) => card(match, query, n)));
}

function card(match, query, n) {
  const isSame = query.label !== null && match.label !== null ? match.label === query.label : null;
  const words = `${describe(match)}, ${count(match.distance, "bit")} away`;
  return h("li", {}, h("a", { className: "card", href: `#search/${match.id}`, "aria-label": words, title: words },
    picture(match),
    h("span", { className: "card-line" }, h("strong", {}, count(match.distance, "bit")),
      match.label === null ? null : h("span", { className: `label ${isSame === null ? "" : isSame ? "good" : "bad"}` },
        isSame === null ? "" : isSame ? "✓ " : "✕ ", match.label)),
    strip(match.code, n, query.code),
    h("span", { className: "card-name" }, title(match))));
}
