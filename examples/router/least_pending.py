#!/usr/bin/env python3
"""least_pending.py MODEL BODY HTTP_PORT:METRICS_PORT ...: sends one inference call, the JSON in the
file BODY, to the server of this machine that has the fewest calls of MODEL pending, as a router
does; the objective in OBJECTIVE, if it is set, goes with it."""

import os
import pathlib
import re
import sys
import urllib.error
import urllib.request

PENDING = re.compile(r'^nv_inference_pending_request_count\{([^}]*)\} (\S+)$', re.MULTILINE)


def pending(metrics_port, model):
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=5) as page:
        text = page.read().decode()
    # A model that is emulated has a further label: order and number of labels are nobody's promise.
    found = [float(value) for labels, value in PENDING.findall(text)
             if f'model="{model}"' in labels.split(",")]
    if not found:
        raise SystemExit(f"port {metrics_port} counts no '{model}': start it with --triton-metrics")
    return sum(found)


def main(model, body, *servers):
    counts = {server: pending(server.split(":")[1], model) for server in servers}
    least = min(servers, key=counts.get)
    for server in servers:
        print(f"{server}: {counts[server]:g} pending{', chosen' if server == least else ''}")
    request = urllib.request.Request(
        f"http://127.0.0.1:{least.split(':')[0]}/v2/models/{model}/infer",
        data=pathlib.Path(body).read_bytes())
    if "OBJECTIVE" in os.environ:
        request.add_header("x-llm-d-inference-objective", os.environ["OBJECTIVE"])
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            print(answer.status, answer.headers["Server-Timing"])
    except urllib.error.HTTPError as refused:
        raise SystemExit(f"{refused.code} {refused.read().decode()}") from None


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
