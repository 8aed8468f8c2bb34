"use strict";
// What the scripts of all pages share: the data, elements, numbers and axes.

window.addEventListener("error", (event) => {
  document.documentElement.dataset.error = event.message;
  const problem = byId("problem");
  problem.textContent = `This page's script failed: ${event.message}`;
  problem.hidden = false;
});

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);

function add(parent, tag, attributes = {}, text = null) {
  const isSvg = tag === "svg" || parent.namespaceURI === SVG;
  const element = isSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  parent.append(element);
  return element;
}

function format(value, digits = 2) {
  if (value === null || value === undefined) return "–";
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return [0, 1];
  return low === high ? [low - 0.5, high + 0.5] : [low, high];
}

function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push([k * step, format(k * step, digits)]);
  return found;
}
