// A plan as a tree: rows flow to the left, each step says how many it gave and what it took.

const WIDE = 246, BETWEEN = 18, APART = 36;

function showPlan(plan) {
  const view = $("plan");
  if (!plan) {
    view.replaceChildren(make("p", "empty", "“Run and explain” draws what each step of a query did."));
    return;
  }
  const steps = [];
  const root = stepOf(plan.Plan, null, steps);
  const longest = Math.max(...steps.map((step) => step.time), 0.001);
  const box = make("div", "plan");
  for (const step of steps) {
    step.card = card(step, longest);
    box.append(step.card);
  }
  const told = [
    ["executed in", time(plan["Execution Time"])],
    ["planned in", time(plan["Planning Time"])],
    ["rows", count(plan.Rows)],
    ["read", bytes((plan["Bytes Read"] || []).flat().reduce((sum, one) => sum + one, 0))],
    ["ran on", { algebra: "the engine", index: "an index" }[plan["Ran On"]] || plan["Ran On"]],
  ];
  const summary = make("div", "summary", ...told.map(([name, value]) => make("span", "", `${name} `, make("b", "", value))));
  view.replaceChildren(summary, box);
  arrange(root, box, steps);
  if (plan.Governed) summary.append(make("span", "", plan.Governed[0]));
}

function stepOf(node, above, steps) {
  const step = { node, above, time: node["Own Time"] || 0, below: [] };
  steps.push(step);
  step.below = (node.Plans || []).map((below) => stepOf(below, step, steps));
  return step;
}

function card(step, longest) {
  const { node } = step;
  const heat = make("div", "", "");
  heat.style.width = `${(step.time / longest) * 100}%`;
  const share = node["Own Time"] === undefined ? "" : time(node["Own Time"]);
  const words = node["Node Type"].replace(/Exec$/, "").replace(/([a-z])([A-Z])/g, "$1 $2");
  const title = words.charAt(0).toUpperCase() + words.slice(1) + (node["Relation Name"] ? ` · ${node["Relation Name"]}` : "");
  const rows = node["Actual Rows"] !== undefined ? `${count(node["Actual Rows"])} rows` : node["Rows In"] !== undefined ? `of ${count(node["Rows In"])} rows` : "";
  const head = make("h4", "", title);
  if (rows || share) head.append(make("em", "", [rows, share].filter(Boolean).join(" · ")));
  const out = make("div", step.time === longest && step.time > 0.01 ? "step hot" : "step", make("div", "heat", heat), head);
  const detail = [node["Subplan Name"], node.Detail].filter(Boolean).join(": ");
  if (detail) {
    const text = make("p", "", detail);
    text.title = detail;
    out.append(text);
  }
  const operators = node.Operators || [];
  if (operators.length) {
    const table = make("table", "");
    for (const one of operators) {
      const name = make("td", "", one.Name);
      name.title = one.Name + (one.Bytes === undefined ? "" : `\n${bytes(one.Bytes)} read and written, all workers together`);
      const line = make("tr", "", name);
      if (one.Rows !== undefined) line.append(make("td", "", count(one.Rows)), make("td", "", time(one.Time)));
      table.append(line);
    }
    out.append(table);
  }
  return out;
}

// Places the cards: to the right of each step those whose rows it takes, one below the other.
function arrange(root, box, steps) {
  const together = (below) => below.reduce((all, one) => all + one.span, 0) + BETWEEN * Math.max(0, below.length - 1);
  const measure = (step) => {
    step.below.forEach(measure);
    step.high = step.card.offsetHeight;
    step.span = Math.max(step.high, together(step.below));
  };
  measure(root);
  let deepest = 0;
  const place = (step, depth, top) => {
    step.x = depth * (WIDE + APART);
    step.y = top + (step.span - step.high) / 2;
    step.card.style.left = `${step.x}px`;
    step.card.style.top = `${step.y}px`;
    deepest = Math.max(deepest, depth);
    let at = top + (step.span - together(step.below)) / 2;
    for (const below of step.below) {
      place(below, depth + 1, at);
      at += below.span + BETWEEN;
    }
  };
  place(root, 0, 0);
  const width = deepest * (WIDE + APART) + WIDE;
  box.style.width = `${width + 36}px`;
  box.style.height = `${root.span + 36}px`;
  const most = Math.max(1, ...steps.map(rowsOf));
  const svg = drawn("svg", { width, height: root.span });
  for (const step of steps) {
    if (!step.above) continue;
    const x1 = step.x, y1 = step.y + step.high / 2, x2 = step.above.x + WIDE, y2 = step.above.y + step.above.high / 2;
    const middle = (x1 + x2) / 2;
    const thick = 1.5 + (Math.log1p(rowsOf(step)) / Math.log1p(most)) * 8;
    svg.append(drawn("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, "stroke-width": thick.toFixed(1) }));
  }
  box.prepend(svg);
}

const rowsOf = (step) => step.node["Actual Rows"] ?? 0;
