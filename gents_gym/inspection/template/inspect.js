// Steps through one task, from the JSON beside it. What is shown is kept in the address behind "#": t, the decision from
// 1; draw, the table in the missing cells; map, "best" or "policy". Names come from users: they enter the page as text.

const N = data.actions.length, A = data.colors.length;
const isBinary = data.likelihood === "bernoulli";
const hasOwn = data.steps.some((step) => step.own), hasPolicy = data.steps.some((step) => step.policy);
// What missing cells can show: all draws, the agent's own, or one draw.
const VIEWS = ["all", ...(hasOwn ? ["own"] : []), ...data.steps[0].draws.map((_, i) => String(i + 1))];
const MAPS = [...(hasPolicy ? ["policy"] : []), "best"];

// -- elements and numbers

const isGaussian = data.likelihood === "gaussian";
const whole = (value) => format(value, Number.isInteger(value) && !isGaussian ? 0 : 1);
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const paint = (action) => `--light:${data.colors[action].light};--dark:${data.colors[action].dark}`;
const capital = (text) => text.slice(0, 1).toUpperCase() + text.slice(1);
const label = (action) => `action ${action}`;
const ranges = findRanges();
const state = readState();

// Scales stay the same from decision to decision.
function findRanges() {
  const steps = data.steps, truth = data.truth?.means?.flat() ?? [];
  const intervals = steps.flatMap((step) => step.interval?.flat() ?? step.expected);
  const scores = steps.flatMap((step) => [...(step.scores ?? []), ...(step.predictions ?? [])]);
  return {
    shades: isGaussian ? gaussianShades() : extent([0, ...data.outcomes, ...steps.flatMap((step) => step.draws.flat())]),
    rewards: extent([...(isBinary ? [0, 1] : []), ...intervals, ...truth]),
    scores: extent([0, ...scores]),
  };
}

// Gaussian outcomes have no bounds, and a few extreme ones would make all shades alike: shades span the middle 90 % of
// the means of draws.
function gaussianShades() {
  const values = data.steps.flatMap((step) => step.draws[0].map((_, place) => mean(step.draws.map((draw) => draw[place]))));
  values.sort((a, b) => a - b);
  const [low, high] = [0.05, 0.95].map((share) => values[Math.round(share * (values.length - 1))]);
  return high > low ? [low, high] : [low - 1, low + 1];
}

// -- what is shown

function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const t = Math.min(N, Math.max(1, Math.round(Number(given.get("t"))) || 1));
  return {
    t: t - 1,
    draw: VIEWS.includes(given.get("draw")) ? given.get("draw") : VIEWS[0],
    map: MAPS.includes(given.get("map")) ? given.get("map") : MAPS[0],
  };
}

function change(changes) {
  Object.assign(state, changes);
  state.t = Math.min(N - 1, Math.max(0, state.t));
  try {
    history.replaceState(null, "", `#${new URLSearchParams({ t: state.t + 1, draw: state.draw, map: state.map })}`);
  } catch {
    // A page inside another document may not change its address; it works all the same.
  }
  render();
}

function render() {
  const step = data.steps[state.t];
  byId("where").textContent = `Decision ${state.t + 1} of ${N}`;
  byId("slider").value = state.t + 1;
  byId("draw").value = state.draw;
  for (const [id, off] of [["first", !state.t], ["back", !state.t], ["next", state.t === N - 1], ["last", state.t === N - 1]]) byId(id).disabled = off;
  drawTimeline();
  drawHeadline(step);
  drawTable(step);
  drawPredictions(step);
  drawWhy(step);
  drawMap(step);
  drawNames();
}

