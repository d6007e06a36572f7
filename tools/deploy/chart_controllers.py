"""chart_controllers.py TACTUS RENDERED EXAMPLE: starts the controllers of a rendered chart on this
machine, with the very arguments of their containers, certificates and a PostgreSQL, and an agent
that is let in by a token; runs the commands of their probes; kills the one that leads.

Only what a machine cannot have is replaced: names of pods, addresses, and the folders of mounts.
EXAMPLE is a folder with fleet.toml and models, whose node `server` the agent is. Where there is no
PostgreSQL it says so and tries nothing.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import yaml
from chart_processes import free_port, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'tests/integration'))
from services import Postgres  # noqa: E402

NODE = 'server'


def rendered_controllers(rendered):
    """(container, names of the pods)"""
    for each in yaml.safe_load_all(rendered.read_text()):
        if each and each['kind'] == 'StatefulSet':
            container = each['spec']['template']['spec']['containers'][0]
            if container['args'][0] == 'controller':
                name = each['metadata']['name']
                return container, [f'{name}-{i}' for i in range(each['spec']['replicas'])]
    raise AssertionError('no StatefulSet runs controllers')


class Controllers:
    def __init__(self, tactus, rendered, example, folder, store):
        self.tactus, self.folder, self.example, self.store = tactus, folder, example, store
        self.container, self.pods = rendered_controllers(rendered)
        self.ports = {pod: free_port() for pod in self.pods}
        self.processes = {}
        run(tactus, 'cluster', 'init', folder / 'authority')

    def told(self, words, pod):
        """What a pod is told, where this machine has it."""
        places = {'$(POD_NAME)': pod, '$(TACTUS_STORE)': self.store,
                  '/etc/tactus/fleet': str(self.example),
                  '/etc/tactus/authority': str(self.folder / 'authority'),
                  '/state/': f'{self.folder}/{pod}/', '0.0.0.0:': '127.0.0.1:',
                  ':7400': f':{self.ports[pod]}'}
        for old, new in places.items():
            words = [word.replace(old, new) for word in words]
        return words

    def start(self, name, *arguments):
        log = (self.folder / f'{name}.log').open('a')
        with log:
            self.processes[name] = subprocess.Popen([self.tactus, *map(str, arguments)], stdout=log,
                                                    stderr=subprocess.STDOUT)

    def log(self, name):
        return (self.folder / f'{name}.log').read_text()

    def await_true(self, what, ask):
        for _ in range(900):
            found = ask()
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f'waited for {what}: ' +
                             '\n'.join(self.log(name) for name in self.processes))

    def probe(self, pod):
        """What the probes say of it; empty where one fails."""
        said = ''
        for which in ('livenessProbe', 'readinessProbe'):
            command = self.told(self.container[which]['exec']['command'], pod)
            assert command[0] == 'tactus', command
            done = subprocess.run([self.tactus, *command[1:]], capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                return ''
            said = done.stdout
        return said

    def secure(self):
        return '--tls', self.folder / 'authority'

    def leaders(self):
        """None where one that lives does not answer: it may be about to lead."""
        said = {pod: self.probe(pod) for pod in self.pods if self.processes[pod].poll() is None}
        leading = [pod for pod, text in said.items()
                   if text == f'127.0.0.1:{self.ports[pod]} leads\n']
        return leading if all(said.values()) else []

    def everywhere(self):
        return ','.join(f'127.0.0.1:{port}' for port in self.ports.values())

    def standing(self):
        done = subprocess.run([self.tactus, 'cluster', 'status', '--json', '--controller',
                               self.everywhere(), *map(str, self.secure())], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            return ''
        return next(node['standing'] for node in json.loads(done.stdout)['nodes']
                    if node['name'] == NODE)

    def end(self):
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait()


def check(controllers):
    for pod in controllers.pods:
        (controllers.folder / pod).mkdir()
        controllers.start(pod, *controllers.told(controllers.container['args'], pod))
    for pod in controllers.pods:
        controllers.await_true(pod, lambda pod=pod: re.search('^ready ', controllers.log(pod),
                                                             re.MULTILINE))
    node = controllers.folder / 'node'
    node.mkdir()
    shutil.copy(controllers.folder / 'authority/authority.pem', node)
    token = subprocess.run([controllers.tactus, 'cluster', 'token', NODE,
                            *map(str, controllers.secure())], capture_output=True, text=True,
                           check=True).stdout.strip()
    controllers.start('agent', 'agent', '--controller', controllers.everywhere(), '--node', NODE,
                      '--state', controllers.folder / 'agent', '--models',
                      controllers.example / 'models', '--tls', node, '--join', token)
    controllers.await_true('the agent', lambda: controllers.standing() == 'alive')
    leader, = controllers.await_true('a leader', controllers.leaders)
    spare = next(pod for pod in controllers.pods if pod != leader)
    said = controllers.probe(spare)
    assert f'not the leader; {leader} leads' in said, said
    controllers.processes[leader].kill()
    controllers.processes[leader].wait()
    controllers.await_true('the spare to lead', lambda: spare in controllers.leaders())
    controllers.await_true('the agent there', lambda: controllers.standing() == 'alive')


def main(tactus, rendered, example):
    if Postgres.why_not():
        print(f'chart: its controllers did not run: {Postgres.why_not()}')
        return
    probe = subprocess.run([tactus, 'cluster', 'history', '--store',
                            'postgresql://a@127.0.0.1:1/a'], capture_output=True, text=True,
                           check=False)
    if 'without libpq' in probe.stderr:
        print('chart: its controllers did not run: this tactus was built without libpq')
        return
    postgres = Postgres()
    try:
        with tempfile.TemporaryDirectory() as folder:
            controllers = Controllers(tactus, pathlib.Path(rendered),
                                      pathlib.Path(example).resolve(), pathlib.Path(folder),
                                      postgres.where())
            try:
                check(controllers)
            finally:
                controllers.end()
    finally:
        postgres.close()
    print('chart: its controllers started, were probed, let a node in, and lost the one that led')


if __name__ == '__main__':
    main(*sys.argv[1:])
