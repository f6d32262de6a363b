"use strict";
// What the model says about each parameter, as the run recorded it: importance, slices, contours; and all parameters
// of the evaluations at once.

const FEW_SLICES = 8;
const SLICE = {width: 220, height: 130, left: 6, right: 6, top: 8, bottom: 8};
let allShown = false;

/** Where a value stands among positions that are evenly spaced on the parameter's own scale: 0 at the first, 1 at the last. */
function share(at, value) {
  const n = at.length - 1;
  if (n < 1) return 0.5;
  for (let k = 0; k < n; k++) {
    if (value <= at[k + 1] || k === n - 1) return (k + (value - at[k]) / (at[k + 1] - at[k])) / n;
  }
  return 1;
}

function showViews(run) {
  const {head} = run, model = run.views.model ?? null;
  $("knows").hidden = $("two").hidden = model === null;
  if (model === null) return;
  const key = JSON.stringify([head.viewed, run.count, allShown]);
  if ($("knows").dataset.key === key) return;
  $("knows").dataset.key = key;
  const {slices} = model, shown = allShown ? slices : slices.slice(0, FEW_SLICES);
  const left = head.parameters.length - slices.length;
  say($("note-knows"), "The model's change of the value over the shown range of a parameter, and within one scale, " +
    "± 2 standard deviations. Curves: the value along one parameter, with the others at their recommended values; band: 90\u00a0%; dots: " +
    `evaluations; line: recommended.${left > 0 ? ` ${left}  less important parameters are not shown.` : ""}`);
  const span = Math.max(...slices.map(({range}) => Math.abs(range.change) + 2 * range.deviation)) || 1;
  const head_ = el("thead", {}, el("tr", {}, ...["parameter", "over the range", "", "per scale"].map((text, i) =>
    el("th", {scope: "col", class: i === 1 || i === 3 ? "number" : ""}, text))));
  const change = ({change: x, deviation}) => `${withSd(Math.abs(x), deviation)} ± ${figure(2 * deviation, 2)}`;
  replace($("importance"), head_, el("tbody", {}, ...shown.map((slice) => {
    const name = head.parameters[slice.parameter].name;
    return el("tr", {}, el("td", {class: "name", title: name}, name), el("td", {class: "number"}, change(slice.range)),
      el("td", {class: "bar"}, importanceBar(slice.range, span)), el("td", {class: "number"}, change(slice.scale)));
  })));
  const points = recentPoints(run, 150);
  const ends = sliceRange(slices, head.minimize);
  replace($("slices"), ...shown.map((slice) => sliceChart(run, model, slice, ends, points)));
  $("more").hidden = slices.length <= FEW_SLICES;
  say($("more"), allShown ? "Show the most important only" : `Show all ${slices.length}`);
  showContour(run);
}

/** Positions and values of the last evaluations that have one. */
function recentPoints(run, most) {
  const points = [];
  for (let i = run.count - 1; i >= 0 && points.length < most; i--) {
    if (!run.failed(i)) points.push([run.point(i), run.evaluations.value[i]]);
  }
  return points;
}

/** One range of values for all slices, so that what matters looks so; the worst tenth and wide bands are cut off. */
function sliceRange(slices, minimize) {
  const means = slices.flatMap(({mean}) => mean).sort((a, b) => minimize ? a - b : b - a);
  const ends = [means[0], means[Math.floor(0.9 * (means.length - 1))]], lo = Math.min(...ends), hi = Math.max(...ends);
  const pad = 0.2 * (hi - lo) || Math.abs(hi) * 0.1 || 1;
  return [lo - pad, hi + pad];
}

function importanceBar({change, deviation}, span) {
  const at = (value) => 198 * value / span, x = Math.abs(change);
  return svg("svg", {viewBox: "0 0 200 18", preserveAspectRatio: "none", "aria-hidden": "true"},
    svg("rect", {x: 0, y: 4, width: Math.max(1, at(x)), height: 10, class: x < 2 * deviation ? "matter faint" : "matter"}),
    svg("path", {d: `M${at(Math.max(0, x - 2 * deviation))} 9H${at(x + 2 * deviation)}`, class: "whisker", "vector-effect": "non-scaling-stroke"}));
}

