// The rows of a result, and a chart of them.

// That of the statement whose status is shown.
let result = { columns: [], rows: [], chart: null, plan: null };
const LINE = 26;

const isNumber = (type) => /^(tinyint|smallint|integer|int|bigint|real|float|double|decimal|numeric|hugeint|u?int)/.test(type) || /unsigned/.test(type);
const isTime = (type) => /^(date|timestamp)/.test(type);

function shownValue(value) {
  if (value === null) return "NULL";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function showRows() {
  const view = $("rows");
  const { columns, rows } = result;
  $("copy").disabled = !rows.length;
  if (!columns.length) {
    view.replaceChildren(make("p", "empty", result.none || "Rows come here: Ctrl + Enter runs the statements."));
    return;
  }
  // As wide as the widest of some rows, within bounds.
  const some = rows.slice(0, 300);
  const widths = columns.map((column, at) => {
    const longest = Math.max(column.name.length, column.type.length * 0.8, ...some.map((row) => shownValue(row[at]).length));
    return Math.min(Math.max(longest, 4), 48) * 8 + 24;
  });
  const counter = String(rows.length).length * 8 + 22;
  const cell = (kind, width, ...inside) => {
    const element = make("div", `cell ${kind}`, ...inside);
    element.style.width = `${width}px`;
    return element;
  };
  const head = make("div", "head", cell("count", counter, ""));
  columns.forEach((column, at) => head.append(cell(isNumber(column.type) ? "number" : "", widths[at], column.name, make("i", "", column.type))));
  const grid = make("div", "grid", head);
  view.replaceChildren(grid);
  const top = head.offsetHeight;
  grid.style.height = `${top + rows.length * LINE}px`;
  view.scrollTop = 0;
  let drawnLines = [];
  // Only what is seen is drawn: a hundred thousand rows scroll as ten do.
  const draw = () => {
    const first = Math.max(0, Math.floor((view.scrollTop - top) / LINE) - 8);
    const last = Math.min(rows.length, first + Math.ceil(view.clientHeight / LINE) + 18);
    drawnLines.forEach((line) => line.remove());
    drawnLines = rows.slice(first, last).map((row, near) => {
      const line = make("div", "line", cell("count", counter, String(first + near + 1)));
      line.style.top = `${top + (first + near) * LINE}px`;
      row.forEach((value, at) => {
        const kind = value === null ? "null" : isNumber(columns[at].type) ? "number" : "";
        const element = cell(kind, widths[at], shownValue(value));
        if (shownValue(value).length > 40) element.title = shownValue(value).slice(0, 2000);
        line.append(element);
      });
      return line;
    });
    grid.append(...drawnLines);
  };
  view.onscroll = draw;
  draw();
}

// The rows as text with tabs, for a spreadsheet.
function tabbed() {
  const clean = (value) => (value === null ? "" : shownValue(value).replace(/[\t\n\r]+/g, " "));
  return [result.columns.map((column) => clean(column.name)), ...result.rows.map((row) => row.map(clean))].map((row) => row.join("\t")).join("\n");
}

// What a result is drawn as if nobody says.
function chosen() {
  const { columns, rows } = result;
  const numbers = columns.map((_, at) => at).filter((at) => isNumber(columns[at].type));
  const named = columns.map((_, at) => at).filter((at) => !isNumber(columns[at].type));
  const times = named.filter((at) => isTime(columns[at].type));
  const x = times[0] ?? named[0] ?? (numbers.length > 1 ? numbers[0] : -1);
  const y = numbers.filter((at) => at !== x).slice(0, 3);
  const line = times.includes(x) || (x >= 0 && isNumber(columns[x].type)) || rows.length > 60;
  return { kind: line ? "line" : "bar", x, y, by: -1, axes: "auto" };
}

function showChart() {
  const view = $("chart");
  const { columns, rows } = result;
  const numbers = columns.map((_, at) => at).filter((at) => isNumber(columns[at].type));
  if (!rows.length || !numbers.length) {
    view.replaceChildren(make("p", "empty", rows.length ? "A chart wants a column of numbers." : result.none || "A chart wants rows with a column of numbers."));
    return;
  }
  result.chart ??= chosen();
  const chart = result.chart;
  const choice = (label, options, value, change) => {
    const select = make("select", "");
    for (const [text, of] of options) {
      const option = make("option", "", text);
      option.value = of;
      option.selected = String(of) === String(value);
      select.append(option);
    }
    select.addEventListener("change", () => {
      change(select.value);
      showChart();
    });
    return make("label", "", label, select);
  };
  const names = columns.map((column, at) => [column.name, at]);
  const bar = make("div", "pick");
  bar.append(
    choice("as", [["bars", "bar"], ["lines", "line"], ["points", "point"]], chart.kind, (kind) => { chart.kind = kind; }),
    choice("along", [["the order of rows", -1], ...names], chart.x, (at) => { chart.x = Number(at); }),
    choice("one for each", [["–", -1], ...names.filter(([, at]) => !isNumber(columns[at].type))], chart.by, (at) => { chart.by = Number(at); }),
  );
  if (chart.y.length > 1) bar.append(choice("axes", [["as they need", "auto"], ["one", "one"], ["one for each column", "each"]], chart.axes, (axes) => { chart.axes = axes; }));
  for (const at of numbers.filter((one) => one !== chart.x)) {
    const box = make("input", "");
    box.type = "checkbox";
    box.checked = chart.y.includes(at);
    box.addEventListener("change", () => {
      chart.y = box.checked ? [...chart.y, at].sort((a, b) => a - b) : chart.y.filter((one) => one !== at);
      showChart();
    });
    bar.append(make("label", "series", box, columns[at].name));
  }
  view.replaceChildren(bar);
  const series = seriesOf(chart);
  if (!series.length) view.append(make("p", "empty", "Choose a column of numbers above."));
  else view.append(drawChart(chart, series, view.clientWidth - 26, Math.max(220, view.clientHeight - 110)));
}

// Points of each line or colour: their place along the axis, their value.
function seriesOf(chart) {
  const { columns, rows } = result;
  const value = (row, at) => (row[at] === null ? null : Number(row[at]));
  const most = 5000;
  const groups = new Map();
  rows.slice(0, most).forEach((row, number) => {
    for (const y of chart.y.filter((at) => at !== chart.x)) {
      const group = chart.by < 0 ? columns[y].name : chart.y.length > 1 ? `${shownValue(row[chart.by])}, ${columns[y].name}` : shownValue(row[chart.by]);
      if (!groups.has(group)) groups.set(group, { column: y, points: [] });
      const at = chart.x < 0 ? number + 1 : row[chart.x];
      groups.get(group).points.push({ x: at, y: value(row, y) });
    }
  });
  return [...groups].slice(0, 12).map(([name, { column, points }]) => ({ name, column, points: points.filter((point) => point.y !== null && Number.isFinite(point.y)) }));
}

// Most axes: one to the left, the others to the right.
const AXES = 3;

// The axes of a chart, each with the columns that it is for: those whose values are of about the same size share one.
function axesOf(chart, series) {
  const axes = [];
  for (const column of new Set(series.map((one) => one.column))) {
    const values = series.filter((one) => one.column === column).flatMap((one) => one.points.map((point) => Math.abs(point.y)));
    const size = Math.max(Number.MIN_VALUE, ...values);
    const distance = (axis) => Math.abs(Math.log10(axis.size / size));
    const near = [...axes].sort((a, b) => distance(a) - distance(b))[0];
    const shares = near && (chart.axes === "one" || axes.length === AXES || (chart.axes === "auto" && distance(near) <= 1));
    if (shares) near.columns.push(column);
    else axes.push({ size, columns: [column] });
  }
  return axes;
}

// Round numbers that cover a range.
function ticks(low, high, wanted) {
  const rough = (high - low || Math.abs(high) || 1) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough) || power * 10;
  const out = [];
  for (let at = Math.floor(low / step) * step; at < high + step * 0.999; at += step) out.push(Math.abs(at) < step / 1e6 ? 0 : at);
  return out;
}

