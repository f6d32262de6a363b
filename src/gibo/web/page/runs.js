"use strict";
// A folder of runs: each of them in a line, those that were ticked above each other, and means of those that belong together.

const chosen = new Set();  // names of runs that are shown together
const loaded = new Map();  // whole runs by their names, for their parameters

function allRuns(data) { return data.groups.flatMap((group) => group.trials); }

function showTrials(data) {
  say($("name"), data.name);
  const all = allRuns(data), running = all.filter((trial) => trial.state === "running").length;
  const state = $("state");
  say(state, running ? `${running} of ${all.length} running` : all.length ? "None running" : "No run yet");
  state.className = `state ${running ? "running" : "ended"}`;
  say($("what"), all.length === 1 ? "1 run" : `${all.length} runs`);
  const bands = data.groups.filter((group) => group.band.x.length);
  replace($("trial-tiles"), ...bands.slice(0, 6).map((group) => {
    const {mean, low, x} = group.band, last = x.length - 1;
    return tile(group.name || data.name, `${withSd(mean[last], mean[last] - low[last])} ± ${figure(mean[last] - low[last], 2)}`,
      `mean ${data.y} ± sd of ${group.trials.length} runs after ${x[last]} ${data.x}`);
  }));
  $("trial-tiles").hidden = $("learning").hidden = !bands.length;
  legend($("legend-trials"), data.groups.map((group, g) => [styleMark(g), `${group.name || data.name}${group.of_iterates ? "" : " (means of batches)"}`]));
  say($("note-trials"), `Thin: ${data.y} of each run's iterates. Thick: their mean, with a band of one standard deviation.`);
  showRuns(data, all);
}

function showRuns(data, all) {
  if (!chosen.size) for (const trial of all.slice(0, 3)) chosen.add(trial.name);
  const columns = ["", "run", "state", "best", "progress", "course", "failed", "optimiser"];
  const number = new Set(["best", "failed"]);
  refill($("trial-table"), () => null, el("thead", {}, el("tr", {}, ...columns.map((text) => el("th", {scope: "col", class: number.has(text) ? "number" : ""}, text)))),
    el("tbody", {}, ...all.map((trial) => el("tr", {},
      el("td", {}, el("input", {type: "checkbox", checked: chosen.has(trial.name), "aria-label": `show ${trial.name} with the others`,
        onchange: (event) => { chosen[event.currentTarget.checked ? "add" : "delete"](trial.name); draw(); }})),
      el("td", {}, live ? el("a", {href: `?trial=${encodeURIComponent(trial.name)}${location.hash}`}, trial.name) : trial.name),
      el("td", {title: trial.reason ?? ""}, STATES[trial.state] ?? trial.state),
      el("td", {class: "number"}, figure(trial.best_seen), el("span", {class: "muted"}, trial.minimize ? " ↓" : " ↑")),
      el("td", {class: "progress"}, trial.budget ? el("progress", {max: trial.budget, value: Math.min(trial.budget, trial.count), "aria-label": "share of the budget"}) : null,
        el("span", {}, trial.budget ? `${trial.count} / ${trial.budget}` : String(trial.count))),
      el("td", {}, spark(trial.curve)),
      el("td", {class: "number"}, String(trial.failures)), el("td", {}, trial.optimizer)))));
}

/** The course of a run in a line. */
function spark({x, y}) {
  if (x.length < 2) return el("span", {class: "muted"}, "–");
  const lo = Math.min(...y), hi = Math.max(...y), first = x[0], last = x.at(-1);
  const d = x.map((at, k) => `${(2 + 96 * (at - first) / (last - first || 1)).toFixed(1)} ${(18 - 16 * (hi === lo ? 0.5 : (y[k] - lo) / (hi - lo))).toFixed(1)}`).join("L");
  return svg("svg", {viewBox: "0 0 100 20", class: "spark", "aria-hidden": "true"}, svg("path", {d: `M${d}`, class: "mark-first"}));
}

// -- together --------------------------------------------------------------------------------------------------------

/** What can be shown of the ticked runs: courses, and parameters that all of them have. */
function overlayChoices(data) {
  const runs = [...chosen].map((name) => loaded.get(name)).filter(Boolean);
  const names = runs.length === chosen.size ? runs.map((each) => each.head.parameters.map(({name}) => name)) : [];
  const shared = names.length ? names[0].filter((name) => names.every((list) => list.includes(name))) : [];
  choices($("overlay-of"), [["best", "best so far"], ["values", data.y], ...shared.slice(0, 60).map((name) => [`p ${name}`, `parameter ${name}`])], "best");
}

function overlayLines(data) {
  const what = $("overlay-of").value;
  return allRuns(data).filter(({name}) => chosen.has(name)).map((trial) => {
    if (!what.startsWith("p ")) return {name: trial.name, ...(what === "best" ? trial.best : trial.curve)};
    const run = loaded.get(trial.name), j = run ? run.head.parameters.findIndex(({name}) => `p ${name}` === what) : -1;
    const rows = j < 0 ? [] : Array.from({length: run.count}, (_, i) => i).filter((i) => run.evaluations.kind[i] === "iterate");
    return {name: trial.name, x: rows.map((i) => i + 1), y: rows.map((i) => run.point(i)[j])};
  }).filter(({x}) => x.length);
}

/** Whole runs are read when they are ticked, for their parameters; a report has none. */
async function loadChosen() {
  for (const name of chosen) {
    if (!live || loaded.has(name) || loaded.size > 30) continue;
    loaded.set(name, null);
    try {
      const answer = await fetch(`api/snapshot?trial=${encodeURIComponent(name)}`);
      if (answer.ok) loaded.set(name, new Run(await answer.json()));
    } catch { /* it is shown without its parameters */ }
    draw();
  }
}
