// What buttons do, and what is shown first.

// `results` are those of the statements that ran last; one of them, `result`, is what the status, the rows, the chart and the
// plan are of.
const state = { running: null, plan: null, results: [], at: 0, text: "", view: "rows" };

function say(text, failed, code) {
  const box = $("said");
  box.className = failed ? "said bad-news" : "said";
  box.replaceChildren(...(code ? [make("code", "", code)] : []), text);
}

function show(view) {
  state.view = view;
  for (const name of ["rows", "chart", "plan"]) $(name).hidden = name !== view;
  for (const tab of document.querySelectorAll("[data-view]")) tab.setAttribute("aria-selected", String(tab.dataset.view === view));
  if (view === "chart") showChart();
  if (view === "rows") showRows();
  if (view === "plan") showPlan(state.plan);
}

function busy(running) {
  state.running = running;
  $("run").disabled = $("explain").disabled = Boolean(running);
  $("stop").disabled = !running;
}

// What is selected, or all.
function text() {
  const area = $("text");
  const chosen = area.value.slice(area.selectionStart, area.selectionEnd);
  return chosen.trim() ? { sql: chosen, from: area.selectionStart } : { sql: area.value, from: 0 };
}

// Comments, strings, names in quotes; the ends of statements; anything else.
const PIECES = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^']|'')*'?|"(?:[^"]|"")*"?|\$(\w*)\$[\s\S]*?(?:\$\3\$|$))|(;)|([\s\S])/g;

// The statements of a text, and where they stand in it.
function statementsOf(sql) {
  const found = [];
  let from = 0, place = 0, empty = true;
  const end = (next) => {
    if (!empty) found.push({ sql: sql.slice(from, place), from, to: place });
    [from, empty] = [next, true];
  };
  for (const [part, note, , , ends, other] of sql.matchAll(PIECES)) {
    if (ends) end(place + 1);
    else if (!note && !(other && !other.trim())) empty = false;
    place += part.length;
  }
  end(place);
  return found;
}

