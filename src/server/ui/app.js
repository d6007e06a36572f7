// The live page of a Tactus server. It draws what GET /v2/tactus/live sends: "state" (models, lanes,
// names) when it changes, "past" once, "tick" five times a second (docs/reference/page.md). lanes.js
// draws lanes and charts.
"use strict";

const LIVE = "../v2/tactus/live";
const STREAMS = "../v2/streams";
const WHAT_IF = "../v2/tactus/whatif";
const OUTCOMES = ["met", "late", "shed", "expired", "cancelled", "failed"];
// Okabe and Ito's colours, which colour-blind people tell apart.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999"];
const KEPT_MS = 60000;     // of bars
const MOST_BARS = 40000;
const SECONDS = 600;       // of the charts
const SPANS = [0.25, 0.5, 1, 2, 5, 10, 20, 60];

const byId = id => document.getElementById(id);
const show = (id, text) => { const at = byId(id); if (at.textContent !== text) at.textContent = text; };
// Names are the server's: one may be that of a member that every object has.
const own = (object, name) => Object.hasOwn(object, name) ? object[name] : undefined;
const shown = (value, digits = 1) => value === undefined ? "" : value.toFixed(digits);

let state = { models: [], wanted: [], names: [], lanes: 0, lane: "lane", policy: "" };
let bars = [];             // {lane, model, exit, rows, start, end, late, failed, count}, oldest first
let drops = [];            // {model, at, count} of calls that were given up, oldest first
let gaps = [];             // {from, to, batches} of times of which not all is known, oldest first
let refusals = [];         // of the last seconds, calls that entered no queue by reason
let laneNow = [];          // [busy %, held]
let history = [];          // a second each: {met, missed, waiting, busy, refused}
let serverMs = 0;          // the newest end of a batch, on the server's clock
let clockMs = 0;           // and here, when it came
let span = 4;              // of SPANS
let pausedAt = null;       // where what is shown ends; null: it goes on
let chosen = null;
// A header takes no other characters.
const isToken = text => /^[\x21-\x7e]+$/.test(text);
let token = sessionStorage.getItem("tactus-token") || "";
if (!isToken(token)) forgetToken();

function headers() { return token ? { Authorization: `Bearer ${token}` } : {}; }

// Each event of the server's stream, until it ends.
async function* eventsOf(url) {
  const answer = await fetch(url, { headers: headers(), cache: "no-store" });
  if (!answer.ok) {
    const error = new Error((await answer.text()).slice(0, 300));
    error.status = answer.status;
    throw error;
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = name => (lines.find(line => line.startsWith(`${name}: `)) || "").slice(name.length + 2);
      yield [field("event"), JSON.parse(field("data"))];
    }
  }
}

async function watch() {
  for (let wait = 1; ; wait = Math.min(2 * wait, 15)) {
    try {
      beginAnew();
      for await (const [event, data] of eventsOf(LIVE)) {
        wait = 1;
        show("link", "");
        document.body.classList.remove("old");
        byId("login").hidden = true;
        byId("forget").hidden = !token;
        if (event === "state") onState(data);
        if (event === "past") onPast(data);
        if (event === "tick") onTick(data);
      }
      show("link", "the server has ended the connection: trying again");
    } catch (error) {
      if (error.status === 401 || error.status === 403) return askForToken(error.status);
      const why = error.status ? `${error.status} ${error.message}` : "no connection";
      show("link", `${why}: trying again in ${wait} s`);
    }
    document.body.classList.add("old");
    await new Promise(done => setTimeout(done, 1000 * wait));
  }
}

// The server may be another one than before, whose clock begins at 0.
function beginAnew() {
  bars = [];
  drops = [];
  gaps = [];
  refusals = [];
  laneNow = [];
  serverMs = clockMs = 0;
  chosen = null;
}