function sliceChart(run, model, {parameter: j, at, mean, low, high}, [lo, hi], points) {
  const {width, height, left, right, top, bottom} = SLICE, parameter = run.head.parameters[j];
  const x = (value) => left + (width - left - right) * share(at, value);
  const y = (value) => Math.min(height + 9, Math.max(-9, top + (height - top - bottom) * (hi - value) / (hi - lo)));
  const along = (values, order = values.map((_, k) => k)) => order.map((k) => `${x(at[k]).toFixed(1)} ${y(values[k]).toFixed(1)}`).join("L");
  const back = at.map((_, k) => at.length - 1 - k);
  const chart = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Value along ${parameter.name}`},
    svg("path", {d: `M${along(high)}L${along(low, back)}Z`, class: "mark-band"}));
  for (const [point, value] of points) {
    if (point[j] < at[0] || point[j] > at.at(-1)) continue;
    chart.append(svg("circle", {cx: x(point[j]).toFixed(1), cy: y(value).toFixed(1), r: 1.6, class: "dot"}));
  }
  chart.append(svg("path", {d: `M${along(mean)}`, class: "mark-belief"}),
    svg("path", {d: `M${x(model.point[j])} 0V${height}`, class: "here"}));
  return el("figure", {class: "slice"},
    el("figcaption", {}, el("b", {title: parameter.name}, parameter.name), ` ${figure(model.point[j])}`),
    chart,
    el("div", {class: "ends muted"}, el("span", {}, figure(at[0], 3)), parameter.log ? el("span", {}, "log") : null, el("span", {}, figure(at.at(-1), 3))));
}

// -- two parameters --------------------------------------------------------------------------------------------------

const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function shade(t) {
  const place = Math.min(0.9999, Math.max(0, t)) * (VIRIDIS.length - 1), k = Math.floor(place), part = place - k;
  return `rgb(${VIRIDIS[k].map((a, i) => Math.round(a + part * (VIRIDIS[k + 1][i] - a))).join(",")})`;
}

function showContour(run) {
  const {head} = run, {contours, slices, point} = run.views.model;
  $("two").hidden = contours.length === 0;
  if (!contours.length) return;
  const known = [...new Set(contours.flatMap(({parameters}) => parameters))];
  const ranked = slices.map(({parameter}) => parameter).filter((j) => known.includes(j));
  const pairs = ranked.map((j) => [String(j), head.parameters[j].name]);
  choices($("two-x"), pairs, String(ranked[0]));
  choices($("two-y"), pairs, String(ranked[1]));
  const [i, j] = [Number($("two-x").value), Number($("two-y").value)];
  const found = contours.find(({parameters: [a, b]}) => (a === i && b === j) || (a === j && b === i));
  if (!found) { replace($("contour"), el("p", {class: "muted"}, "Choose two different parameters.")); return; }
  const turned = found.parameters[0] !== i;
  const [across, upwards] = turned ? [found.at[1], found.at[0]] : found.at;
  const value = (a, b) => turned ? found.mean[b][a] : found.mean[a][b];
  const all = found.mean.flat(), lo = Math.min(...all), hi = Math.max(...all);
  const good = (v) => head.minimize ? (hi - v) / (hi - lo || 1) : (v - lo) / (hi - lo || 1);
  const width = 420, height = 300, chart = svg("svg", {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Value over ${head.parameters[i].name} and ${head.parameters[j].name}`});
  const wide = width / across.length, high = height / upwards.length;
  across.forEach((x, a) => upwards.forEach((y, b) => chart.append(svg("rect", {x: a * wide, y: height - (b + 1) * high, width: wide + 0.5,
    height: high + 0.5, fill: shade(good(value(a, b)))}, svg("title", {}, `${head.parameters[i].name} ${figure(x)}, ${head.parameters[j].name} ${figure(y)}: ${figure(value(a, b))}`)))));
  const px = (v) => wide / 2 + (width - wide) * share(across, v), py = (v) => height - high / 2 - (height - high) * share(upwards, v);
  const inside = (at, v) => v >= at[0] && v <= at.at(-1);
  for (const [each] of recentPoints(run, 150)) {
    if (inside(across, each[i]) && inside(upwards, each[j])) chart.append(svg("circle", {cx: px(each[i]), cy: py(each[j]), r: 2, class: "over"}));
  }
  chart.append(svg("circle", {cx: px(point[i]), cy: py(point[j]), r: 7, class: "best-here"}));
  const bar = el("div", {class: "scale-bar"}, el("span", {}, figure(head.minimize ? hi : lo, 3)), el("i", {}), el("span", {}, figure(head.minimize ? lo : hi, 3)));
  replace($("contour"),
    el("div", {class: "muted small"}, `${head.parameters[j].name} ${figure(upwards[0], 3)} to ${figure(upwards.at(-1), 3)} ↑`), chart,
    el("div", {class: "ends muted"}, el("span", {}, figure(across[0], 3)), el("span", {}, `${head.parameters[i].name} →`), el("span", {}, figure(across.at(-1), 3))), bar);
}