function drawTimeline() {
  const host = byId("timeline");
  host.replaceChildren();
  const svg = add(host, "svg", { viewBox: `0 0 ${N} 34`, preserveAspectRatio: "none", role: "img", "aria-label": "Actions and rewards so far" });
  const [low, high] = extent([0, ...data.rewards]);
  data.actions.forEach((action, t) => {
    const now = t === state.t, share = (data.rewards[t] - low) / (high - low);
    if (now) add(svg, "rect", { x: t, width: 1, y: 0, height: 34, fill: "var(--accent)" });
    const bar = add(svg, "rect", { class: "fill", style: paint(action), x: t + 0.08, width: 0.84, y: 3, height: 14, opacity: t <= state.t ? 1 : 0.3 });
    add(bar, "title", {}, `decision ${t + 1}: ${label(action)}, reward ${format(data.rewards[t])}`);
    bar.onclick = () => change({ t });
    const height = 1 + 11 * share;
    add(svg, "rect", { x: t + 0.08, width: 0.84, y: 32 - height, height, fill: "var(--muted)", opacity: t < state.t ? 0.9 : now ? 0 : 0.2 });
  });
}

function drawHeadline(step) {
  const host = byId("headline"), t = state.t;
  host.replaceChildren();
  const mark = step.text.indexOf(":");
  add(host, "strong", {}, step.text.slice(0, mark));
  const outcome = isBinary || data.outcomes[t] !== data.rewards[t] ? `Outcome ${whole(data.outcomes[t])}, reward` : "Reward";
  const so = data.rewards.slice(0, t + 1).reduce((sum, value) => sum + value, 0);
  host.append(`${step.text.slice(mark)} ${outcome} ${whole(data.rewards[t])}; ${whole(so)} in all so far.`);
}

// -- the table

const shade = (value) => {
  const [low, high] = ranges.shades;
  return 0.04 + 0.76 * Math.min(1, Math.max(0, (value - low) / (high - low)));
};

function shownDims() {
  return data.dims ?? [0];
}

function drawTable(step) {
  const table = byId("table"), t = state.t, dims = shownDims(), played = data.actions[t];
  table.replaceChildren();
  const head = add(add(table, "thead"), "tr");
  add(head, "th", {}, "t");
  add(head, "th", { class: "context" }, dims.map((d) => `x${sub(d)}`).join(", "));
  for (let a = 0; a < A; a++) {
    const cell = add(head, "th", { title: data.names?.[a] ?? label(a) });
    add(cell, "span", { class: "mark", style: paint(a) });
    cell.append(String(a));
  }
  const body = add(table, "tbody"), rows = step.draws[0].length / A;
  for (let row = 0; row < rows; row++) {
    const at = step.first + row, context = at <= t ? data.contexts[at] : step.ahead[at - t - 1];
    const line = add(body, "tr", { class: at === t ? "now" : at > t ? "later" : "earlier" });
    add(line, "th", {}, at === t ? `now ${at + 1}` : String(at + 1));
    add(line, "th", { class: "context", title: context.map((x) => format(x)).join(", ") }, dims.map((d) => format(context[d], 1)).join(", "));
    for (let a = 0; a < A; a++) drawCell(line, step, at, row * A + a, a);
    if (at === t) line.children[2 + played].classList.add("played");
  }
  const cell = table.querySelector("td.played"), frame = table.parentElement;
  if (frame.scrollWidth > frame.clientWidth) frame.scrollLeft = cell.offsetLeft - frame.clientWidth / 2;
}

const sub = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);

function drawCell(line, step, at, place, a) {
  const seen = at < state.t && data.actions[at] === a;
  const draws = step.draws.map((draw) => draw[place]);
  const where = `row ${at + 1}, ${label(a)}`;
  if (seen) {
    add(line, "td", { class: "seen", title: `${where}: seen` }, whole(data.outcomes[at]));
    return;
  }
  const own = step.own?.[place] ?? null;
  const value = state.draw === "all" ? mean(draws) : state.draw === "own" ? own : draws[Number(state.draw) - 1];
  const said = `${where}: missing; draws ${draws.map((v) => whole(v)).join(" ")}${own === null ? "" : `; the agent drew ${whole(own)}`}`;
  const style = value === null ? "" : `background:rgb(var(--imputed) / ${shade(value).toFixed(2)})`;
  const text = value === null ? "·" : state.draw === "all" ? format(value, 1) : whole(value);
  const cell = add(line, "td", { class: value === null ? "empty" : "imputed", style, title: said }, text);
  if (data.truth && at <= state.t) add(cell, "small", { title: "true outcome" }, whole(data.truth.outcomes[at][a]));
}