// The text to be sent, and where its parts stand in the one that was typed.
function askedOf(sql, parts, explained) {
  if (!explained) return { asked: sql, places: [{ asked: 0, typed: 0 }] };
  let asked = "";
  const places = [];
  for (const part of parts) {
    const body = part.sql.trimStart();
    const plain = body.replace(/^(\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)+/, "");
    part.explained = /^\(|^(select|with|from|values|table|insert|update|delete|merge)\b/i.test(plain);
    asked += `${asked ? ";\n" : ""}${part.explained ? "explain (analyze, format json) " : ""}`;
    places.push({ asked: asked.length, typed: part.from + part.sql.length - body.length });
    asked += body;
  }
  return { asked, places };
}

// What one statement gave: its rows or its plan, and what the status says of it.
function resultOf(answer, part, number, whole) {
  const { error } = answer;
  const columns = answer.columns || [];
  const one = { columns, rows: answer.rows || [], chart: null, plan: null, said: "", failed: Boolean(error), code: "", none: "", part };
  one.title = `${number + 1} ${answer.statement || (part ? part.sql.trim().split(/\s/)[0].toUpperCase() : "")}`;
  if (error) {
    Object.assign(one, { said: error.message, code: error.code, none: "The statement failed." });
  } else if (part && part.explained && columns.length === 1) {
    one.plan = JSON.parse(one.rows[0][0])[0];
    one.said = `It ran for ${time(one.plan["Execution Time"])}; ${count(one.plan.Rows)} rows.`;
    Object.assign(one, { columns: [], rows: [], none: "It ran for its plan; “Run” shows its rows." });
  } else {
    one.said = told(answer, whole);
    one.none = "The statement gives no rows.";
  }
  return one;
}

// Shows the result of one of the statements that ran.
function pick(at, view) {
  state.at = at;
  result = state.results[at] || { columns: [], rows: [], chart: null, plan: null, none: state.running ? "It runs." : "" };
  state.plan = result.plan;
  const tabs = state.results.map((one, number) => {
    const tab = make("button", one.failed ? "bad-news" : "", one.title);
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-selected", String(number === at));
    if (one.part) tab.title = one.part.sql.trim().slice(0, 400);
    tab.addEventListener("click", () => pick(number));
    return tab;
  });
  $("results").replaceChildren(...tabs);
  $("results").hidden = tabs.length < 2;
  if (state.results[at]) say(result.said, result.failed, result.code);
  show(view || (result.plan ? "plan" : state.view === "plan" ? "rows" : state.view));
}

// Shows the result of the statement that the cursor is in, if that text ran.
function follows() {
  const area = $("text");
  if (state.running || state.results.length < 2 || area.value !== state.text) return;
  const at = state.results.findIndex((one) => one.part && area.selectionStart >= one.part.from && area.selectionStart <= one.part.to);
  if (at >= 0 && at !== state.at) pick(at);
}

async function run(explained) {
  const { sql, from } = text();
  const parts = statementsOf(sql);
  if (!parts.length || state.running) return;
  const stop = new AbortController();
  busy(stop);
  editor.wrong = null;
  paint();
  remember(sql);
  const { asked, places } = askedOf(sql, parts, explained);
  for (const part of parts) [part.from, part.to] = [part.from + from, part.to + from];
  Object.assign(state, { results: [], text: $("text").value });
  pick(0);
  const begun = performance.now();
  const ticking = setInterval(() => say(`runs for ${time(performance.now() - begun)} …`), 100);
  const finish = (answers) => {
    clearInterval(ticking);
    busy(null);
    const whole = answers.length === 1 ? performance.now() - begun : null;
    state.results = answers.map((answer, at) => resultOf(answer, parts[at], at, whole));
    const wrong = answers.findIndex((one) => one.error);
    const place = wrong < 0 ? null : answers[wrong].error.position;
    if (place) {
      const before = places.findLast((one) => one.asked < place) || places[0];
      editor.wrong = from + before.typed + place - 1 - before.asked;
      paint();
    }
    const last = state.results.findLastIndex((one) => one.columns.length || one.plan);
    pick(wrong >= 0 ? wrong : last >= 0 ? last : answers.length - 1);
  };
  try {
    const answers = await ask("query", { sql: asked, limit: Number($("limit").value) }, stop.signal);
    finish(answers);
    if (answers.some((one) => /^(CREATE|DROP|ALTER|INSERT|COPY|DELETE|TRUNCATE|MERGE|REFRESH)/.test(one.statement || ""))) await loadCatalog();
  } catch (error) {
    if (error.name === "AbortError") finish([{ error: { code: "57014", message: `Stopped after ${time(performance.now() - begun)}.` } }]);
    else finish([{ error: { code: error.code || "08006", message: error.message || "The server does not answer." } }]);
  } finally {
    clearInterval(ticking);
    busy(null);
  }
}

// What became of a statement, in a line; `whole` is the time until it was here, if it ran alone.
function told(answer, whole) {
  const parts = [];
  const rows = answer.columns ? answer.rows.length : 0;
  if (answer.columns && answer.columns.length) parts.push(`${grouped.format(rows)} row${rows === 1 ? "" : "s"}${answer.more ? ", and more that were not asked for" : ""}`);
  else if (answer.changed !== undefined) parts.push(`${grouped.format(answer.changed)} row${answer.changed === 1 ? "" : "s"} changed`);
  else parts.push(`${answer.statement} is done`);
  if (answer.seconds !== undefined) parts.push(`${time(answer.seconds * 1000)} in the server${whole === null ? "" : `, ${time(whole)} until it was here`}`);
  const read = sum((answer.bytes || []).flat());
  if (read) parts.push(`${bytes(read)} read`);
  return parts.join(" · ");
}

function remember(sql) {
  const all = [sql.trim(), ...kept.get("history", []).filter((one) => one !== sql.trim())].slice(0, 60);
  kept.set("history", all);
  listHistory();
}

function listHistory() {
  const options = kept.get("history", []).map((sql, at) => {
    const option = make("option", "", sql.replace(/\s+/g, " ").slice(0, 90));
    option.value = String(at);
    return option;
  });
  const first = make("option", "", "Earlier statements");
  first.value = "";
  $("history").replaceChildren(first, ...options);
}

async function loadCatalog() {
  const [catalog] = await ask("catalog");
  if (catalog.error) {
    say(catalog.error.message, true, catalog.error.code);
    return;
  }
  editor.catalog = catalog;
  editor.functions = new Set(catalog.functions);
  const name = catalog.store.split("/").at(-1);
  $("store").textContent = name;
  $("store").title = catalog.store;
  document.title = `${name} · Atoll`;
  listTables();
}

function view(name) {
  for (const one of ["console", "machine"]) {
    $(one).hidden = one !== name;
    $(`tab-${one}`).setAttribute("aria-selected", String(one === name));
  }
  machine.ticks = 0;
  look();
}

$("text").addEventListener("input", () => {
  editor.wrong = null;
  paint();
  complete();
  kept.set("text", $("text").value);
});
$("text").addEventListener("scroll", follow);
$("text").addEventListener("keydown", keys);
$("text").addEventListener("keyup", follows);
$("text").addEventListener("click", follows);
$("text").addEventListener("blur", () => { $("complete").hidden = true; });
$("run").addEventListener("click", () => run(false));
$("explain").addEventListener("click", () => run(true));
$("stop").addEventListener("click", () => state.running && state.running.abort());
$("filter").addEventListener("input", listTables);
$("copy").addEventListener("click", () => navigator.clipboard.writeText(tabbed()).then(() => say(`${grouped.format(result.rows.length)} rows are copied.`)));
$("history").addEventListener("change", (event) => {
  const sql = kept.get("history", [])[Number(event.target.value)];
  if (event.target.value !== "" && sql) {
    $("text").value = sql;
    editor.wrong = null;
    paint();
  }
  event.target.value = "";
});
$("browse").addEventListener("click", () => {
  if ($("console").hidden) view("console");
  const open = $("console").classList.toggle("browsing");
  $("browse").setAttribute("aria-expanded", String(open));
});
$("tab-console").addEventListener("click", () => view("console"));
$("tab-machine").addEventListener("click", () => view("machine"));
for (const tab of document.querySelectorAll("[data-view]")) tab.addEventListener("click", () => show(tab.dataset.view));
window.addEventListener("resize", () => !$("chart").hidden && showChart());

$("text").value = kept.get("text", "select *\nfrom information_schema.tables");
listHistory();
paint();
show("rows");
loadCatalog().catch((error) => say(error.message, true));
look();
