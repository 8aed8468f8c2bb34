// Draws the report from the JSON beside it. What is shown is kept in the address behind "#", so that a view can be
// shared: env, measure, hide (numbers of agents), sort (column, "-" before it for descending), ref (number of an agent).
// Names come from users: they enter the page as text, never as markup.

const state = readState();
const PRINTED = 720; // pixels of a chart on paper
let printing = false;

// -- elements and numbers

const signed = (value, digits = 2) => (Number(value.toFixed(digits)) > 0 ? "+" : "") + format(value, digits);
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const significant = (value) => (value === null ? "–" : String(Number(value.toPrecision(2))));
const label = (agent) => agent.name + (agent.privileged ? " (privileged)" : "");

function swatch(parent, agent) {
  const svg = add(parent, "svg", { class: "swatch", width: 26, height: 8, "aria-hidden": "true" });
  add(svg, "line", { x1: 0, x2: 26, y1: 4, y2: 4, "stroke-width": 3, ...stroke(agent, 2) });
}

// Colours are custom properties, so that the style sheet can choose those of a dark page.
const ink = (agent) => `--light:${agent.color};--dark:${agent.dark}`;

function stroke(agent, width) {
  const dashes = agent.dash.map((length) => length * width).join(" ");
  return { class: "ink", style: ink(agent), ...(dashes ? { "stroke-dasharray": dashes } : {}) };
}