function askForToken(status) {
  show("about", token ? "the token is refused" : "");
  show("link", status === 403 ? "this token may not read" : "");
  forgetToken();
  byId("login").hidden = false;
  byId("token").focus();
}

function forgetToken() {
  token = "";
  sessionStorage.removeItem("tactus-token");
  byId("forget").hidden = true;
}

function tell(text) {
  const list = byId("events");
  if (!list.dataset.used) list.replaceChildren();
  list.dataset.used = "yes";
  const item = document.createElement("li");
  item.textContent = `${new Date().toLocaleTimeString()} ${text}`;
  list.prepend(item);
  while (list.children.length > 100) list.lastChild.remove();
}

const unwanted = model => model.reason === "not loaded" || model.reason === "unloaded";
// What kept one that loads from serving before says nothing now.
const stateOf = model => model.state === "READY" ? "ready" : model.state === "LOADING" ? "loading" : unwanted(model) ? model.reason : `${model.state.toLowerCase()}${model.reason ? `: ${model.reason}` : ""}`;

function onState(next) {
  if (state.models.length > 0) {
    const slos = new Map(state.models.map(model => [`${model.name} ${model.version}`, model.slo_ms]));
    const reasons = new Map(state.models.map(model => [`${model.name} ${model.version}`, model.reason]));
    const before = new Map(state.models.map(model => [`${model.name} ${model.version}`, stateOf(model)]));
    for (const model of next.models) {
      const key = `${model.name} ${model.version}`;
      if (before.get(key) === stateOf(model) && slos.get(key) !== model.slo_ms) tell(`model ${model.name}, version ${model.version}: its SLO was ${slos.get(key)} ms and is ${model.slo_ms}`);
      if (model.state === "READY" && model.reason && reasons.get(key) !== model.reason) tell(`model ${model.name}, version ${model.version}: a change was refused, and it serves on as it was: ${model.reason}`);
      if (before.get(key) !== stateOf(model)) tell(`model ${model.name}, version ${model.version}: ${stateOf(model)}`);
      before.delete(key);
    }
    for (const key of before.keys()) tell(`model ${key.replace(/ (\d+)$/, ", version $1")}: gone`);
  }
  state = next;
  const left = state.models.filter(unwanted).map(model => model.name);
  show("unloaded", left.length > 0 ? `not loaded: ${left.join(", ")}` : "");
  state.wanted = state.models.filter(model => !unwanted(model));
  const ready = state.models.filter(model => model.state === "READY").length;
  show("about", `${ready} of ${state.models.length} models ready, policy ${state.policy}, ${state.lanes} ${state.lane}${state.lanes === 1 ? "" : "s"}`);
  const legend = byId("legend");
  legend.replaceChildren(...state.names.map((name, i) => {
    const entry = document.createElement("span");
    const mark = document.createElement("i");
    mark.style.background = colourOf(i);
    entry.append(mark, name);
    return entry;
  }));
  offerWhatIf();
  if (state.lane === "server") show("journal", "Batches are decided by the site's scheduler: its --journal FILE keeps every decision for tactus explain and tactus trace.");
  else if (state.journal) show("journal", `Every decision is kept: tactus explain ${state.journal} says why calls were late; tactus trace ${state.journal} --out FILE draws them in Perfetto.`);
  byId("lanes").style.height = `${2.2 * state.lanes + 1.4}rem`;
  if (!lastModels) showModels({});
}

function onPast(past) {
  history = past.seconds.map(([met, missed, waiting, busy, refused]) => ({ met, missed, waiting, busy, refused }));
}

let lastModels = null;

