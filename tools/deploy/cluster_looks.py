"""What is seen of the chart's objects on a cluster, for check_cluster.py. `bench` is what
cluster_bench.py says; what is not as it should be is told to bench.problem."""
import copy
import urllib.parse

from cluster_bench import standing


class Tally:
    """Sums over the settings."""

    def __init__(self):
        self.warnings = set()
        self.objects = self.taken = self.pods = self.ready = self.tokens = 0
        self.services = self.led = self.budgets = self.right_budgets = 0
        self.installed = self.unchanged = self.upgraded = self.clean = self.kept = 0


def look_at_pods(bench, tally, namespace):
    wanted = sum(standing(each)[0] for each in bench.workloads(namespace))
    pods = bench.pods(namespace)
    tally.pods += wanted
    tally.ready += min(wanted, sum(
        any(each['type'] == 'Ready' and each['status'] == 'True'
            for each in pod['status'].get('conditions', [])) for pod in pods))
    for pod in pods:
        for mount in pod['spec']['volumes']:
            if any('serviceAccountToken' in source
                   for source in mount.get('projected', {}).get('sources', [])):
                tally.tokens += 1
                bench.problem(f'{pod["metadata"]["name"]} has a token of Kubernetes')


def look_at_services(bench, tally, namespace):
    """Each leads to the pods that it selects, at ports that they have, as the controller of
    endpoints finds them by their names."""
    pods = bench.pods(namespace)
    slices = bench.api.list('discovery.k8s.io/v1', 'EndpointSlice', namespace)
    for service in bench.api.list('v1', 'Service', namespace):
        name, selector = service['metadata']['name'], service['spec']['selector']
        chosen = [pod for pod in pods
                  if selector.items() <= pod['metadata']['labels'].items()]
        ports = {port['name']: port['containerPort'] for pod in chosen[:1]
                 for port in pod['spec']['containers'][0]['ports']}
        mine = [each for each in slices
                if each['metadata']['labels']['kubernetes.io/service-name'] == name]
        ready = sum(end['conditions'].get('ready', False)
                    for each in mine for end in each['endpoints'] or [])
        found = {port['name']: port['port'] for each in mine for port in each['ports'] or []}
        want = {port['name']: ports.get(port['targetPort']) for port in service['spec']['ports']}
        tally.services += 1
        if chosen and ready == len(chosen) and found == want:
            tally.led += 1
        else:
            bench.problem(f'{namespace}: service {name}: {ready} of {len(chosen)} pods, ports '
                          f'{found}, wanted {want}')


def look_at_budgets(bench, tally, namespace):
    replicas = {each['metadata']['name']: standing(each)[0] for each in bench.workloads(namespace)}
    for each in bench.api.list('policy/v1', 'PodDisruptionBudget', namespace):
        name, status = each['metadata']['name'], each.get('status', {})
        tally.budgets += 1
        if (status.get('expectedPods'), status.get('disruptionsAllowed')) == (replicas[name], 1):
            tally.right_budgets += 1
        else:
            bench.problem(f'{namespace}: budget {name}: {status}')


def of_image(bench, namespace, tag):
    """Every workload asks for it, and every pod has it."""
    specs = [each['spec']['template']['spec'] for each in bench.workloads(namespace)]
    specs += [pod['spec'] for pod in bench.pods(namespace)]
    return all(spec['containers'][0]['image'].endswith(f':{tag}') for spec in specs)


def await_bookkeeping(bench, namespace):
    """Endpoints and budgets follow pods after a moment."""
    def done():
        tally, quiet = Tally(), copy.copy(bench)
        quiet.problem = lambda what: None
        look_at_services(quiet, tally, namespace)
        look_at_budgets(quiet, tally, namespace)
        return (tally.led, tally.right_budgets) == (tally.services, tally.budgets)
    bench.await_true(f'endpoints and budgets of {namespace}', done, 120)


class Roll:
    """The worst that is seen of workloads while they are rolled."""

    def __init__(self):
        self.missing, self.least = {}, {}

    def look(self, bench, namespace):
        for each in bench.workloads(namespace):
            kind, spec, status = each['kind'], each['spec'], each.get('status', {})
            name = each['metadata']['name']
            if kind == 'DaemonSet':
                wanted, there = status['desiredNumberScheduled'], status.get('numberAvailable', 0)
            else:  # few, so that they are counted, and not only what their controller has noted
                wanted, there = spec['replicas'], ready_of(bench, namespace, spec['selector'])
            self.missing[name] = max(self.missing.get(name, 0), wanted - there)
            self.least[name] = min(self.least.get(name, wanted), there)


def ready_of(bench, namespace, selector):
    query = urllib.parse.quote(','.join(f'{key}={value}'
                                        for key, value in selector['matchLabels'].items()))
    return sum(condition['type'] == 'Ready' and condition['status'] == 'True'
               for pod in bench.api.list('v1', 'Pod', namespace, f'?labelSelector={query}')
               for condition in pod.get('status', {}).get('conditions') or [])
