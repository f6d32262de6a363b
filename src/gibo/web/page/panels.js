"use strict";
// Everything but charts and the table of evaluations: what is said in words and figures.

const STATES = {running: "Running", waiting: "Waiting for values", paused: "Paused", ended: "Ended", gone: "Process gone"};

function showHead(head) {
  say($("name"), head.name);
  const state = $("state");
  say(state, STATES[head.state] ?? head.state);
  state.className = `state ${head.state in STATES ? head.state : ""}`;
  const goal = `${head.minimize ? "minimising" : "maximising"} over ${head.parameters.length} parameters`;
  say($("what"), [`${head.optimizer}, ${goal}`, head.state === "ended" ? head.reason : null].filter(Boolean).join(" · "));
}

function showAdvice(list) {
  const texts = JSON.stringify(list);
  if ($("advice").dataset.texts === texts) return;
  $("advice").dataset.texts = texts;
  replace($("advice"), ...list.map(({code, text}) => el("p", {class: "banner", "data-code": code}, text)));
}

function tile(label, value, more, extra) {
  return el("div", {class: "tile"}, el("div", {class: "label"}, label), el("div", {class: "figure"}, value),
    extra ?? null, el("div", {class: "more"}, more ?? ""));
}

/** What became of it, and what a person can do now. */
function showSummary(head) {
  const unknown = head.count ? "Too few values for a verdict." : "No value yet.";
  say($("verdict"), head.verdict ? head.verdict.text : unknown);
  $("verdict").dataset.code = head.verdict ? head.verdict.code : "";
  say($("next"), `Next: ${head.next}`);
}

function showTiles(run) {
  const {head} = run;
  const {belief, start, best_seen: seen, rate, budget} = head;
  const tiles = [];
  if (belief && belief.value !== null) {
    const sd = belief.sd ?? (belief.low === null ? null : (belief.high - belief.low) / 4);
    const [low, high] = [belief.low, belief.high].map((end) => withSd(end, sd));
    const same = run.count > 1 && head.parameters.every((parameter, i) => parameter.start === belief.x[i]);
    const where = same ? "at the start, which is still the recommended point" : "at the recommended point";
    const range = belief.low === null ? "" : `${low} to ${high} with 90\u00a0%, `;
    tiles.push(tile("Value now", withSd(belief.value, sd), `${range}${where}`));
  }
  if (start) {
    const sd = (start.high - start.low) / 4;
    tiles.push(tile("Value at the start", withSd(start.value, sd), `${withSd(start.low, sd)} to ${withSd(start.high, sd)} with 90\u00a0%`));
  }
  tiles.push(tile("Best value measured", seen ? figure(seen.value) : "–", seen ? `query ${seen.id}, noise included` : "no value yet"));
  const bar = budget ? el("progress", {max: budget, value: Math.min(budget, run.count), "aria-label": "share of the budget"}) : null;
  const failed = head.failures ? `${head.failures} failed (${percent(head.failures / Math.max(1, run.count))})` : "none failed";
  tiles.push(tile("Evaluations", budget ? `${run.count} / ${budget}` : `${run.count}`, failed, bar));
  if (head.state === "running" || rate.per_minute !== null) {
    const left = rate.seconds_left === null ? "time left unknown" : `about ${duration(rate.seconds_left)} left`;
    tiles.push(tile("Evaluations per minute", figure(rate.per_minute, 3), left));
  } else {
    const {told} = run.evaluations;
    tiles.push(tile("Duration", run.count ? duration(told[run.count - 1] - (head.starts[0]?.started ?? told[0])) : "–",
      run.count ? `last value ${clock(told[run.count - 1])}` : ""));
  }
  replace($("tiles"), ...tiles);
}

// -- the recommended point -------------------------------------------------------------------------------------------

const PLAIN = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
const YAML_WORDS = /^(y|n|yes|no|on|off|true|false|null|nan|inf|infinity)$/i;

/** Numbers with all digits, as a float in every language; whole numbers of a whole parameter. */
function exact(x, whole = false) {
  const text = String(x);
  if (whole) return text;
  if (/^-?\d+$/.test(text)) return `${text}.0`;
  return text.replace(/^(-?\d+)e/, "$1.0e");
}

const FORMS = {
  JSON: (pairs) => `{\n${pairs.map(([name, x, whole]) => `  ${JSON.stringify(name)}: ${exact(x, whole)}`).join(",\n")}\n}`,
  YAML: (pairs) => pairs.map(([name, x, whole]) => `${PLAIN.test(name) && !YAML_WORDS.test(name) ? name : JSON.stringify(name)}: ${exact(x, whole)}`).join("\n") + "\n",
  Python: (pairs) => `{${pairs.map(([name, x, whole]) => `${JSON.stringify(name)}: ${exact(x, whole)}`).join(", ")}}`,
};