function drawChart(chart, series, width, height) {
  const axes = axesOf(chart, series);
  const left = 62, apart = 58, right = 16 + apart * (axes.length - 1), top = 14, bottom = 38;
  const inside = { w: Math.max(200, width) - left - right, h: height - top - bottom };
  const all = series.flatMap((one) => one.points);
  const measured = chart.x < 0 || isNumber(result.columns[chart.x].type) || isTime(result.columns[chart.x].type);
  const scaled = measured && chart.kind !== "bar";
  const number = (x) => (typeof x === "number" ? x : isTime(result.columns[chart.x]?.type || "") ? Date.parse(String(x).replace(" ", "T").replace(/\+00$/, "Z")) : Number(x));
  const keys = scaled ? [] : [...new Set(all.map((point) => shownValue(point.x)))];
  const xs = scaled ? all.map((point) => number(point.x)).filter(Number.isFinite) : [];
  const [least, most] = scaled ? [Math.min(...xs), Math.max(...xs)] : [0, keys.length];
  const position = new Map(keys.map((key, at) => [key, at]));
  const px = (x) => left + (scaled ? ((number(x) - least) / (most - least || 1)) * inside.w : ((position.get(shownValue(x)) + 0.5) / keys.length) * inside.w);
  for (const axis of axes) {
    const values = series.filter((one) => axis.columns.includes(one.column)).flatMap((one) => one.points.map((point) => point.y));
    const low = Math.min(chart.kind === "bar" ? 0 : Infinity, ...values), high = Math.max(chart.kind === "bar" ? 0 : -Infinity, ...values);
    axis.rules = values.length ? ticks(low, high, 5) : [0, 1];
    const [bottomValue, topValue] = values.length ? [Math.min(axis.rules[0], low), Math.max(axis.rules.at(-1), high)] : [0, 1];
    axis.py = (y) => top + inside.h - ((y - bottomValue) / (topValue - bottomValue || 1)) * inside.h;
  }
  const axisOf = (one) => axes.find((axis) => axis.columns.includes(one.column));
  const svg = drawn("svg", { viewBox: `0 0 ${Math.max(200, width)} ${height}`, height, role: "img" });
  axes.forEach((axis, number) => {
    const edge = number ? left + inside.w + (number - 1) * apart : left;
    // The colour of what it is for, if that is one line.
    const own = series.filter((one) => axis.columns.includes(one.column));
    const fill = axes.length > 1 && own.length === 1 ? colour(series.indexOf(own[0])) : "";
    if (number) svg.append(drawn("line", { class: "axis further", x1: edge, x2: edge, y1: top, y2: top + inside.h }));
    for (const rule of axis.rules) {
      if (!number) svg.append(drawn("line", { class: rule === 0 ? "axis" : "rule", x1: left, x2: left + inside.w, y1: axis.py(rule), y2: axis.py(rule) }));
      const text = drawn("text", { x: number ? edge + 8 : edge - 8, y: axis.py(rule) + 4, "text-anchor": number ? "start" : "end" }, count(rule));
      if (fill) text.style.fill = fill;
      svg.append(text);
    }
  });
  const label = (x, text) => svg.append(drawn("text", { x, y: top + inside.h + 18, "text-anchor": x > left + inside.w - 4 ? "end" : "middle" }, text.length > 16 ? `${text.slice(0, 15)}…` : text));
  if (scaled && chart.x >= 0 && isTime(result.columns[chart.x].type)) {
    for (let at = 0; at <= 5; at += 1) {
      const moment = new Date(least + ((most - least) * at) / 5);
      const text = moment.toISOString();
      label(left + (inside.w * at) / 5, most - least > 2 * 86400e3 ? text.slice(0, 10) : text.slice(11, 19));
    }
  } else if (scaled) {
    for (const at of ticks(least, most, 6).filter((one) => one >= least && one <= most)) label(px(at), count(at));
  } else {
    const step = Math.ceil(keys.length / Math.max(1, Math.floor(inside.w / 90)));
    keys.forEach((key, at) => at % step === 0 && label(px(key), key));
  }
  const spoken = (one, point) => `${shownValue(point.x)}\n${one.name}: ${grouped.format(point.y)}`;
  const hover = (shape, text) => {
    shape.addEventListener("mousemove", (event) => tip(event, text));
    shape.addEventListener("mouseleave", (event) => tip(event, ""));
    return shape;
  };
  series.forEach((one, at) => {
    const fill = colour(at);
    const { py } = axisOf(one);
    if (chart.kind === "bar") {
      const slot = (inside.w / keys.length) * 0.8, wide = Math.max(1, slot / series.length);
      for (const point of one.points) {
        const x = px(point.x) - slot / 2 + at * wide;
        const [from, to] = [py(Math.max(0, point.y)), py(Math.min(0, point.y))];
        const bar = drawn("rect", { x, y: from, width: Math.max(1, wide - (wide > 6 ? 2 : 0)), height: Math.max(1, to - from), rx: wide > 8 ? 2 : 0 });
        bar.style.fill = fill;
        svg.append(hover(bar, spoken(one, point)));
      }
      return;
    }
    const points = scaled ? [...one.points].sort((a, b) => number(a.x) - number(b.x)) : one.points;
    if (chart.kind === "line") {
      const path = points.map((point, near) => `${near ? "L" : "M"}${px(point.x).toFixed(1)} ${py(point.y).toFixed(1)}`).join("");
      const line = drawn("path", { d: path, fill: "none", "stroke-width": 2, "stroke-linejoin": "round" });
      line.style.stroke = fill;
      svg.append(line);
    }
    const size = chart.kind === "point" ? 3.5 : points.length > 120 ? 0 : 2.8;
    for (const point of points.slice(0, 2000)) {
      const dot = drawn("circle", { cx: px(point.x), cy: py(point.y), r: size });
      dot.style.fill = fill;
      const around = drawn("circle", { class: "hit", cx: px(point.x), cy: py(point.y), r: 7 });
      svg.append(dot, hover(around, spoken(one, point)));
    }
  });
  const legend = make("div", "legend", ...series.map((one, at) => {
    const axis = axes.indexOf(axisOf(one));
    const entry = make("span", "", axes.length > 1 ? `${one.name} (${axis ? `right${axes.length > 2 ? ` ${axis}` : ""}` : "left"})` : one.name);
    entry.style.setProperty("--c", colour(at));
    return entry;
  }));
  return make("div", "drawing", series.length > 1 ? legend : null, svg);
}
