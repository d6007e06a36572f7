"""check_cluster.py --programs FOLDER ... -- [--json FILE] [--nodes N] [--settings A,B] [--server]:
what a real Kubernetes says of the chart. Run it by tools/deploy/check_cluster.sh, which builds the
programs.

The chart is installed by helm in every setting of settings.sh, in a namespace whose pods must be
`restricted`, on a few nodes: every object is judged strictly by kube-apiserver, all pods become
ready, services lead to them, budgets hold; it is installed again without a change, upgraded, and
uninstalled with nothing left. Then what an operator does besides (cluster_cases.py), and a
DaemonSet on N nodes (1,000), upgraded and uninstalled. With --server there is kube-apiserver alone,
and so only what it takes and refuses. kwok plays kubelets and starts no container, and nobody
enforces network policies: that they are taken is all that is seen of them.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
import time

import cluster_cases
import yaml
from cluster_bench import RELEASE, Bench, volume
from cluster_looks import (Roll, Tally, await_bookkeeping, look_at_budgets, look_at_pods,
                           look_at_services, of_image)
from kube import Cluster, Refused

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools/demo'))
from checks import all_hold, checks_text  # noqa: E402

CHART = ROOT / 'deploy/helm/tactus'
FEW, POOL = 6, 3  # nodes for the settings, and those of them with the label pool=models


def strictly(bench, tally, namespace, words):
    """Each object as helm renders it, by the server, which is to refuse what it does not know."""
    complaint = bench.helm('template', RELEASE, CHART, '-n', namespace, *words, '--kube-version',
                           '1.37.2')
    if complaint:
        bench.problem(f'{namespace}: {complaint}')
        return
    for each in filter(None, yaml.safe_load_all(bench.said)):
        tally.objects += 1
        bench.api.warnings.clear()
        try:
            bench.api.create(each, namespace, dry=True)
            tally.taken += 1
        except Refused as refusal:
            bench.problem(f'{namespace}: {each["kind"]} {each["metadata"]["name"]}: {refusal}')
        tally.warnings |= set(bench.api.warnings)


def try_setting(bench, tally, name, words):
    print(f'== {name}', flush=True)
    namespace = f'in-{name}'
    before = bench.prepare(namespace)
    strictly(bench, tally, namespace, words)
    complaint = bench.helm('install', RELEASE, CHART, '-n', namespace, *words)
    if complaint:
        bench.problem(f'{namespace}: install: {complaint}')
        return
    tally.installed += bench.settle(namespace)
    if not bench.alone:
        await_bookkeeping(bench, namespace)
        look_at_pods(bench, tally, namespace)
        look_at_services(bench, tally, namespace)
        look_at_budgets(bench, tally, namespace)

    before_upgrade = bench.generations(namespace)
    complaint = bench.helm('upgrade', RELEASE, CHART, '-n', namespace, *words)
    if not complaint and bench.generations(namespace) == before_upgrade:
        tally.unchanged += 1
    else:
        bench.problem(f'{namespace}: an upgrade without a change: {complaint or "rolled pods"}')
    complaint = bench.helm('upgrade', RELEASE, CHART, '-n', namespace, *words, '--set',
                           'image.tag=0.1.1')
    if not complaint and bench.settle(namespace) and of_image(bench, namespace, '0.1.1'):
        tally.upgraded += 1
    else:
        bench.problem(f'{namespace}: upgrade: {complaint or "pods of the old image"}')
    left, kept = bench.uninstall(namespace, before)
    tally.clean += not left
    tally.kept += kept


def try_settings(bench, settings):
    tally, count = Tally(), len(settings)
    for name, words in settings.items():
        try_setting(bench, tally, name, words)
    for each in sorted(tally.warnings):
        bench.problem(f'the server warns: {each}')
    bench.all_of('objects of the settings that kube-apiserver takes, strictly', tally.taken,
                 tally.objects)
    bench.hold('warnings of kube-apiserver (old APIs, pods that are not `restricted`)',
               len(tally.warnings), '0', not tally.warnings)
    bench.all_of('settings that helm installed', tally.installed, count)
    bench.all_of('upgrades without a change that change no workload', tally.unchanged, count)
    bench.all_of('upgrades to another image', tally.upgraded, count)
    bench.all_of('settings uninstalled with nothing left', tally.clean, count)
    if bench.alone:
        return
    bench.all_of('pods of the settings that are ready', tally.ready, tally.pods)
    bench.hold('pods with a token of Kubernetes', tally.tokens, '0', not tally.tokens)
    bench.all_of('services that lead to all pods that they select, at the right ports', tally.led,
                 tally.services)
    bench.all_of('disruption budgets that count their pods and let one go', tally.right_budgets,
                 tally.budgets)
    bench.figures['volumes of controllers that uninstalling keeps'] = tally.kept


def rolled(bench, namespace, *words):
    """Upgrades and watches until all is new."""
    roll = Roll()
    process = subprocess.Popen(
        bench.helm_command('upgrade', RELEASE, CHART, '-n', namespace, *words),
        env=bench.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def done():
        roll.look(bench, namespace)
        return process.poll() is not None and bench.settled(namespace)
    bench.await_true('the upgrade', done)
    if process.wait() != 0:
        bench.problem(f'upgrade: {process.stderr.read()}')
    return roll


def try_many(bench, nodes, words):
    """A DaemonSet on many nodes."""
    print(f'== {nodes} nodes', flush=True)
    started = time.monotonic()
    bench.cluster.add_nodes(f'node-{i:04}' for i in range(bench.nodes, nodes))
    bench.await_true('the nodes', lambda: bench.cluster.ready_nodes() == nodes)
    bench.figures['seconds until all nodes were ready'] = round(time.monotonic() - started, 1)
    bench.nodes = nodes
    words = [*words, '--set', 'worker.most=1024']
    before = bench.prepare('many')
    started = time.monotonic()
    complaint = bench.helm('install', RELEASE, CHART, '-n', 'many', *words)
    if complaint:
        bench.problem(f'many: {complaint}')
    bench.settle('many')
    bench.figures['seconds until all workers were ready'] = round(time.monotonic() - started, 1)
    await_bookkeeping(bench, 'many')
    tally = Tally()
    look_at_pods(bench, tally, 'many')
    look_at_services(bench, tally, 'many')
    workers = [pod for pod in bench.pods('many')
               if pod['metadata']['labels']['app.kubernetes.io/component'] == 'worker']
    places = {pod['spec'].get('nodeName') for pod in workers}
    bench.all_of('nodes with a worker, one each', len(places) if len(places) == len(workers) else 0,
                 nodes)
    bench.all_of('pods there that are ready', tally.ready, nodes + 4)
    bench.all_of('services there that lead to all of them', tally.led, tally.services)

    started = time.monotonic()
    roll = rolled(bench, 'many', *words, '--set', 'image.tag=0.1.1')
    bench.figures['seconds until all workers were upgraded'] = round(time.monotonic() - started, 1)
    name = f'{RELEASE}-tactus'
    most = math.ceil(nodes / 10)
    bench.hold('workers missing at once while they are upgraded, at most',
               roll.missing[f'{name}-worker'], f'{most}', roll.missing[f'{name}-worker'] <= most)
    bench.hold('front ends there meanwhile, at least', roll.least[f'{name}-front-end'], '2',
               roll.least[f'{name}-front-end'] >= 2)
    bench.hold('schedulers there meanwhile, at least', roll.least[f'{name}-scheduler'], '1',
               roll.least[f'{name}-scheduler'] >= 1)
    bench.hold('pods of the old image after it', sum(
        not pod['spec']['containers'][0]['image'].endswith(':0.1.1') for pod in bench.pods('many')),
        '0', of_image(bench, 'many', '0.1.1'))
    left, _ = bench.uninstall('many', before)
    bench.hold('objects that uninstalling leaves there', len(left), '0', not left)


def established(bench, name):
    found = bench.api.get('apiextensions.k8s.io/v1', 'CustomResourceDefinition', None, name)
    return any(each['type'] == 'Established' and each['status'] == 'True'
               for each in found.get('status', {}).get('conditions') or [])


def define(bench, definitions):
    """Resources that are not Kubernetes' own, a class of volumes, and volumes."""
    for path in definitions:
        crd = yaml.safe_load(pathlib.Path(path).read_text())
        crd.pop('status', None)
        bench.api.create(crd)
        name = crd['metadata']['name']
        bench.await_true(name, lambda name=name: established(bench, name), 60)
    bench.api.create({'apiVersion': 'storage.k8s.io/v1', 'kind': 'StorageClass', 'metadata': {
        'name': 'disk', 'annotations': {'storageclass.kubernetes.io/is-default-class': 'true'}},
        'provisioner': 'kubernetes.io/no-provisioner'})
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(bench.api.create, (volume(f'disk-{i}', 'ReadWriteOnce', 'disk')
                                         for i in range(20))))
    if bench.alone:
        return
    bench.cluster.add_nodes([f'node-{i:04}' for i in range(POOL)], {'pool': 'models'})
    bench.cluster.add_nodes([f'node-{i:04}' for i in range(POOL, FEW)])
    bench.nodes, bench.pool = FEW, POOL
    bench.await_true('the nodes', lambda: bench.cluster.ready_nodes() == FEW)


