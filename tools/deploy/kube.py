"""A Kubernetes on this machine, for a check: etcd, kube-apiserver, kube-controller-manager,
kube-scheduler and kwok on free ports of 127.0.0.1, with certificates that are thrown away with it.
All of them end with the Cluster, and with this process if that is killed.

kwok plays the kubelets: pods that were placed on its nodes become ready at once, and go at once
when they are deleted. No container is started.
"""
import concurrent.futures
import ctypes
import http.client
import json
import signal
import socket
import ssl
import subprocess
import threading
import time

SERVICES = '10.96.0.0/12'
PODS = '10.128.0.0/9'
START_S = 120
STAGES = ('node/fast/node-initialize.yaml',
          'node/heartbeat-with-lease/node-heartbeat-with-lease.yaml', 'pod/fast/pod-ready.yaml',
          'pod/fast/pod-complete.yaml', 'pod/fast/pod-delete.yaml')
DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
LIBC = ctypes.CDLL(None)


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def end_with_parent():
    LIBC.prctl(DIES_WITH_PARENT, signal.SIGKILL)


class Refused(Exception):
    def __init__(self, status, said):
        super().__init__(f'{status}: {said.get("message", said)}')
        self.status, self.said = status, said


class Api:
    """What kube-apiserver says to its administrator."""

    def __init__(self, port, folder):
        self.port = port
        self.context = ssl.create_default_context(cafile=folder / 'ca.pem')
        self.context.load_cert_chain(folder / 'admin.pem', folder / 'admin.key')
        self.mine = threading.local()  # a connection for each thread
        self.kinds = {}
        self.warnings = []

    def call(self, method, path, body=None, kind='application/json'):
        """The answer's object; raises Refused."""
        for again in (True, False):
            if not getattr(self.mine, 'connection', None):
                self.mine.connection = http.client.HTTPSConnection(
                    '127.0.0.1', self.port, context=self.context, timeout=120)
            try:
                self.mine.connection.request(method, path, body and json.dumps(body),
                                             {'Content-Type': kind})
                answer = self.mine.connection.getresponse()
                text = answer.read().decode()
                break
            except (http.client.HTTPException, OSError):
                self.mine.connection = None
                if not again or method == 'POST':
                    raise
        self.warnings += answer.headers.get_all('Warning') or []
        said = json.loads(text) if text.startswith('{') else {'message': text}
        if answer.status >= 300:
            raise Refused(answer.status, said)
        return said

    def discover(self):
        """(apiVersion, kind) -> (plural, namespaced, verbs) of all that it serves."""
        self.kinds = {}
        versions = self.call('GET', '/api')['versions']
        groups = self.call('GET', '/apis')['groups']
        for version in versions + [each['groupVersion'] for group in groups
                                   for each in group['versions']]:
            root = '/apis/' if '/' in version else '/api/'
            for each in self.call('GET', root + version)['resources']:
                if '/' not in each['name']:
                    self.kinds[version, each['kind']] = (each['name'], each['namespaced'],
                                                         each['verbs'])

    def path(self, version, kind, namespace=None, name=None):
        if (version, kind) not in self.kinds:
            self.discover()
        plural, namespaced, _ = self.kinds[version, kind]
        root = ('/apis/' if '/' in version else '/api/') + version
        inside = f'/namespaces/{namespace}' if namespaced and namespace else ''
        return f'{root}{inside}/{plural}' + (f'/{name}' if name else '')

    def create(self, thing, namespace=None, dry=False):
        query = '?fieldValidation=Strict' + ('&dryRun=All' if dry else '')
        where = self.path(thing['apiVersion'], thing['kind'], namespace)
        return self.call('POST', where + query, thing)

    def list(self, version, kind, namespace=None, query=''):
        return self.call('GET', self.path(version, kind, namespace) + query)['items']

    def get(self, version, kind, namespace, name):
        """None where there is none."""
        try:
            return self.call('GET', self.path(version, kind, namespace, name))
        except Refused as refusal:
            if refusal.status == 404:
                return None
            raise

    def names(self, namespace):
        """(kind, name) of everything in the namespace but events, as the server lists it."""
        found = set()
        for (version, kind), (_, namespaced, verbs) in list(self.kinds.items()):
            if namespaced and 'list' in verbs and kind != 'Event' and kind != 'PodMetrics':
                found |= {(kind, each['metadata']['name'])
                          for each in self.list(version, kind, namespace)}
        return found


