"""A tactus server as a child process: started on free ports of this machine, stopped gracefully."""
import json
import pathlib
import queue
import re
import signal
import subprocess
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
TACTUS = ROOT / 'build/release/apps/tactus'


class ServerError(Exception):
    """The server did not start or did not end as it should; the text is for the user."""


class Server:
    """`with Server(models=..., arguments=[...]) as server:`; the ports are attributes. It has one
    lane unless the arguments say how many: what is compared must not depend on the machine."""

    def __init__(self, models, arguments, log, binary=TACTUS, start_within=120):
        lanes = [] if {'--lanes', '--plan', '--planner'} & set(arguments) else ['--lanes', '1']
        self.command = [str(binary), 'serve', '--models', str(models), '--http-port', '0',
                        '--grpc-port', '0', '--metrics-port', '0', *lanes, *map(str, arguments)]
        self.log = pathlib.Path(log)
        self.start_within = start_within
        self.http = self.grpc = self.metrics = 0

    def __enter__(self):
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log_file = self.log.open('w', encoding='utf-8')
        # A group of its own: Ctrl-C reaches us, and we stop the server in order. Not a session:
        # Linux shares the processor between sessions, and a rival in ours would get another share.
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True,
                                        stderr=self.log_file, process_group=0)
        lines = queue.Queue()

        def read():
            for line in self.process.stdout:
                self.log_file.write(line)
                lines.put(line)
            lines.put(None)

        self.reader = threading.Thread(target=read, daemon=True)
        self.reader.start()
        try:
            while True:
                line = lines.get(timeout=self.start_within)
                if line is None:
                    raise ServerError(self._failed('ended before it was ready'))
                ready = re.match(r'ready http=(\d+) grpc=(\d+) metrics=(\d+)', line)
                if ready:
                    self.http, self.grpc, self.metrics = map(int, ready.groups())
                    return self
        except queue.Empty:
            self.__exit__(None, None, None)
            raise ServerError(self._failed(f'was not ready in {self.start_within} s')) from None

    def _failed(self, what):
        self.log_file.flush()
        tail = self.log.read_text(encoding='utf-8', errors='replace').splitlines()[-8:]
        return (f'{" ".join(self.command)}\n{what}; the end of {self.log}:\n  '
                + '\n  '.join(tail))

    def __exit__(self, *_):
        """Sets `exit_code`; 0 after a graceful stop."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.exit_code = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.exit_code = self.process.wait()
        self.reader.join(timeout=5)
        self.log_file.close()

    def load(self, path, *arguments, protocol='grpc', lossy=False):
        """One run of `tactus load` against this server: its report, which `path` keeps. Where it
        is not `lossy`, each request must have an answer."""
        path = pathlib.Path(path)
        path.unlink(missing_ok=True)
        port = self.grpc if protocol == 'grpc' else self.http
        command = [self.command[0], 'load', '--protocol', protocol, '--url', f'127.0.0.1:{port}',
                   '--json', str(path), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode not in ((0, 1) if lossy else (0,)) or not path.exists():
            raise ServerError(f'{" ".join(command)}\nended with {done.returncode}:\n'
                              f'{done.stdout}{done.stderr}')
        return json.loads(path.read_text(encoding='utf-8'))['runs'][0]

    def resident_bytes(self):
        """Memory in use now, and the most it ever was."""
        status = pathlib.Path(f'/proc/{self.process.pid}/status').read_text(encoding='ascii')
        field = {key: int(value) * 1024
                 for key, value in re.findall(r'(VmRSS|VmHWM):\s+(\d+) kB', status)}
        return field['VmRSS'], field['VmHWM']