def report(bench, version, path):
    print(checks_text(bench.checks))
    for what, value in bench.figures.items():
        print(f'  {what}: {value}')
    print(f'kubernetes {version}: {len(bench.problems)} problems')
    if path:
        commit = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=ROOT, text=True,
                                capture_output=True, check=False).stdout.strip()
        machine = f'{os.cpu_count()} {platform.machine()} cores'
        pathlib.Path(path).write_text(json.dumps(
            {'kubernetes': version, 'commit': commit, 'machine': machine,
             'figures': bench.figures, 'problems': bench.problems, 'checks': bench.checks},
            indent=2) + '\n')


def main():
    parser = argparse.ArgumentParser()
    for name in ('programs', 'etcd', 'stages', 'settings-file'):
        parser.add_argument(f'--{name}', type=lambda word: pathlib.Path(word).resolve(),
                            required=True)
    parser.add_argument('--definitions', nargs='+', required=True)
    parser.add_argument('--json')
    parser.add_argument('--nodes', type=int, default=1000)
    parser.add_argument('--settings')
    parser.add_argument('--server', action='store_true')
    args = parser.parse_args([word for word in sys.argv[1:] if word != '--'])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    settings = dict(line.split('\t', 1) for line in args.settings_file.read_text().splitlines())
    settings = {name: shlex.split(words) for name, words in settings.items()}
    chosen = args.settings.split(',') if args.settings else sorted(settings)
    with tempfile.TemporaryDirectory(prefix='tactus-cluster-') as folder:
        folder = pathlib.Path(folder)
        cluster = Cluster(args.programs, args.etcd, args.stages, folder)
        print('== starting the cluster', flush=True)
        cluster.start(args.server)
        try:
            bench = Bench(cluster, args.programs / 'helm', folder, args.server)
            version = bench.api.call('GET', '/version')['gitVersion']
            define(bench, args.definitions)
            try_settings(bench, {name: settings[name] for name in chosen})
            cluster_cases.try_all(bench, settings)
            if not args.server:
                try_many(bench, args.nodes, settings['safe'])
            report(bench, version, args.json)
        finally:
            cluster.end()
    return 0 if all_hold(bench.checks) and not bench.problems else 1


if __name__ == '__main__':
    sys.exit(main())