class Cluster:
    def __init__(self, programs, etcd, stages, folder):
        self.programs, self.etcd, self.stages, self.folder = programs, etcd, stages, folder
        self.processes = []
        self.port = free_port()

    def start(self, alone=False):
        """Alone: kube-apiserver and etcd, and nobody who acts on what it is told."""
        self._make_certificates()
        self.api = Api(self.port, self.folder)
        try:
            self._start_etcd()
            self._start_apiserver()
            for name, user in (('manager', 'system:kube-controller-manager'),
                               ('scheduler', 'system:kube-scheduler'), ('kwok', 'admin'),
                               ('admin', 'admin')):
                self._kubeconfig(name, 'admin' if user == 'admin' else name)
            if not alone:
                self._start_others()
        except BaseException:
            self.end()
            raise
        return self

    def end(self):
        for _, process in reversed(self.processes):
            process.terminate()
        for _, process in reversed(self.processes):
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []

    def dead(self):
        """Names of processes that ended by themselves, with what they said last."""
        return [f'{name}: {self.log(name)[-2000:]}' for name, process in self.processes
                if process.poll() is not None]

    def log(self, name):
        return (self.folder / f'{name}.log').read_text(errors='replace')

    def kubeconfig(self):
        return self.folder / 'admin.conf'

    def _openssl(self, *words):
        done = subprocess.run(['openssl', *map(str, words)], cwd=self.folder, capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f'openssl {words}: {done.stderr}')

    def _make_certificates(self):
        self._openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
                      '-nodes', '-days', 2, '-subj', '/CN=check', '-keyout', 'ca.key', '-out',
                      'ca.pem')
        names = 'subjectAltName=IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc'
        for name, subject in (('server', '/CN=kube-apiserver'),
                              ('admin', '/O=system:masters/CN=admin'),
                              ('manager', '/CN=system:kube-controller-manager'),
                              ('scheduler', '/CN=system:kube-scheduler')):
            (self.folder / f'{name}.ext').write_text(
                f'{names}\nextendedKeyUsage=serverAuth,clientAuth\n')
            self._openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
                          '-nodes', '-subj', subject, '-keyout', f'{name}.key', '-out',
                          f'{name}.csr')
            self._openssl('x509', '-req', '-in', f'{name}.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key',
                          '-CAcreateserial', '-days', 2, '-extfile', f'{name}.ext', '-out',
                          f'{name}.pem')
        self._openssl('genrsa', '-out', 'accounts.key', 2048)
        self._openssl('rsa', '-in', 'accounts.key', '-pubout', '-out', 'accounts.pub')

    def _kubeconfig(self, name, who):
        place = self.folder
        (place / f'{name}.conf').write_text(json.dumps({
            'apiVersion': 'v1', 'kind': 'Config', 'current-context': 'check',
            'clusters': [{'name': 'check', 'cluster': {
                'server': f'https://127.0.0.1:{self.port}',
                'certificate-authority': str(place / 'ca.pem')}}],
            'users': [{'name': name, 'user': {'client-certificate': str(place / f'{who}.pem'),
                                              'client-key': str(place / f'{who}.key')}}],
            'contexts': [{'name': 'check', 'context': {'cluster': 'check', 'user': name}}]}))

    def _spawn(self, name, program, *options):
        with (self.folder / f'{name}.log').open('wb') as log:
            # A session of its own: Ctrl-C reaches this process, which ends them in turn.
            process = subprocess.Popen([str(word) for word in (program, *options)],
                                       cwd=self.folder, stdout=log, stderr=log,
                                       start_new_session=True, preexec_fn=end_with_parent)
        self.processes.append((name, process))

    def _await(self, name, ready):
        end = time.monotonic() + START_S
        while not ready():
            if self.dead() or time.monotonic() > end:
                raise RuntimeError(f'{name} did not start: {self.log(name)[-3000:]}')
            time.sleep(0.2)

    def _start_etcd(self):
        self.etcd_port, peer = free_port(), f'http://127.0.0.1:{free_port()}'
        client = f'https://127.0.0.1:{self.etcd_port}'
        self._spawn('etcd', self.etcd, '--name', 'one', '--data-dir', self.folder / 'etcd',
                    '--listen-client-urls', client, '--advertise-client-urls', client,
                    '--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer,
                    '--initial-cluster', f'one={peer}', '--cert-file', 'server.pem', '--key-file',
                    'server.key', '--trusted-ca-file', 'ca.pem', '--client-cert-auth', '--logger',
                    'zap', '--quota-backend-bytes', 4 << 30)

        def listens():
            with socket.socket() as probe:
                return probe.connect_ex(('127.0.0.1', self.etcd_port)) == 0
        self._await('etcd', listens)

    def _start_apiserver(self):
        # Nobody is to come by the address that it advertises.
        self._spawn('apiserver', self.programs / 'kube-apiserver',
                    f'--etcd-servers=https://127.0.0.1:{self.etcd_port}', '--etcd-cafile=ca.pem',
                    '--etcd-certfile=server.pem', '--etcd-keyfile=server.key',
                    '--bind-address=127.0.0.1', f'--secure-port={self.port}',
                    '--advertise-address=192.0.2.1', '--endpoint-reconciler-type=none',
                    '--tls-cert-file=server.pem', '--tls-private-key-file=server.key',
                    '--client-ca-file=ca.pem', '--authorization-mode=RBAC',
                    '--anonymous-auth=false', f'--service-cluster-ip-range={SERVICES}',
                    '--service-account-issuer=kubernetes.default.svc',
                    '--service-account-key-file=accounts.pub',
                    '--service-account-signing-key-file=accounts.key')

        def ready():
            try:
                self.api.call('GET', '/readyz')
                return True
            except (Refused, OSError, http.client.HTTPException):
                return False
        self._await('apiserver', ready)

    def _start_others(self):
        # Fake kubelets do not fall silent, so their heartbeats may be rare.
        self._spawn('manager', self.programs / 'kube-controller-manager',
                    '--kubeconfig=manager.conf', '--leader-elect=false', '--secure-port=0',
                    '--use-service-account-credentials=true', '--root-ca-file=ca.pem',
                    '--service-account-private-key-file=accounts.key',
                    '--node-monitor-grace-period=1h', '--kube-api-qps=300', '--kube-api-burst=600')
        (self.folder / 'scheduler.json').write_text(json.dumps({
            'apiVersion': 'kubescheduler.config.k8s.io/v1', 'kind': 'KubeSchedulerConfiguration',
            'leaderElection': {'leaderElect': False},
            'clientConnection': {'kubeconfig': str(self.folder / 'scheduler.conf'), 'qps': 300,
                                 'burst': 600}}))
        self._spawn('scheduler', self.programs / 'kube-scheduler', '--config=scheduler.json',
                    '--secure-port=0')
        stages = [f'--config={self.stages / stage}' for stage in STAGES]
        self._spawn('kwok', self.programs / 'kwok', '--kubeconfig=kwok.conf',
                    '--manage-all-nodes=true', f'--cidr={PODS}', *stages,
                    '--node-lease-duration-seconds=1200')

    def add_nodes(self, names, labels=None):
        """Machines of 32 cores, as kubelets announce themselves."""
        room = {'cpu': '32', 'memory': '256Gi', 'pods': '110', 'ephemeral-storage': '100Gi'}

        def add(name):
            self.api.create({
                'apiVersion': 'v1', 'kind': 'Node',
                'metadata': {'name': name, 'labels': {
                    'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux',
                    'kubernetes.io/arch': 'amd64'} | (labels or {})},
                'status': {'allocatable': room, 'capacity': room}})
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(add, names))

    def ready_nodes(self):
        return sum(any(each['type'] == 'Ready' and each['status'] == 'True'
                       for each in node['status'].get('conditions', []))
                   for node in self.api.list('v1', 'Node'))