function showBest(run) {
  const {head} = run;
  const point = head.belief ?? head.best_seen;
  const pairs = () => {
    const now = run.head.belief ?? run.head.best_seen;
    return run.head.parameters.map((parameter, i) => [parameter.name, now.x[i], parameter.integer]);
  };
  if (!$("copies").childElementCount) {
    replace($("copies"), ...Object.entries(FORMS).map(([name, form]) =>
      el("button", {type: "button", "data-form": name, onclick: (event) => copy(form(pairs()), event.currentTarget)}, `Copy ${name}`)));
  }
  for (const button of $("copies").children) button.disabled = !point;
  if (!point) { replace($("best"), el("tbody", {}, el("tr", {}, el("td", {class: "muted"}, "No value yet")))); return; }
  const heads = ["parameter", "start", "recommended", "range"].map((text, i) => el("th", {scope: "col", class: i === 1 || i === 2 ? "number" : ""}, text));
  replace($("best"), el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...pairs().map(([name, x], i) => {
    const {start} = head.parameters[i];
    return el("tr", {}, el("th", {scope: "row", title: name}, name), el("td", {class: "number muted", title: exact(start, head.parameters[i].integer)}, figure(start, 4)),
      el("td", {class: "number", title: exact(x, head.parameters[i].integer)}, el("b", {}, figure(x, 5))), el("td", {}, rangeBar(head.parameters[i], x)));
  })));
}

/** A parameter's range with the start as a ring and the recommended value as a dot. */
function rangeBar({lower, upper, start, log}, x) {
  if (lower === null || upper === null) return el("span", {class: "muted small"}, lower !== null ? `from ${figure(lower, 3)}` : upper !== null ? `to ${figure(upper, 3)}` : "no limits");
  const own = log ? Math.log : (value) => value;
  const at = (value) => 6 + 88 * (own(value) - own(lower)) / (own(upper) - own(lower));
  return svg("svg", {viewBox: "0 0 100 14", class: "range", role: "img", "aria-label": `from ${figure(lower, 3)} to ${figure(upper, 3)}`},
    svg("title", {}, `from ${figure(lower, 3)} to ${figure(upper, 3)}${log ? ", on a log scale" : ""}`),
    svg("path", {d: "M6 7H94M6 4V10M94 4V10", class: "axis"}),
    svg("circle", {cx: at(start), cy: 7, r: 3.2, class: "ring"}), svg("circle", {cx: at(x), cy: 7, r: 4, class: "mark-iterate"}));
}

/** What is measured besides the value: its limits, and how probable it is that they hold. */
function showLimits({limits}) {
  const range = ({lower, upper}) => lower === null ? `at most ${figure(upper)}` : upper === null ? `at least ${figure(lower)}` : `${figure(lower)} to ${figure(upper)}`;
  const holds = ({probability: p}) => p === undefined || p === null ? "not known yet" : `holds with probability ${percent(p)}`;
  replace($("limits"), ...limits.map((limit) => el("li", {}, el("b", {}, el("bdi", {}, limit.name)), ` ${range(limit)}: ${holds(limit)}`)));
}

/** The recommended point as the start, with which others are compared from then on. */
function showStart(head, act) {
  const same = !head.belief || head.parameters.every((parameter, i) => parameter.start === head.belief.x[i]);
  const can = act !== null && (head.control ?? []).includes("start") && head.optimizer === "GIBO" && head.aborted === null && !same;
  const key = JSON.stringify([can, head.belief && head.belief.x]);
  if ($("set-start").dataset.key === key) return;
  $("set-start").dataset.key = key;
  const at = () => Object.fromEntries(head.parameters.map(({name}, i) => [name, head.belief.x[i]]));
  refill($("set-start"), () => null, can ? twice("Go on from here as the new start", {"data-action": "start"}, () => act({action: "start", at: at()})) : null);
}

// -- gradient and lengthscales ---------------------------------------------------------------------------------------

const FEW = 16;

