"use strict";
// Charts on uPlot. Marks are drawn by hand, at most a few per pixel, so that 20,000 evaluations stay smooth.

const charts = [];
const MARKS = 100;  // in one path

/** A chart that fits its host. build() returns uPlot's options without a size; data() returns what it shows. */
class Chart {
  constructor(host, build, data) {
    Object.assign(this, {host, build, data, plot: null, stale: true});
    charts.push(this);
    new ResizeObserver(() => this.resize()).observe(host);
  }

  size() { return {width: Math.floor(this.host.clientWidth), height: Math.floor(this.host.clientHeight)}; }

  resize() {
    const {width, height} = this.size();
    if (!width || !height) return;
    if (this.plot && (this.plot.width !== width || this.plot.height !== height)) this.plot.setSize({width, height});
    else if (!this.plot && this.stale === false) this.update();
  }

  update() {
    this.stale = false;
    const {width, height} = this.size();
    if (!width || !height) return;  // not shown; it is made when it is
    const data = this.data();
    if (!this.plot) this.plot = new uPlot({width, height, ...this.build()}, data, this.host);
    else this.plot.setData(data, !this.zoomed);
  }

  /** Colours come from the style sheet when a chart is made. */
  restyle() {
    if (!this.plot) return;
    this.plot.destroy();
    this.plot = null;
    this.zoomed = false;
    this.update();
  }
}

function axis(more = {}) {
  const muted = color("muted");
  return {
    stroke: muted, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif", labelSize: 18, gap: 4,
    grid: {stroke: color("grid"), width: 1}, ticks: {stroke: color("grid"), width: 1, size: 4}, ...more,
  };
}

// Evaluations are counted: no ticks between them.
const COUNTS = [0, 1, 2, 3, 4, 5, 6].flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power));

function xAxis(more) { return axis({incrs: COUNTS, ...more}); }

function xRange(_, lo, hi) { return hi === null ? [0, 10] : hi - lo < 1 ? [lo - 0.5, hi + 0.5] : [lo, hi]; }

function yAxis(more = {}) {
  return axis({size: (_, values) => Math.max(36, 14 + 7 * Math.max(0, ...(values ?? []).map((text) => String(text).length))),
    values: (_, ticks) => ticks.map((tick) => tick === null ? "" : figure(tick)), ...more});
}

/** Drag to look closer, double click to see all: what is new must not undo that. */
function zoomHooks(chart) {
  return {
    setSelect: [(u) => { if (u.select.width > 0) chart.zoomed = true; }],
    ready: [(u) => u.over.addEventListener("dblclick", () => { chart.zoomed = false; })],
  };
}

function showTip(text, u, left, top) {
  const tip = $("tip");
  if (text === null) { tip.hidden = true; return; }
  say(tip, text);
  tip.hidden = false;
  const box = u.over.getBoundingClientRect();
  const x = Math.min(box.left + left + 14, innerWidth - tip.offsetWidth - 8);
  const y = Math.min(box.top + top + 14, innerHeight - tip.offsetHeight - 8);
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}

// -- values ----------------------------------------------------------------------------------------------------------

