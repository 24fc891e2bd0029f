// The text of statements: its colours, and what is completed.

const KEYWORDS = "all alter analyze and array as asc between bigint boolean by case cast char check column comment commit copy create cross current_date current_timestamp date decimal default delete desc describe distinct do double drop else end except exists explain extract false filter first following for foreign from full function group having ilike in index inner insert int integer intersect interval into is join key last lateral left like limit materialized merge natural not nothing null nulls numeric offset on or order outer over partition preceding primary range recursive references refresh returning right rollback row rows schema select sequence set show smallint table tablesample text then time timestamp to true truncate unbounded union unique update using values varchar version view when where window with begin".split(" ");
const IS_KEYWORD = new Set(KEYWORDS);
const BEFORE_TABLES = new Set(["from", "join", "into", "update", "table", "describe", "desc", "copy", "truncate"]);

const editor = { catalog: { tables: [], functions: [] }, functions: new Set(), wrong: null, at: 0, found: [], from: 0 };

// Strings, comments, numbers and words of a text, and what is between them.
const PARTS = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\b\d[\w.]*)|([A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)|([\s\S])/g;

function paint() {
  const text = $("text").value;
  const out = document.createDocumentFragment();
  let place = 0;
  const put = (part, kind) => {
    const wrong = editor.wrong !== null && editor.wrong >= place && editor.wrong < place + part.length;
    place += part.length;
    if (!kind && !wrong) out.append(part);
    else out.append(make("span", [kind, wrong && part.trim() ? "bad" : ""].join(" "), part));
  };
  for (const [, note, string, name, number, word, other] of text.matchAll(PARTS)) {
    if (note) put(note, "c");
    else if (string) put(string, "t");
    else if (name) put(name, "");
    else if (number) put(number, "n");
    else if (word) put(word, IS_KEYWORD.has(word.toLowerCase()) ? "k" : editor.functions.has(word.toLowerCase()) ? "f" : "");
    else put(other, "");
  }
  out.append("\n");
  $("paint").replaceChildren(out);
  follow();
}

function follow() {
  $("paint").scrollTop = $("text").scrollTop;
  $("paint").scrollLeft = $("text").scrollLeft;
}

// A name as it stands in a statement: in quotes where it needs them.
function quoted(name) {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !IS_KEYWORD.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function tableName(table) {
  return table.schema === "public" ? quoted(table.name) : `${quoted(table.schema)}.${quoted(table.name)}`;
}

// The tables that the text names, by what they are called in it.
function mentioned(text) {
  const words = text.toLowerCase().replace(/"/g, "").split(/[^\w$\u0080-\uffff]+/);
  const found = new Map();
  words.forEach((word, at) => {
    const table = editor.catalog.tables.find((one) => one.name.toLowerCase() === word);
    if (!table) return;
    found.set(word, table);
    const alias = words[at + 1] === "as" ? words[at + 2] : words[at + 1];
    if (alias && !IS_KEYWORD.has(alias)) found.set(alias, table);
  });
  return found;
}

// What may stand where the cursor is, the likely first.
function candidates(text, typed, before) {
  const begins = (name) => name.toLowerCase().startsWith(typed.toLowerCase());
  const of = (names, kind) => names.filter(begins).map((name) => ({ name, kind }));
  const tables = editor.catalog.tables;
  const here = mentioned(text);
  const qualifier = /([\w$\u0080-\uffff]+)"?\.$/.exec(before);
  if (qualifier) {
    const table = here.get(qualifier[1].toLowerCase());
    const schema = tables.filter((one) => one.schema === qualifier[1]);
    if (schema.length) return of(schema.map((one) => quoted(one.name)), "table");
    return table ? table.columns.filter((one) => begins(one.name)).map((one) => ({ name: quoted(one.name), kind: one.type })) : [];
  }
  const words = before.trim().toLowerCase().split(/\s+/);
  const all = tables.map((one) => ({ name: tableName(one), kind: one.kind === "base table" ? "table" : one.kind }));
  const named = all.filter((one) => begins(one.name));
  if (BEFORE_TABLES.has(words.at(-1)) && !/[,(]$/.test(before.trim())) return named;
  if (!typed) return [];
  const columns = new Map();
  const from = here.size ? [...new Set(here.values())] : tables;
  for (const column of from.flatMap((one) => one.columns)) if (begins(column.name)) columns.set(column.name, column.type);
  const upper = typed === typed.toUpperCase() && /[A-Z]/.test(typed);
  const keywords = of(KEYWORDS, "keyword").map((one) => ({ ...one, name: upper ? one.name.toUpperCase() : one.name }));
  const functions = of(editor.catalog.functions, "function").filter((one) => !IS_KEYWORD.has(one.name));
  const own = [...columns].map(([name, kind]) => ({ name: quoted(name), kind }));
  return [...own, ...named, ...keywords, ...functions.map((one) => ({ ...one, name: `${one.name}(` }))].slice(0, 60);
}

function complete() {
  const area = $("text"), box = $("complete");
  const before = area.value.slice(0, area.selectionStart);
  const typed = /[\w$\u0080-\uffff]*$/.exec(before)[0];
  const ahead = before.slice(0, before.length - typed.length);
  // Nothing within strings and comments.
  const open = (ahead.replace(/--[^\n]*\n/g, "").match(/'/g) || []).length % 2 === 1 || /--[^\n]*$/.test(ahead);
  const found = open || /^\d/.test(typed) ? [] : candidates(area.value, typed, ahead);
  const done = found.length === 1 && found[0].name === typed;
  editor.found = done ? [] : found;
  editor.at = 0;
  editor.from = ahead.length;
  box.hidden = !editor.found.length;
  if (box.hidden) return;
  box.replaceChildren(...editor.found.map((one, at) => {
    const line = make("li", "", make("span", "", one.name), make("i", "", one.kind));
    line.setAttribute("role", "option");
    line.addEventListener("mousedown", (event) => {
      event.preventDefault();
      take(at);
    });
    return line;
  }));
  choose(0);
  const lines = ahead.split("\n");
  const wide = letter();
  box.style.left = `${Math.max(4, Math.min(14 + lines.at(-1).length * wide - area.scrollLeft, area.clientWidth - 240))}px`;
  box.style.top = `${12 + lines.length * 21 - area.scrollTop}px`;
}

let wide = 0;
function letter() {
  if (!wide) {
    const probe = make("span", "", "m".repeat(50));
    $("paint").append(probe);
    wide = probe.getBoundingClientRect().width / 50;
    probe.remove();
  }
  return wide;
}

function choose(at) {
  const lines = $("complete").children;
  editor.at = (at + lines.length) % lines.length;
  for (const [number, line] of [...lines].entries()) line.setAttribute("aria-selected", String(number === editor.at));
  lines[editor.at].scrollIntoView({ block: "nearest" });
}

function take(at) {
  const area = $("text");
  area.setRangeText(editor.found[at].name, editor.from, area.selectionStart, "end");
  $("complete").hidden = true;
  editor.wrong = null;
  paint();
}

function insert(text) {
  const area = $("text");
  // On a phone the list covers the statement.
  $("console").classList.remove("browsing");
  $("browse").setAttribute("aria-expanded", "false");
  area.focus();
  area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  editor.wrong = null;
  paint();
}

function keys(event) {
  const open = !$("complete").hidden;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    $("complete").hidden = true;
    run(event.shiftKey);
  } else if (open && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    choose(editor.at + (event.key === "ArrowDown" ? 1 : -1));
  } else if (open && (event.key === "Tab" || event.key === "Enter")) {
    event.preventDefault();
    take(editor.at);
  } else if (event.key === "Escape") {
    $("complete").hidden = true;
  } else if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    complete();
  }
}

// Names of types as they are typed.
const SHORT = { "character varying": "varchar", "double precision": "double", "timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz", "time without time zone": "time" };

// The list of tables.
function listTables() {
  const wanted = $("filter").value.trim().toLowerCase();
  const schemas = new Set(editor.catalog.tables.map((table) => table.schema));
  const out = [];
  let schema = null;
  for (const table of editor.catalog.tables) {
    const columns = table.columns.filter((column) => column.name.toLowerCase().includes(wanted));
    const itself = table.name.toLowerCase().includes(wanted);
    if (!itself && !columns.length) continue;
    if (schemas.size > 1 && table.schema !== schema) out.push(make("h3", "", table.schema));
    schema = table.schema;
    const rows = table.rows === undefined ? (table.kind === "base table" ? "" : table.kind) : count(table.rows);
    const summary = make("summary", "", make("b", "", table.name), make("span", "", rows));
    summary.title = table.rows === undefined ? table.kind : `${grouped.format(table.rows)} rows; a double click puts the name into the statement`;
    summary.addEventListener("dblclick", () => insert(tableName(table)));
    const items = (itself ? table.columns : columns).map((column) => {
      const key = (table.primary_key || []).includes(column.name);
      const item = make("li", key ? "key" : "", make("b", "", column.name), make("i", "", (SHORT[column.type] || column.type) + (key ? " · key" : "")));
      item.title = column.nullable ? "may be NULL" : "not NULL";
      item.addEventListener("click", () => insert(quoted(column.name)));
      return item;
    });
    const details = make("details", "", summary, make("ul", "", ...items));
    details.open = Boolean(wanted) && !itself;
    out.push(details);
  }
  if (!out.length) out.push(make("p", "empty", wanted ? "Nothing has this in its name." : "There are no tables yet."));
  $("tables").replaceChildren(...out);
}
