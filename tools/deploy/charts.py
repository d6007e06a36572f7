"""charts.py CHART PROMTOOL RENDERED...: what must hold in the rendered chart and what no schema
says: that names lead somewhere, that every container is bounded, hardened and probed, that all
processes are told the same list of schedulers, and that the query by which KEDA scales is right.

Prints what does not hold, and exits 1 then. Without PROMTOOL the query is not tried, which it says.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

PODS = {'DaemonSet', 'Deployment', 'StatefulSet'}
OWN_OBJECTS = {'models', 'tmp', 'state'}


class Rendered:
    def __init__(self, path):
        self.name = pathlib.Path(path).stem
        documents = yaml.safe_load_all(pathlib.Path(path).read_text())
        self.objects = [each for each in documents if each]
        self.problems = []

    def of(self, *kinds):
        return [each for each in self.objects if each['kind'] in kinds]

    def expect(self, holds, what):
        if not holds:
            self.problems.append(f'{self.name}: {what}')


def matches(selector, labels):
    return all(labels.get(key) == value for key, value in selector.items())


def pods(rendered):
    """(object, labels, spec) of everything that makes pods."""
    for each in rendered.of(*PODS):
        template = each['spec']['template']
        yield each, template['metadata']['labels'], template['spec']


def names(rendered):
    found = [(each['kind'], each['metadata']['name']) for each in rendered.objects]
    rendered.expect(len(found) == len(set(found)), f'two objects of one name: {sorted(found)}')
    accounts = {each['metadata']['name'] for each in rendered.of('ServiceAccount')}
    services = {each['metadata']['name'] for each in rendered.of('Service')}
    for each, labels, spec in pods(rendered):
        who = each['metadata']['name']
        rendered.expect(len(who) <= 52, f'{who}: too long for the names of its pods')
        rendered.expect(spec['serviceAccountName'] in accounts, f'{who}: no such account')
        rendered.expect(matches(each['spec']['selector']['matchLabels'], labels),
                        f'{who}: does not select its own pods')
        if each['kind'] == 'StatefulSet':
            rendered.expect(each['spec']['serviceName'] in services, f'{who}: no such service')


def containers(rendered):
    for each, _, spec in pods(rendered):
        volumes = {volume['name'] for volume in spec['volumes']}
        claims = each['spec'].get('volumeClaimTemplates', [])
        volumes |= {claim['metadata']['name'] for claim in claims}
        rendered.expect(spec['securityContext']['runAsNonRoot'], 'a pod that may run as root')
        mounted = set()
        for container in spec['containers'] + spec.get('initContainers', []):
            who = f'{each["metadata"]["name"]}/{container["name"]}'
            security = container['securityContext']
            rendered.expect(security['readOnlyRootFilesystem']
                            and not security['allowPrivilegeEscalation']
                            and security['capabilities'] == {'drop': ['ALL']}, f'{who}: rights')
            resources = container['resources']
            rendered.expect('memory' in resources['limits'] and 'cpu' in resources['requests'],
                            f'{who}: resources without a bound')
            rendered.expect('cpu' not in resources['limits'], f'{who}: would be throttled')
            mounted |= {mount['name'] for mount in container['volumeMounts']}
        rendered.expect(mounted == volumes, f'{who}: mounts {mounted}, has {volumes}')
        for container in spec['containers']:
            ports = {port['name'] for port in container['ports']}
            for probe in ('livenessProbe', 'readinessProbe'):
                how = container[probe].get('httpGet') or container[probe].get('tcpSocket')
                if how:
                    rendered.expect(how['port'] in ports, f'{who}: {probe} asks nowhere')
                else:
                    numbers = {f':{port["containerPort"]}' for port in container['ports']}
                    rendered.expect(any(number in word for number in numbers
                                        for word in container[probe]['exec']['command']),
                                    f'{who}: {probe} asks nowhere')


def selectors(rendered):
    """Services, disruption budgets and policies select pods of one role, and ports they have."""
    everybody = list(pods(rendered))
    for each in rendered.of('Service', 'PodDisruptionBudget', 'NetworkPolicy'):
        spec, who = each['spec'], f'{each["kind"]} {each["metadata"]["name"]}'
        selector = dict(spec.get('selector') or spec['podSelector'])
        pod = selector.pop('statefulset.kubernetes.io/pod-name', None)
        found = [pod for pod in everybody if matches(selector.get('matchLabels', selector), pod[1])]
        rendered.expect(len(found) == 1, f'{who} selects {len(found)} kinds of pods')
        if len(found) != 1:
            continue
        if pod is not None:
            rendered.expect(pod in pods_of(found[0][0]), f'{who}: there is no pod {pod}')
        ports = {port['name'] for container in found[0][2]['containers']
                 for port in container['ports']}
        wanted = {port['targetPort'] for port in spec.get('ports', [])}
        wanted |= {port['port'] for rule in spec.get('ingress', []) for port in rule['ports']}
        rendered.expect(wanted <= ports, f'{who}: ports {wanted - ports} are not there')
    for each in rendered.of('ServiceMonitor'):
        wanted = each['spec']['selector']['matchLabels']
        found = [service for service in rendered.of('Service')
                 if matches(wanted, service['metadata']['labels'])]
        rendered.expect(found, f'{each["metadata"]["name"]}: no service is scraped')
        for service in found:
            ports = {port['name'] for port in service['spec']['ports']}
            rendered.expect({end['port'] for end in each['spec']['endpoints']} <= ports,
                            f'{each["metadata"]["name"]}: no such port')


def pods_of(stateful):
    name = stateful['metadata']['name']
    return [f'{name}-{i}' for i in range(stateful['spec']['replicas'])]


def told(container, option):
    return [each.split('=', 1)[1] for each in container['args'] if each.startswith(option + '=')]


def site(rendered):
    """All are told one list of schedulers, and each scheduler finds itself in it."""
    lists = set()
    schedulers = None
    for each, _, spec in pods(rendered):
        container = spec['containers'][0]
        lists |= set(told(container, '--schedulers'))
        if container['args'][0] == 'scheduler':
            schedulers = each, told(container, '--listen')[0]
        if container['args'][0] in ('serve', 'front-end'):
            rendered.expect(told(container, '--address') == ['0.0.0.0'], 'nobody can reach it')
    rendered.expect(len(lists) == 1, f'lists of schedulers differ: {lists}')
    stateful, listen = schedulers
    name = stateful['metadata']['name']
    want = [listen.replace('$(POD_NAME)', f'{name}-{i}')
            for i in range(stateful['spec']['replicas'])]
    rendered.expect(lists == {','.join(want)}, f'{lists} is not {want}')


def controllers(rendered):
    """Each has a service, and no service stands for one that leads and one that waits; of several
    one is elected, they share a store, and one at a time may be taken away."""
    for each in rendered.of('StatefulSet'):
        container = each['spec']['template']['spec']['containers'][0]
        if container['args'][0] != 'controller':
            continue
        name, several = each['metadata']['name'], each['spec']['replicas'] > 1
        services = {service['metadata']['name']: service['spec']
                    for service in rendered.of('Service')}
        rendered.expect(services[name].get('clusterIP') == 'None', f'{name}: is no list of names')
        for pod in pods_of(each):
            chosen = services.get(pod, {}).get('selector', {})
            rendered.expect(chosen.get('statefulset.kubernetes.io/pod-name') == pod,
                            f'{pod}: no service of its own')
        budgets = [budget['metadata']['name'] for budget in rendered.of('PodDisruptionBudget')]
        rendered.expect((name in budgets) == several, f'{name}: disruption budget')
        for option in ('--elect', '--name'):
            rendered.expect(bool(told(container, option)) == several, f'{name}: {option}')
        known = {variable['name'] for variable in container['env']}
        used = set(re.findall(r'\$\((\w+)\)', ' '.join(container['args'])))
        rendered.expect(used <= known, f'{name}: nobody sets {used - known}')
        rendered.expect(not several or told(container, '--store') == ['$(TACTUS_STORE)'],
                        f'{name}: stores of their own')


def secrets(rendered):
    """Safe settings leave nothing in the clear but the schedulers' metrics."""
    for each, _, spec in pods(rendered):
        for container in spec['containers']:
            role, args = container['args'][0], container['args']
            open_to_all = rendered.name in ('insecure', 'partly')
            if role in ('serve', 'front-end'):
                rendered.expect(('--insecure' in args) == open_to_all, f'{role}: --insecure')
            rendered.expect(role == 'controller' or open_to_all
                            or '--peer-tls=/etc/tactus/peer' in args, f'{role}: no certificate')
        named = {volume['secret']['secretName'] for volume in spec['volumes'] if 'secret' in volume}
        rendered.expect(named <= {'tls', 'tokens', 'peer', 'authority'}, f'unknown {named}')


