// What buttons do, and what is shown first.

const state = { running: null, plan: null };

function say(text, failed, code) {
  const box = $("said");
  box.className = failed ? "said bad-news" : "said";
  box.replaceChildren(...(code ? [make("code", "", code)] : []), text);
}

function show(view) {
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

function failed(error, from, before) {
  say(error.message, true, error.code);
  editor.wrong = error.position ? from + error.position - 1 - before : null;
  paint();
}

async function run(explained) {
  const { sql, from } = text();
  if (!sql.trim() || state.running) return;
  const stop = new AbortController();
  busy(stop);
  editor.wrong = null;
  paint();
  remember(sql);
  const begun = performance.now();
  const ticking = setInterval(() => say(`runs for ${time(performance.now() - begun)} …`), 100);
  const how = "explain (analyze, format json) ";
  const asked = explained ? how + sql : sql;
  try {
    const answers = await ask("query", { sql: asked, limit: Number($("limit").value) }, stop.signal);
    clearInterval(ticking);
    const wrong = answers.find((one) => one.error);
    if (explained && !wrong) {
      state.plan = JSON.parse(answers.at(-1).rows[0][0])[0];
      say(`It ran for ${time(state.plan["Execution Time"])}; ${count(state.plan.Rows)} rows.`);
      show("plan");
      return;
    }
    const last = answers.findLast((one) => one.columns && one.columns.length) || answers.at(-1);
    if (last.columns) Object.assign(result, { columns: last.columns, rows: last.rows, chart: null });
    if (wrong) failed(wrong.error, from, explained ? how.length : 0);
    else say(told(answers, last, performance.now() - begun));
    if (last.columns && last.columns.length) show($("chart").hidden || wrong ? "rows" : "chart");
    if (answers.some((one) => /^(CREATE|DROP|ALTER|INSERT|COPY|DELETE|TRUNCATE|MERGE|REFRESH)/.test(one.statement || ""))) await loadCatalog();
  } catch (error) {
    clearInterval(ticking);
    if (error.name === "AbortError") say(`Stopped after ${time(performance.now() - begun)}.`, true, "57014");
    else failed({ code: error.code || "08006", message: error.message || "The server does not answer." }, from, 0);
  } finally {
    clearInterval(ticking);
    busy(null);
  }
}

// What became of the statements, in a line.
function told(answers, last, whole) {
  const parts = [];
  if (answers.length > 1) parts.push(`${answers.length} statements`);
  if (last.columns && last.columns.length) parts.push(`${grouped.format(last.rows.length)} row${last.rows.length === 1 ? "" : "s"}${last.more ? ", and more that were not asked for" : ""}`);
  else if (last.changed !== undefined) parts.push(`${grouped.format(last.changed)} row${last.changed === 1 ? "" : "s"} changed`);
  else parts.push(`${last.statement} is done`);
  parts.push(`${time(last.seconds * 1000)} in the server, ${time(whole)} until it was here`);
  const read = sum(last.bytes.flat());
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