function onTick(tick) {
  const began = serverMs;
  for (let i = 0; i + 10 < tick.bars.length; i += 11) {
    const [lane, model, exit, rows, start, length, flags, count, predicted, waited, lateBy] = tick.bars.slice(i, i + 11);
    const from = tick.from_ms + start / 10;
    bars.push({ lane, model, exit, rows, start: from, end: from + length / 10, late: (flags & 1) > 0, failed: (flags & 2) > 0, count, predicted: predicted / 10, waited: waited / 10, lateBy: lateBy / 10 });
    serverMs = Math.max(serverMs, from + length / 10);
  }
  if (tick.bars.length > 0 || tick.uptime_s) {
    if (tick.uptime_s) serverMs = Math.max(serverMs, 1000 * tick.uptime_s);
    clockMs = performance.now();
  }
  noteDrops(tick, began);
  forgetOld();
  if (tick.lost) tell(`${tick.lost} calls and batches came too fast to be shown`);
  if (!tick.models) return;
  tick.lanes.forEach(([, held, deaths], i) => {
    if (!laneNow[i]) return;
    if (laneNow[i][2] < deaths && laneNow[i][1] === held) tell(`${state.lane} ${i} died${held ? "" : ", and is back"}`);
    if (laneNow[i][1] !== held) tell(`${state.lane} ${i} ${held ? "runs no batches for now: it died, is silent or is held by a run" : "runs batches again"}`);
  });
  laneNow = tick.lanes;
  showModels(tick.models);
  let met = 0, missed = 0;
  for (const model of Object.values(tick.models)) {
    // A step of a pipeline is no call of a client.
    const calls = model.ended.map((n, i) => n - model.steps[i]);
    met += calls[0] / model.seconds;
    missed += missedOf(calls) / model.seconds;
  }
  const busy = tick.lanes.reduce((sum, [percent]) => sum + percent, 0) / Math.max(tick.lanes.length, 1);
  history.push({ met: tick.ended[0], missed: missedOf(tick.ended), waiting: tick.waiting, busy, refused: sumOf(Object.values(tick.refused)) });
  history = history.slice(-SECONDS);
  refusals = [...refusals, tick.refused].slice(-10);
  showLevel(met, missed);
  const hidden = sumOf(gaps.map(gap => gap.batches));
  show("undrawn", hidden > 0 ? `${hidden} batches of the last minute came too fast to be drawn` : "");
  showSeconds();
  showBatches();
}

// Calls that were given up, and of what times not all calls and batches are known.
function noteDrops(tick, began) {
  const placed = [];
  for (let i = 0; i + 2 < tick.drops.length; i += 3) placed.push({ model: tick.drops[i], at: tick.from_ms + tick.drops[i + 1] / 10, count: tick.drops[i + 2] });
  drops.push(...placed);
  if (tick.lost || tick.not_drawn) gaps.push({ from: Math.min(began, tick.from_ms || began) - 1000, to: serverMs, batches: tick.not_drawn || 0 });
  if (tick.unplaced) gaps.push({ from: Math.min(began, tick.from_ms) - 1000, to: placed[0].at, batches: 0 });
}

// What is looked at stays while the page is paused, as far as there is room.
function forgetOld() {
  const oldest = Math.min(serverMs, pausedAt ?? serverMs) - KEPT_MS;
  if (bars.length > MOST_BARS || (bars.length > 0 && bars[0].end < oldest - KEPT_MS)) bars = bars.slice(-MOST_BARS).filter(bar => bar.end > oldest);
  if (drops.length > MOST_BARS || (drops.length > 0 && drops[0].at < oldest - 2 * KEPT_MS)) {
    const kept = drops.slice(-MOST_BARS / 2).filter(drop => drop.at > oldest - KEPT_MS);
    if (kept.length < drops.length) gaps.unshift({ from: 0, to: drops[drops.length - kept.length - 1].at, batches: 0 });
    drops = kept;
  }
  gaps = gaps.filter(gap => gap.from === 0 || gap.to > oldest - KEPT_MS);
  for (const gap of gaps) if (gap.to < serverMs - KEPT_MS) gap.batches = 0;
}

// "at least " where more may have happened between.
const atLeast = (from, to) => gaps.some(gap => gap.from <= to && gap.to >= from) ? "at least " : "";

