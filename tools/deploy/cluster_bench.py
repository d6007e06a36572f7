"""A cluster with helm beside it, and what was found: for check_cluster.py."""
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'tools/demo'))
from checks import check  # noqa: E402

WAIT_S = 900
KINDS = ('Deployment', 'StatefulSet', 'DaemonSet')
RELEASE = 'shop'


def standing(workload):
    """(wanted, ready, of the newest kind): pods of a workload, as it says. Wanted is None while its
    controller has not looked at it."""
    spec, status = workload['spec'], workload.get('status', {})
    if status.get('observedGeneration', 0) < workload['metadata']['generation']:
        return None, 0, 0
    if workload['kind'] == 'DaemonSet':
        return (status['desiredNumberScheduled'], status.get('numberAvailable', 0),
                status.get('updatedNumberScheduled', 0))
    if status.get('replicas', 0) != spec['replicas']:
        return None, 0, 0
    return (spec['replicas'], status.get('availableReplicas', 0),
            status.get('updatedReplicas', 0))


class Bench:
    """A cluster, helm, and what was found. Alone: of a kube-apiserver that nobody acts for, so that
    there are no pods to wait for or to look at."""

    def __init__(self, cluster, helm, folder, alone=False):
        self.alone = alone
        self.cluster, self.api, self.folder = cluster, cluster.api, folder
        self.helm_program = helm
        self.problems, self.checks, self.figures = [], [], {}
        self.nodes = self.pool = 0

    def problem(self, what):
        print(f'   PROBLEM {what}', flush=True)
        self.problems.append(what)

    def hold(self, what, value, bar, ok):
        self.checks.append(check(what, value, bar, ok))

    def all_of(self, what, found, total):
        self.hold(what, found, f'{total}', found == total and total > 0)

    def helm_command(self, *words):
        return [str(word) for word in (self.helm_program, *words)]

    def environment(self):
        places = {name: str(self.folder / name.lower()) for name in (
            'HELM_CACHE_HOME', 'HELM_CONFIG_HOME', 'HELM_DATA_HOME')}
        return os.environ | places | {'KUBECONFIG': str(self.cluster.kubeconfig())}

    def helm(self, *words):
        """What it said against it; empty where it did what it was told."""
        done = subprocess.run(self.helm_command(*words), env=self.environment(),
                              capture_output=True, text=True, check=False)
        self.said = done.stdout
        return '' if done.returncode == 0 else done.stderr.strip() or 'it failed in silence'

    def await_true(self, what, ask, wait=WAIT_S):
        end = time.monotonic() + wait
        while True:
            found = ask()
            if found:
                return found
            dead = self.cluster.dead()
            if dead or time.monotonic() > end:
                self.problem(f'waited for {what}' + ''.join(f'; ended: {each}' for each in dead))
                if dead:
                    raise RuntimeError('a part of the cluster ended')
                return None
            time.sleep(0.3)

    def workloads(self, namespace):
        return [{'kind': kind} | each for kind in KINDS
                for each in self.api.list('apps/v1', kind, namespace)]

    def pods(self, namespace):
        return [each for each in self.api.list('v1', 'Pod', namespace)
                if 'deletionTimestamp' not in each['metadata']]

    def settled(self, namespace):
        """Every workload has its pods, of the newest kind, ready, and workers are on every node."""
        everyone = self.workloads(namespace)
        for each in everyone:
            wanted, ready, newest = standing(each)
            if wanted is None or not wanted == ready == newest:
                return False
            if each['kind'] == 'DaemonSet':
                chosen = each['spec']['template']['spec'].get('nodeSelector')
                if wanted != (self.pool if chosen else self.nodes):
                    return False
        return bool(everyone)

    def settle(self, namespace):
        if self.alone:
            return True
        done = self.await_true(f'the workloads of {namespace}',
                               lambda: self.settled(namespace))
        if not done:
            for each in self.api.list('v1', 'Event', namespace):
                if each['type'] != 'Normal':
                    self.problem(f'{namespace}: {each["message"][:300]}')
        return bool(done)

    def generations(self, namespace):
        return {(each['kind'], each['metadata']['name']): each['metadata']['generation']
                for each in self.workloads(namespace)}

    def prepare(self, namespace):
        """What docs/guide/deploy.md has before the chart; returns the names of all of it."""
        levels = {f'pod-security.kubernetes.io/{each}': 'restricted' for each in
                  ('enforce', 'warn')}
        made = [{'apiVersion': 'v1', 'kind': 'Namespace',
                 'metadata': {'name': namespace, 'labels': levels}}]
        secrets = {'tls': ('kubernetes.io/tls', ('tls.crt', 'tls.key')),
                   'tokens': ('Opaque', ('tokens',)), 'reader': ('Opaque', ('token',)),
                   'peer': ('Opaque', ('authority.pem', 'node.pem', 'node.key')),
                   'authority': ('Opaque', ('authority.pem', 'authority.key')),
                   'store': ('Opaque', ('uri',)), 'one': ('Opaque', ('of-a-registry',))}
        made += [{'apiVersion': 'v1', 'kind': 'Secret', 'type': kind, 'metadata': {'name': name},
                  'stringData': dict.fromkeys(keys, 'x')} for name, (kind, keys) in secrets.items()]
        made += [{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'fleet'},
                  'data': {'fleet.toml': 'x'}},
                 volume(f'models-{namespace}', 'ReadOnlyMany', ''),
                 {'apiVersion': 'v1', 'kind': 'PersistentVolumeClaim',
                  'metadata': {'name': 'tactus-models'},
                  'spec': {'accessModes': ['ReadOnlyMany'], 'storageClassName': '',
                           'volumeName': f'models-{namespace}',
                           'resources': {'requests': {'storage': '1Gi'}}}}]
        if self.alone:
            made.append({'apiVersion': 'v1', 'kind': 'ServiceAccount',
                         'metadata': {'name': 'default'}})
        for each in made:
            self.api.create(each, namespace)
        if self.alone:
            return self.api.names(namespace)
        self.await_true('an account of the namespace', lambda: self.api.get(
            'v1', 'ServiceAccount', namespace, 'default'))
        self.await_true('the volume of the models', lambda: self.api.get(
            'v1', 'PersistentVolumeClaim', namespace, 'tactus-models')['status'].get('phase')
            == 'Bound')
        self.await_true('the authority of the namespace', lambda: self.api.get(
            'v1', 'ConfigMap', namespace, 'kube-root-ca.crt'))
        return self.api.names(namespace)

    def uninstall(self, namespace, before, release=RELEASE):
        """Names of what is left, but for volumes of controllers, whose number comes second."""
        complaint = self.helm('uninstall', release, '-n', namespace)
        if complaint:
            self.problem(f'{namespace}: uninstall: {complaint}')

        def kept():
            return {each for each in self.api.names(namespace) - before
                    if each[0] == 'PersistentVolumeClaim'}
        self.await_true(f'nothing in {namespace}',
                        lambda: self.api.names(namespace) - before == kept(), 300)
        left = self.api.names(namespace) - before - kept()
        for each in left:
            self.problem(f'{namespace}: left behind: {each}')
        return left, len(kept())


def volume(name, mode, kind):
    return {'apiVersion': 'v1', 'kind': 'PersistentVolume', 'metadata': {'name': name},
            'spec': {'capacity': {'storage': '1Gi'}, 'accessModes': [mode],
                     'storageClassName': kind, 'hostPath': {'path': f'/volumes/{name}'}}}
