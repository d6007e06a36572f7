"""Cameras that send recorded frames, and what is counted of the answers."""
import json
import time

from fleet import quantile
from network import Refused


class Cameras:
    """One `tactus stream` a camera, in the camera's namespace, each to where `at` says."""

    def __init__(self, street, tactus, at, video, fps, slo_ms, seconds, log):
        self.began_ms = 1000 * time.time()
        self.fps, self.seconds, self.slo_ms = fps, seconds, slo_ms
        self.street = street
        self.streams = {}
        for name, (url, model) in at.items():
            self.streams[name] = street.start(
                name, [tactus, 'stream', f'{name}={video}', '--model', model, '--url', url,
                       '--loop', '--fps', f'{fps:g}', '--slo-ms', f'{slo_ms:g}', '--queue', 1,
                       '--in-flight', 2, '--duration', f'{seconds:g}'],
                f'{log}-{name}.jsonl', quota=False)

    def wait(self):
        end = time.monotonic() + self.seconds + 60
        while any(stream.child.poll() is None for stream in self.streams.values()):
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        self.street.end(*self.streams.values())

    def frames(self, name):
        """Answered frames, and the stream's own last word."""
        answered, last = [], None
        for line in self.streams[name].text().splitlines():
            if not line.startswith('{'):
                continue
            said = json.loads(line)
            if 'latency_ms' in said and 'captured_ms' in said:
                answered.append({'at_s': (said['captured_ms'] - self.began_ms) / 1e3,
                                 'latency_ms': said['latency_ms'], 'late': said['late'],
                                 'persons': said['outputs']['points']['shape'][0],
                                 'found': said['outputs']['boxes']['shape'][0]})
            else:
                last = said
        if last is None:
            stream = self.streams[name]
            raise Refused(f'{" ".join(stream.command)}\nended without its counts:\n'
                          f'{stream.text()[-600:]}')
        return answered, last

    def counted(self, name, warm_s):
        """From `warm_s` after the beginning to the end. Persons count when their poses came with an
        answer that was in time; `offered` are those of all frames that the camera had."""
        answered, last = self.frames(name)
        until = self.seconds
        kept = [f for f in answered if warm_s <= f['at_s'] < until]
        good = [f for f in kept if not f['late']]
        frames = last['frames']
        span = until - warm_s
        latencies = [f['latency_ms'] for f in good for _ in range(f['persons'])]
        per_second = [0] * round(span)
        for f in good:
            second = int(f['at_s'] + f['latency_ms'] / 1e3 - warm_s)
            if 0 <= second < len(per_second):
                per_second[second] += f['persons']
        drops = {f'{stage} {reason}': count for stage, reasons in frames.items()
                 if isinstance(reasons, dict) and stage not in ('pace', 'answer')
                 for reason, count in reasons.items() if count}
        return {'frames_wanted': self.fps * span, 'frames_on_time': len(good),
                'frames_late': len(kept) - len(good),
                'persons_found': sum(f['found'] for f in kept),
                'persons_on_time': sum(f['persons'] for f in good),
                'persons_on_time_rps': sum(f['persons'] for f in good) / span,
                'frames_on_time_rps': len(good) / span,
                'p50_ms': quantile(latencies, 0.5), 'p95_ms': quantile(latencies, 0.95),
                'p99_ms': quantile(latencies, 0.99), 'dropped_whole_run': drops,
                'on_time_each_second': per_second}
