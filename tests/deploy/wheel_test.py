"""wheel_test.py PROGRAM SOURCE: the wheel that tools/deploy/wheel.py makes of the program,
installed by pip without a network: it is whole, and its command becomes the program.

Without this a wheel could install and not start, or swallow signals, input or exit codes.
"""
import base64
import csv
import hashlib
import io
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import zipfile

PROGRAM, SOURCE = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / 'tools/deploy'))
from wheel import write_wheel  # noqa: E402
START_S = 120  # a machine under load may take long


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        make = [sys.executable, '-B', SOURCE / 'tools/deploy/wheel.py', PROGRAM, cls.root]
        made = subprocess.run(make, stdout=subprocess.PIPE, text=True, check=True)
        cls.path = pathlib.Path(made.stdout.splitlines()[-1])
        cls.site = cls.root / 'site'
        subprocess.run([sys.executable, '-m', 'pip', '--quiet', 'install', '--no-deps',
                        '--no-index', '--no-compile', '--target', cls.site, cls.path], check=True)
        # As in an environment whose packages are ours and those of this Python.
        cls.environment = {**os.environ, 'PYTHONPATH': str(cls.site)}
        cls.environment.pop('ONNXRUNTIME_ROOT', None)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def start(self, *arguments, **options):
        return subprocess.Popen([self.site / 'bin/tactus', *arguments], env=self.environment,
                                stdout=subprocess.PIPE, text=True, **options)

    def test_the_record_has_each_file_with_its_sum(self):
        with zipfile.ZipFile(self.path) as wheel:
            files = {name: wheel.read(name) for name in wheel.namelist()}
        record = next(name for name in files if name.endswith('/RECORD'))
        rows = {name: (said, size) for name, said, size in
                csv.reader(io.StringIO(files[record].decode()))}
        self.assertEqual(set(rows), set(files))
        for name, data in files.items():
            if name != record:
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=')
                self.assertEqual(rows[name], (f'sha256={digest.decode()}', str(len(data))), name)

    def test_the_tag_is_the_c_library_that_the_files_need(self):
        highest = (0,)
        for file in (self.site / 'tactus/bin').iterdir():
            shown = subprocess.run(['objdump', '-T', file], capture_output=True, text=True,
                                   check=True).stdout
            highest = max([highest, *(tuple(map(int, each.split('.'))) for each in
                                      re.findall(r'\bGLIBC_([0-9.]+)', shown))])
        self.assertIn(f'-manylinux_{highest[0]}_{highest[1]}_', self.path.name)

    def test_only_the_machines_own_libraries_are_found_elsewhere(self):
        shown = subprocess.run(['ldd', self.site / 'tactus/bin/tactus'], capture_output=True,
                               text=True, check=True).stdout
        self.assertNotIn('not found', shown)
        elsewhere = {line.split()[0].rpartition('/')[2] for line in shown.splitlines()
                     if str(self.site) not in line}
        self.assertEqual({name for name in elsewhere if not re.match(
            r'(linux-vdso|ld-linux-.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so',
            name)}, set())

    def test_each_library_has_its_licence(self):
        licences = {each.name for each in self.site.glob('tactus-*.dist-info/licenses/*')}
        self.assertTrue({'LICENSE', 'THIRD_PARTY.md', 'libssl3.copyright'} <= licences, licences)

    def test_the_same_files_give_the_same_wheel(self):
        made = []
        for names in ('ab', 'ba'):
            path = self.root / f'{names}.whl'
            write_wheel(path, {name: (name.encode(), name == 'a') for name in names}, '1', 'tag')
            made.append(path.read_bytes())
        self.assertEqual(*made)
        with zipfile.ZipFile(path) as wheel:
            self.assertEqual({each.date_time for each in wheel.infolist()},
                             {(1980, 1, 1, 0, 0, 0)})

    def test_the_command_becomes_the_program(self):
        models = self.root / 'models'
        shutil.copytree(SOURCE / 'models/ee_s', models / 'ee_s')
        server = self.start('serve', '--models', models, '--http-port', '0', '--grpc-port', '0',
                            '--metrics-port', '0')
        watchdog = threading.Timer(START_S, server.kill)  # which ends its output
        watchdog.start()
        try:
            said = next((line for line in server.stdout if re.match('ready |started ', line)), '')
            # Else it did not find the library of the package onnxruntime.
            self.assertTrue(said.startswith('ready '), said)
            program = pathlib.Path(os.readlink(f'/proc/{server.pid}/exe'))
            self.assertEqual(program, (self.site / 'tactus/bin/tactus').resolve())
            server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(timeout=START_S), 0)
        finally:
            watchdog.cancel()
            server.kill()
            server.wait()
            server.stdout.close()

    def test_no_signal_is_ignored_that_the_program_does_not_ignore(self):
        # Python ignores two, and what a process becomes goes on to ignore them.
        script = self.root / 'ignored.py'
        script.write_text('import os, tactus.launcher\n'
                          'os.execv = lambda *_: print(open("/proc/self/status").read())\n'
                          'tactus.launcher.main()\n')
        shown = subprocess.run([sys.executable, script], env=self.environment, capture_output=True,
                               text=True, check=True).stdout
        self.assertEqual(int(re.search(r'SigIgn:\s*(\S+)', shown)[1], 16), 0, shown)

    def test_standard_input_is_the_programs(self):
        with self.start('check', '/dev/stdin', stdin=subprocess.PIPE,
                        stderr=subprocess.STDOUT) as checked:
            said, _ = checked.communicate('unknown_key = 1\n', timeout=START_S)
        self.assertIn('unknown_key', said)
        self.assertEqual(checked.returncode, 2)

    def test_exit_codes_are_the_programs(self):
        with self.start('serve', '--models', '/nonexistent', stderr=subprocess.PIPE) as refused:
            self.assertIn('/nonexistent', refused.stderr.read())
        self.assertEqual(refused.returncode, 2)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