// Long names may break behind a comma, a bracket or an equals sign.
function broken(parent, text) {
  text.split(/(?<=[,=]|\S\()/).forEach((piece, i) => {
    if (i) add(parent, "wbr");
    parent.append(piece);
  });
  return parent;
}

function named(parent, agent) {
  const name = add(parent, "span", { class: "name", title: agent.spec });
  swatch(name, agent);
  broken(add(name, "span"), label(agent));
}

function legend(host, agents) {
  const list = add(host, "div", { class: "legend" });
  for (const agent of agents) named(list, agent);
}

// -- what is shown

function readState() {
  const given = new URLSearchParams(location.hash.slice(1));
  const numbers = (name) => (given.get(name) || "").split(",").filter((text) => /^\d+$/.test(text)).map(Number);
  return {
    env: numbers("env")[0] || 0,
    measure: given.get("measure") || "",
    hidden: new Set(numbers("hide")),
    sort: given.get("sort") || "",
    reference: numbers("ref")[0],
    baseline: numbers("base")[0],
  };
}

function writeState() {
  const entries = { env: state.env, measure: view().measure, hide: [...state.hidden].join(","), sort: state.sort };
  if (state.reference !== undefined) entries.ref = state.reference;
  if (state.baseline !== undefined) entries.base = state.baseline;
  try {
    history.replaceState(null, "", `#${new URLSearchParams(entries)}`);
  } catch {
    // A page inside another document may not change its address; it works all the same.
  }
}

function change(changes) {
  Object.assign(state, changes);
  writeState();
  render();
}

// What the state means for the data: the environment, its agents, and those of them that are not hidden.
function view() {
  const env = data.environments[state.env] || data.environments[0];
  const wanted = [state.measure, env.main, env.measures.at(-1)];
  const measure = wanted.find((name) => env.measures.includes(name));
  const ids = env.agents;
  const shown = ids.filter((id) => !state.hidden.has(id));
  const means = Object.fromEntries(env.rows.map((row) => [row.id, row[`${measure}_mean`]]));
  const better = measure === "reward" ? -1 : 1;
  const ranked = [...ids].sort((a, b) => better * (means[a] - means[b]));
  const best = ranked.find((id) => !data.agents[id].privileged) ?? ranked[0];
  const reference = ids.includes(state.reference) ? state.reference : best;
  const baseline = ids.includes(state.baseline) ? state.baseline : env.baseline;
  const noun = measure === "reward" ? "reward" : `${measure} regret`;
  const falling = better > 0 ? [...ranked].reverse() : ranked; // as curves end, from top to bottom
  return { env, measure, ids, shown, ranked, falling, best, reference, baseline, noun, better };
}

function render() {
  const focused = document.activeElement?.id;
  const now = view();
  drawControls(now);
  drawHeadline(now);
  drawCurves(now);
  drawTable(now);
  drawForest(now);
  drawMatrix(now);
  drawDistribution(now);
  if (focused) byId(focused)?.focus({ preventScroll: true });
}

function drawControls({ env, measure, ids, falling }) {
  const environments = byId("environments");
  environments.replaceChildren();
  if (data.environments.length > 1) {
    const select = add(environments, "select", { id: "environment", "aria-label": "Environment" });
    data.environments.forEach((other, i) => add(select, "option", { value: i }, other.name));
    select.value = data.environments.indexOf(env);
    select.onchange = () => change({ env: Number(select.value) });
  }
  const group = byId("measures");
  group.replaceChildren();
  for (const name of env.measures) {
    const attributes = { id: `measure-${name}`, "aria-pressed": name === measure, title: data.notes[name] };
    add(group, "button", attributes, name).onclick = () => change({ measure: name });
  }
  const chips = byId("agents");
  chips.replaceChildren();
  for (const id of falling) {
    const shown = !state.hidden.has(id);
    const chip = add(chips, "button", { id: `agent-${id}`, "aria-pressed": shown, title: "Show or hide; with the shift key: this one alone" });
    swatch(chip, data.agents[id]);
    broken(add(chip, "span"), data.agents[id].name);
    chip.onclick = (event) => {
      const hidden = new Set(event.shiftKey ? ids.filter((other) => other !== id) : state.hidden);
      if (!event.shiftKey && !hidden.delete(id)) hidden.add(id);
      change({ hidden });
    };
  }
}

function drawHeadline({ env, measure, ids, best, noun, better }) {
  byId("yardstick").textContent = env.yardstick ?? "";
  byId("yardstick").hidden = !env.yardstick;
  byId("remarks").replaceChildren();
  for (const remark of env.remarks) add(byId("remarks"), "p", { class: "note" }, `Note: ${remark}.`);
  const row = env.rows.find((entry) => entry.id === best);
  const rivals = ids.filter((id) => id !== best && !data.agents[id].privileged);
  const beaten = rivals.filter((id) => env.pairs[measure][best][id].verdict === 1);
  const even = rivals.filter((id) => env.pairs[measure][best][id].verdict === 0);
  const host = byId("headline");
  host.replaceChildren();
  add(host, "strong", {}, data.agents[best].name);
  const value = `${format(row[`${measure}_mean`])} ± ${format(row[`${measure}_se`])}`;
  let text = ` has the ${better > 0 ? "lowest" : "highest"} mean ${noun}, ${value} per task`;
  if (rivals.length) text += `; on the same tasks it beats ${beaten.length} of the ${rivals.length} others`;
  if (even.length) text += `, and no difference is shown to ${even.map((id) => data.agents[id].name).join(", ")}`;
  host.append(`${text}.`);
  if (ids.some((id) => data.agents[id].privileged)) host.append(" Privileged agents, which use hidden information, are left out of this sentence.");
}

// -- charts

function drawCurves({ env, measure, shown, falling, noun }) {
  byId("curves-title").textContent = `Cumulative ${noun}`;
  byId("curves-note").textContent = `${data.notes[measure]} Means over ${count(env.tasks, "task")}, bands of ±1 s.e.`;
  const visible = falling.filter((id) => shown.includes(id));
  const series = visible.map((id) => ({ agent: data.agents[id], x: env.steps, ...env.curves[measure][id] }));
  const tip = (at) => `decision ${at}`;
  const value = (line, i) => `${format(line.y[i])} ± ${format(line.se[i])}`;
  chart(byId("curves"), series, { x: "decision", y: `cumulative ${noun}`, tip, value, nearest: true, ends: true });
}

function drawDistribution({ env, measure, shown, noun }) {
  const good =
    measure === "reward"
      ? "further right is better, and a long way up from the left is a heavy bad tail"
      : "further left is better, and a long way to the top is a heavy bad tail";
  byId("distribution-note").textContent = `Share of tasks whose ${noun} is at most x: ${good}.`;
  const median = Object.fromEntries(env.rows.map((row) => [row.id, row[`${measure}_median`]]));
  const visible = [...shown].sort((a, b) => median[a] - median[b]); // from left to right
  const series = visible.map((id) => ({ agent: data.agents[id], x: env.totals[measure][id], y: env.shares, steps: true }));
  const tip = (at) => `${noun} ≤ ${format(at, 1)}`;
  const value = (line, i) => `${format(i < 0 ? 0 : 100 * line.y[i], 0)} % of tasks`;
  chart(byId("distribution"), series, { x: `${noun} of a task`, y: "share of tasks", tip, value, nearest: false });
}

// Return a name in at most three lines, which fit beside a chart.
function threeLines(text, width = 32) {
  const lines = [""];
  for (const piece of text.split(/(?<=[, ]|\S\()/)) {
    if (lines.at(-1) && (lines.at(-1) + piece).trimEnd().length > width) lines.push("");
    lines[lines.length - 1] += piece;
  }
  const kept = lines.length > 3 ? [...lines.slice(0, 2), lines.slice(2).join("")] : lines;
  return kept.map((line) => line.trim()).map((line) => (line.length > width ? `${line.slice(0, width - 1)}…` : line));
}

// Return places, ascending, such that boxes of these heights do not overlap and stay between low and high.
function spread(places, heights, low, high) {
  const found = [];
  let edge = low;
  places.forEach((place, i) => {
    found.push(Math.max(place, edge + heights[i] / 2));
    edge = found[i] + heights[i] / 2;
  });
  edge = high;
  for (let i = found.length - 1; i >= 0; i--) {
    found[i] = Math.min(found[i], edge - heights[i] / 2);
    edge = found[i] - heights[i] / 2;
  }
  return found;
}

// Write names at the ends of lines, moved apart where they would overlap.
function nameEnds(svg, series, texts, box, py) {
  const ends = series.map((line, i) => ({ line, text: texts[i], y: py(line.y.at(-1)) })).sort((a, b) => a.y - b.y);
  const places = spread(ends.map(({ y }) => y), ends.map(({ text }) => text.length * 14 + 5), box.top - 8, box.bottom + 24);
  ends.forEach(({ line, text, y }, i) => {
    const at = places[i], x = box.right;
    add(svg, "line", { class: "ink leader", style: ink(line.agent), x1: x + 3, x2: x + 16, y1: y, y2: at });
    add(svg, "line", { "stroke-width": 2.5, ...stroke(line.agent, 2), x1: x + 17, x2: x + 39, y1: at, y2: at });
    const name = add(svg, "text", { class: "end" });
    text.forEach((part, k) => add(name, "tspan", { x: x + 44, y: at + 4 + 14 * (k - (text.length - 1) / 2) }, part));
    add(name, "title", {}, label(line.agent));
  });
}

// Draw lines with their bands; the pointer shows each line's value at its x, the nearest or the last one before it.
// Lines are named at their ends if asked for and if there is room, otherwise below, in the order of the lines.
function chart(host, series, { x: xLabel, y: yLabel, tip, value, nearest, ends = false }) {
  host.replaceChildren();
  const width = Math.max(300, printing ? PRINTED : host.clientWidth);
  const named = ends && width >= 640;
  const texts = series.map((line) => threeLines(label(line.agent)));
  const stacked = 60 + texts.reduce((sum, text) => sum + text.length * 14 + 5, 0);
  const height = Math.round(Math.max(Math.min(440, Math.max(280, width * 0.45)), named ? stacked : 0));
  const longest = Math.max(0, ...texts.flat().map((line) => line.length));
  const box = { left: 58, right: width - (named ? 56 + 6.9 * longest : 12), top: 12, bottom: height - 44 };
  const ys = series.flatMap((line) => (line.se ? line.y.flatMap((y, i) => [y - line.se[i], y + line.se[i]]) : line.y));
  const [x0, x1] = extent(series.flatMap((line) => line.x));
  const [y0, y1] = extent([0, ...ys]);
  const px = (x) => box.left + ((x - x0) / (x1 - x0)) * (box.right - box.left);
  const py = (y) => box.bottom - ((y - y0) / (y1 - y0)) * (box.bottom - box.top);
  const svg = add(host, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${yLabel} by ${xLabel}` });
  for (const [y, text] of ticks(y0, y1, 6)) {
    add(svg, "line", { class: y === 0 ? "zero" : "grid", x1: box.left, x2: box.right, y1: py(y), y2: py(y) });
    add(svg, "text", { x: box.left - 8, y: py(y) + 4, "text-anchor": "end" }, text);
  }
  for (const [x, text] of ticks(x0, x1, box.right - box.left > 560 ? 10 : 5)) {
    add(svg, "line", { class: "grid", x1: px(x), x2: px(x), y1: box.top, y2: box.bottom });
    const last = named && px(x) > box.right - 12; // the names' lines start at the right edge
    add(svg, "text", { x: px(x) - (last ? 2 : 0), y: box.bottom + 18, "text-anchor": last ? "end" : "middle" }, text);
  }
  add(svg, "text", { x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, xLabel);
  const middle = (box.top + box.bottom) / 2;
  add(svg, "text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, yLabel);
  const point = (x, y) => `${px(x).toFixed(1)},${py(y).toFixed(1)}`;
  for (const line of series.filter((entry) => entry.se && entry.se[0] !== null)) {
    const upper = line.x.map((x, i) => point(x, line.y[i] + line.se[i]));
    const lower = line.x.map((x, i) => point(x, line.y[i] - line.se[i])).reverse();
    add(svg, "polygon", { class: "band", style: ink(line.agent), points: [...upper, ...lower].join(" ") });
  }
  for (const line of series) {
    const points = line.x.map((x, i) => (line.steps ? `${point(x, i ? line.y[i - 1] : 0)} ${point(x, line.y[i])}` : point(x, line.y[i])));
    const drawn = add(svg, "polyline", { points: points.join(" "), ...stroke(line.agent, 2), class: "ink curve" });
    add(drawn, "title", {}, label(line.agent));
  }
  if (named) nameEnds(svg, series, texts, box, py);
  else legend(host, series.map((line) => line.agent));
  if (!series.length) add(svg, "text", { x: width / 2, y: height / 2, "text-anchor": "middle" }, "no agent is shown");
  hover(host, svg, series, { box, x0, x1, px, py, width, tip, value, nearest });
}

function hover(host, svg, series, { box, x0, x1, px, py, width, tip, value, nearest }) {
  const marks = add(svg, "g", { visibility: "hidden" });
  const bubble = add(host, "div", { class: "tip", hidden: "" });
  const hide = () => {
    marks.setAttribute("visibility", "hidden");
    bubble.hidden = true;
  };
  svg.onpointerleave = hide;
  svg.onpointermove = (event) => {
    const frame = svg.getBoundingClientRect();
    const at = x0 + ((((event.clientX - frame.left) * width) / frame.width - box.left) / (box.right - box.left)) * (x1 - x0);
    if (!series.length || at < x0 - 0.02 * (x1 - x0) || at > x1 + 0.02 * (x1 - x0)) return hide();
    const found = series.map((line) => ({ line, i: indexAt(line.x, at, nearest) }));
    const x = nearest ? series[0].x[found[0].i] : at;
    const level = ({ line, i }) => (i < 0 ? 0 : line.y[i]);
    found.sort((a, b) => level(b) - level(a));
    marks.replaceChildren();
    add(marks, "line", { class: "cross", x1: px(x), x2: px(x), y1: box.top, y2: box.bottom });
    for (const entry of found) {
      add(marks, "circle", { class: "dot", style: ink(entry.line.agent), cx: px(x), cy: py(level(entry)), r: 3.5 });
    }
    marks.setAttribute("visibility", "visible");
    bubble.replaceChildren();
    add(bubble, "b", {}, tip(x));
    const table = add(bubble, "table");
    for (const { line, i } of found) {
      const row = add(table, "tr");
      swatch(add(row, "td"), line.agent);
      add(row, "td", {}, line.agent.name);
      add(row, "td", {}, value(line, i));
    }
    bubble.hidden = false;
    const place = (px(x) * frame.width) / width;
    const left = place + 14 + bubble.offsetWidth < frame.width ? place + 14 : place - 14 - bubble.offsetWidth;
    bubble.style.left = `${Math.max(0, left)}px`;
    bubble.style.top = `${Math.max(0, Math.min(event.clientY - frame.top - 20, frame.height - bubble.offsetHeight))}px`;
  };
}

// Return the index of the last value at or below x (-1: none), or of the nearest one; values ascend.
function indexAt(values, x, nearest) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= x) low = middle + 1;
    else high = middle;
  }
  if (!nearest) return low - 1;
  if (low === 0 || low === values.length) return Math.max(0, low - 1);
  return x - values[low - 1] < values[low] - x ? low - 1 : low;
}

// -- tables

function drawTable({ env, measure, ids, shown, baseline, noun, better }) {
  const table = byId("table");
  table.replaceChildren();
  choose("baseline", ids, baseline, (id) => change({ baseline: id }));
  const lifts = env.lifts[baseline];
  const rows = env.rows.map((row) => ({ ...row, lift: lifts[row.id][0], lift_se: lifts[row.id][1] }));
  const percent = (share) => (share === null ? "–" : `${signed(100 * share, 1)} %`);
  const mean = (name) => ({ key: `${name}_mean`, head: name, error: `${name}_se`, chosen: name === measure });
  const tail = Object.entries({ median: "median", ...env.tails[measure] });
  const columns = [
    { key: "name", head: "agent" },
    mean(measure),
    ...tail.map(([sort, head]) => ({ key: `${measure}_${sort}`, sort, head, chosen: true })),
    ...env.measures.filter((name) => name !== measure).map(mean),
    { key: "reward_per_decision", head: "reward / decision", error: "reward_per_decision_se", digits: 3 },
    { key: "lift", head: "lift", show: percent, error: "lift_se", scale: 100, digits: 1 },
    { key: "ms_per_decision", head: "ms / decision", show: significant },
  ];
  const dagger = env.tail_notes[measure];
  byId("table-note").textContent =
    `Totals per task: means ± 1 s.e. over ${count(env.tasks, "task")}; median of ${noun} and the quantiles of its bad tail. ` +
    `${dagger ? `${dagger}. ` : ""}Lift is the reward per decision above that of ${data.agents[baseline].name}. ` +
    "Time is the agent's own, while other work may run on the machine. Click a heading to sort.";
  const [, minus, name] = /^(-?)(.*)$/.exec(state.sort);
  const key = (column) => column.sort || column.key;
  const sorted = columns.find((column) => key(column) === name) || columns.find((column) => column.key === `${measure}_mean`);
  const direction = minus || (!state.sort && better < 0) ? -1 : 1;
  const head = add(add(table, "thead"), "tr");
  for (const column of columns) {
    const cell = add(head, "th", { scope: "col", class: column.chosen ? "chosen" : "" });
    if (column === sorted) cell.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
    const turn = column === sorted && direction > 0 ? "-" : "";
    add(cell, "button", { id: `sort-${key(column)}` }, column.head.replace(" %", "\u00a0%")).onclick = () => change({ sort: turn + key(column) });
  }
  const value = (row) => (sorted.key === "name" ? data.agents[row.id].name : row[sorted.key] ?? Infinity);
  const order = (a, b) => direction * (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
  const body = add(table, "tbody");
  for (const row of rows.filter((entry) => shown.includes(entry.id)).sort(order)) {
    const line = add(body, "tr");
    named(add(line, "th", { scope: "row" }), data.agents[row.id]);
    for (const column of columns.slice(1)) {
      const shownValue = column.show ? column.show(row[column.key]) : format(row[column.key], column.digits);
      const cell = add(line, "td", { class: column.chosen ? "chosen" : "" }, shownValue);
      if (!column.error || row[column.error] === null) continue;
      cell.append(" ");
      add(cell, "span", { class: "se" }, `± ${format((column.scale || 1) * row[column.error], column.digits)}`);
    }
  }
}

// Fill a select with agents.
function choose(id, ids, chosen, onChange) {
  const select = byId(id);
  select.replaceChildren();
  for (const each of ids) add(select, "option", { value: each }, label(data.agents[each]));
  select.value = chosen;
  select.onchange = () => onChange(Number(select.value));
}

const WORDS = { 1: ["win", "beats"], 0: ["even", "no difference shown"], "-1": ["lose", "loses to"] };

function drawForest({ env, measure, ids, shown, ranked, reference, noun }) {
  byId("pairs-note").textContent =
    `Differences of ${noun} per task between two agents on the same ${count(env.tasks, "task")}, with ${data.confidence} ` +
    "intervals (Student's t). A beats B if the interval is on A's side of zero. Each interval holds for one pair only.";
  choose("reference", ids, reference, (id) => change({ reference: id }));
  const table = byId("forest");
  table.replaceChildren();
  const name = data.agents[reference].name;
  const head = add(add(table, "thead"), "tr");
  for (const text of ["agent", `${noun}: agent − ${name}`, `mean, ${data.confidence} interval`, `against ${name}`, "better in"]) {
    broken(add(head, "th", { scope: "col" }), text);
  }
  const rows = ranked.filter((id) => id !== reference && shown.includes(id));
  const pairs = rows.map((id) => env.pairs[measure][id][reference]);
  const [low, high] = extent([0, ...pairs.flatMap((pair) => [pair.mean, pair.low ?? 0, pair.high ?? 0])]);
  const px = (value) => 8 + ((value - low) / (high - low)) * 304;
  const body = add(table, "tbody");
  rows.forEach((id, i) => {
    const pair = pairs[i];
    const [kind, words] = WORDS[pair.verdict];
    const line = add(body, "tr", { title: pair.text });
    named(add(line, "th", { scope: "row" }), data.agents[id]);
    const svg = add(add(line, "td"), "svg", { viewBox: "0 0 320 24", preserveAspectRatio: "none", role: "img", "aria-label": pair.text });
    add(svg, "line", { class: "zero", x1: px(0), x2: px(0), y1: 0, y2: 24, "vector-effect": "non-scaling-stroke" });
    const pen = { class: "ink", style: ink(data.agents[id]), "vector-effect": "non-scaling-stroke", "stroke-linecap": "round" };
    if (pair.low !== null) add(svg, "line", { ...pen, x1: px(pair.low), x2: px(pair.high), y1: 12, y2: 12, "stroke-width": 3 });
    add(svg, "line", { ...pen, x1: px(pair.mean), x2: px(pair.mean), y1: 12, y2: 12.01, "stroke-width": 10 });
    const numbers = add(line, "td", {}, signed(pair.mean));
    add(numbers, "span", { class: "se" }, `  [${format(pair.low)}, ${format(pair.high)}]`);
    add(add(line, "td"), "span", { class: `badge ${kind}` }, words);
    add(line, "td", {}, `${format(100 * pair.share, 0)} %`);
  });
}

function drawMatrix({ env, measure, ranked, shown, noun }) {
  byId("matrix-note").textContent =
    `Mean ${noun} of the row less that of the column; columns go by the numbers of the rows. Blue and bold: the row ` +
    "beats the column; orange and slanted: it loses to it; grey: no difference is shown. Point at a number for its interval.";
  const table = byId("matrix");
  table.replaceChildren();
  const ids = ranked.filter((id) => shown.includes(id));
  const head = add(add(table, "thead"), "tr");
  add(head, "th");
  ids.forEach((id, i) => add(head, "th", { scope: "col", title: label(data.agents[id]) }, String(i + 1)));
  const body = add(table, "tbody");
  for (const [i, one] of ids.entries()) {
    const line = add(body, "tr");
    const name = add(line, "th", { scope: "row", "data-number": i + 1 });
    named(name, data.agents[one]);
    for (const other of ids) {
      const pair = env.pairs[measure][one][other];
      if (one === other) add(line, "td", { class: "even" }, "·");
      else add(line, "td", { class: WORDS[pair.verdict][0], title: pair.text }, signed(pair.mean, 1));
    }
  }
}

// -- what does not change

function drawProvenance() {
  const { manifest } = data;
  byId("subtitle").textContent =
    `${manifest.env.join(" · ")} — ${count(manifest.tasks, "task")} of the ${manifest.run.split} split, seed ${manifest.run.seed}, ` +
    `${count(data.agents.length, "agent")}, all on the same tasks`;
  if (data.title) byId("title").textContent = data.title;
  if (data.missing.length) {
    byId("missing").textContent = `This evaluation is not finished. Tasks are missing of: ${data.missing.join("; ")}.`;
    byId("missing").hidden = false;
  }
  const { versions, ...run } = manifest.run;
  const shown = (value) => (value === null ? "none" : String(value));
  const entries = [
    ...Object.entries(run).map(([name, value]) => [name.replace("_", " "), name === "oracle" && value === null ? "the setting's own policy class" : shown(value)]),
    ["versions", Object.entries(versions).map((pair) => pair.join(" ")).join(", ")],
    ...manifest.agents.filter((name) => manifest.weights[name]).map((name) => [`weights of ${name}`, `sha256 ${manifest.weights[name]}`]),
    ...Object.entries(manifest.resolved ?? {}).flatMap(([env, texts]) =>
      Object.entries(texts).map(([name, text]) => [`policy class of ${name} in ${env}`, text])),
    ...data.agents.filter(({ name, spec }) => name !== spec).map(({ name, spec }) => [`${name} is`, spec]),
    ["manifest", `sha256 ${data.manifest_sha256}`],
  ];
  const body = add(byId("provenance"), "tbody");
  for (const [name, text] of entries) {
    const row = add(body, "tr");
    add(row, "td", {}, name);
    add(add(row, "td"), "code", {}, text);
  }
  byId("hashes").textContent = JSON.stringify(data.task_hashes, null, 2);
  byId("manifest").textContent = JSON.stringify(manifest, null, 2);
  byId("csv").href = `data:text/csv;charset=utf-8,${encodeURIComponent(data.csv)}`;
}

drawProvenance();
render();
function forPaper(on) {
  printing = on;
  render();
}
window.addEventListener("beforeprint", () => forPaper(true));
window.addEventListener("afterprint", () => forPaper(false));
let drawnWidth = window.innerWidth;
window.addEventListener("resize", () => {
  if (drawnWidth === window.innerWidth) return; // a phone's bars come and go
  drawnWidth = window.innerWidth;
  render();
});
window.addEventListener("hashchange", () => change(readState()));
document.documentElement.dataset.ready = "yes";
