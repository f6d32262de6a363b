"use strict";
// The table of evaluations: search, sort, pages, and all of it as CSV.

const PAGE = 50;

class Table {
  constructor(run) {
    Object.assign(this, {run, sort: "#", down: true, page: 0, wide: false, words: [], known: -1});
    let wait = 0;
    $("search").addEventListener("input", () => {
      clearTimeout(wait);
      wait = setTimeout(() => { this.words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean); this.page = 0; this.update(true); }, 120);
    });
    $("previous").addEventListener("click", () => this.turn(-1));
    $("next").addEventListener("click", () => this.turn(1));
    $("csv").addEventListener("click", () => download(`${run().head.name}.csv`, this.csv()));
    $("columns").addEventListener("click", () => {
      this.wide = !this.wide;
      $("columns").setAttribute("aria-pressed", String(this.wide));
      this.update(true);
    });
  }

  turn(pages) { this.page += pages; this.update(true); }

  columns() {
    const {evaluations: e, head} = this.run();
    const base = [
      {name: "#", number: true, key: (i) => i, show: (i) => String(i + 1)},
      {name: "query", number: true, key: (i) => e.id[i], show: (i) => String(e.id[i])},
      {name: "iteration", number: true, key: (i) => e.iteration[i], show: (i) => String(e.iteration[i])},
      {name: "kind", key: (i) => e.kind[i], show: (i) => el("span", {class: "kind"}, mark(this.run().look(i)), e.kind[i])},
      {name: "value", number: true, key: (i) => this.run().failed(i) ? null : e.value[i], show: (i) => this.run().failed(i) ? "–" : figure(e.value[i], 6)},
      {name: "seconds", number: true, key: (i) => e.seconds[i], show: (i) => figure(e.seconds[i], 3)},
      {name: "told", key: (i) => e.told[i], show: (i) => clock(e.told[i])},
    ];
    const extras = [...this.run().extras].map((name) => ({name, number: true, key: (i) => this.run().extra(i, name), show: (i) => figure(this.run().extra(i, name))}));
    const failure = {name: "failure", text: true, key: (i) => e.failure[i], show: (i) => e.failure[i] === null ? "" : el("span", {class: "failed"}, e.failure[i].slice(0, 500))};
    if (!this.wide) return [...base, ...extras, failure];
    return [...base, ...extras, failure, ...head.parameters.map(({name}, j) => ({name, number: true, key: (i) => this.run().point(i)[j], show: (i) => figure(this.run().point(i)[j])}))];
  }

  /** Whether all words are in it; a number is found as a query, an iteration or the beginning of a value. */
  matches(i) {
    const {evaluations: e} = this.run();
    const text = `${e.id[i]} ${e.kind[i]} ${this.run().failed(i) ? `failed ${e.failure[i]}` : figure(e.value[i], 6).replace(MINUS, "-")}`.toLowerCase();
    return this.words.every((word) => text.includes(word));
  }

  /** Which evaluations, in which order; worked out again only when something of it has changed. */
  order() {
    const key = JSON.stringify([this.run().count, this.words, this.sort, this.down]);
    if (this.ordered?.key !== key) this.ordered = {key, rows: this.inOrder()};
    return this.ordered.rows;
  }

  inOrder() {
    const run = this.run();
    let rows = Array.from({length: run.count}, (_, i) => i);
    if (this.words.length) rows = rows.filter((i) => this.matches(i));
    if (this.sort === "#") return this.down ? rows.reverse() : rows;
    const column = this.columns().find(({name}) => name === this.sort) ?? this.columns()[0];
    const keys = rows.map(column.key);
    const compare = (a, b) => typeof a === "string" ? (a < b ? -1 : Number(a > b)) : a - b;
    const places = rows.map((_, k) => k).sort((p, q) => {
      if (keys[p] === null || keys[q] === null) return (keys[p] === null) - (keys[q] === null) || p - q;  // nothing comes last
      return (this.down ? -1 : 1) * compare(keys[p], keys[q]) || p - q;
    });
    return places.map((k) => rows[k]);
  }

  update(force = false) {
    const run = this.run();
    if (!force && this.known === run.count) return;
    this.known = run.count;
    const order = this.order(), pages = Math.max(1, Math.ceil(order.length / PAGE));
    this.page = Math.min(Math.max(0, this.page), pages - 1);
    const shown = order.slice(this.page * PAGE, (this.page + 1) * PAGE), columns = this.columns();
    const focused = document.activeElement?.dataset?.column;
    const heads = columns.map((column) => el("th", {scope: "col", class: column.number ? "number" : "", "aria-sort": this.sort !== column.name ? "none" : this.down ? "descending" : "ascending"},
      el("button", {type: "button", "data-column": column.name, onclick: () => this.by(column)}, column.name + (this.sort !== column.name ? "" : this.down ? " ↓" : " ↑"))));
    replace($("table"), el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...shown.map((i) =>
      el("tr", {}, ...columns.map((column) => el("td", {class: column.number ? "number" : column.text ? "text" : ""}, column.show(i)))))));
    if (focused !== undefined) [...$("table").querySelectorAll("button")].find((button) => button.dataset.column === focused)?.focus();
    const of = order.length === run.count ? "" : ` (of ${run.count})`;
    say($("place"), order.length ? `${this.page * PAGE + 1}–${Math.min(order.length, (this.page + 1) * PAGE)} of ${order.length}${of}` : `nothing found${of}`);
    $("previous").disabled = this.page === 0;
    $("next").disabled = this.page >= pages - 1;
  }

  by(column) {
    if (this.sort === column.name) this.down = !this.down;
    else Object.assign(this, {sort: column.name, down: Boolean(column.number)});
    this.page = 0;
    this.update(true);
  }

  /** In the format of gibo export, which gibo import reads. */
  csv() {
    const run = this.run(), {evaluations: e, head, count} = run, extras = [...run.extras];
    const [before, after] = [["id", "iteration", "kind"], ["value", "failure", "seconds", "asked", "told", "seed"]];
    const names = head.parameters.map(({name}) => [...before, ...after].includes(name) ? `parameter ${name}` : name);
    const lines = [[...before, ...names, "value", "failure", "seconds", "told", ...extras.map((name) => `info.${name}`)].map(cell).join(",")];
    for (let i = 0; i < count; i++) {
      const row = [e.id[i], e.iteration[i], e.kind[i], ...run.point(i), e.value[i], e.failure[i], e.seconds[i], e.told[i]];
      lines.push([...row, ...extras.map((name) => run.extra(i, name))].map(cell).join(","));
    }
    return lines.join("\r\n") + "\r\n";
  }
}

/** A cell of a CSV file; a text that a spreadsheet would take for a formula is kept a text. */
function cell(item) {
  if (item === null || item === undefined) return "";
  if (typeof item === "number") return String(item);
  const text = /^[=+\-@\t\r]/.test(item) ? `'${item}` : item;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
