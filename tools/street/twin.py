"""The simulated twin of a run: `tactus simulate` on the file that the controller had."""
import json
import subprocess

from network import Refused

BAR = 0.10


def simulated(binary, fleet, out, planner, seconds):
    settings = ['--set', f'duration_s={max(60, seconds):g}']
    if planner:
        settings += ['--set', f'planner={planner}']
    done = subprocess.run([str(binary), 'simulate', str(fleet), '--json', str(out), *settings],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f'tactus simulate {fleet}: {done.stderr.strip() or done.stdout.strip()}')
    return json.loads(out.read_text(encoding='utf-8'))['runs'][0]


def beside(binary, folder, run, planner):
    """P50 of each camera's persons, measured and simulated; None where nothing was in time."""
    tag = f'{run["speed"]}-octopinf'
    report = simulated(binary, folder / f'fleet-{tag}.toml', folder / f'twin-{tag}.json', planner,
                       run['seconds'])
    cameras = {}
    for each in report['pipelines']:
        real = run['cameras'][each['name']]['p50_ms'] or None
        there = each['p50_ms'] or None
        cameras[each['name']] = {
            'measured_p50_ms': real, 'simulated_p50_ms': there,
            'apart': abs(there - real) / real if real and there else None}
    return {'speed': run['speed'], 'cameras': cameras,
            'measured_rps': run['persons_on_time_rps'], 'simulated_rps': report['effective_rps']}