/** What evaluations had, one mark each. show() gives {name, y(i), belief, log}: y is null where there is nothing to show. */
function marksChart(run, id, show) {
  const host = $(id);
  const chart = new Chart(host, build, data);
  let x = [], value = [], belief = [], low = [], high = [];
  let drawn = 0, shown = null;

  function data() {
    const {count, beliefs: b, believed} = run(), now = show();
    if (shown?.name !== now.name) { x = []; value = []; }
    shown = now;
    for (let i = x.length; i < count; i++) {
      x.push(i + 1);
      value.push(shown.y(i));
    }
    belief = new Array(count).fill(null);
    low = new Array(count).fill(null);
    high = new Array(count).fill(null);
    for (let k = 0; k < (shown.belief ? believed : 0); k++) {
      const at = b.evaluations[k] - 1;
      if (at < 0 || at >= count) continue;
      [belief[at], low[at], high[at]] = [b.value[k], b.value[k] - 2 * b.sd[k], b.value[k] + 2 * b.sd[k]];
    }
    return [x, value, belief, low, high];
  }

  /** Another thing to show: the chart is made anew. */
  chart.change = () => { chart.restyle(); };

  /** A few terrible values must not flatten all others: on the bad side the range follows the bulk. */
  function range() {
    const seen = value.filter((v) => v !== null);
    if (!seen.length) return shown.log ? [0.1, 1] : [0, 1];
    let lo = Infinity, hi = -Infinity;
    for (const v of seen) { if (v < lo) lo = v; if (v > hi) hi = v; }
    if (shown.log) return [lo / 1.15, hi * 1.15];
    const step = Math.ceil(seen.length / 4000);
    const sorted = seen.filter((_, i) => i % step === 0).sort((a, b) => a - b);
    const part = (q) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(q * (sorted.length - 1))))];
    const {minimize} = run().head;
    if (shown.belief && !minimize && part(0.05) - lo > 1.5 * (hi - part(0.05))) lo = part(0.05);
    if (shown.belief && minimize && hi - part(0.95) > 1.5 * (part(0.95) - lo)) hi = part(0.95);
    const pad = 0.06 * (hi - lo) || Math.abs(hi) * 0.1 || 1;
    return minimize ? [lo - pad, hi + 1.6 * pad] : [lo - 1.6 * pad, hi + pad];  // room for what failed, on the bad side
  }

  function build() {
    const quiet = {paths: () => null, points: {show: false}};
    const zoom = zoomHooks(chart);
    return {
      legend: {show: false},
      cursor: {points: {show: false}, drag: {x: true, y: false}, y: false},
      scales: {x: {time: false, range: xRange}, y: {range, distr: shown.log ? 3 : 1}},
      axes: [xAxis({label: "evaluation", size: 30}), yAxis()],
      series: [
        {}, quiet,
        {stroke: color("belief"), width: 2, spanGaps: true, points: {show: false}},
        {stroke: "transparent", spanGaps: true, points: {show: false}, width: 0},
        {stroke: "transparent", spanGaps: true, points: {show: false}, width: 0},
      ],
      bands: [{series: [4, 3], fill: color("band")}],
      hooks: {...zoom, drawAxes: [draw], setCursor: [point]}  // marks first, the lines above them,
    };
  }

  /** Where what failed is marked: at its own place, or on the bad side. */
  const failedAt = (i, top, height) => value[i] !== null ? null : run().head.minimize ? top + 7 : top + height - 7;

  /** All marks between the edges: queries below, then iterates, then failures. */
  function draw(u) {
    const {ctx, bbox} = u, ratio = devicePixelRatio || 1;
    const first = Math.max(0, Math.floor(u.scales.x.min) - 1), last = Math.min(x.length, Math.ceil(u.scales.x.max));
    const looks = {query: [], iterate: [], failure: []};
    const dense = last - first > 3 * bbox.width / ratio;
    const cells = dense ? {query: new Set(), iterate: new Set(), failure: new Set()} : null;
    const cell = 2 * ratio;
    const columns = Math.ceil(bbox.width / cell) + 1;
    for (let i = first; i < last; i++) {
      const look = run().look(i);
      if (value[i] === null && look !== "failure") continue;
      const px = u.valToPos(x[i], "x", true);
      let py = failedAt(i, bbox.top / ratio, bbox.height / ratio), edge = 0;
      py = py === null ? u.valToPos(value[i], "y", true) : py * ratio;
      if (py > bbox.top + bbox.height) { py = bbox.top + bbox.height - 4 * ratio; edge = 1; }
      if (py < bbox.top) { py = bbox.top + 4 * ratio; edge = -1; }
      if (cells) {  // one mark per cell of two by two pixels is all that can be seen
        const at = Math.floor((py - bbox.top) / cell) * columns + Math.floor((px - bbox.left) / cell);
        if (cells[look].has(at)) continue;
        cells[look].add(at);
      }
      looks[look].push(px, py, edge);
    }
    drawn = (looks.query.length + looks.iterate.length + looks.failure.length) / 3;
    const size = (dense ? 2.2 : last - first > 400 ? 2.8 : 4) * ratio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - 6 * ratio, bbox.top, bbox.width + 12 * ratio, bbox.height);
    ctx.clip();
    ctx.strokeStyle = color("query");
    ctx.lineWidth = (dense ? 0.8 : 1.3) * ratio;
    trace(ctx, "stroke", looks.query, (p, q) => { ctx.moveTo(p, q - size); ctx.lineTo(p + size, q); ctx.lineTo(p, q + size); ctx.lineTo(p - size, q); ctx.closePath(); }, size);
    ctx.fillStyle = color("iterate");
    trace(ctx, "fill", looks.iterate, (p, q) => { ctx.moveTo(p + size, q); ctx.arc(p, q, size, 0, 2 * Math.PI); }, size);
    ctx.strokeStyle = color("failure");
    ctx.lineWidth = 2 * ratio;
    trace(ctx, "stroke", looks.failure, (p, q) => { ctx.moveTo(p - size, q - size); ctx.lineTo(p + size, q + size); ctx.moveTo(p + size, q - size); ctx.lineTo(p - size, q + size); }, size);
    ctx.restore();
    host.dataset.drawn = String(drawn);
    host.dataset.shows = shown.name;
    const beyond = looks.query.concat(looks.iterate).filter((edge, i) => i % 3 === 2 && edge !== 0).length;
    host.dataset.beyond = String(beyond);
  }

  /** Many marks in one path take a browser far longer than the same in several. */
  function trace(ctx, how, points, shape, size) {
    ctx.beginPath();
    for (let i = 0; i < points.length; i += 3) {
      if (i % (3 * MARKS) === 0 && i) { ctx[how](); ctx.beginPath(); }
      const p = points[i], q = points[i + 1], edge = points[i + 2];
      if (!edge) { shape(p, q); continue; }
      ctx.moveTo(p - size, q - edge * size);  // beyond the edge: a triangle that points there
      ctx.lineTo(p + size, q - edge * size);
      ctx.lineTo(p, q + edge * size);
      ctx.closePath();
    }
    ctx[how]();
  }

  function point(u) {
    const {left, top} = u.cursor;
    if (left === null || left < 0 || !x.length) { showTip(null); return; }
    const at = Math.round(u.posToVal(left, "x"));
    let best = -1, distance = 30 * 30;
    const reach = Math.max(1, Math.ceil(30 * (u.scales.x.max - u.scales.x.min) / Math.max(1, u.over.clientWidth)));
    for (let i = Math.max(0, at - 1 - reach); i < Math.min(x.length, at + reach); i++) {
      if (value[i] === null && !run().failed(i)) continue;
      const py = failedAt(i, 0, u.over.clientHeight) ?? Math.min(u.over.clientHeight, Math.max(0, u.valToPos(value[i], "y")));
      const d = (u.valToPos(x[i], "x") - left) ** 2 + (py - top) ** 2;
      if (d < distance) { distance = d; best = i; }
    }
    if (best < 0) { showTip(null); return; }
    const e = run().evaluations;
    const what = [run().failed(best) ? `failed: ${e.failure[best]}` : `value ${figure(e.value[best], 6)}`,
      shown.belief || value[best] === null ? null : `${shown.name} ${figure(value[best], 6)}`].filter(Boolean).join("\n");
    showTip(`evaluation ${best + 1}, query ${e.id[best]}: ${e.kind[best]}\n${what}\niteration ${e.iteration[best]}`, u, left, top);
  }

  host.addEventListener("mouseleave", () => showTip(null));
  chart.points = () => drawn;
  return chart;
}