def scaling(rendered):
    for each in rendered.of('ScaledObject'):
        target = each['spec']['scaleTargetRef']['name']
        found = [pod for pod in rendered.of('Deployment') if pod['metadata']['name'] == target]
        rendered.expect(len(found) == 1, f'{target} is no Deployment')
        rendered.expect(found and 'replicas' not in found[0]['spec'],
                        f'{target}: Helm would undo what KEDA set')
        yield each['spec']['triggers'][0]['metadata']


def series(metric, labels, values):
    inside = ','.join(f'{key}="{value}"' for key, value in labels.items())
    return {'series': f'{metric}{{{inside}}}', 'values': values}


def query_test(metadata):
    """promtool's test: three workers of four lanes, half idle, one of ten requests a violation."""
    service = re.search(r'service="([^"]*)-worker-metrics"', metadata['query']).group(1)
    worker = {'namespace': 'models', 'service': f'{service}-worker-metrics'}
    front = {'namespace': 'models', 'service': f'{service}-front-end-metrics'}
    stranger = {'namespace': 'other', 'service': f'{service}-worker-metrics', 'pod': 'z'}
    lanes = [series('tactus_autoscale_lanes', worker | {'pod': pod}, '4x20') for pod in 'abc']
    lanes += [series('tactus_autoscale_idle_ratio', worker | {'pod': pod}, '0.5x20')
              for pod in 'abc']
    lanes += [series('tactus_autoscale_lanes', stranger, '4x20'),
              series('tactus_autoscale_idle_ratio', stranger, '0x20')]
    outcomes = {'met': '0+540x20', 'late': '0+60x20', 'cancelled': '0+600x20'}
    busy = [series('tactus_requests_total', front | {'outcome': outcome, 'pod': 'f'}, values)
            for outcome, values in outcomes.items()]
    quiet = [each | {'values': '5x20'} for each in busy]
    swamped = [each | {'values': '0+1x20' if '"met"' in each['series'] else '0+999x20'}
               for each in busy]
    cases = [(lanes + busy, 6 / 0.9 / 0.9), (lanes + quiet, 6 / 0.9), (lanes, 6 / 0.9),
             (lanes + swamped, 6 / 0.9 / 0.5)]
    return {'tests': [
        {'interval': '30s', 'input_series': given,
         'promql_expr_test': [{'expr': f'round({metadata["query"]}, 0.0001)', 'eval_time': '9m',
                               'exp_samples': [{'labels': '{}', 'value': round(value, 4)}]}]}
        for given, value in cases]}


def try_query(metadata, promtool):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / 'query.json'
        file.write_text(json.dumps(query_test(metadata)))
        done = subprocess.run([promtool, 'test', 'rules', file], capture_output=True, text=True,
                              check=False)
        return '' if done.returncode == 0 else f'the query of KEDA:\n{done.stdout}{done.stderr}'


def main(chart, promtool, *paths):
    problems = []
    queries = []
    for path in paths:
        rendered = Rendered(path)
        for look in (names, containers, selectors, site, controllers, secrets):
            look(rendered)
        queries += scaling(rendered)
        problems += rendered.problems
    if not queries:
        problems.append(f'{chart}: no rendering has a ScaledObject')
    if pathlib.Path(promtool).exists():
        problems += filter(None, (try_query(each, promtool) for each in queries))
    else:
        print(f'charts: no {promtool}: the query was not tried (./run test fetches it)')
    for each in problems:
        print(each)
    print(f'charts: {len(paths)} renderings, {len(problems)} problems')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