// Calls that their client took back count nowhere.
const missedOf = ended => ended[1] + ended[2] + ended[3] + ended[5];

const REFUSED = {
  client_limit: "over their client's limit", unavailable: "their model is not ready, or the server stops", not_found: "no such model",
  resource_exhausted: "the server is full", unread: "refused by their header, as calls are lost", deadline_exceeded: "no time left as they came",
  invalid_argument: "malformed", unauthenticated: "no known token", permission_denied: "a token that may not infer", unimplemented: "not served here",
};
const rate = perSecond => perSecond >= 10 ? perSecond.toFixed(0) : perSecond.toFixed(1);

// "312 calls/s refused: over their client's limit", of the last ten seconds; empty: none.
function refusedText() {
  const sums = new Map();
  for (const second of refusals) for (const [reason, n] of Object.entries(second)) sums.set(reason, (sums.get(reason) || 0) + n / refusals.length);
  const each = [...sums].sort((a, b) => b[1] - a[1]);
  if (each.length === 0) return "";
  const why = each.map(([reason, n]) => `${own(REFUSED, reason) || reason}${each.length > 1 ? ` ${rate(n)}` : ""}`).join(", ");
  return `${rate(sumOf(each.map(([, n]) => n)))} calls/s refused: ${why}`;
}

function showLevel(met, missed) {
  const all = met + missed;
  const refused = sumOf(refusals.map(second => sumOf(Object.values(second)))) / Math.max(refusals.length, 1);
  const level = byId("level");
  level.textContent = all > 0 ? `${(100 * met / all).toFixed(1)} %` : refused > 0 ? "none accepted" : "no calls";
  // Refused calls are no part of the share, but nothing is well while there are many.
  const bad = (all > 0 && met / all < 0.99) || refused > 0.01 * (all + refused);
  level.className = bad ? "bad" : refused > 0 ? "" : "good";
  show("level-text", all > 0 ? `${met.toFixed(0)} calls/s in time, ${missed.toFixed(0)} missed` : "");
  show("refused", refusedText());
}

function fill(row, cells) {
  while (row.cells.length < cells.length) row.insertCell();
  cells.forEach(([text, name = ""], i) => {
    const cell = row.cells[i];
    if (cell.textContent !== text) cell.textContent = text;
    if (cell.className !== name) cell.className = name;
  });
}

function rowsFor(body, count) {
  while (body.rows.length > count) body.deleteRow(-1);
  while (body.rows.length < count) body.insertRow();
  return body.rows;
}

function showModels(live) {
  lastModels = live;
  const rows = rowsFor(byId("models"), state.wanted.length);
  for (const row of rows) row.title = "";
  state.wanted.forEach((model, i) => {
    const now = own(live, model.name);
    const first = [[model.name], [stateOf(model), model.state === "READY" ? "" : "bad"]];
    const slo = [model.slo_ms > 0 ? `${model.slo_ms}` : "-", "number"];
    if (!now) return fill(rows[i], [...first, ["-", "number"], ["0", "number"], ["", "number"], ["", "number"], slo, ["0", "number"], ["", "number"], ["", "number"], ["", "number"], [""]]);
    const missed = missedOf(now.ended), all = now.ended[0] + missed;
    const part = all > 0 ? now.ended[0] / all : 1;
    const misses = part < 0.99;
    const over = model.slo_ms > 0 && now.p99_ms > model.slo_ms;
    const detail = OUTCOMES.slice(1).map((name, k) => [name, now.ended[k + 1]]).filter(([, n]) => n > 0).map(([name, n]) => `${n} ${name}`).join(", ");
    const steps = now.steps[0] + missedOf(now.steps);
    rows[i].title = [detail, exitsOf(model, now.exits)].filter(Boolean).join("; ");
    fill(rows[i], [...first, [`${misses ? "MISS " : ""}${(100 * part).toFixed(1)} %`, misses ? "number bad" : "number good"],
      [callsOf(all / now.seconds, steps / now.seconds), "number"], [shown(now.p50_ms), "number"], [shown(now.p99_ms), over ? "number bad" : "number"], slo,
      [`${now.waiting ?? ""}`, "number"], [now.rows > 0 ? shown(now.rows) : "", "number"],
      [now.slower > 0 ? shown(now.slower, 2) : "", now.slower >= 1.25 ? "number bad" : "number"],
      [accuracyOf(model, now.exits), "number"], [now.why, "why"]]);
  });
  const whys = state.wanted.filter(model => own(live, model.name)?.why).map(model => `${model.name}: ${own(live, model.name).why}`);
  byId("whys").replaceChildren(...whys.map(text => Object.assign(document.createElement("li"), { textContent: text })));
}

