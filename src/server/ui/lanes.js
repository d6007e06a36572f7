// What the live page draws on canvases, and how one moves along the lanes' time. app.js, which comes
// after it, has the data.
"use strict";

const colourOf = model => COLOURS[model % COLOURS.length];
const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The canvas in pixels of the screen, cleared; null where it is not to be seen.
function pen(canvas) {
  const box = canvas.getBoundingClientRect();
  if (box.width === 0 || box.bottom < 0 || box.top > innerHeight) return null;
  const scale = devicePixelRatio || 1;
  const width = Math.round(box.width * scale), height = Math.round(box.height * scale);
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const draw = canvas.getContext("2d");
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  draw.clearRect(0, 0, box.width, box.height);
  draw.font = "12px system-ui, sans-serif";
  draw.textBaseline = "middle";
  return { draw, width: box.width, height: box.height };
}

const LEFT = 92, FOOT = 18;

// What is there to be drawn is half a second behind, so that a tick is there when its time is drawn.
const newestMs = () => serverMs + (performance.now() - clockMs) - 400;
const nowMs = () => pausedAt ?? newestMs();

function drawLanes() {
  const at = pen(byId("lanes"));
  if (!at) return;
  const { draw, width, height } = at;
  const wide = 1000 * SPANS[span], end = nowMs(), begin = end - wide;
  const lanes = Math.max(state.lanes, 1), row = (height - FOOT) / lanes;
  const x = ms => LEFT + (ms - begin) / wide * (width - LEFT);
  const front = variable("--front"), dim = variable("--dim"), bad = variable("--bad"), line = variable("--line");
  draw.textAlign = "left";
  for (let lane = 0; lane < lanes; ++lane) {
    const [busy, held] = laneNow[lane] || [0, 0];
    draw.fillStyle = held ? bad : front;
    draw.fillText(held ? `${state.lane} ${lane} LOST` : `${state.lane} ${lane}  ${busy.toFixed(0)} %`, 6, (lane + 0.5) * row);
    draw.fillStyle = line;
    draw.fillRect(LEFT, (lane + 1) * row - 1, width - LEFT, 1);
  }
  draw.fillStyle = dim;
  draw.textAlign = "center";
  for (let i = 0; i < 5; ++i) {
    const ms = begin + (i + 0.5) * wide / 5;
    const shownMs = pausedAt === null ? ms - end : ms;
    draw.fillText(`${(shownMs / 1000).toFixed(wide < 2000 ? 2 : 1)} s`, x(ms), height - FOOT / 2);
    draw.fillRect(x(ms), height - FOOT, 1, 3);
  }
  for (let i = bars.length - 1; i >= 0; --i) {
    const bar = bars[i];
    if (bar.start > end) continue;
    if (bar.end < begin - 5000) break;
    if (bar.end < begin) continue;
    const left = Math.max(x(bar.start), LEFT), long = Math.max(x(bar.end) - left - 0.5, 1);
    const top = bar.lane * row + 3, high = row - 7;
    draw.fillStyle = colourOf(bar.model);
    draw.fillRect(left, top, long, high);
    if (bar.late || bar.failed) {
      draw.fillStyle = bad;
      draw.fillRect(left, top - 3, long, 3);
      if (long > 14) { draw.fillStyle = "#000"; draw.textAlign = "center"; draw.fillText(bar.failed ? "✕" : "!", left + long / 2, top + high / 2); }
    } else if (long > 70) {
      draw.fillStyle = "#000";
      draw.textAlign = "center";
      draw.fillText(bar.count > 1 ? `${bar.rows} in ${bar.count}` : `exit ${exitOf(bar)}, ${bar.rows}`, left + long / 2, top + high / 2);
    }
    if (bar === chosen) { draw.strokeStyle = front; draw.lineWidth = 2; draw.strokeRect(left, top, long, high); }
  }
}

function drawChart(id, series, colours, least, most = Math.max(least, ...series.flat()) * 1.1) {
  const at = pen(byId(id));
  if (!at) return;
  const { draw, width, height } = at;
  const x = i => 36 + (i + SECONDS - history.length) / (SECONDS - 1) * (width - 40);
  const y = value => height - 6 - value / most * (height - 14);
  draw.fillStyle = variable("--dim");
  draw.textAlign = "right";
  draw.fillText(most >= 10 ? most.toFixed(0) : most.toFixed(1), 32, 10);
  draw.fillText("0", 32, height - 8);
  series.forEach((values, k) => {
    draw.strokeStyle = variable(colours[k]);
    draw.lineWidth = 1.6;
    draw.setLineDash([[], [5, 3], [1, 3]][k]);
    draw.beginPath();
    values.forEach((value, i) => i === 0 ? draw.moveTo(x(i), y(value)) : draw.lineTo(x(i), y(value)));
    draw.stroke();
  });
  draw.setLineDash([]);
}

function draw() {
  drawLanes();
  drawChart("calls", [history.map(s => s.met), history.map(s => s.missed), history.map(s => s.refused)], ["--good", "--bad", "--front"], 1);
  drawChart("waiting", [history.map(s => s.waiting)], ["--link"], 4);
  drawChart("busy", [history.map(s => s.busy)], ["--link"], 100 / 1.1, 100);
}

// Where nothing is to move, twice a second is often enough.
const still = matchMedia("(prefers-reduced-motion: reduce)");
function animate() {
  draw();
  if (still.matches) setTimeout(animate, 500); else requestAnimationFrame(animate);
}

