"""What an operator does with the chart besides installing and upgrading it: a part of
check_cluster.py, on its few nodes."""
import pathlib

import yaml
from kube import Refused

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / 'deploy/helm/tactus'
RELEASE, NAME = 'shop', 'shop-tactus'
# As long as helm allows.
LONG = 'a-release-whose-name-is-as-long-as-helm-allows-it-ab3'

# What the chart's schema or its templates must refuse, so that nothing is installed by halves.
WRONG = {
    'a misspelt value': ['--set', 'frontend.replicas=3'],
    'no scheduler': ['--set', 'scheduler.replicas=0'],
    'a quantity that is none': ['--set', 'worker.resources.limits.memory=lots'],
    'a size of a volume that is none': ['--set', 'controller.storage=much'],
    'a tag that is none': ['--set', 'image.tag=a b'],
    'a label that is none': ['--set', 'worker.nodeSelector.pool=a b'],
    'a name of a Secret that is none': ['--set', 'security.tlsSecret=Not A Name'],
    'a name of an annotation that is none': ['--set', 'frontEnd.service.annotations.a b=c'],
    'a misspelt client': ['--set-json', 'networkPolicy.clients=[{"podSelecter": {}}]'],
    'a client with nothing in it': ['--set-json', 'networkPolicy.clients=[{}]'],
    'a misspelt toleration': ['--set-json',
                              'worker.tolerations=[{"key": "a", "operatr": "Exists"}]'],
    'a misspelt volume': ['--set-json', 'models.volume={"persistentVolumeClame": {}}'],
    'a domain that is none': ['--set', 'clusterDomain=a b'],
    'fewer workers at most than at least': [
        '--set', 'worker.kind=Deployment,monitoring.enabled=true,autoscaling.enabled=true',
        '--set', 'autoscaling.minReplicas=4,autoscaling.maxReplicas=2'],
    'workers that a roll may not take away': ['--set', 'worker.maxUnavailable=0'],
    'no TLS and no consent to it': ['--set', 'security.tlsSecret='],
}


def refuse_wrong(bench, safe):
    """Refused before anything of it is there."""
    refused = clean = 0
    before = bench.prepare('wrong')
    for what, words in WRONG.items():
        complaint = bench.helm('install', RELEASE, CHART, '-n', 'wrong', *safe, *words)
        refused += bool(complaint)
        left = bench.api.names('wrong') - before
        clean += bool(complaint) and not left
        if not complaint:
            bench.problem(f'installed: {what}')
        elif left:
            bench.problem(f'{what}: refused with {complaint[:300]}, and {len(left)} objects there')
        if left:
            bench.uninstall('wrong', before)
    bench.all_of('wrong values refused', refused, len(WRONG))
    bench.all_of('of those with nothing installed', clean, len(WRONG))


def evict(bench, namespace, pod):
    """What the server says to an eviction: its status."""
    try:
        bench.api.call('POST', bench.api.path('v1', 'Pod', namespace, pod) + '/eviction',
                       {'apiVersion': 'policy/v1', 'kind': 'Eviction',
                        'metadata': {'name': pod, 'namespace': namespace}})
        return 201
    except Refused as refusal:
        return refusal.status


def cordon(bench, closed):
    """Closes all nodes to new pods, or opens them again."""
    for each in bench.api.list('v1', 'Node'):
        bench.api.call('PATCH', bench.api.path('v1', 'Node', None, each['metadata']['name']),
                       {'spec': {'unschedulable': closed}}, 'application/merge-patch+json')


def evict_two(bench, namespace):
    """As two machines that are drained at once would: only one of a kind may go at a time. The
    nodes are cordoned, or kwok would have another pod ready before the second is asked for."""
    held = 0
    for role in ('front-end', 'scheduler'):
        names = sorted(pod['metadata']['name'] for pod in bench.pods(namespace)
                       if pod['metadata']['labels']['app.kubernetes.io/component'] == role)
        cordon(bench, True)
        said = [evict(bench, namespace, name) for name in names[:2]]
        cordon(bench, False)
        held += said == [201, 429]
        if said != [201, 429]:
            bench.problem(f'two {role}s evicted: {said}')
        bench.settle(namespace)
    bench.all_of('roles of which one pod may be evicted, and not two', held, 2)


def change_kind(bench, namespace, safe):
    """Workers as a Deployment, and back."""
    def kinds():
        return {each['kind'] for each in bench.workloads(namespace)
                if each['metadata']['name'] == f'{NAME}-worker'}
    found = []
    for words in (['upgrade', RELEASE, CHART, '-n', namespace, *safe, '--set',
                   'worker.kind=Deployment'], ['rollback', RELEASE, '1', '-n', namespace]):
        complaint = bench.helm(*words)
        if complaint:
            bench.problem(f'{words[0]}: {complaint}')
        bench.settle(namespace)
        found.append(kinds())
    right = [{'Deployment'}, {'DaemonSet'}]
    if found != right:
        bench.problem(f'kinds of workers: {found}')
    bench.all_of('kinds that workers were changed to, and rolled back to',
                 sum(a == b for a, b in zip(found, right)), 2)


