"""package_files_test.py BUILD SOURCE TACTUS: the Debian package's files, as `cmake --install` lays
them out: units that start what the program understands, manual pages, completions, settings.

Without this a renamed option would leave a unit that cannot start, on somebody's machine.
"""
import gzip
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE, TACTUS = (pathlib.Path(each).resolve() for each in sys.argv[1:4])
UNITS = ['tactus', 'tactus-agent', 'tactus-controller', 'tactus-front-end', 'tactus-scheduler']


def run(*command, **options):
    return subprocess.run([str(each) for each in command], capture_output=True, text=True,
                          check=False, **options)


def setting(unit, key):
    return re.findall(rf'^{key}=(.*)$', unit, re.MULTILINE)


def options_of(*command):
    """The long options that the program's own help shows."""
    shown = run(TACTUS, *command, '--help')
    if '--help-all' in shown.stdout:
        shown = run(TACTUS, *command, '--help-all')
    return set(re.findall(r'--[a-z][a-z0-9-]*', shown.stdout))


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        done = run('cmake', '--install', BUILD, '--prefix', cls.root)
        assert done.returncode == 0, done.stderr
        cls.man = cls.root / 'usr/share/man/man1'

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def commands(self):
        shown = run(TACTUS, '--help').stdout.split('Serve your models:')[1].split('For example:')[0]
        return re.findall(r'^  ([a-z-]+) ', shown, re.MULTILINE)

    def test_every_file_has_its_place(self):
        have = {str(each.relative_to(self.root)) for each in self.root.rglob('*')
                if not each.is_dir()}
        documents = {each for each in have if each.startswith('usr/share/doc/tactus/docs/')}
        self.assertIn('usr/share/doc/tactus/docs/guide/deploy.md', documents)
        # Each library's name says what is in it, and each has a licence.
        brought = {each for each in have
                   if re.fullmatch(r'usr/lib/tactus/lib[\w+.-]*-[0-9a-f]{8}\.so[.0-9]*', each)}
        licences = {each for each in have if each.startswith('usr/share/doc/tactus/licences/')}
        self.assertTrue(any('libgrpc++' in each for each in brought), have)
        self.assertFalse(any('libssl' in each or 'libpq' in each for each in brought), brought)
        self.assertIn('usr/share/doc/tactus/licences/libgrpc++1.51.copyright', licences)
        documents |= brought | licences
        want = {'usr/bin/tactus', 'usr/lib/tactus/tactus',
                'usr/share/bash-completion/completions/tactus',
                'usr/share/zsh/vendor-completions/_tactus',
                'usr/share/fish/vendor_completions.d/tactus.fish',
                'usr/share/man/man1/tactus.1.gz'}
        want |= {f'usr/share/doc/tactus/{each}' for each in ('README.md', 'THIRD_PARTY.md',
                                                             'copyright')}
        want |= {f'usr/share/man/man1/tactus-{each}.1.gz' for each in self.commands()}
        want |= {f'lib/systemd/system/{each}.service' for each in UNITS}
        want |= {f'etc/tactus/{each}.env' for each in UNITS}
        engine = {'usr/lib/tactus/libonnxruntime.so.1', 'usr/share/doc/tactus/onnxruntime-LICENSE'}
        if 'usr/lib/tactus/libonnxruntime.so.1' in have:  # not where it was not fetched
            want |= engine
        self.assertEqual(sorted(have - documents), sorted(want))

    def test_the_program_runs_where_it_is_installed(self):
        self.assertEqual((self.root / 'usr/bin/tactus').readlink(),
                         pathlib.Path('../lib/tactus/tactus'))
        done = run(self.root / 'usr/bin/tactus', '--version', env={'LD_BIND_NOW': '1'})
        self.assertTrue(done.stdout.startswith('tactus '), done.stderr)

    def test_settings_that_dpkg_keeps_are_those_of_etc(self):
        kept = (SOURCE / 'deploy/debian/conffiles').read_text().split()
        have = ['/' + str(each.relative_to(self.root)) for each in self.root.glob('etc/**/*')
                if not each.is_dir()]
        self.assertEqual(sorted(kept), sorted(have))

    def test_units_start_what_the_program_understands(self):
        for name in UNITS:
            with self.subTest(name):
                unit = (self.root / f'lib/systemd/system/{name}.service').read_text()
                defaults = self.root / setting(unit, 'EnvironmentFile')[0].lstrip('/')
                self.assertEqual(defaults.name, f'{name}.env')
                told = set(re.findall(r'^([A-Z_]+)=', defaults.read_text(), re.MULTILINE))
                words = shlex.split(setting(unit, 'ExecStart')[0])
                self.assertEqual(words[0], '/usr/bin/tactus')
                used = set(re.findall(r'\$\{?([A-Z_]+)', ' '.join(words)))
                self.assertEqual(used, told)
                named = {each for each in words[2:] if re.match(r'--[a-z]', each)}
                self.assertLessEqual(named, options_of(words[1]))
                # What the comments advise is there too: of this command or of another.
                advised = set(re.findall(r'(?<!-)--[a-z][a-z-]+', defaults.read_text()))
                others = options_of('serve') | options_of('profile') | options_of('cluster', 'init')
                self.assertLessEqual(advised, options_of(words[1]) | others)

    def test_units_are_hardened(self):
        for name in UNITS:
            with self.subTest(name):
                unit = (self.root / f'lib/systemd/system/{name}.service').read_text()
                for key, value in {'User': 'tactus', 'ProtectSystem': 'strict',
                                   'NoNewPrivileges': 'yes', 'StateDirectory': 'tactus',
                                   'CapabilityBoundingSet': '', 'Type': 'exec',
                                   'RestartPreventExitStatus': '2'}.items():
                    self.assertEqual(setting(unit, key), [value], key)

    def test_systemd_understands_the_units(self):
        if not shutil.which('systemd-analyze'):
            self.skipTest('no systemd-analyze here')
        with tempfile.TemporaryDirectory() as folder:
            copies = []
            for name in UNITS:
                unit = (self.root / f'lib/systemd/system/{name}.service').read_text()
                copy = pathlib.Path(folder) / f'{name}.service'
                copy.write_text(unit.replace('/usr/bin/tactus', str(TACTUS)))
                copies.append(copy)
            done = run('systemd-analyze', 'verify', '--man=no', *copies)
            ours = [line for line in done.stderr.splitlines() if 'tactus' in line]
            self.assertEqual(ours, [])
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_scripts_of_the_package_are_shell(self):
        for name in ('postinst', 'prerm', 'postrm'):
            done = run('sh', '-n', SOURCE / 'deploy/debian' / name)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_manual_pages_say_what_the_help_says(self):
        for name in self.commands():
            page = gzip.decompress((self.man / f'tactus-{name}.1.gz').read_bytes()).decode()
            with self.subTest(name):
                options = options_of(name)
                shown = set(re.findall(r'--[a-z][a-z0-9-]*', page.replace('\\-', '-')))
                self.assertLessEqual(options, shown)

    def test_manual_pages_are_roff(self):
        if not shutil.which('man'):
            self.skipTest('no man here')
        for page in sorted(self.man.glob('*.gz')):
            done = run('man', '--warnings', '-l', page,
                       env={'PATH': '/usr/bin:/bin', 'LC_ALL': 'C.UTF-8', 'MANROFFSEQ': '',
                            'MANWIDTH': '100', 'MANPAGER': 'cat'})
            self.assertEqual((done.returncode, done.stderr), (0, ''), page.name)
            self.assertIn('SYNOPSIS', done.stdout)

    def complete(self, *words):
        script = ('. "$1"; COMP_WORDS=("${@:2}"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tactus; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = run('bash', '-c', script, 'bash',
                   self.root / 'usr/share/bash-completion/completions/tactus', *words)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        return done.stdout.split()

    def test_bash_completes_commands_options_and_values(self):
        self.assertEqual(self.complete('tactus', 'se'), ['serve'])
        self.assertEqual(self.complete('tactus', 'cluster', 'u'), ['up'])
        self.assertEqual(self.complete('tactus', 'serve', '--model-c'), ['--model-control-mode'])
        self.assertEqual(self.complete('tactus', 'serve', '--follow', ''), ['yes', 'no', 'stalls'])
        self.assertEqual(self.complete('tactus', 'serve', '--onnxruntime', '/et'), ['/etc'])
        self.assertEqual(self.complete('tactus', 'agent', '--models', '/et'), ['/etc'])

    def test_each_shell_reads_its_script(self):
        for shell, name in (('bash', 'bash-completion/completions/tactus'),
                            ('zsh', 'zsh/vendor-completions/_tactus'),
                            ('fish', 'fish/vendor_completions.d/tactus.fish')):
            script = (self.root / 'usr/share' / name).read_text()
            for word in ('serve', 'model-control-mode', 'stalls'):
                self.assertIn(word, script, shell)
            if shutil.which(shell):
                done = run(shell, '-n', '/dev/stdin', input=script)
                self.assertEqual((done.returncode, done.stderr), (0, ''), shell)


class Manifests(unittest.TestCase):
    """What containers are told, in the chart and elsewhere."""

    def told(self, path):
        text = re.sub(r'#.*', '', path.read_text())
        return set(re.findall(r'^ *- (--[a-z][a-z-]*)', text, re.MULTILINE))

    def test_every_option_is_one_of_the_program(self):
        templates = SOURCE / 'deploy/helm/tactus/templates'
        names = (templates / '_names.tpl').read_text().split('{{- define ')
        shared = {part.split('"')[1]: set(re.findall(r'^- (--[a-z][a-z-]*)', part, re.MULTILINE))
                  for part in names[1:]}
        files = {templates / f'{role}.yaml': role
                 for role in ('scheduler', 'front-end', 'controller')}
        files[templates / 'worker.yaml'] = 'serve'
        files[SOURCE / 'deploy/kserve/cluster-serving-runtime.yaml'] = 'serve'
        for path, command in files.items():
            with self.subTest(path.name):
                told = self.told(path)
                for each in re.findall(r'include "(tactus\.\w+Args)"', path.read_text()):
                    self.assertTrue(shared[each], each)
                    told |= shared[each]
                self.assertGreater(len(told), 2)
                self.assertLessEqual(told, options_of(command))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