// -- lines over the iterations ---------------------------------------------------------------------------------------

/** series: [{name: of the column, color, dash, label}]; range as uPlot has it. */
function linesChart(run, id, series, range) {
  const host = $(id);
  const chart = new Chart(host, build, () => {
    const s = run().iterations;
    return [s.evaluations, ...series.map(({name}) => s[name])].map((column) => thin(column, run().steps));
  });

  function build() {
    return {
      legend: {show: false},
      cursor: {points: {size: 6}, drag: {x: true, y: false}, y: false},
      scales: {x: {time: false, range: xRange}, y: {range}},
      axes: [xAxis({size: 26}), yAxis()],
      series: [{}, ...series.map((line) => ({
        stroke: color(line.color), width: 2, dash: line.dash, spanGaps: false, points: {show: run().steps < 30, size: 5},
      }))],
      hooks: {...zoomHooks(chart), setCursor: [point]},
    };
  }

  function point(u) {
    const {idx, left, top} = u.cursor;
    if (idx === null || idx === undefined || left < 0) { showTip(null); return; }
    const lines = series.map((line, i) => `${line.label} ${line.show(u.data[i + 1][idx])}`);
    showTip([`after evaluation ${u.data[0][idx]}`, ...lines].join("\n"), u, left, top);
  }

  host.addEventListener("mouseleave", () => showTip(null));
  return chart;
}