def operate(bench, safe):
    print('== evictions, other kinds of workers, rollback', flush=True)
    before = bench.prepare('operated')
    complaint = bench.helm('install', RELEASE, CHART, '-n', 'operated', *safe)
    if complaint:
        bench.problem(f'operated: {complaint}')
    bench.settle('operated')
    evict_two(bench, 'operated')
    change_kind(bench, 'operated', safe)
    bench.uninstall('operated', before)


def keep_scale(bench, scaled):
    """What KEDA would do, by the same door: a later upgrade does not undo it."""
    print('== a number of workers that is not helm\'s', flush=True)
    before = bench.prepare('scaled')
    install = ['-n', 'scaled', *scaled]
    complaint = bench.helm('install', RELEASE, CHART, *install)
    bench.settle('scaled')
    where = bench.api.path('apps/v1', 'Deployment', 'scaled', f'{NAME}-worker')
    bench.api.call('PATCH', f'{where}/scale', {'spec': {'replicas': 5}},
                   'application/merge-patch+json')
    bench.settle('scaled')
    complaint = complaint or bench.helm('upgrade', RELEASE, CHART, *install, '--set',
                                        'image.tag=0.1.1')
    if complaint:
        bench.problem(f'scaled: {complaint}')
    bench.settle('scaled')
    workers = bench.api.get('apps/v1', 'Deployment', 'scaled', f'{NAME}-worker')
    found = workers['status'].get('availableReplicas', 0)
    bench.hold('workers after they were scaled to 5 and upgraded', found, '5', found == 5)
    bench.uninstall('scaled', before)


def keep_state(bench, spare):
    """A volume's size is settled when it is made: told otherwise, the server refuses, and nothing
    else changes. The volumes stay when the chart goes, and are taken up again when it comes."""
    print('== controllers and their volumes', flush=True)
    before = bench.prepare('state')
    install = ['-n', 'state', *spare]
    complaint = bench.helm('install', RELEASE, CHART, *install)
    if complaint:
        bench.problem(f'state: {complaint}')
    bench.settle('state')
    complaint = bench.helm('upgrade', RELEASE, CHART, *install, '--set', 'controller.storage=1Gi')
    refused = 'spec.volumeClaimTemplates' in complaint or 'are forbidden' in complaint
    if not refused:
        bench.problem(f'another size of volumes: {complaint or "taken"}')
    complaint = bench.helm('upgrade', RELEASE, CHART, *install, '--set', 'image.tag=0.1.1')
    healed = not complaint and bench.settle('state')
    if not healed:
        bench.problem(f'after what was refused: {complaint}')

    def claims():
        return {each['metadata']['uid'] for each in
                bench.api.list('v1', 'PersistentVolumeClaim', 'state')}
    if bench.alone:
        bench.all_of('another size of volumes is refused, and an upgrade after it works',
                     refused + bool(healed), 2)
        bench.uninstall('state', before)
        return
    had = claims()
    bench.uninstall('state', before)
    complaint = bench.helm('install', RELEASE, CHART, *install)
    again = not complaint and bench.settle('state') and claims() == had
    if not again:
        bench.problem(f'installed again: {complaint or "other volumes"}')
    bench.all_of('another size of volumes is refused, an upgrade after it works, and volumes are '
                 'taken up again', refused + bool(healed) + bool(again), 3)
    bench.uninstall('state', before)


def long_name(bench, everything):
    print('== a long name', flush=True)
    before = bench.prepare('long')
    complaint = bench.helm('install', LONG, CHART, '-n', 'long', *everything)
    if complaint:
        bench.problem(f'long: {complaint}')
    settled = not complaint and bench.settle('long')
    bench.all_of(f'installed under a name of {len(LONG)} letters, with controllers', int(settled),
                 1)
    bench.uninstall('long', before, LONG)


def runtime(bench):
    """KServe's part is played by hand: a pod of the runtime's containers."""
    print('== deploy/kserve', flush=True)
    bench.prepare('kserve')
    taken = 0
    thing = yaml.safe_load((ROOT / 'deploy/kserve/cluster-serving-runtime.yaml').read_text())
    try:
        bench.api.create(thing)
        taken += 1
        bench.api.create({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'predictor'},
                          'spec': {'containers': thing['spec']['containers']}}, 'kserve')
        taken += 1
    except Refused as refusal:
        bench.problem(f'deploy/kserve: {refusal}')
    bench.all_of('of ClusterServingRuntime and a `restricted` pod of its containers, taken', taken,
                 2)


def try_all(bench, settings):
    refuse_wrong(bench, settings['safe'])
    if not bench.alone:
        operate(bench, settings['safe'])
        keep_scale(bench, settings['scaled'])
    keep_state(bench, settings['spare'])
    long_name(bench, settings['spare'])
    runtime(bench)