function showGradient(run) {
  const {head} = run;
  const {gradient, lengthscale, parameters} = head;
  $("model").hidden = !gradient && !run.steps;
  if (!gradient) { replace($("gradient")); return; }
  const rows = parameters.map((parameter, i) => ({parameter, mean: gradient.mean[i], sd: gradient.sd[i], ell: lengthscale ? lengthscale[i] : null}));
  if (rows.length > FEW) rows.sort((a, b) => Math.abs(b.mean) - Math.abs(a.mean));
  const shown = rows.slice(0, FEW), span = Math.max(...shown.map((row) => Math.abs(row.mean) + 2 * row.sd)) || 1;
  const head_ = el("thead", {}, el("tr", {}, ...["parameter", "one scale", "gradient", "", "lengthscale"].map((text, i) =>
    el("th", {scope: "col", class: i === 3 ? "" : "number"}, text))));
  const body = el("tbody", {}, ...shown.map((row) => el("tr", {},
    el("td", {class: "name", title: row.parameter.name}, row.parameter.name),
    el("td", {class: "number"}, oneScale(row.parameter)),
    el("td", {class: "number"}, `${withSd(row.mean, row.sd)} ± ${figure(2 * row.sd, 2)}`),
    el("td", {class: "bar"}, gradientBar(row, span)),
    el("td", {class: "number"}, row.ell === null ? "–" : `${figure(row.ell, 3)} scales`))));
  replace($("gradient"), head_, body);
}

/** How far a parameter moves with one scale: of one on a log scale, by which share of its value. */
function oneScale({scale, log}) { return log ? `+${figure(100 * (scale - 1), 3)}\u00a0%` : figure(scale, 3); }

function gradientBar(row, span) {
  const at = (value) => 100 + 96 * value / span;
  const [a, b] = [at(Math.min(0, row.mean)), at(Math.max(0, row.mean))];
  const [low, high] = [at(row.mean - 2 * row.sd), at(row.mean + 2 * row.sd)];
  const unsure = Math.abs(row.mean) < 2 * row.sd;
  return svg("svg", {viewBox: "0 0 200 18", preserveAspectRatio: "none", "aria-hidden": "true"},
    svg("path", {d: "M100 0V18", class: "axis"}),
    svg("rect", {x: a, y: 4, width: Math.max(0.5, b - a), height: 10, class: `${row.mean < 0 ? "down-bar" : "up-bar"}${unsure ? " faint" : ""}`}),
    svg("path", {d: `M${low} 9H${high}M${low} 5V13M${high} 5V13`, class: "whisker", "vector-effect": "non-scaling-stroke"}));
}

// -- the last episode of a training ----------------------------------------------------------------------------------

let episode = null, drawingEpisode = false;  // what is shown, and whether another one is being made

/** Drawn only when asked for; then a newer one is offered as soon as there is one. */
function showReplay(head, load) {
  episode ??= head.episode ?? null;  // of a report
  $("replay").hidden = head.replay === null || (load === null && episode === null);
  const button = $("replay-show");
  button.hidden = load === null || (episode !== null && episode.id === head.replay);
  button.disabled = drawingEpisode;
  say(button, episode === null ? "Show" : "Show the newest");
  button.onclick = async () => {
    drawingEpisode = true;
    say($("replay-note"), "Drawing in a separate process…");
    showReplay(head, load);
    try {
      episode = await load();
    } catch (error) {
      say($("replay-note"), `Not shown: ${error.message}`);
    }
    drawingEpisode = false;
    showReplay(run.head, load);
  };
  const picture = $("replay-picture");
  if (drawingEpisode || episode === null || picture.dataset.id === String(episode.id)) return;
  picture.dataset.id = episode.id;
  picture.src = episode.picture;
  picture.alt = `Animated: ${episode.text}`;
  picture.hidden = false;
  say($("replay-note"), episode.text);
}

// -- now -------------------------------------------------------------------------------------------------------------

const MOST_PENDING = 12;

function showPending(run, act) {
  const {head} = run;
  const can = (name) => act !== null && (head.control ?? []).includes(name);
  const over = head.state === "ended" || head.state === "gone";
  const key = JSON.stringify([head.state, head.pending.map((query) => [query.id, query.underway, query.worker]), can("tell"), can("mark_failed")]);
  const host = $("pending");
  if (host.dataset.key !== key) {  // what is being typed stays while nothing has changed
    const typed = Object.fromEntries([...host.querySelectorAll("input")].map((input) => [input.dataset.id, input.value]));
    host.dataset.key = key;
    // After a value was told the next one is typed. What has gone by itself hands its focus to no other query.
    const next = (had) => had.form?.dataset.sent ? host.querySelector("input") : null;
    refill(host, next, head.pending.length && !over ? pendingTable(head, can, act) : null);
    for (const input of host.querySelectorAll("input")) input.value = typed[input.dataset.id] ?? "";
  }
  for (const cell of host.querySelectorAll("[data-since]")) say(cell, `for ${duration(run.now() - Number(cell.dataset.since))}`);
  say($("now-note"), nowNote(head, over));
  replace($("deeds"), ...head.actions.slice(-6).reverse().map((each) =>
    el("li", {"data-kind": each.kind}, el("time", {class: "muted"}, clock(each.time)), " ", deed(each))));
  $("remark").hidden = !can("remark");
  $("now").hidden = over && !head.actions.length && !can("remark");
}

