#include "server/http/stream_page.h"

namespace tactus {
namespace {

constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>@NAME@ - Tactus</title>
<style>
body { font: 14px sans-serif; margin: 1em; background: #111; color: #ddd; }
img { max-width: 100%; background: #222; }
table { border-spacing: 1em 0; } td:last-child { text-align: right; }
pre { white-space: pre-wrap; color: #9c9; max-height: 10em; overflow: hidden; }
</style></head><body>
<h1>@NAME@</h1>
<img src="video" alt="the stream's answered frames">
<p id="state"></p><table id="frames"></table><pre id="last"></pre>
<script>
const show = (id, text) => { document.getElementById(id).textContent = text; };
async function count() {
  const answer = await fetch("../@NAME@");
  if (!answer.ok) { show("state", "the stream is gone"); return; }
  const s = await answer.json();
  show("state", `${s.state}, ${s.reconnects} reconnects, latency ${s.latency_ms.p50} ms ` +
       `(p99 ${s.latency_ms.p99} ms) of ${s.slo_ms} ms ${s.error || ""}`);
  const rows = document.getElementById("frames");
  rows.replaceChildren();
  for (const [stage, reasons] of Object.entries(s.frames)) {
    for (const [reason, n] of Object.entries(stage === "read" ? {"": reasons} : reasons)) {
      const row = rows.insertRow();
      row.insertCell().textContent = `${stage} ${reason}`;
      row.insertCell().textContent = n;
    }
  }
  setTimeout(count, 1000);
}
count();
new EventSource("events").onmessage = event => show("last", event.data);
</script></body></html>
)html";

}  // namespace

std::string StreamPage(std::string_view name) {
  std::string page(kPage);
  constexpr std::string_view kPlace = "@NAME@";
  for (std::size_t at = page.find(kPlace); at != page.npos; at = page.find(kPlace, at)) {
    page.replace(at, kPlace.size(), name);
  }
  return page;
}

}  // namespace tactus