function drawLegend() {
  const host = byId("cells");
  const entry = (style, text, className = "") => {
    const item = add(host, "span");
    add(item, "i", { style, class: className });
    item.append(text);
  };
  entry("background:var(--seen)", "seen");
  const [low, high] = ranges.shades, ends = [low, high].map((value) => `rgb(var(--imputed) / ${shade(value)})`);
  const [below, above] = isGaussian ? [" or less", " or more"] : ["", ""];
  const scale = `width:64px;background:linear-gradient(to right, ${ends[0]}, ${ends[1]})`;
  entry(scale, `imputed, from ${whole(low)}${below} to ${whole(high)}${above}`);
  entry("", "played now", "played");
  if (data.truth) add(host, "span", {}, "small and underlined: the true outcome");
}

// -- charts with a row for each action

function rows(host, { range, name, drawRow, value }) {
  host.replaceChildren();
  const width = Math.max(240, host.clientWidth), line = 21, height = A * line + 26;
  const box = { left: 26, right: width - 46 }, played = data.actions[state.t];
  const [low, high] = range, px = (x) => box.left + 6 + ((x - low) / (high - low)) * (box.right - box.left - 12);
  const svg = add(host, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": name });
  for (let a = 0; a < A; a++) {
    const group = add(svg, "g", { class: a === played ? "played" : "" }), y = a * line + line / 2;
    if (a === played || a % 2) add(group, "rect", { class: "rowband", x: 0, width, y: a * line, height: line });
    add(group, "rect", { class: "fill", style: paint(a), x: 0, width: 4, y: a * line + 1, height: line - 2 });
    add(group, "text", { class: "label", x: 20, y: y + 4, "text-anchor": "end" }, a);
    drawRow(group, a, y, px);
    add(group, "text", { class: "value", x: width - 4, y: y + 4, "text-anchor": "end" }, value(a));
    add(group, "title", {}, data.names?.[a] ?? label(a));
  }
  for (const [x, text] of ticks(low, high, 4)) {
    const grid = add(svg, "line", { class: "grid", x1: px(x), x2: px(x), y1: 0, y2: A * line });
    svg.prepend(grid);
    add(svg, "text", { x: px(x), y: height - 8, "text-anchor": "middle" }, text);
  }
}

function drawPredictions(step) {
  const truth = data.truth?.means?.[state.t];
  rows(byId("predicted"), {
    range: ranges.rewards,
    name: "predicted rewards",
    value: (a) => format(step.expected[a]),
    drawRow: (group, a, y, px) => {
      if (step.interval) {
        const [x1, x2] = [px(step.interval[0][a]), px(step.interval[1][a])];
        add(group, "line", { class: "span", x1, x2, y1: y, y2: y });
        for (const x of [x1, x2]) add(group, "line", { class: "span", x1: x, x2: x, y1: y - 4, y2: y + 4 });
      }
      add(group, "circle", { class: "dot", cx: px(step.expected[a]), cy: y, r: 4 });
      if (truth) add(group, "line", { class: "truth", x1: px(truth[a]), x2: px(truth[a]), y1: y - 9, y2: y + 9 });
    },
  });
}

function drawWhy(step) {
  byId("why-panel").hidden = !step.scores;
  if (!step.scores) return;
  rows(byId("why"), {
    range: ranges.scores,
    name: data.label,
    value: (a) => format(step.scores[a]),
    drawRow: (group, a, y, px) => {
      const part = step.predictions ? step.predictions[a] : step.scores[a];
      const bar = (from, to, opacity) => {
        const [x1, x2] = [px(from), px(to)].sort((one, two) => one - two);
        add(group, "rect", { class: "fill", style: paint(a), x: x1, width: Math.max(1, x2 - x1), y: y - 6, height: 12, opacity });
      };
      bar(0, part, step.predictions ? 0.45 : 1);
      if (step.predictions) bar(part, step.scores[a], 1);
    },
  });
}

// -- the map

function drawMap(step) {
  const title = state.map === "policy" ? "The fitted policy" : "The best prediction";
  byId("map-title").textContent = data.dims ? title : "Actions";
  const buttons = byId("maps");
  buttons.replaceChildren();
  if (!data.dims) return;
  if (MAPS.length > 1) {
    for (const [name, text] of [["policy", "fitted policy"], ["best", "best prediction"]]) {
      add(buttons, "button", { id: `map-${name}`, "aria-pressed": name === state.map }, text).onclick = () => change({ map: name });
    }
  }
  const host = byId("map"), [xs, ys] = data.axes, n = xs.length, cells = state.map === "policy" ? step.policy : step.best;
  host.replaceChildren();
  const size = 320, left = 34, bottom = 34, inner = size - left - 6, cell = inner / n, height = 6 + inner + bottom;
  const svg = add(host, "svg", { viewBox: `0 0 ${size} ${height}`, role: "img", "aria-label": `${title} by two context entries` });
  const half = (axis) => (axis[1] - axis[0]) / 2;
  const px = (x) => left + ((x - xs[0] + half(xs)) / (xs[n - 1] - xs[0] + 2 * half(xs))) * inner;
  const py = (y) => 6 + inner - ((y - ys[0] + half(ys)) / (ys[n - 1] - ys[0] + 2 * half(ys))) * inner;
  const regions = add(svg, "g", { opacity: 0.85 }); // of the group: rectangles overlap a little, so that no gaps show
  for (let j = 0; j < n; j++) {
    for (let i = 0; i < n; ) {
      const action = cells[j * n + i], from = i;
      while (i < n && cells[j * n + i] === action) i++;
      const place = { x: left + from * cell, y: 6 + inner - (j + 1) * cell, width: (i - from) * cell + 0.3, height: cell + 0.3 };
      add(regions, "rect", { class: "fill mapcell", style: paint(action), ...place });
    }
  }
  const [d, e] = data.dims;
  for (const [x, text] of ticks(xs[0], xs[n - 1], 5)) add(svg, "text", { x: px(x), y: 6 + inner + 14, "text-anchor": "middle" }, text);
  for (const [y, text] of ticks(ys[0], ys[n - 1], 5)) add(svg, "text", { x: left - 4, y: py(y) + 4, "text-anchor": "end" }, text);
  add(svg, "text", { x: left + inner / 2, y: height - 3, "text-anchor": "middle" }, `context entry ${d}`);
  add(svg, "text", { x: 9, y: 6 + inner / 2, "text-anchor": "middle", transform: `rotate(-90 9 ${6 + inner / 2})` }, `context entry ${e}`);
  for (let t = 0; t < state.t; t++) {
    const at = { cx: px(data.contexts[t][d]), cy: py(data.contexts[t][e]), r: 3.6 };
    add(add(svg, "circle", { class: "fill past", style: paint(data.actions[t]), ...at }), "title", {}, `decision ${t + 1}: ${label(data.actions[t])}`);
  }
  nameRegions(svg, cells, n, (i) => left + (i + 0.5) * cell, (j) => 6 + inner - (j + 0.5) * cell);
  const here = { cx: px(data.contexts[state.t][d]), cy: py(data.contexts[state.t][e]), r: 8 };
  add(svg, "circle", { class: "halo", ...here });
  add(svg, "circle", { class: "here", ...here });
}

// Write each action's number into its part of the map: at its cell that is nearest to the mean of all of them.
function nameRegions(svg, cells, n, px, py) {
  for (let a = 0; a < A; a++) {
    const own = cells.map((action, k) => (action === a ? [k % n, Math.floor(k / n)] : null)).filter((place) => place);
    if (own.length < 0.02 * cells.length) continue;
    const [x, y] = [mean(own.map((place) => place[0])), mean(own.map((place) => place[1]))];
    const far = ([i, j]) => (i - x) ** 2 + (j - y) ** 2;
    const [i, j] = own.reduce((best, place) => (far(place) < far(best) ? place : best));
    add(svg, "text", { class: "region", x: px(i), y: py(j) + 4, "text-anchor": "middle" }, a);
  }
}

function drawNames() {
  const list = byId("names");
  list.replaceChildren();
  if (!data.names) return;
  data.names.forEach((name, a) => {
    const item = add(list, "li", { class: a === data.actions[state.t] ? "played" : "" });
    add(item, "span", { class: "mark", style: paint(a) });
    add(item, "span", {}, `${a}: ${name}`);
  });
}

// -- what stays

function drawFrame() {
  byId("title").textContent = `What is believed: ${data.agent}${data.privileged ? " (privileged)" : ""}`;
  const known = data.truth ? "; shows what no agent may know" : "";
  byId("subtitle").textContent = `${data.env}, task ${data.task}, seed ${data.seed}, horizon ${data.horizon}; belief of model ${data.model}${known}`;
  for (const remark of data.remarks) add(byId("remarks"), "p", { class: "note" }, `Note: ${remark}.`);
  const dims = shownDims().map((d) => `x${sub(d)}`).join(", ");
  byId("table-note").textContent = `Rows are decisions, columns actions; ${dims}: the context. Rows below “now” are imagined, contexts too.`;
  const interval = data.steps[0].interval ? `dot: mean reward; line: ${data.coverage} interval of it` : "dot: mean reward; this model has no intervals";
  byId("predicted-note").textContent = `In the current context. ${capital(interval)}${data.truth?.means ? "; orange: the truth" : ""}.`;
  const pale = data.steps[0].predictions ? "; the pale part is the prediction" : "";
  byId("why-note").textContent = `${capital(data.label)}${data.policy ? ` (${data.policy})` : ""}${pale}.`;
  byId("map-note").textContent = data.dims
    ? `Which action is played if two context entries change. Dots: contexts so far, by action played; ring: now.`
    : "Contexts have one entry, so there is no map.";
  const select = byId("draw");
  const names = { all: `the mean of ${data.steps[0].draws.length} draws`, own: "the table that the agent drew" };
  for (const view of VIEWS) add(select, "option", { value: view }, names[view] ?? `draw ${view}`);
  byId("slider").max = N;
  drawLegend();
}

function listen() {
  const go = (t) => change({ t });
  byId("first").onclick = () => go(0);
  byId("back").onclick = () => go(state.t - 1);
  byId("next").onclick = () => go(state.t + 1);
  byId("last").onclick = () => go(N - 1);
  byId("slider").oninput = () => go(Number(byId("slider").value) - 1);
  byId("draw").onchange = () => change({ draw: byId("draw").value });
  const nextDraw = () => change({ draw: VIEWS[(VIEWS.indexOf(state.draw) + 1) % VIEWS.length] });
  const keys = {
    ArrowRight: () => go(state.t + 1), ArrowLeft: () => go(state.t - 1), PageDown: () => go(state.t + 10), PageUp: () => go(state.t - 10),
    Home: () => go(0), End: () => go(N - 1), d: nextDraw, D: nextDraw,
  };
  window.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || event.ctrlKey || event.altKey || event.metaKey || event.target.tagName === "SELECT") return;
    event.preventDefault();
    keys[event.key]();
  });
  window.addEventListener("hashchange", () => {
    Object.assign(state, readState());
    render();
  });
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth !== width) render();
    width = document.documentElement.clientWidth;
  });
  window.addEventListener("beforeprint", render);
}

drawFrame();
listen();
render();
document.documentElement.dataset.ready = "yes";