// A second's, of a model that pipelines run too.
const callsOf = (all, steps) => steps > 0 ? `${(all - steps).toFixed(0)} + ${steps.toFixed(0)} steps` : all.toFixed(0);

const sumOf = numbers => numbers.reduce((sum, n) => sum + n, 0);

// What its answers are worth in the mean, by the accuracies that the model states; else nothing.
function accuracyOf(model, exits) {
  const each = model.accuracies || [];
  if (!sumOf(exits) || each.length !== model.exits.length) return "";
  return shown(sumOf(exits.map((n, e) => n * each[e])) / sumOf(exits), 3);
}

const exitsOf = (model, exits) => (model.exits || []).length < 2 || !sumOf(exits) ? "" :
  `answered by exit ${exits.map((n, e) => [model.exits[e], n]).filter(([, n]) => n).map(([name, n]) => `${name}: ${(100 * n / sumOf(exits)).toFixed(0)} %`).join(", ")}`;

function showSeconds() {
  const body = byId("seconds");
  if (!body.closest("details").open) return;
  const last = history.slice(-20).reverse();
  const rows = rowsFor(body, last.length);
  last.forEach((second, i) => fill(rows[i], [[`${i}`, "number"], [shown(second.met, 0), "number"], [shown(second.missed, 0), "number"], [shown(second.refused, 0), "number"], [`${second.waiting}`, "number"], [shown(second.busy, 0), "number"]]));
}

const endOf = bar => bar.failed ? "failed" : bar.late ? "LATE" : "in time";
const exitOf = bar => {
  const name = state.names[bar.model];
  const model = state.models.find(each => each.name === name);
  return (model && model.exits && model.exits[bar.exit]) || `${bar.exit + 1}`;
};

function showBatches() {
  const body = byId("batches");
  if (!body.closest("details").open || pausedAt !== null) return;
  const last = bars.slice(-25).reverse();
  const rows = rowsFor(body, last.length);
  last.forEach((bar, i) => fill(rows[i], [[(bar.start / 1000).toFixed(3), "number"], [`${bar.lane}`], [state.names[bar.model] || "?"], [bar.count > 1 ? "" : exitOf(bar)], [`${bar.rows}${bar.count > 1 ? ` in ${bar.count} batches` : ""}`, "number"], [(bar.end - bar.start).toFixed(1), "number"], [endOf(bar), bar.late || bar.failed ? "bad" : ""]]));
}

// The options of a <select>, of which the first stays.
function offer(id, names) {
  const select = byId(id), had = [...select.options].slice(1).map(option => option.value);
  if (had.join("\n") === names.join("\n")) return;
  const chosenNow = select.value;
  select.replaceChildren(select.options[0], ...names.map(name => new Option(name, name)));
  select.value = names.includes(chosenNow) ? chosenNow : select.options[0].value;
}

function offerWhatIf() {
  byId("if-part").hidden = !(state.policies || []).length;
  offer("if-policy", state.policies || []);
  offer("if-model", [...new Set(state.wanted.filter(model => model.settable).map(model => model.name))]);
}

