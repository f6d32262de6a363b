"use strict";
// Puts it together: get a snapshot, draw it, take what is new, and act if the address has a token.

let live = false;  // with a server behind it
let run = null, trials = null;
let parts = [], table = null, trialChart = null, pathChart = null, overlay = null;
const VIEWS_REST = 2000;  // milliseconds between two drawings of what the model says
let drawnNews = null, viewsNews = null, viewsDrawn = 0, drawing = false, rested = 0;

// -- theme -----------------------------------------------------------------------------------------------------------

const system = matchMedia("(prefers-color-scheme: dark)");
let theme = "auto";
try { theme = localStorage.getItem("gibo theme") ?? "auto"; } catch { /* no storage: as the system has it */ }

function applyTheme() {
  document.documentElement.dataset.theme = theme === "auto" ? (system.matches ? "dark" : "light") : theme;
  $("theme").textContent = `Theme: ${theme}`;
  for (const chart of charts) chart.restyle();
  if (run) { viewsNews = null; draw(); }
}

$("theme").addEventListener("click", () => {
  theme = {auto: "light", light: "dark", dark: "auto"}[theme] ?? "auto";
  try { localStorage.setItem("gibo theme", theme); } catch { /* for this time only */ }
  applyTheme();
});
system.addEventListener("change", applyTheme);

// -- actions ---------------------------------------------------------------------------------------------------------

const token = new URLSearchParams(location.hash.slice(1)).get("token");

/** The answer comes once the journal has it; what is new is on its way then. */
async function send(request) {
  try {
    const answer = await fetch(`api/control?${suffix}`, {method: "POST", headers: {"Content-Type": "application/json", "X-Gibo-Token": token}, body: JSON.stringify(request)});
    const content = await answer.json();
    trouble(answer.ok ? null : `Not done: ${content.error}`);
    return answer.ok;
  } catch {
    trouble("Not done: the server does not answer.");
    return false;
  }
}

function act() { return live && token ? send : null; }

$("remark").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = $("remark-text").value.trim();
  if (text && await send({action: "remark", text})) $("remark-text").value = "";
});

$("more").addEventListener("click", () => { allShown = !allShown; showViews(run); });
for (const id of ["two-x", "two-y"]) $(id).addEventListener("change", () => showContour(run));
$("path-of").addEventListener("change", () => pathChart.change());
$("overlay-of").addEventListener("change", () => overlay.update());
$("model").addEventListener("toggle", () => draw());
addEventListener("resize", () => { if (run) showParallel(run); });

function trouble(text, grave = true) {
  $("trouble").hidden = text === null;
  $("trouble").classList.toggle("trouble", grave);
  say($("trouble"), text ?? "");
}

// -- drawing ---------------------------------------------------------------------------------------------------------

/** What takes long to draw is drawn less often, and still within a second. */
function draw() {
  if (drawing) return;
  drawing = true;
  setTimeout(() => requestAnimationFrame((began) => {
    drawing = false;
    if (run) drawRun();
    else if (trials) drawTrials();
    const now = performance.now();
    rested = now + Math.min(600, 8 * (now - began));
  }), Math.max(0, rested - performance.now()));
}

function drawRun() {
  const {head} = run;
  $("run").hidden = false;
  showHead(head);
  $("run").classList.toggle("by-hand", head.state === "waiting" && live);
  showSummary(head);
  showAdvice(head.advice);
  showTiles(run);
  showReplay(head, live ? () => load("replay") : null);
  showBest(run);
  showLimits(head);
  showStart(head, act());
  showPending(run, act());
  showActions(head, act());
  showGradient(run);
  showFacts(head);
  const marks = [[mark("iterate"), "iterate"], [mark("query"), "query"], [mark("failure"), "failed"]];
  legend($("legend-values"), run.believed ? [...marks, [lineMark("belief", true), "value of the recommended point, ± 2 sd"]] : marks);
  choices($("path-of"), [...head.parameters.map(({name}, j) => [`p ${j}`, name]), ...[...run.extras].map((name) => [`i ${name}`, `measured: ${name}`])], "p 0");
  const news = JSON.stringify([run.count, run.steps, run.believed, head.viewed]);
  if (news !== drawnNews) {  // a look at a silent run draws nothing again
    for (const part of parts) part.update();
  }
  drawnNews = news;
  const now = performance.now();  // these take longest, and change little
  if (viewsNews !== news && (viewsNews === null || now - viewsDrawn > VIEWS_REST)) {
    showViews(run);
    showParallel(run);
    [viewsNews, viewsDrawn] = [news, now];
  }
  table.update();
  const beyond = Number($("chart-values").dataset.beyond ?? 0);
  say($("note-values"), "Drag to zoom in, double-click to zoom out." + (beyond ? ` ${beyond} far ${head.minimize ? "larger" : "smaller"} values are marked at the edge.` : ""));
  $("chart-values").setAttribute("aria-label", `Chart: ${run.count} evaluations, ${head.failures} failed`);
  const last = run.steps - 1;
  say($("now-noise"), last < 0 ? "" : `sd ${figure(run.iterations.noise_sd[last], 3)}`);
  say($("now-step"), last < 0 ? "" : `${figure(run.iterations.step[last], 3)} scales`);
  document.title = `${run.count}${head.budget ? ` / ${head.budget}` : ""} · ${head.name}`;
}