function nowNote(head, over) {
  const n = head.pending.length, busy = head.pending.filter((query) => query.underway).length;
  const queries = (count) => `${count} ${count === 1 ? "query" : "queries"}`;
  if (over) return n ? `${queries(n)} without a value when it ended` : head.reason ?? "";
  const left = n > MOST_PENDING ? `; the first ${MOST_PENDING} are shown` : "";
  if (head.state === "waiting") return n ? `${queries(n)} waiting for a value${left}` : "No query is waiting; gibo ask plans the next ones.";
  if (head.state === "paused") return busy ? `Paused: ${queries(busy)} still being evaluated; then nothing begins until
  the run is continued.` : "Paused: nothing is evaluated until the run is continued.";
  if (!n) return "The optimiser is planning.";
  return [busy ? `${queries(busy)} being evaluated` : null, n > busy ? `${n - busy} next` : null].filter(Boolean).join(", ") + left;
}

/** What a person did, in words. */
function deed({kind, body}) {
  const outcome = ({value, failure}) => value === null || value === undefined ? `failed (${failure})` : figure(value);
  const texts = {
    paused: () => "paused", continued: () => "continued", stop: () => "asked to stop",
    failed: () => `query ${body.id} marked as failed: ${body.reason}`, told: () => `query ${body.id} told by hand: ${figure(body.value)}`,
    abort: () => `aborted${body.reason ? `: ${body.reason}` : ""}`, start: () => "another start was set",
    remark: () => body.text, undo: () => `query ${body.id} taken back: ${outcome(body)}`,
    correction: () => `query ${body.id} corrected from ${outcome(body.was ?? {})} to ${outcome(body)}: ${body.reason}`,
  };
  return (texts[kind] ?? (() => kind))();
}

function pendingTable(head, can, act) {
  const workers = head.pending.some((query) => query.worker !== null);
  const names = head.parameters.map((parameter) => parameter.name);
  const byHand = head.state === "waiting" && can("tell"), marks = !byHand && can("mark_failed");
  const head_ = el("thead", {}, el("tr", {}, ...["query", "kind", workers ? "worker" : null, "since", "parameters", byHand ? "your value" : marks ? "" : null]
    .filter((text) => text !== null).map((text) => el("th", {scope: "col", class: text === "parameters" ? "aside" : ""}, text))));
  // Who evaluates by hand has to set them: all of them, and so that what is set is what was asked for.
  const shown = byHand ? names.length : 8, digits = byHand ? 8 : 4;
  const set = (x, i) => el("span", {class: "set"}, el("bdi", {}, names[i]), `\u00a0${figure(x, digits)}`);
  const ordered = [...head.pending].sort((a, b) => b.underway - a.underway || a.id - b.id);
  const rows = ordered.slice(0, MOST_PENDING).map((query) => el("tr", {class: query.underway ? "" : "later"},
    el("td", {}, String(query.id)),
    el("td", {}, el("span", {class: "kind"}, mark(query.kind === "iterate" ? "iterate" : "query"), query.kind)),
    workers ? el("td", {}, String(query.worker ?? "–")) : null,
    el("td", {"data-since": query.since ?? false}, query.underway ? "–" : "next"),
    el("td", {class: "text aside"}, ...query.x.slice(0, shown).map(set), query.x.length > shown ? "…" : null),
    byHand ? el("td", {}, tellForm(query, head.limits, can, act)) : marks ? el("td", {class: "number"}, failButton(query, act)) : null));
  return el("div", {class: "scroll"}, el("table", {class: byHand ? "rows by-hand" : "rows"}, head_, el("tbody", {}, ...rows)));
}