// -- all parameters of the evaluations -------------------------------------------------------------------------------

const MOST_AXES = 10, MOST_LINES = 250;

/** Of a run whose parameters have names of their own: a line per evaluation over the parameters' ranges. */
function showParallel(run) {
  const {head, count} = run;
  const named = head.parameters.length > 1 && head.parameters.some(({name}) => !/^x\d+$/.test(name));
  $("parallel-card").hidden = !named || count < 3;
  if ($("parallel-card").hidden) return;
  const ranked = run.views.model ? run.views.model.slices.map(({parameter}) => parameter) : head.parameters.map((_, j) => j);
  const axes = ranked.slice(0, MOST_AXES).sort((a, b) => a - b);
  const points = recentPoints(run, MOST_LINES);
  const good = points.map(([, value]) => value).sort((a, b) => head.minimize ? a - b : b - a)[Math.floor(points.length / 10)];
  const canvas = $("parallel"), ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width || !points.length) return;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const draw = canvas.getContext("2d");
  draw.scale(ratio, ratio);
  draw.font = "12px system-ui, sans-serif";
  const columns = [...axes.map((j) => {
    const {name, log, lower, upper} = head.parameters[j];
    const own = log ? Math.log : (v) => v, seen = points.map(([point]) => point[j]);
    return {name, lo: lower ?? Math.min(...seen), hi: upper ?? Math.max(...seen), own, of: ([point]) => point[j]};
  }), {name: "value", lo: Math.min(...points.map((p) => p[1])), hi: Math.max(...points.map((p) => p[1])), own: (v) => v, of: (p) => p[1]}];
  const x = (k) => 40 + (width - 80) * k / (columns.length - 1);
  const y = ({lo, hi, own}, v) => height - 22 - (height - 62) * (own(hi) === own(lo) ? 0.5 : (own(v) - own(lo)) / (own(hi) - own(lo)));
  const line = (point) => { draw.beginPath(); columns.forEach((c, k) => draw[k ? "lineTo" : "moveTo"](x(k), y(c, c.of(point)))); draw.stroke(); };
  const isGood = ([, value]) => head.minimize ? value <= good : value >= good;
  draw.strokeStyle = tint(color("query"), 0.28);
  points.filter((point) => !isGood(point)).forEach(line);
  draw.strokeStyle = color("iterate");
  draw.lineWidth = 1.5;
  points.filter(isGood).forEach(line);
  draw.textAlign = "center";
  columns.forEach((column, k) => {
    draw.strokeStyle = color("muted");
    draw.lineWidth = 1;
    draw.beginPath();
    draw.moveTo(x(k), 38);
    draw.lineTo(x(k), height - 20);
    draw.stroke();
    const room = Math.max(4, Math.floor((width - 80) / columns.length / 7));
    draw.fillStyle = color("text");
    draw.fillText(column.name.length > room ? `${column.name.slice(0, room - 1)}…` : column.name, x(k), 14);
    draw.fillStyle = color("muted");
    draw.fillText(figure(column.hi, 3), x(k), 32);
    draw.fillText(figure(column.lo, 3), x(k), height - 6);
  });
  legend($("legend-parallel"), [[lineMark("first"), "best tenth"], [lineMark("other"), "others"]]);
  say($("note-parallel"), `The last ${points.length} evaluations with a value` + (axes.length < head.parameters.length ? `, over the ${axes.length} most important parameters.` : "."));
}
