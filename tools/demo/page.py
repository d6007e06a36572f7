"""The page of `./run demo pipelines`: what was found, drawn over the pictures, and the loads."""
import html

# The parts of the body that a line joins, by their numbers in PoseNet's answer.
BONES = ((5, 7), (7, 9), (6, 8), (8, 10), (5, 6), (5, 11), (6, 12), (11, 12), (11, 13), (13, 15),
         (12, 14), (14, 16))
SEEN = 0.3  # of a part's score

STYLE = '''
:root { color-scheme: light dark; --line: #8886; --ours: #1f77b4; --theirs: #9aa4ad }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(20rem, 1fr)); gap: 1rem }
figure { margin: 0; border: 1px solid var(--line); border-radius: .4rem; overflow: hidden }
figure svg { display: block; width: 100%; height: auto }
figcaption { padding: .5rem .8rem; font-size: .9rem }
figcaption b { font-weight: 600 } .time { opacity: .7; float: right }
.found { fill: none; stroke: #ffd400; stroke-width: .5% }
.bone { stroke: #00e5ff; stroke-width: .4% }
.part { fill: #ff2d6f }
table { border-collapse: collapse } td, th { padding: .3rem .8rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid var(--line) }
.bar { display: inline-block; height: .8em; background: var(--theirs); border-radius: .1em }
.ours .bar { background: var(--ours) } td.bars { text-align: left; width: 20rem }
.ours td:first-child { font-weight: 600 }
.video { max-width: 44rem } .video svg g { display: none } .video svg g.shown { display: inline }
.video figcaption { display: flex; gap: .8rem; align-items: center }
.video input { flex: 1 } .video output { min-width: 14rem; text-align: right }
'''

# Shows one drawn frame after the other. No frame is fetched: all are in the page from the start.
PLAYER = '''
const video = document.querySelector('.video'), frames = [...video.querySelectorAll('g')];
const button = video.querySelector('button'), slider = video.querySelector('input');
const says = video.querySelector('output');
let at = 0, timer = null;
function show(frame) {
  frames[at].classList.remove('shown');
  at = frame % frames.length;
  frames[at].classList.add('shown');
  slider.value = at;
  says.textContent = frames[at].dataset.says;
}
function play(on) {
  clearInterval(timer);
  timer = on ? setInterval(() => show(at + 1), 1000 / video.dataset.fps) : null;
  button.textContent = on ? 'Pause' : 'Play';
}
button.onclick = () => play(timer === null);
slider.oninput = () => { play(false); show(Number(slider.value)); };
show(0);
play(!matchMedia('(prefers-reduced-motion: reduce)').matches);
'''


def polygon(corners):
    points = ' '.join(f'{x:.1f},{y:.1f}' for x, y in corners)
    return f'<polygon class="found" points="{points}"/>'


def person(box, parts):
    left, top, right, bottom = box
    shapes = [f'<rect class="found" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
              f'height="{bottom - top:.1f}"/>']
    for a, b in BONES:
        (xa, ya, sa), (xb, yb, sb) = parts[a], parts[b]
        if min(sa, sb) > SEEN:
            shapes.append(f'<line class="bone" x1="{xa:.1f}" y1="{ya:.1f}" x2="{xb:.1f}" '
                          f'y2="{yb:.1f}"/>')
    shapes += [f'<circle class="part" cx="{x:.1f}" cy="{y:.1f}" r=".35%"/>'
               for x, y, score in parts if score > SEEN]
    return ''.join(shapes)


def figure(picture, size, shapes, caption, took_ms):
    width, height = size
    return (f'<figure><svg viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{html.escape(caption)}"><image href="{html.escape(picture)}" '
            f'width="{width}" height="{height}"/>{"".join(shapes)}</svg>'
            f'<figcaption><span class="time">{took_ms:.0f} ms</span>{html.escape(caption)}'
            '</figcaption></figure>')


def video(pictures, size, fps):
    """A film of drawn frames; `pictures`: (file, shapes, what was found, ms) of each."""
    width, height = size
    shown = ''.join(
        f'<g data-says="{html.escape(says)} · {took_ms:.0f} ms"><image href="{html.escape(name)}" '
        f'width="{width}" height="{height}"/>{"".join(shapes)}</g>'
        for name, shapes, says, took_ms in pictures)
    return (f'<figure class="video" data-fps="{fps:g}"><svg viewBox="0 0 {width} {height}" '
            f'role="img" aria-label="a street, with persons and poses drawn in">{shown}</svg>'
            '<figcaption><button>Play</button><input type="range" value="0" min="0" '
            f'max="{len(pictures) - 1}" aria-label="frame"><output></output></figcaption></figure>'
            f'<script>{PLAYER}</script>')


def table(rows):
    """`rows`: (load, rule, offered, on time, violations in %, P95 ms, is ours)."""
    most = max(row[3] for row in rows) or 1
    lines = ['<tr><th>steps have</th><th>load</th><th>offered, 1/s</th><th>on time, 1/s</th>'
             '<th></th><th>violations, %</th><th>P95, ms</th></tr>']
    for load, rule, offered, good, bad, p95, ours in rows:
        kind = ' class="ours"' if ours else ''
        lines.append(f'<tr{kind}><td>{html.escape(rule)}</td><td>{load:g}</td>'
                     f'<td>{offered:.1f}</td><td>{good:.1f}</td><td class="bars"><span class="bar" '
                     f'style="width:{100 * good / most:.0f}%"></span></td><td>{bad:.1f}</td>'
                     f'<td>{p95:.0f}</td></tr>')
    return f'<table>{"".join(lines)}</table>'


def page(texts, frames, film, loads, told):
    return f'''<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Tactus: pipelines</title><style>{STYLE}</style>
<h1>Two pipelines, one call each</h1>
<p>A client sends a JPEG and has one answer in time. The times are the client's, one call after
another: HTTP, decoding, every model and every operator included.</p>
<h2>read_text: a photograph in, its texts out</h2>
<p>Detection, a crop for each line, its direction, recognition (PP-OCRv4).</p>
<div class="pictures">{"".join(texts)}</div>
<h2>street: a frame in, persons and their poses out</h2>
<p>NanoDet finds persons, PoseNet runs once for each of them. A video, each frame one call:</p>
{film}
<p>And four pictures of it in full size:</p>
<div class="pictures">{"".join(frames)}</div>
<h2>Past what this machine sustains</h2>
<p>{html.escape(told)}</p>
{table(loads)}
</html>
'''