async function askWhatIf() {
  const value = id => byId(id).value.trim();
  const set = value("if-more").split(/\s+/).filter(Boolean);
  if (value("if-policy")) set.push(`policy=${value("if-policy")}`);
  if (value("if-lanes")) set.push(`lanes=${value("if-lanes")}`);
  if (value("if-slo")) set.push(`models.${value("if-model")}.slo_ms=${value("if-slo")}`);
  byId("if-ask").disabled = true;
  show("if-about", "simulating");
  try {
    const answer = await fetch(WHAT_IF, { method: "POST", headers: headers(), body: JSON.stringify({ set }) });
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error);
    showWhatIf(said, set);
  } catch (error) {
    show("if-about", `no answer: ${error.message}`);
    byId("if-table").hidden = true;
  }
  byId("if-ask").disabled = false;
}

function showWhatIf(said, set) {
  const runs = [["as it was", said.was], ["the same, simulated", said.same]];
  if (said.other) runs.push([set.join(", "), said.other]);
  const deadlines = said.own_deadlines ? ` ${said.own_deadlines} calls keep deadlines that they stated themselves.` : "";
  const beside = set.some(each => /^(lanes|slots|lanes\.)/.test(each)) ? " Lanes and slots beside each other are simulated as if none slowed another." : "";
  const many = said.of_many_rows ? ` ${said.of_many_rows} calls had several rows: each row counts here, and is simulated, for itself.` : "";
  const left = said.left_out ? ` ${said.left_out} calls are left out: of models that are not served now, or do not run on these lanes.` : "";
  const steps = said.steps ? ` ${said.steps} are steps of pipelines: each counts here, and is simulated, for itself.` : "";
  show("if-about", `${said.was.requests} ${steps ? "calls and steps" : many ? "rows" : "calls"} of ${said.seconds.toFixed(0)} s${said.ago_seconds > 5 ? `, seen until ${said.ago_seconds.toFixed(0)} s ago` : ""}.${steps}${many}${left}${deadlines}${beside} Simulated as it was, ${shown(said.same.in_time_percent)} % would be in time; ${shown(said.was.in_time_percent)} % were.`);
  byId("if-table").hidden = false;
  const names = Object.keys(said.was.models);
  const all = ["all", ...(names.length > 1 ? names : [])].flatMap(name => runs.map(([what, run]) => [name, what, name === "all" ? run : own(run.models, name)]));
  const rows = rowsFor(byId("if-rows"), all.length);
  all.forEach(([name, what, run], i) => fill(rows[i], [[name], [what], [`${shown(run.in_time_percent)} %`, run.in_time_percent < 99 ? "number bad" : "number good"], [shown(run.p50_ms), "number"], [shown(run.p95_ms), "number"], [shown(run.p99_ms), "number"], [shown(run.mean_batch), "number"], [run.accuracy === undefined ? "" : shown(run.accuracy, 3), "number"]]));
}

// Streams are asked for each second, where the server has any.
async function watchStreams() {
  for (;;) {
    try {
      const answer = state.streams && await fetch(STREAMS, { headers: headers(), cache: "no-store" });
      if (answer.ok) showStreams((await answer.json()).streams);
    } catch { /* the other connection says so */ }
    await new Promise(done => setTimeout(done, 1000));
  }
}

