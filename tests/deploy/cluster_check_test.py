"""cluster_check_test.py SOURCE: what the check of the chart on a cluster (./run deploy --cluster)
sees of workloads, services and budgets, and what the check of the container tells runc.

Without this such a check could find nothing wrong because it looks at nothing.
"""
import json
import pathlib
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / 'tools/deploy'))
from bundle import config  # noqa: E402
from cluster_bench import Bench, standing  # noqa: E402
from cluster_looks import (Roll, Tally, look_at_budgets, look_at_pods,  # noqa: E402
                           look_at_services)

LABELS = {'app.kubernetes.io/component': 'worker'}


def workload(kind='Deployment', wanted=2, ready=2, newest=2, generation=1, seen=1):
    status = {'observedGeneration': seen}
    if kind == 'DaemonSet':
        status |= {'desiredNumberScheduled': wanted, 'numberAvailable': ready,
                   'updatedNumberScheduled': newest}
    else:
        status |= {'replicas': wanted, 'availableReplicas': ready, 'updatedReplicas': newest}
    return {'kind': kind, 'status': status,
            'metadata': {'name': 'worker', 'generation': generation},
            'spec': {'replicas': wanted, 'template': {'spec': {}}}}


def pod(number, ready=True, sources=()):
    return {'metadata': {'name': f'worker-{number}', 'labels': LABELS},
            'spec': {'volumes': [{'name': 'a', 'projected': {'sources': list(sources)}}],
                     'containers': [{'image': 'tactus:0.1.0',
                                     'ports': [{'name': 'metrics', 'containerPort': 8002}]}]},
            'status': {'conditions': [{'type': 'Ready', 'status': str(ready)}]}}


def service(target='metrics'):
    return {'metadata': {'name': 'worker'},
            'spec': {'selector': LABELS, 'ports': [{'name': 'metrics', 'targetPort': target}]}}


def endpoints(ready, port=8002):
    return {'metadata': {'labels': {'kubernetes.io/service-name': 'worker'}},
            'endpoints': [{'conditions': {'ready': each}} for each in ready],
            'ports': [{'name': 'metrics', 'port': port}]}


def budget(pods, allowed):
    return {'metadata': {'name': 'worker'},
            'status': {'expectedPods': pods, 'disruptionsAllowed': allowed}}


class Server:
    """Lists what it was given."""

    def __init__(self, **things):
        self.things = things

    def list(self, _, kind, *__):
        return self.things.get(kind, [])


def bench(**things):
    class Cluster:
        api = Server(**things)
    made = Bench(Cluster, None, pathlib.Path('/nowhere'))
    made.nodes, made.pool = 2, 1
    made.problem = made.problems.append
    return made


class Looks(unittest.TestCase):
    def test_workloads_are_settled_when_all_is_new_and_ready(self):
        cases = [
            (workload(), True),
            (workload(ready=1), False),
            (workload(newest=1), False),
            (workload(generation=2), False),  # the controller has not seen the upgrade
            (workload('DaemonSet'), True),
            (workload('DaemonSet', newest=1), False),
            (workload('DaemonSet', wanted=1, ready=1, newest=1), False),  # a node without one
        ]
        for each, settled in cases:
            with self.subTest(each):
                self.assertEqual(bench(**{each['kind']: [each]}).settled('a'), settled)
        self.assertFalse(bench().settled('a'))  # nothing is not everything

    def test_a_workload_that_shrinks_is_not_looked_at(self):
        each = workload(wanted=2)
        each['spec']['replicas'] = 1
        self.assertIsNone(standing(each)[0])

    def test_pods(self):
        token = {'serviceAccountToken': {'path': 'token'}}
        seen = bench(Deployment=[workload()], Pod=[pod(0), pod(1, ready=False, sources=[token])])
        tally = Tally()
        look_at_pods(seen, tally, 'a')
        self.assertEqual((tally.pods, tally.ready, tally.tokens), (2, 1, 1))

    def test_services(self):
        cases = [
            (service(), endpoints([True, True]), 1),
            (service(), endpoints([True, False]), 0),
            (service(), endpoints([True]), 0),
            (service(), endpoints([True, True], port=8003), 0),
            (service('other'), endpoints([True, True]), 0),
        ]
        for each, found, led in cases:
            with self.subTest((each, found)):
                seen, tally = bench(Pod=[pod(0), pod(1)], Service=[each],
                                    EndpointSlice=[found]), Tally()
                look_at_services(seen, tally, 'a')
                self.assertEqual((tally.services, tally.led), (1, led))
                self.assertEqual(len(seen.problems), 1 - led)

    def test_budgets(self):
        for each, right in ((budget(2, 1), 1), (budget(2, 0), 0), (budget(0, 1), 0)):
            seen, tally = bench(Deployment=[workload()], PodDisruptionBudget=[each]), Tally()
            look_at_budgets(seen, tally, 'a')
            self.assertEqual((tally.budgets, tally.right_budgets), (1, right))

    def test_a_roll_keeps_the_worst(self):
        roll = Roll()
        for ready in (2, 0, 1):
            roll.look(bench(DaemonSet=[workload('DaemonSet', ready=ready)]), 'a')
        self.assertEqual((roll.missing['worker'], roll.least['worker']), (2, 0))

    def test_one_of_two_is_not_all(self):
        seen = bench()
        for found, total in ((2, 2), (1, 2), (0, 0)):
            seen.all_of('things', found, total)
        self.assertEqual([each['ok'] for each in seen.checks], [True, False, False])


class Bundle(unittest.TestCase):
    def test_a_container_has_the_rights_of_the_chart(self):
        image = {'OCIv1': {'config': {'User': '64000:64000', 'WorkingDir': '/tmp', 'Env': ['A=b'],
                                      'Entrypoint': ['/usr/bin/tactus'], 'StopSignal': 'SIGTERM'}}}
        with tempfile.NamedTemporaryFile('w', suffix='.json') as file:
            file.write(json.dumps(image))
            file.flush()
            made = config(file.name, '/root-of-it', '/models-of-it', ['serve'])
        process = made['process']
        self.assertEqual(process['args'], ['/usr/bin/tactus', 'serve'])
        self.assertEqual(process['user'], {'uid': 64000, 'gid': 64000})
        self.assertEqual(set(map(tuple, process['capabilities'].values())), {()})
        self.assertTrue(process['noNewPrivileges'])
        self.assertTrue(made['root']['readonly'])
        self.assertIn('network', {each['type'] for each in made['linux']['namespaces']})


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
