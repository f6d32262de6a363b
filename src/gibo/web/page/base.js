"use strict";
// What all parts of the page use. Whatever a run says goes into the page as text, never as markup.

const $ = (id) => document.getElementById(id);

/** An element: el("td", {class: "number"}, "3"). Strings become text; properties that begin with "on" are listeners. */
function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** The same for a picture: svg("rect", {x: 0, …}). */
function svg(tag, properties = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

function replace(host, ...children) { host.replaceChildren(...children.filter((child) => child !== null && child !== undefined)); }

/** Fill a host anew. The focus stays on what has the same name, or goes where next(what had it) says, or to the host. */
function refill(host, next, ...children) {
  const name = (control) => control.dataset.action ?? control.getAttribute("aria-label");
  const had = host.contains(document.activeElement) ? document.activeElement : null;
  replace(host, ...children);
  if (had === null) return;
  const same = [...host.querySelectorAll("button, input")].find((control) => name(control) === name(had));
  (same ?? next(had) ?? host).focus({preventScroll: true});
}

/** Change a text only where it differs, so that screen readers and selections are left in peace. */
function say(host, text) { if (host.textContent !== text) host.textContent = text; }

const MINUS = "\u2212";

/** A number for a person: four significant digits, no more zeros than needed. */
function figure(x, digits = 4) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  const text = size >= 1e6 || size < 1e-4 ? x.toExponential(Math.max(0, digits - 2)) : String(Number(x.toPrecision(digits)));
  return text.replace("-", MINUS).replace("e-", "e" + MINUS).replace("e+", "e");
}

/** A value with as many digits as its uncertainty deserves. */
function withSd(x, sd) {
  if (x === null || x === undefined) return "–";
  if (sd === null || sd === undefined || !(sd > 0)) return figure(x);
  const places = Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(2 * sd))));
  if (Math.abs(x) >= 1e6 || (x !== 0 && places >= 8)) return figure(x);
  return x.toFixed(places).replace(/^-(?=[0.]*$)/, "").replace("-", MINUS);  // no minus before a zero
}

function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 10) return `${figure(Math.max(0, seconds), 2)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  const hours = seconds / 3600;
  return hours < 36 ? `${hours.toFixed(1)} h` : `${(hours / 24).toFixed(1)} days`;
}

/** Date and time here, as ISO 8601 writes them. */
function clock(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const at = new Date(seconds * 1000);
  return new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 19).replace("T", " ");
}

function percent(p) {
  if (p === null || p === undefined) return "–";
  return p > 0.9949 && p < 1 ? ">\u00a099\u00a0%" : `${Math.round(100 * p)}\u00a0%`;
}

function color(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }

/** The marks of the values' chart, for legends and tables. */
function mark(kind) {
  const picture = svg("svg", {viewBox: "0 0 14 14", "aria-hidden": "true"});
  if (kind === "iterate") picture.append(svg("circle", {cx: 7, cy: 7, r: 4.5, class: "mark-iterate"}));
  else if (kind === "failure") picture.append(svg("path", {d: "M3 3L11 11M11 3L3 11", class: "mark-failure"}));
  else picture.append(svg("path", {d: "M7 2.5L11.5 7L7 11.5L2.5 7Z", class: "mark-query"}));
  return picture;
}

function lineMark(kind, band = false) {
  const picture = svg("svg", {viewBox: "0 0 22 14", "aria-hidden": "true"});
  if (band) picture.append(svg("rect", {x: 0, y: 2, width: 22, height: 10, class: "mark-band"}));
  picture.append(svg("path", {d: "M0 7H22", class: `mark-${kind}`}));
  return picture;
}

const MOST_ENTRIES = 6;

function legend(host, entries) {
  const more = entries.length > MOST_ENTRIES ? el("span", {}, `and ${entries.length - MOST_ENTRIES + 1} more`) : null;
  replace(host, ...entries.slice(0, more ? MOST_ENTRIES - 1 : MOST_ENTRIES).map(([picture, text]) => el("span", {}, picture, text)), more);
}

/** Fill a select with [value, text] pairs, and keep what is chosen. */
function choices(host, pairs, wanted) {
  const key = JSON.stringify(pairs);
  if (host.dataset.key === key) return;
  const before = host.value || wanted;
  host.dataset.key = key;
  replace(host, ...pairs.map(([value, text]) => el("option", {value, selected: value === before}, text)));
}

async function copy(text, button) {
  const label = button.dataset.label ?? (button.dataset.label = button.textContent);
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // a file that was opened without a server has no clipboard
    const area = el("textarea", {class: "hide", "aria-hidden": "true"});
    area.value = text;
    document.body.append(area);
    area.select();
    done = document.execCommand("copy");
    area.remove();
    button.focus();
  }
  button.textContent = done ? "Copied" : "Could not copy";
  setTimeout(() => { button.textContent = label; }, 1500);
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], {type: "text/csv"}));
  const link = el("a", {href: address, download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// -- the run's data --------------------------------------------------------------------------------------------------

/** A run as the page has it: the last snapshot's head, and the columns of all snapshots so far. */
class Run {
  constructor(snapshot) {
    Object.assign(this, {evaluations: {}, iterations: {}, beliefs: {}, count: 0, steps: 0, believed: 0, views: {}});
    this.extras = new Set();  // names of what was measured besides the value
    this.take(snapshot);
  }

  /** Add what is new; false if something is missing in between, and all has to be read again. */
  take(snapshot) {
    if (this.head && this.head.run !== snapshot.run) return false;
    const {evaluations, iterations, beliefs, views, ...head} = snapshot;
    if (evaluations.first > this.count || iterations.first > this.steps || beliefs.first > this.believed) return false;
    for (const info of evaluations.info) for (const name of Object.keys(info ?? {})) this.extras.add(name);
    append(this.evaluations, evaluations, this.count);
    append(this.iterations, iterations, this.steps);
    append(this.beliefs, beliefs, this.believed);
    this.count = this.evaluations.id.length;
    this.steps = this.iterations.number.length;
    this.believed = this.beliefs.value.length;
    if (views) this.views = views;
    this.head = head;
    this.received = Date.now() / 1000;
    return true;
  }

  /** Seconds since 1970 by the run's clock. */
  now() { return this.head.now + (this.live ? Date.now() / 1000 - this.received : 0); }

  /** Where an evaluation was made, in the user's units; it comes as a text, because few are ever looked at. */
  point(i) { return JSON.parse(this.evaluations.x[i]); }

  /** What was measured besides the value, by its name. */
  extra(i, name) { return this.evaluations.info[i]?.[name] ?? null; }

  failed(i) { return this.evaluations.failure[i] !== null; }

  /** What is drawn of an evaluation: "iterate", "query" (whatever the optimiser calls it) or "failure". */
  look(i) { return this.failed(i) ? "failure" : this.evaluations.kind[i] === "iterate" ? "iterate" : "query"; }
}

function append(columns, fresh, known) {
  const skip = known - fresh.first;
  for (const [name, values] of Object.entries(fresh)) {
    if (name === "first") continue;
    const column = columns[name] ?? (columns[name] = []);
    for (let i = skip; i < values.length; i++) column.push(values[i]);
  }
}
