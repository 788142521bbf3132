// What a page must have so that everyone can use it; gives a list of sentences, empty when all is well.
() => {
  const faults = [];
  const isSeen = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true });
  const told = (element) => `${element.tagName.toLowerCase()}#${element.id}.${element.getAttribute("class") ?? ""}`;
  const all = (selector) => [...document.querySelectorAll(selector)].filter(isSeen);

  if (!document.documentElement.lang) faults.push("the page has no language");
  if (!document.title) faults.push("the page has no title");
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page scrolls sideways");
  if (all("main").length !== 1 || all("h1").length !== 1) faults.push("there must be one main and one h1");

  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) faults.push(`id ${id} stands twice`);

  let level = 0;
  for (const heading of all("h1, h2, h3, h4, h5, h6")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) faults.push(`heading ${told(heading)} skips a level`);
    level = next;
  }

  const name = (element) =>
    (element.getAttribute("aria-label") ?? "") ||
    (element.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join("") ||
    element.textContent.trim() || element.querySelector("img")?.alt || "";
  for (const image of document.querySelectorAll("img")) if (!image.hasAttribute("alt")) faults.push(`${told(image)} has no alt`);
  for (const element of all("a, button, [role=meter], [role=img], section, nav")) if (!name(element)) faults.push(`${told(element)} has no name`);
  for (const input of document.querySelectorAll("input, select, textarea")) {
    if (!input.labels?.length && !input.getAttribute("aria-label")) faults.push(`${told(input)} has no label`);
  }
  for (const element of document.querySelectorAll("[aria-labelledby], [aria-describedby], label[for]")) {
    for (const attribute of ["aria-labelledby", "aria-describedby", "for"]) {
      for (const id of (element.getAttribute(attribute) ?? "").split(" ").filter(Boolean)) {
        if (!document.getElementById(id)) faults.push(`${told(element)} points to ${id}, which is not there`);
      }
    }
  }
  for (const meter of all("[role=meter]")) {
    if (!(Number(meter.ariaValueNow) >= Number(meter.ariaValueMin) && Number(meter.ariaValueNow) <= Number(meter.ariaValueMax))) {
      faults.push(`${told(meter)} has a value out of its range`);
    }
  }
  for (const element of document.querySelectorAll("[tabindex]")) if (element.tabIndex > 0) faults.push(`${told(element)} changes the order`);
  for (const element of all("a, button, input[type=range], input[type=number], summary")) {
    const box = element.getBoundingClientRect();
    if (!element.matches(".skip") && box.width > 2 && (box.width < 24 || box.height < 24)) faults.push(`${told(element)} is too small to hit`);
  }

  const parse = (colour) => {
    const [r, g, b, a = 1] = colour.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const over = (top, under) => {
    const mix = (x, y) => x * top.a + y * (1 - top.a);
    return { r: mix(top.r, under.r), g: mix(top.g, under.g), b: mix(top.b, under.b), a: 1 };
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.a > 0) layers.push(colour);
      if (colour.a === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 });
  };
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element) || !isSeen(element) || element.closest(".sr, .skip, noscript, script")) continue;
    seen.add(element);
    const style = getComputedStyle(element), under = ground(element);
    const paint = element.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(over(parse(paint), under)), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) faults.push(`${told(element)} has a contrast of ${ratio.toFixed(2)}: ${element.textContent.trim().slice(0, 30)}`);
  }
  return faults;
}
