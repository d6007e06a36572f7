"""Who runs the steps: one server for all cameras, a server at each, or a cluster by a plan."""
import json
import re
import subprocess
import time

from network import SERVER, Refused

# One core or a part of it: one lane, on whichever core is free.
SERVE = ['--lanes', 1, '--host-lanes', 1, '--threads', 1, '--no-pin', '--spin-us', 0,
         '--log-level', 'warning']


class Plain:
    """`tactus serve` in one namespace with all models: what one has without a cluster."""

    def __init__(self, street, tactus, name, models, log, address='127.0.0.1', only=None):
        self.name, self.street = name, street
        command = [tactus, 'serve', '--models', models, '--address', address, '--http-port', 0,
                   '--grpc-port', 0, '--metrics-port', 0, *SERVE]
        if address != '127.0.0.1':
            command.append('--insecure')  # nobody but the run's own namespaces reaches it
        if only is not None:
            command += ['--model-control-mode', 'explicit']
            for model in only:
                command += ['--load-model', model]
        self.process = street.start(name, command, log)

    def ready(self):
        ports = self.process.await_line('ready ', within=300)
        found = dict(re.findall(r'(\w+)=(\d+)', ports))
        self.http, self.grpc = int(found['http']), int(found['grpc'])
        return self

    def url(self):
        return f'{SERVER if self.name == "server" else "127.0.0.1"}:{self.grpc}'

    def close(self):
        self.street.end(self.process)


class Cluster:
    """A controller on the server, an agent on each node, certificates for all."""

    PORT = 7400

    def __init__(self, street, tactus, fleet, models, folder, planner=None):
        self.street, self.tactus, self.folder = street, str(tactus), folder
        self.agents = {}
        self.tls = folder / 'authority'
        folder.mkdir()
        self.call('cluster', 'init', self.tls, '--host', SERVER)
        options = ['--planner', planner] if planner else []
        self.controller = street.start(
            'server', [tactus, 'controller', fleet, '--listen', f'{SERVER}:{self.PORT}', '--state',
                       folder / 'controller', '--tls', self.tls, *options],
            folder / 'controller.log', quota=False)
        self.controller.await_line('ready control=')
        for name in ('server', *street.cameras):
            keys = folder / f'tls-{name}'
            keys.mkdir()
            (keys / 'authority.pem').write_bytes((self.tls / 'authority.pem').read_bytes())
            token = self.call('cluster', 'token', name, '--tls', self.tls).strip()
            self.agents[name] = street.start(
                name, [tactus, 'agent', '--controller', f'{SERVER}:{self.PORT}', '--node', name,
                       '--state', folder / f'state-{name}', '--models', models, '--tls', keys,
                       '--join', token, '--peer-address', street.address(name), '--', *SERVE],
                folder / f'agent-{name}.log')

    def call(self, *words):
        done = subprocess.run(['ip', 'netns', 'exec', self.street.space('server'), self.tactus,
                               *map(str, words)], capture_output=True, text=True, check=False,
                              timeout=30)
        if done.returncode != 0:
            raise Refused(f'tactus {" ".join(map(str, words))}: {done.stderr.strip()}')
        return done.stdout

    def status(self):
        try:
            return json.loads(self.call('cluster', 'status', '--json', '--controller',
                                        f'{SERVER}:{self.PORT}', '--tls', self.tls))
        except (Refused, subprocess.TimeoutExpired):
            return None

    def history(self):
        """The plans that the controller made and the links that it measured, oldest first."""
        store = f'sqlite:{self.folder / "controller" / "knowledge.db"}'
        told = json.loads(self.call('cluster', 'history', '--store', store, '--plans', '--links',
                                    '--json'))
        return {kind: told.get(kind, []) for kind in ('plans', 'links')}

    def await_served(self, within=300):
        """The status, once every node serves the newest plan."""
        end = time.monotonic() + within
        status = None
        while time.monotonic() < end:
            status = self.status()
            if status is not None and status['serving'] != '-' and (
                    status['rolling'] == status['serving']):
                nodes = status['nodes']
                if len(nodes) == len(self.agents) and all(
                        node['standing'] == 'alive' and node['ready']
                        and node['plan'] == status['serving'] for node in nodes):
                    return status
            time.sleep(0.3)
        raise Refused(f'no plan is served after {within} s: {json.dumps(status)}\n'
                      f'{self.controller.text()[-1500:]}')

    def url(self, name):
        """The worker's gRPC, in its own namespace."""
        text = (self.folder / f'state-{name}' / 'worker.state').read_text(encoding='utf-8')
        port = re.search(r'grpc: (\d+)', text)[1]
        return f'127.0.0.1:{port}'

    def where(self, status=None):
        """'cam1: find on server, pose on server'; of all pipelines."""
        told = {}
        for node in (status or self.status() or {'nodes': []})['nodes']:
            for route in node['routes']:
                told.setdefault(route['pipeline'], {})[route['stage']] = '+'.join(
                    sorted(route['to']))
        return told

    def close(self):
        self.street.end(self.controller, *self.agents.values())