function showStreams(streams) {
  byId("streams-part").hidden = streams.length === 0;
  const rows = rowsFor(byId("streams"), streams.length);
  streams.forEach((stream, i) => {
    const served = (stream.frames.answer || {}).served ?? (stream.frames.served ?? "");
    fill(rows[i], [[stream.name], [stream.model || ""], [stream.error ? `${stream.state}: ${stream.error}` : stream.state, stream.error ? "bad" : ""],
      [`${stream.frames.read ?? ""}`, "number"], [`${served}`, "number"], [shown(stream.latency_ms.p50), "number"], [shown(stream.latency_ms.p99), "number"], [`${stream.slo_ms}`, "number"]]);
    let button = rows[i].cells[8]?.firstChild;
    if (!button) {
      button = document.createElement("button");
      button.type = "button";
      button.textContent = "Show";
      button.addEventListener("click", () => showPicture(button.dataset.name));
      rows[i].insertCell().append(button);
    }
    button.dataset.name = stream.name;
    button.setAttribute("aria-label", `Show the pictures of ${stream.name}`);
  });
  const wanted = decodeURIComponent((/#stream=(.*)/.exec(location.hash) || [])[1] || "");
  if (wanted && pictured !== wanted && streams.some(stream => stream.name === wanted)) showPicture(wanted);
}

let pictured = null;

// The pictures of a stream: parts of multipart/x-mixed-replace. Read here and not by <img>, which
// could not send a token.
async function showPicture(name) {
  pictured = name;
  location.hash = `stream=${encodeURIComponent(name)}`;
  const figure = byId("picture"), img = figure.querySelector("img");
  figure.hidden = false;
  figure.querySelector("figcaption").textContent = name;
  let url = null;
  try {
    const answer = await fetch(`${STREAMS}/${encodeURIComponent(name)}/video`, { headers: headers() });
    if (!answer.ok) throw new Error(`${answer.status}`);
    const reader = answer.body.getReader();
    let held = new Uint8Array();
    while (pictured === name) {
      const { value, done } = await reader.read();
      if (done) break;
      const both = new Uint8Array(held.length + value.length);
      both.set(held);
      both.set(value, held.length);
      held = both;
      for (;;) {
        const head = new TextDecoder("latin1").decode(held.subarray(0, 200));
        const begin = head.indexOf("\r\n\r\n"), length = /Content-Length: (\d+)/.exec(head);
        if (begin < 0 || !length || held.length < begin + 4 + +length[1]) break;
        const next = URL.createObjectURL(new Blob([held.slice(begin + 4, begin + 4 + +length[1])], { type: "image/jpeg" }));
        img.src = next;
        if (url) URL.revokeObjectURL(url);
        url = next;
        held = held.slice(begin + 4 + +length[1] + 2);
      }
    }
    reader.cancel();
  } catch (error) {
    figure.querySelector("figcaption").textContent = `${name}: no pictures (${error.message})`;
  }
  if (pictured === name) pictured = null;
}

byId("login").addEventListener("submit", event => {
  event.preventDefault();
  const given = byId("token").value.trim();
  byId("token").value = "";
  show("login-error", isToken(given) ? "" : "That cannot be a token: one has letters, digits and signs of ASCII, and no spaces.");
  if (!isToken(given)) return;
  token = given;
  sessionStorage.setItem("tactus-token", token);
  byId("login").hidden = true;
  watch();
});
byId("if").addEventListener("submit", event => { event.preventDefault(); askWhatIf(); });
byId("forget").addEventListener("click", () => { forgetToken(); location.reload(); });
byId("pause").addEventListener("click", () => pause(pausedAt === null));
byId("in").addEventListener("click", () => zoom(-1));
byId("out").addEventListener("click", () => zoom(1));
byId("earlier").addEventListener("click", () => move(-1));
byId("later").addEventListener("click", () => move(1));
byId("lanes").addEventListener("pointerdown", event => { if (event.button === 0) drag(event); });
byId("lanes").addEventListener("wheel", event => { event.preventDefault(); zoom(Math.sign(event.deltaY), pausedAt === null ? undefined : msAt(event)); }, { passive: false });
byId("lanes").addEventListener("keydown", event => {
  const keys = { ArrowLeft: () => step(-1), ArrowRight: () => step(1), PageUp: () => move(-1), PageDown: () => move(1), "+": () => zoom(-1), "-": () => zoom(1), " ": () => pause(pausedAt === null), Escape: () => { pause(false); choose(null); } };
  if (!keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
zoom(0);
watch();
watchStreams();
animate();
