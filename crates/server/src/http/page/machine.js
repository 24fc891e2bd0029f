// The machine while it works.

const machine = { last: null, load: [], rates: [], timer: null, ticks: 0 };
const KEPT = 90;

async function look() {
  clearTimeout(machine.timer);
  if (document.hidden) {
    machine.timer = setTimeout(look, 2000);
    return;
  }
  const shown = !$("machine").hidden;
  try {
    const [now] = await ask("machine");
    if (now.error) throw now.error;
    now.at = performance.now() / 1000;
    pulse(now);
    if (shown) {
      showMachine(now, machine.last);
      if (machine.ticks % 4 === 0) await showMemory(now);
      machine.ticks += 1;
    }
    machine.last = now;
  } catch (error) {
    $("pulse").textContent = error.message || "the server does not answer";
  }
  machine.timer = setTimeout(look, shown ? 1000 : 3000);
}

const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);

function pulse(now) {
  const running = now.sessions.filter((one) => one.state === "active").length;
  $("pulse").textContent = `${running ? `${running} running · ` : ""}${bytes(now.memory.used)} of ${bytes(now.memory.limit)}`;
  machine.load.push(sum(Object.values(now.load)));
  const past = machine.last;
  const seconds = past ? now.at - past.at : 0;
  machine.rates.push(past && seconds > 0 ? (sum(now.bytes_read.flat()) - sum(past.bytes_read.flat())) / seconds : 0);
  for (const line of [machine.load, machine.rates]) if (line.length > KEPT) line.shift();
}

function figure(value, name, line, most) {
  const out = make("div", "figure", make("b", "", value), make("span", "", name));
  if (line) {
    const high = Math.max(most || 0, ...line, 1e-9);
    const points = line.map((one, at) => `${((at + KEPT - line.length) / (KEPT - 1)) * 200},${28 - (one / high) * 26}`);
    const svg = drawn("svg", { viewBox: "0 0 200 30", preserveAspectRatio: "none" });
    const path = drawn("polyline", { points: points.join(" "), fill: "none", "stroke-width": 2, "vector-effect": "non-scaling-stroke" });
    path.style.stroke = colour(0);
    svg.append(path);
    out.append(svg);
  }
  return out;
}

function showMachine(now, past) {
  const cpus = Object.keys(now.load).length || sum(now.nodes.map((node) => sum(node.cores.map((core) => core.length))));
  const hits = now.pool.hits + now.pool.misses;
  $("figures").replaceChildren(
    figure(`${(machine.load.at(-1) || 0).toFixed(1)} of ${cpus}`, "cpus busy, all programs", machine.load, cpus),
    figure(`${bytes(machine.rates.at(-1) || 0)}/s`, "read by statements", machine.rates),
    figure(bytes(now.memory.used), `of ${bytes(now.memory.limit)} for pages and statements`),
    figure(hits ? `${((now.pool.hits / hits) * 100).toFixed(1)} %` : "–", "of pages were in memory when asked for"),
    figure(`${now.workers.running} of ${now.workers.threads}`, "workers have a core now"),
    figure(count(now.counts.statements), `statements, ${count(now.counts.errors)} failed, ${count(now.counts.rows)} rows sent`),
  );
  $("nodes").replaceChildren(...now.nodes.map((node) => nodeOf(now, node)));
  showTraffic(now, past);
  showSessions(now);
  showGovernor(now);
}

function nodeOf(now, node) {
  const own = new Set(now.workers.places.filter((place) => place.node === node.index).map((place) => place.cpu));
  // A machine that is not the one at hand is laid out on its cpus.
  const cores = now.live ? node.cores : [...own].map((cpu) => [cpu]);
  const squares = cores.map((core) => make("div", "core", ...core.map((number) => {
    const load = now.load[number];
    const square = make("div", `cpu${own.has(number) ? " own" : ""}${load > 0.55 ? " busy" : ""}`, String(number));
    square.style.setProperty("--load", `${Math.round((load || 0) * 100)}%`);
    square.title = `cpu ${number}: ${load === undefined ? "unknown" : `${Math.round(load * 100)} % busy`}${own.has(number) ? ", has a worker" : ""}`;
    return square;
  })));
  const whole = node.memory_bytes || node.pool_bytes || 1;
  const part = (size) => {
    const bar = make("div", "");
    bar.style.width = `${Math.min(100, (size / whole) * 100)}%`;
    return bar;
  };
  const resident = node.resident_bytes || 0, room = node.pool_bytes || 0;
  const name = make("b", "", `Node ${node.index}`);
  name.style.setProperty("--c", colour(node.index));
  return make("div", "node",
    make("h3", "", name, make("span", "quiet", node.memory_bytes ? bytes(node.memory_bytes) : "")),
    make("div", "cores", ...squares),
    make("div", "meter", part(resident), part(Math.max(0, room - resident))),
    make("span", "quiet", `${bytes(resident)} of pages, room for ${bytes(room)}`));
}

