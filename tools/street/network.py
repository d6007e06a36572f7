"""Namespaces, emulated links and quotas of a core that belong to one run and go with it.

A server's namespace and one for each camera. Between each camera and the server a process of
tactus_street_link: a tun device on either side, and whatever rate, delay and loss it is told.
Addresses are 10.77.0.1 (the server, from everywhere) and 10.77.N.2 (camera N); they are in no
namespace but these, so nothing outside can be reached or is disturbed.
"""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = pathlib.Path(os.environ.get('TACTUS_STREET_LINK',
                                   ROOT / 'build/release/tools/tactus_street_link'))
SERVER = '10.77.0.1'
GRACE_S = 20
PERIOD_US = 10_000  # of a quota


class Refused(Exception):
    """What this machine does not let the run do; the text is for the user."""


def ip(*words, check=True):
    done = subprocess.run(['ip', *map(str, words)], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise Refused(f'`ip {" ".join(map(str, words))}`: {done.stderr.strip()}')
    return done.stdout


def refusal():
    """Why there can be no run here; empty: there can."""
    if os.geteuid() != 0:
        return 'network namespaces need root: run it as root, or by sudo'
    if not os.path.exists('/dev/net/tun'):
        return 'there is no /dev/net/tun: the kernel (or the container) gives no tun devices'
    name = f'tactus-street-{os.getpid()}-try'
    try:
        ip('netns', 'add', name)
    except (Refused, FileNotFoundError) as error:
        return f'no network namespaces here: {error}'
    try:
        ip('-n', name, 'tuntap', 'add', 'dev', 'try0', 'mode', 'tun')
    except Refused as error:
        return f'no tun devices in a namespace: {error}'
    finally:
        ip('netns', 'del', name, check=False)
    return ''


class Process:
    """A child in a group of its own, with a log; `lines` of its output can be waited for."""

    def __init__(self, command, log):
        self.command = [str(word) for word in command]
        self.log = pathlib.Path(log)
        with self.log.open('wb') as file:
            self.child = subprocess.Popen(self.command, stdout=file, stderr=subprocess.STDOUT,
                                          stdin=subprocess.DEVNULL, process_group=0)

    @property
    def pid(self):
        return self.child.pid

    def text(self):
        return self.log.read_text(encoding='utf-8', errors='replace')

    def await_line(self, begins, within=180):
        """The rest of the first line that begins so."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            ended = self.child.poll() is not None
            for line in self.text().splitlines():
                if line.startswith(begins):
                    return line[len(begins):].strip()
            if ended:
                break
            time.sleep(0.05)
        tail = '\n  '.join(self.text().splitlines()[-8:])
        raise Refused(f'{" ".join(self.command)}\ndid not say "{begins}"; the end of '
                      f'{self.log}:\n  {tail}')

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.child.send_signal(number)

    def stop(self, within=GRACE_S):
        if self.child.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            return self.child.wait(timeout=within)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()


class Quota:
    """A part of a core for whoever is put there; none where cgroups refuse, and `why` says so."""

    def __init__(self, name, cores):
        self.procs, self.why, self.folder = None, '', None
        one = pathlib.Path('/sys/fs/cgroup/cpu')
        two = pathlib.Path('/sys/fs/cgroup')
        quota = max(1000, round(cores * PERIOD_US))
        try:
            if (one / 'cpu.cfs_quota_us').exists():
                self.folder = one / name
                self.folder.mkdir()
                (self.folder / 'cpu.cfs_period_us').write_text(str(PERIOD_US))
                (self.folder / 'cpu.cfs_quota_us').write_text(str(quota))
            elif (two / 'cgroup.controllers').exists():
                self.folder = two / name
                self.folder.mkdir()
                (self.folder / 'cpu.max').write_text(f'{quota} {PERIOD_US}')
            else:
                raise OSError('there is no cgroup for processor time')
            self.procs = self.folder / 'cgroup.procs'
        except OSError as error:
            self.why = f'no quota of {cores:g} cores for {name}: {error}'
            self.close()
            self.procs = None

    def close(self):
        if self.folder is None:
            return
        for _ in range(50):  # until its processes are gone
            try:
                self.folder.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.1)
        self.folder = None


class Street:
    """`with Street(folder, cores={'server': 1, 'cam1': 0.25}) as street:`"""

    def __init__(self, folder, cores):
        self.folder = pathlib.Path(folder)
        self.cores = dict(cores)
        self.cameras = [name for name in cores if name != 'server']
        self.tag = f'tactus-street-{os.getpid()}'
        self.processes, self.links, self.quotas, self.spaces = [], {}, {}, []
        self.lock = threading.Lock()
        self.count = 0

    def __enter__(self):
        try:
            for name, cores in self.cores.items():
                space = self.space(name)
                ip('netns', 'add', space)
                self.spaces.append(space)
                ip('-n', space, 'link', 'set', 'lo', 'up')
                self.quotas[name] = Quota(space, cores)
            ip('-n', self.space('server'), 'addr', 'add', f'{SERVER}/32', 'dev', 'lo')
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes[::-1]:  # all are asked before any is waited for
            if process.child.poll() is None:
                process.signal(signal.SIGTERM)
        for process in self.processes[::-1]:
            process.stop()
        for space in self.spaces:
            # What is left in a namespace of our own was started by what we started.
            for pid in ip('netns', 'pids', space, check=False).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            ip('netns', 'del', space, check=False)
        for quota in self.quotas.values():
            quota.close()
        self.spaces, self.processes, self.links = [], [], {}

    def space(self, name):
        return f'{self.tag}-{name}'

    def address(self, name):
        return SERVER if name == 'server' else f'10.77.{1 + self.cameras.index(name)}.2'

    def without_quota(self):
        return [quota.why for quota in self.quotas.values() if quota.why]

    def start(self, name, command, log, quota=True):
        """A process in the namespace; in its part of a core unless it is no work of the node's."""
        words = ['ip', 'netns', 'exec', self.space(name), *command]
        procs = self.quotas[name].procs if quota else None
        if procs is not None:
            words = ['sh', '-c', 'echo $$ >"$0" && exec "$@"', procs, *words]
        return self._keep(Process(words, self.folder / log))

    def _keep(self, process):
        with self.lock:
            self.processes.append(process)
        return process

    def end(self, *processes):
        for process in processes:
            process.signal(signal.SIGTERM)
        for process in processes:
            process.stop()
            with self.lock:
                self.processes.remove(process)

    def join(self, name, up, down, latency_ms, loss=0.0, queue_kb=256.0):
        """The link between a camera and the server; rates in Mbit/s, or FILE.csv:TRACE."""
        number = 1 + self.cameras.index(name)
        self.count += 1
        link = self._keep(Process(
            [LINK, '--left', f'{self.space("server")}:to_{name}:10.77.{number}.1/30',
             '--right', f'{self.space(name)}:up0:10.77.{number}.2/30', '--up', up, '--down', down,
             '--latency-ms', latency_ms, '--loss', loss, '--queue-kb', queue_kb, '--seed', number],
            self.folder / f'link-{name}-{self.count}.log'))
        link.await_line('ready', within=20)
        ip('-n', self.space(name), 'route', 'replace', SERVER, 'via', f'10.77.{number}.1',
           'src', f'10.77.{number}.2')
        self.links[name] = link

    def cut(self, name):
        self._tell(name, signal.SIGUSR1, 'cut')

    def mend(self, name):
        self._tell(name, signal.SIGUSR2, 'mended')

    def _tell(self, name, number, answer):
        link = self.links[name]
        before = link.text().splitlines().count(answer)
        link.signal(number)
        end = time.monotonic() + GRACE_S
        while link.text().splitlines().count(answer) == before and time.monotonic() < end:
            time.sleep(0.005)

    def part(self, name):
        """Ends the link and says what went over it, {'up': ..., 'down': ...}."""
        link = self.links.pop(name)
        self.end(link)
        return json.loads(link.text().splitlines()[-1])