/** At most 2,000 of a column's entries, the last one always: more cannot be seen. */
function thin(column, n) {
  const step = Math.ceil(n / 2000);
  return step <= 1 ? column : column.filter((_, i) => (n - 1 - i) % step === 0);
}

// -- trials ----------------------------------------------------------------------------------------------------------

const STYLES = [["iterate", []], ["second", [8, 4]], ["belief", [2, 3]], ["failure", [10, 3, 2, 3]], ["query", [4, 4]]];

function trialsChart(trials) {
  const chart = new Chart($("chart-trials"), build, data);
  let lines = [];

  function data() {
    const tables = [];
    lines = [];
    trials().groups.forEach((group, g) => {
      for (const trial of group.trials) {
        if (!trial.curve.x.length) continue;
        tables.push([trial.curve.x, trial.curve.y]);
        lines.push({g, thin: group.band.x.length > 0, name: trial.name});
      }
      const {x, mean, low, high} = group.band;
      if (!x.length) return;
      tables.push([x, mean, low, high]);
      lines.push({g, mean: true, name: `${group.name || trials().name}: mean`}, {g, edge: true}, {g, edge: true});
    });
    const shape = JSON.stringify(lines);
    if (chart.shape !== shape && chart.plot) {  // a trial more: another number of series
      chart.plot.destroy();
      chart.plot = null;
      chart.zoomed = false;
    }
    chart.shape = shape;
    return tables.length ? uPlot.join(tables) : [[], []];
  }

  function build() {
    const bands = [];
    const series = lines.map((line, i) => {
      const [name, dash] = STYLES[line.g % STYLES.length];
      if (line.mean) bands.push({series: [i + 3, i + 2], fill: tint(color(name), 0.18)});
      if (line.edge) return {stroke: "transparent", width: 0, spanGaps: true, points: {show: false}};
      return {stroke: line.thin ? tint(color(name), 0.4) : color(name), width: line.thin ? 1 : 2.5,
        dash: line.thin ? undefined : dash, spanGaps: true, points: {show: false}};
    });
    return {
      legend: {show: false},
      cursor: {points: {show: false}, drag: {x: true, y: false}, y: false},
      scales: {x: {time: false}},
      axes: [xAxis({label: trials().x, size: 30}), yAxis()],
      series: [{}, ...(series.length ? series : [{}])],
      bands,
      hooks: zoomHooks(chart),
    };
  }

  return chart;
}

/** Runs above each other: lines() gives [{name, x, y}]. */
function overlayChart(lines, label) {
  const chart = new Chart($("chart-overlay"), build, data);
  let now = [];

  function data() {
    now = lines();
    const shape = JSON.stringify(now.map(({name}) => name)) + label();
    if (chart.shape !== shape && chart.plot) {
      chart.plot.destroy();
      chart.plot = null;
      chart.zoomed = false;
    }
    chart.shape = shape;
    return now.length ? uPlot.join(now.map(({x, y}) => [x, y])) : [[], []];
  }

  function build() {
    const series = now.map((_, k) => {
      const [name, dash] = STYLES[k % STYLES.length];
      const paths = label() === "best" ? uPlot.paths.stepped({align: 1}) : undefined;  // it stays until there is a better one
      return {stroke: color(name), width: 2, dash, paths, spanGaps: true, points: {show: false}};
    });
    return {
      legend: {show: false},
      cursor: {points: {show: false}, drag: {x: true, y: false}, y: false},
      scales: {x: {time: false}},
      axes: [xAxis({label: "evaluation", size: 30}), yAxis()],
      series: [{}, ...(series.length ? series : [{}])],
      hooks: zoomHooks(chart),
    };
  }

  return chart;
}

function styleMark(k) {
  const picture = svg("svg", {viewBox: "0 0 22 14", "aria-hidden": "true"});
  const [name, dash] = STYLES[k % STYLES.length];
  picture.append(svg("path", {d: "M0 7H22", fill: "none", stroke: color(name), "stroke-width": 2.5, "stroke-dasharray": dash.join(" ")}));
  return picture;
}

function tint(hex, alpha) {
  const n = parseInt(hex.slice(1), 16);
  return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${alpha})`;
}
