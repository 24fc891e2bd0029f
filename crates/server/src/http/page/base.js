"use strict";
// What all parts use: elements, requests, how numbers are written.

const $ = (id) => document.getElementById(id);

// An element with a class, texts and elements in it. Texts are never read as HTML.
function make(name, kind, ...inside) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(...inside.filter((one) => one !== null && one !== undefined));
  return element;
}

function drawn(name, attributes, ...inside) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

// Asks the server; throws what it says of an error.
async function ask(path, body, signal) {
  const options = { signal, credentials: "same-origin" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  const text = await answer.text();
  const lines = text.split("\n").filter((line) => line);
  const values = lines.map((line) => {
    try {
      return JSON.parse(line);
    } catch {
      return { error: { code: "08006", message: "the answer of the server was cut short" } };
    }
  });
  if (!answer.ok && !(values[0] && values[0].error)) throw { code: String(answer.status), message: answer.statusText };
  return values;
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

function count(number) {
  return number === null || number === undefined ? "–" : Math.abs(number) < 100000 ? grouped.format(number) : short.format(number);
}

function bytes(number) {
  if (number === null || number === undefined) return "–";
  let unit = 0;
  while (number >= 1024 && unit < 5) {
    number /= 1024;
    unit += 1;
  }
  return `${number >= 100 || unit === 0 ? Math.round(number) : number.toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB"][unit]}`;
}

// Milliseconds as people read them.
function time(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds < 1) return `${Math.round(milliseconds * 1000)} µs`;
  if (milliseconds < 100) return `${milliseconds.toFixed(1)} ms`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  return milliseconds < 60000 ? `${(milliseconds / 1000).toFixed(2)} s` : `${(milliseconds / 60000).toFixed(1)} min`;
}

const colour = (at) => `var(--s${at % 8})`;

function tip(event, text) {
  const box = $("tip");
  box.textContent = text;
  box.hidden = !text;
  if (!text) return;
  const wide = box.offsetWidth, high = box.offsetHeight;
  box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - wide - 8))}px`;
  box.style.top = `${event.clientY + 18 + high > innerHeight ? event.clientY - high - 10 : event.clientY + 18}px`;
}

const kept = {
  get(name, otherwise) {
    try {
      return JSON.parse(localStorage.getItem(`atoll.${name}`)) ?? otherwise;
    } catch {
      return otherwise;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem(`atoll.${name}`, JSON.stringify(value));
    } catch {
      // A browser that keeps nothing works all the same.
    }
  },
};