function choose(bar) {
  chosen = bar;
  if (!bar) return;
  const many = bar.count > 1 ? ` in ${bar.count} batches` : "";
  const expected = bar.predicted > 0 ? ` where ${bar.predicted.toFixed(1)} were expected` : "";
  const givenUp = new Map();
  for (const drop of drops) if (drop.at >= bar.start && drop.at <= bar.end) givenUp.set(drop.model, (givenUp.get(drop.model) || 0) + drop.count);
  const meanwhile = givenUp.size > 0 ? `; given up meanwhile: ${atLeast(bar.start, bar.end)}${[...givenUp].map(([model, n]) => `${n} of ${state.names[model] || "?"}`).join(", ")}` : "";
  show("bar", `${state.names[bar.model] || "?"}${bar.count > 1 ? "" : `, exit ${exitOf(bar)}`}: ${bar.rows} row${bar.rows === 1 ? "" : "s"}${many} on ${state.lane} ${bar.lane}, from ${(bar.start / 1000).toFixed(3)} s on for ${(bar.end - bar.start).toFixed(1)} ms${expected}, ${endOf(bar)}${meanwhile}${storyOf(bar)}`);
}

// Of a late batch: what ran while its calls waited, and what would have saved them.
function storyOf(bar) {
  if (!bar.late || !bar.lateBy) return "";
  const took = new Map();
  for (const each of bars) {
    const overlap = Math.min(each.end, bar.start) - Math.max(each.start, bar.start - bar.waited);
    if (each !== bar && overlap > 0) took.set(each.model, (took.get(each.model) || 0) + overlap);
  }
  const most = [...took].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([model, ms]) => `${state.names[model] || "?"} for ${ms.toFixed(1)} ms`);
  const ran = bar.waited >= 0.1 ? ` It waited up to ${bar.waited.toFixed(1)} ms${most.length > 0 ? `, while there ran ${atLeast(bar.start - bar.waited, bar.start)}${most.join(", ")}` : ""}.` : "";
  const slower = bar.predicted > 0 ? bar.end - bar.start - bar.predicted : 0;
  const remedy = slower >= bar.lateBy ? "The run that was expected" : bar.waited >= bar.lateBy ? "An idle lane" : "An earlier exit, a smaller batch or a longer SLO";
  return `, by ${bar.lateBy.toFixed(1)} ms.${ran} ${remedy} would have saved it.`;
}

function pause(on) {
  pausedAt = on ? nowMs() : null;
  byId("pause").setAttribute("aria-pressed", on);
  byId("pause").textContent = on ? "Go on" : "Pause";
  showSpan();
}

function showSpan() {
  const wide = SPANS[span];
  show("span", pausedAt === null ? `the last ${wide} s` : `${wide} s, from ${(pausedAt / 1000 - wide).toFixed(2)} s on`);
}

// Pauses, with what is shown ending then: neither after what has come nor before what is kept.
function showUntil(end) {
  if (pausedAt === null) pause(true);
  const oldest = Math.min(bars.length > 0 ? bars[0].start + 100 * SPANS[span] : end, pausedAt);
  pausedAt = Math.min(Math.max(end, oldest), Math.max(newestMs(), oldest));
  showSpan();
}

const move = by => showUntil(nowMs() + by * 250 * SPANS[span]);
const middleOf = bar => (bar.start + bar.end) / 2;

// About an instant: that of the chosen bar, or the middle of what is shown while it is paused. Else
// what is shown ends with what is new.
function zoom(by, about = chosen ? middleOf(chosen) : pausedAt === null ? null : pausedAt - 500 * SPANS[span]) {
  const before = SPANS[span], end = nowMs();
  span = Math.max(0, Math.min(SPANS.length - 1, span + by));
  if (about === null || by === 0) return showSpan();
  const far = end - about, inside = far >= 0 && far <= 1000 * before;
  showUntil(inside ? about + far * SPANS[span] / before : about + 500 * SPANS[span]);
}

function msAt(event) {
  const box = byId("lanes").getBoundingClientRect(), wide = 1000 * SPANS[span];
  return nowMs() - wide + (event.clientX - box.left - LEFT) / (box.width - LEFT) * wide;
}

function atPoint(event) {
  const box = byId("lanes").getBoundingClientRect();
  const wide = 1000 * SPANS[span], ms = msAt(event);
  const lane = Math.floor((event.clientY - box.top) / ((box.height - FOOT) / Math.max(state.lanes, 1)));
  const slack = wide / 400;
  return bars.findLast(bar => bar.lane === lane && bar.start - slack <= ms && ms <= bar.end + slack);
}

function step(by) {
  if (pausedAt === null) pause(true);
  const place = bars.indexOf(chosen);
  if (place < 0) return choose(bars.findLast(bar => bar.start <= pausedAt && bar.end >= pausedAt - 1000 * SPANS[span]));
  const next = bars[Math.max(0, Math.min(bars.length - 1, place + by))];
  choose(next);
  if (next.end > pausedAt || next.start < pausedAt - 1000 * SPANS[span]) showUntil(middleOf(next) + 500 * SPANS[span]);
}

// The timeline is dragged along; what was pressed and let go at one place is chosen.
function drag(down) {
  const canvas = byId("lanes"), begun = down.clientX, end = nowMs();
  let moved = false;
  const perPixel = 1000 * SPANS[span] / (canvas.getBoundingClientRect().width - LEFT);
  const onMove = event => {
    moved ||= Math.abs(event.clientX - begun) > 4;
    if (moved) showUntil(end - (event.clientX - begun) * perPixel);
  };
  const onUp = event => {
    canvas.removeEventListener("pointermove", onMove);
    canvas.removeEventListener("pointerup", onUp);
    canvas.removeEventListener("pointercancel", onUp);
    if (!moved && event.type === "pointerup") choose(atPoint(event));
  };
  canvas.setPointerCapture(down.pointerId);
  canvas.addEventListener("pointermove", onMove);
  canvas.addEventListener("pointerup", onUp);
  canvas.addEventListener("pointercancel", onUp);
}
