// Elements, requests and numbers. Text is always set as text, never as markup.
export const byId = (id) => document.getElementById(id);

export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The page does not answer: is quorumhash serve still running?");
  }
  const body = await answer.json().catch((error) => {
    if (error.name === "AbortError") throw error; // given up while it was read
    return { error: "The answer could not be read." };
  });
  if (!answer.ok || body.error) throw new Error(sentence(body.error ?? `Error ${answer.status}.`));
  return body;
}

// Only the latest of several requests counts; the ones before are given up.
export function latest() {
  let running = null;
  return async (path, options = {}) => {
    running?.abort();
    running = new AbortController();
    return ask(path, { ...options, signal: running.signal });
  };
}

export function showError(box, error) {
  if (error?.name === "AbortError") return;
  box.textContent = error ? error.message : "";
  box.hidden = !error;
}

export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
export const count = (n, word, words = `${word}s`) => `${n.toLocaleString("en")} ${n === 1 ? word : words}`;
export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

export function duration(seconds) {
  if (seconds < 0.001) return `${Math.max(1, Math.round(seconds * 1e6))} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  return `${seconds.toFixed(1)} s`;
}

export function pValue(p) {
  if (p === null) return "–";
  return p < 0.0001 ? "< 0.0001" : p < 0.01 ? p.toFixed(4) : p.toFixed(2);
}

// The numbers that a page needs in many places.
export const state = { facts: null, item: null, draw: 0 };