function tellForm(query, limits, can, act) {
  const field = (id, label) => {
    const input = el("input", {type: "text", inputmode: "decimal", "data-id": id, "aria-label": `${label} of query ${query.id}`, autocomplete: "off"});
    input.addEventListener("input", () => input.setCustomValidity(""));
    return input;
  };
  const number = (input) => {
    const value = input.value.trim() ? Number(input.value.trim().replace(",", ".")) : NaN;
    if (Number.isFinite(value)) return value;
    input.setCustomValidity("a number");
    input.reportValidity();
    return null;
  };
  const input = field(query.id, "value");
  const fields = limits.map(({name}) => [name, field(`${query.id} ${name}`, name)]);  // what has a limit is needed, too
  const send = (event) => {
    event.preventDefault();
    const value = number(input);
    if (value === null) return;
    const measured = {};
    for (const [name, each] of fields) {
      measured[name] = number(each);
      if (measured[name] === null) return;
    }
    event.currentTarget.dataset.sent = "1";
    act({action: "tell", id: query.id, value, measured});
  };
  const labelled = fields.map(([name, each]) => el("label", {}, el("bdi", {}, name), each));
  return el("form", {class: "tell", onsubmit: send}, input, ...labelled, el("button", {type: "submit", "aria-label": `Tell the value of query ${query.id}`}, "Tell"),
    can("mark_failed") ? failButton(query, act) : null);
}

function failButton(query, act) {
  const label = `Mark query ${query.id} as failed`;
  return el("button", {type: "button", class: "grave", "data-fails": query.id, title: label, "aria-label": label,
    onclick: () => act({action: "mark_failed", id: query.id})}, "Failed");
}

/** A button that is pressed twice: one slip must not end a run. */
function twice(label, properties, act) {
  return el("button", {type: "button", ...properties, onclick: (event) => {
    const button = event.currentTarget;
    if (button.dataset.sure) { act(); return; }
    button.dataset.sure = "1";
    button.textContent = `${label}: press again`;
    setTimeout(() => { delete button.dataset.sure; button.textContent = label; }, 4000);
  }}, label);
}

function showActions(head, act) {
  const can = new Set(act === null ? [] : head.control ?? []);
  const buttons = [];
  const add = (action, label, grave = false) => {
    const properties = {"data-action": action, class: grave ? "grave" : ""};
    if (!can.has(action)) return;
    buttons.push(grave ? twice(label, properties, () => act({action})) : el("button", {type: "button", ...properties, onclick: () => act({action})}, label));
  };
  const key = JSON.stringify([head.state, head.aborted, [...can]]);
  if ($("actions").dataset.key === key) return;
  $("actions").dataset.key = key;
  if (head.state === "running") add("pause", "Pause");
  if (head.state === "paused") add("continue", "Continue");
  if (head.state === "running" || head.state === "paused") add("stop", "Stop after this iteration", true);
  if (head.state !== "ended" && head.aborted === null) add("abort", "Abort", true);
  refill($("actions"), () => $("actions").querySelector("[data-action=pause], [data-action=continue]"), ...buttons);
}

// -- settings --------------------------------------------------------------------------------------------------------

function showFacts(head) {
  const key = JSON.stringify([head.settings, head.versions, head.starts]);
  if ($("facts").dataset.key === key) return;
  $("facts").dataset.key = key;
  const list = (title, pairs) => el("section", {}, el("h3", {}, title), el("table", {}, el("tbody", {}, ...pairs.map(([name, value]) =>
    el("tr", {}, el("th", {scope: "row"}, name), el("td", {}, value))))));
  const bound = (x, none) => x === null ? none : figure(x);
  replace($("facts"),
    list("Settings", flat(head.settings)),
    list("Parameters", head.parameters.slice(0, 200).map((p) =>
      [p.name, `start ${figure(p.start)}, scale ${p.log ? "a factor of " : ""}${figure(p.scale)}, from ${bound(p.lower, "−∞")} to ${bound(p.upper, "∞")}`])),
    list("Versions", Object.entries(head.versions)),
    list("Starts", head.starts.slice(-20).map((start, i) => [`${i + 1}`, `${clock(start.started)}, process ${start.process} on ${start.host}` +
      (start.ended ? `\n${clock(start.ended)}: ${start.reason}` : "")])));
}

function flat(data, prefix = "") {
  return Object.entries(data).flatMap(([name, value]) => {
    if (name === "type") return [];
    const inner = value !== null && typeof value === "object" && !Array.isArray(value);
    if (inner && !("type" in value && value.type !== "Settings")) return flat(value, `${prefix}${name} `);
    if (inner) return [[prefix + name, `${value.type}(${flat(value).map(([n, v]) => `${n}=${v}`).join(", ")})`]];
    return [[prefix + name, typeof value === "string" ? value : JSON.stringify(value)]];
  });
}