function drawTrials() {
  $("trials").hidden = false;
  showTrials(trials);
  overlayChoices(trials);
  const together = overlayLines(trials);
  legend($("legend-overlay"), together.map(({name}, k) => [styleMark(k), name]));
  overlay.update();
  trialChart.update();
  loadChosen();
  document.title = `${trials.name}: runs`;
}

/** What is chosen to be shown over the evaluations: a parameter, or something that was measured besides the value. */
function pathOf(run) {
  const chosen = $("path-of").value || "p 0", name = chosen.slice(2);
  if (chosen.startsWith("i ")) return {name, y: (i) => run.extra(i, name)};
  const parameter = run.head.parameters[Number(name)];
  return {name: parameter.name, log: parameter.log, y: (i) => run.point(i)[Number(name)]};
}

function show(snapshot) {
  if (snapshot.kind === "trials") {
    trials = snapshot;
    trialChart ??= trialsChart(() => trials);
    overlay ??= overlayChart(() => overlayLines(trials), () => $("overlay-of").value);
  } else {
    run = new Run(snapshot);
    run.live = live;
    if (!parts.length) {
      const now = () => run, above = (_, lo, hi) => [0, hi > 0 ? 1.1 * hi : 1];
      pathChart = marksChart(now, "chart-path", () => pathOf(run));
      parts = [
        marksChart(now, "chart-values", () => ({name: "value", belief: true, y: (i) => run.failed(i) ? null : run.evaluations.value[i]})),
        pathChart,
        linesChart(now, "chart-sure", [
          {name: "probability_of_ascent", label: "probability of ascent", color: "iterate", show: percent},
          {name: "certainty", label: "certainty", color: "second", dash: [6, 4], show: percent}], [0, 1.02]),
        linesChart(now, "chart-noise", [{name: "noise_sd", label: "noise sd", color: "iterate", show: figure}], above),
        linesChart(now, "chart-step", [{name: "step", label: "step in scales", color: "iterate", show: figure}], above),
      ];
      table = new Table(now);
      const up = snapshot.minimize ? "descent" : "ascent";
      legend($("legend-sure"), [[lineMark("first"), `probability of ${up}`], [lineMark("second"), "certainty: probability that the gradient is not zero"]]);
    } else {
      location.reload();  // another run in the same folder
      return;
    }
  }
  draw();
}

// -- the server ------------------------------------------------------------------------------------------------------

const asked = new URLSearchParams(location.search).get("trial");
const suffix = asked === null ? "" : `trial=${encodeURIComponent(asked)}`;

async function load(what = "snapshot") {
  const answer = await fetch(`api/${what}?${suffix}`).catch(() => { throw new Error("the server does not answer."); });
  const content = await answer.json();
  if (!answer.ok) throw new Error(content.error);
  return content;
}

/** A page beside a run is served as long as the run goes on. */
function isOver() {
  const states = run ? [run.head.state] : trials.groups.flatMap((group) => group.trials.map((trial) => trial.state));
  return states.length > 0 && states.every((state) => state === "ended");
}

function follow() {
  const known = run ? `evaluations=${run.count}&iterations=${run.steps}&beliefs=${run.believed}&viewed=${run.head.viewed}&` : "";
  const events = new EventSource(`api/events?${known}${suffix}`);
  events.onmessage = (event) => {
    const snapshot = JSON.parse(event.data);
    if (snapshot.kind === "trials") trials = snapshot;
    else if (!run.take(snapshot)) { events.close(); location.reload(); return; }
    draw();
  };
  events.onopen = () => trouble(null);
  events.onerror = () => {
    if (isOver()) trouble("The run and the program that served this page have ended. The page shows the final state; gibo watch shows it again.", false);
    else trouble("The connection to gibo is lost; this page may be outdated. Trying again…");
    if (events.readyState === EventSource.CLOSED) setTimeout(follow, 2000);
  };
  addEventListener("pagehide", () => events.close());
}

async function begin() {
  applyTheme();
  const data = JSON.parse($("data").textContent);
  if (data !== null) { show(data); return; }
  live = true;
  $("up").hidden = asked === null;
  $("up").href = `./${location.hash}`;  // with the token
  try {
    show(await load());
    follow();
  } catch (error) {
    trouble(`Nothing to show: ${error.message}`);
    say($("state"), "nothing");
    setTimeout(() => location.reload(), 5000);
    return;
  }
  setInterval(() => { if (run && run.head.pending.length) showPending(run, act()); }, 1000);
}

begin();
