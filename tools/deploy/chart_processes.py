"""chart_processes.py TACTUS RENDERED MODEL: starts the processes of a rendered chart on this
machine, with the very arguments of its containers, certificates, tokens and TLS made as
docs/guide/deploy.md says, and asks what kubelet, Prometheus and a client would ask. Then kills the
scheduler that leads.

Only what a machine cannot have is replaced: names of pods by 127.0.0.1 and a free port each, the
folders of mounts by folders of a temporary one. MODEL is the folder of a model that takes one row
of 784 numbers as `input`; its SLO is made 20 s, since nothing is measured here.
"""
import json
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import yaml

READER, CALLER = 'reader-token-0123456789', 'caller-token-0123456789'


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def run(*command):
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f'{command}: {done.stderr}'


class Site:
    def __init__(self, tactus, rendered, model, folder):
        self.tactus, self.folder = tactus, folder
        self.objects = [each for each in yaml.safe_load_all(rendered.read_text()) if each]
        self.replaced = []
        self.processes = {}
        run(tactus, 'cluster', 'init', folder / 'authority')
        run(tactus, 'cluster', 'certificate', 'tactus', '--tls', folder / 'authority', '--out',
            folder / 'peer')
        (folder / 'tls').mkdir()
        run('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj',
            '/CN=test', '-keyout', folder / 'tls/tls.key', '-out', folder / 'tls/tls.crt')
        (folder / 'tokens').mkdir()
        (folder / 'tokens/tokens').write_text(f'prometheus read {READER}\nshop infer {CALLER}\n')
        shutil.copytree(model, folder / 'models' / model.name)
        config = folder / 'models' / model.name / 'config.pbtxt'
        config.write_text(re.sub(r'(slo_ms".*?string_value: )"\d+"', r'\1"20000"',
                                 config.read_text()))
        for mount in ('tls', 'tokens', 'peer'):
            self.replaced.append((f'/etc/tactus/{mount}', str(folder / mount)))
        self.replaced += [('=/models', f'={folder}/models'), ('$(POD_IP)', '127.0.0.1'),
                          (':8200', f':{free_port()}'), ('0.0.0.0', '127.0.0.1')]

    def pods(self, role):
        """(container, name of each of its pods)"""
        for each in self.objects:
            spec = each.get('spec', {}).get('template', {}).get('spec')
            if spec and spec['containers'][0]['args'][0] == role:
                count = each['spec']['replicas'] if each['kind'] == 'StatefulSet' else 1
                name = each['metadata']['name']
                return spec['containers'][0], [f'{name}-{i}' for i in range(count)]
        raise AssertionError(f'no container runs {role}')

    def address_schedulers(self):
        container, names = self.pods('scheduler')
        listen = next(each for each in container['args'] if each.startswith('--listen='))
        for name in names:
            place = listen.removeprefix('--listen=').replace('$(POD_NAME)', name)
            self.replaced.insert(0, (place, f'127.0.0.1:{free_port()}'))

    def start(self, role):
        container, names = self.pods(role)
        ports = ['--metrics-port=0']
        if role != 'scheduler':
            ports += ['--http-port=0', '--grpc-port=0']
        for name in names:
            args = []
            for each in container['args']:
                each = each.replace('$(POD_NAME)', name)
                for old, new in self.replaced:
                    each = each.replace(old, new)
                args.append(each)
            log = (self.folder / f'{name}.log').open('w+')
            process = subprocess.Popen([self.tactus, *args, *ports], stdout=log,
                                       stderr=subprocess.STDOUT)
            self.processes[name] = process, self.folder / f'{name}.log', container
        for name in names:
            self.told(name)

    def told(self, name):
        """What its ready line says, once it is there."""
        process, log, _ = self.processes[name]
        for _ in range(600):
            found = re.search(r'^ready (.*)$', log.read_text(), re.MULTILINE)
            if found:
                return {key: int(port) for key, port in
                        re.findall(r'(\w+)=(\d+)', found.group(1))}
            assert process.poll() is None, f'{name} ended: {log.read_text()}'
            time.sleep(0.1)
        raise AssertionError(f'{name} is not ready: {log.read_text()}')

    def ask(self, url, token=None, body=None):
        """(status, text)"""
        request = urllib.request.Request(url, data=body)
        if token:
            request.add_header('Authorization', f'Bearer {token}')
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            with urllib.request.urlopen(request, timeout=30, context=context) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def probe(self, name):
        container = self.processes[name][2]
        for which in ('livenessProbe', 'readinessProbe'):
            asked = container[which].get('httpGet')
            if asked:
                url = f'{asked["scheme"].lower()}://127.0.0.1:{self.told(name)[asked["port"]]}'
                status, text = self.ask(url + asked['path'])
                assert status == 200, f'{name}, {which}: {status} {text}'
            else:
                socket.create_connection(('127.0.0.1', self.told(name)['scheduler'])).close()

    def infer(self, front_end, model, token):
        rows = {'name': 'input', 'shape': [1, 1, 28, 28], 'datatype': 'FP32', 'data': [0.5] * 784}
        return self.ask(f'https://127.0.0.1:{self.told(front_end)["http"]}/v2/models/{model}/infer',
                        token, json.dumps({'inputs': [rows]}).encode())

    def page(self, name, scheme='https'):
        status, text = self.ask(f'{scheme}://127.0.0.1:{self.told(name)["metrics"]}/metrics',
                                READER)
        assert status == 200, f'{name}: {status} {text}'
        return text

    def leaders(self, names):
        return [each for each in names
                if self.processes[each][0].poll() is None
                and re.search('^tactus_site_leads 1$', self.page(each, 'http'), re.MULTILINE)]

    def await_leader(self, names, name):
        """What their pages say is a moment old."""
        for _ in range(100):
            found = self.leaders(names)
            if found == [name]:
                return
            time.sleep(0.1)
        raise AssertionError(f'{found} lead, not {name}')

    def end(self):
        for process, _, _ in self.processes.values():
            process.terminate()
        for process, _, _ in self.processes.values():
            process.wait()


def check(site, model):
    site.address_schedulers()
    for role in ('scheduler', 'serve', 'front-end'):
        site.start(role)
    for name in site.processes:
        site.probe(name)
    schedulers, front_end = site.pods('scheduler')[1], site.pods('front-end')[1][0]
    worker = site.pods('serve')[1][0]
    for token, wanted in ((None, 401), (READER, 403), (CALLER, 200)):
        status, text = site.infer(front_end, model, token)
        assert status == wanted, f'token {token}: {status} {text}'
    met = r'tactus_requests_total\{[^}]*outcome="met"[^}]*\} [1-9]'
    assert re.search(met, site.page(front_end))
    for metric in ('lanes', 'idle_ratio'):
        assert f'\ntactus_autoscale_{metric}' in site.page(worker), metric
    site.await_leader(schedulers, schedulers[0])
    site.processes[schedulers[0]][0].kill()
    site.processes[schedulers[0]][0].wait()
    status, text = site.infer(front_end, model, CALLER)
    assert status == 200, f'after the leader was killed: {status} {text}'
    site.await_leader(schedulers, schedulers[1])
    for name in (front_end, worker, schedulers[1]):
        site.probe(name)


def main(tactus, rendered, model):
    model = pathlib.Path(model)
    with tempfile.TemporaryDirectory() as folder:
        site = Site(tactus, pathlib.Path(rendered), model, pathlib.Path(folder))
        try:
            check(site, model.name)
        finally:
            site.end()
    print('chart: its processes started, were probed, served, and lost their leader')


if __name__ == '__main__':
    main(*sys.argv[1:])