function showTraffic(now, past) {
  const seconds = past ? now.at - past.at : 0;
  const rate = (reader, page) => (seconds > 0 ? (now.bytes_read[reader][page] - past.bytes_read[reader][page]) / seconds : 0);
  const count = now.bytes_read.length;
  const numbers = [...Array(count).keys()];
  const most = Math.max(1, ...numbers.flatMap((reader) => numbers.map((page) => rate(reader, page))));
  const table = make("table", "matrix", make("tr", "", make("th", "", ""), ...numbers.map((page) => make("th", "", `memory of ${page}`))));
  for (const reader of numbers) {
    const line = make("tr", "", make("th", "", `node ${reader} reads`));
    for (const page of numbers) {
      const cell = make("td", "", `${bytes(rate(reader, page))}/s`);
      cell.style.setProperty("--load", `${Math.round((rate(reader, page) / most) * 70)}%`);
      cell.style.setProperty("--c", colour(reader === page ? 0 : 1));
      cell.title = `${bytes(now.bytes_read[reader][page])} since the server started`;
      line.append(cell);
    }
    table.append(line);
  }
  $("traffic").replaceChildren(table);
}

async function showMemory(now) {
  const [found] = await ask("memory");
  if (found.error) throw found.error;
  const tables = found.tables.map((one) => ({ ...one, all: sum(one.bytes) })).filter((one) => one.all > 0).sort((a, b) => b.all - a.all).slice(0, 24);
  if (!tables.length) {
    $("memory").replaceChildren(make("p", "empty", "No table has pages yet."));
    return;
  }
  const most = tables[0].all;
  $("memory").replaceChildren(...tables.map((one) => {
    const track = make("div", "track");
    one.bytes.forEach((size, node) => {
      for (const [length, kind] of [[one.resident[node], ""], [size - one.resident[node], "away"]]) {
        const part = make("div", kind);
        part.style.width = `${(length / most) * 100}%`;
        part.style.setProperty("--c", colour(node));
        part.title = `node ${node}: ${bytes(length)} ${kind ? "on disk" : "in memory"}`;
        track.append(part);
      }
    });
    return make("div", "tables-row", make("span", "", one.table), track, make("span", "", `${bytes(sum(one.resident))} of ${bytes(one.all)}`));
  }));
}

function showSessions(now) {
  const all = [...now.sessions].sort((a, b) => (b.state === "active") - (a.state === "active") || (b.seconds || 0) - (a.seconds || 0)).slice(0, 40);
  if (!all.length) {
    $("sessions").replaceChildren(make("p", "quiet", "Nobody is connected."));
    return;
  }
  const table = make("table", "list", make("tr", "", ...["user", "program", "does", "statement"].map((name) => make("th", "", name)), make("th", "right", "for"), make("th", "", "")));
  for (const one of all) {
    const stop = make("button", "small", "Stop");
    stop.disabled = one.state !== "active" || !one.own;
    stop.addEventListener("click", () => ask("cancel", { process: one.process }).then(look));
    const text = make("td", "sql", one.query.replace(/\s+/g, " "));
    text.title = one.query;
    table.append(make("tr", "", make("td", "", one.user), make("td", "", one.application.split(" ")[0].slice(0, 24) || one.address), make("td", "", one.state), text, make("td", "right", one.state === "active" ? time(one.seconds * 1000) : ""), make("td", "right", stop)));
  }
  $("sessions").replaceChildren(table);
}

function showGovernor(now) {
  const decisions = now.decisions;
  if (!decisions.length) {
    const text = now.nodes.length > 1 ? "It has decided nothing since the workers had all of their cores: none runs, or it is off (--govern)." : "It has decided nothing: with one node it is off unless --govern on asks for it, and it looks only while statements run.";
    $("governor").replaceChildren(make("p", "quiet", text));
    return;
  }
  const table = make("table", "list", make("tr", "", make("th", "", "at"), make("th", "right", "cores"), make("th", "", "does"), make("th", "", "why"), make("th", "right", "cpus busy")));
  for (const one of [...decisions].reverse().slice(0, 14)) {
    const busy = Object.entries(one.readings).find(([name]) => name.includes("busy"));
    const value = busy && busy[1] && typeof busy[1].value === "number" ? busy[1].value.toFixed(2) : "–";
    const action = typeof one.action === "string" ? one.action : Object.keys(one.action || {})[0] || "";
    table.append(make("tr", "", make("td", "", `${one.time.toFixed(1)} s`), make("td", "right", `${one.cores_before} → ${one.cpus.length}`), make("td", "", action), make("td", "", one.why), make("td", "right", value)));
  }
  $("governor").replaceChildren(table);
}
