"""Calls of the program, and the scenarios that are written for it."""
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import tomllib
import weakref


class Failed(Exception):
    """What a reader is told in one line."""


class Program:
    """tactus, whose reports come back as JSON; several threads may call it at once."""

    def __init__(self, tactus):
        self.tactus = pathlib.Path(tactus)
        self._folder = tempfile.mkdtemp(prefix='figures-')
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._numbers = itertools.count()

    def file(self, name):
        """A path of its own in a folder that goes with the program."""
        return pathlib.Path(self._folder, f'{next(self._numbers)}-{name}')

    def call(self, *words, enough=(0,)):
        try:
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                                  check=False)
        except OSError as error:
            raise Failed(f'{words[0]}: {error.strerror}; ./run build makes it') from error
        if done.returncode in enough:
            return done.stdout
        lines = done.stderr.strip().splitlines()
        raise Failed(lines[-1] if lines else f'{words[0]} ended with {done.returncode}')

    def json(self, *words, settings=(), enough=(0,)):
        """What the command writes for --json."""
        file = self.file('report.json')
        sets = [word for setting in settings for word in ('--set', setting)]
        self.call(self.tactus, *words, *sets, '--json', file, enough=enough)
        report = json.loads(file.read_bytes())
        file.unlink()
        return report

    def simulate(self, scenario, *words, settings=()):
        return self.json('simulate', scenario, *words, settings=settings)['runs'][0]

    def commit(self):
        return self.call(self.tactus, '--version').strip()


def load_toml(path):
    try:
        with open(path, 'rb') as file:
            return tomllib.load(file)
    except OSError as error:
        raise Failed(f'{path}: cannot read this file ({error.strerror})') from error
    except tomllib.TOMLDecodeError as error:
        line = re.search(r'line (\d+)', str(error))
        raise Failed(f"{path}:{line[1] if line else '1'}: {error}") from error


def load_scenario(path):
    """With its files' paths in full, as it may be written elsewhere."""
    scenario = load_toml(path)
    for table, key in (('scenario', 'profile'), ('arrivals', 'schedule'), ('arrivals', 'trace')):
        if key in scenario.get(table, {}):
            scenario[table][key] = str((path.parent / scenario[table][key]).absolute())
    return scenario


def write_toml(tables, path):
    """Tables of values, and lists of such tables, whose lists of tables are theirs."""
    lines = []

    def write(name, table):
        lines.extend(f'{key} = {json.dumps(value)}' for key, value in table.items()
                     if not _is_tables(value))
        for key, value in table.items():
            for each in value if _is_tables(value) else []:
                lines.append(f'\n[[{name}.{key}]]')
                write(f'{name}.{key}', each)

    for name, value in tables.items():
        for each in value if _is_tables(value) else [value]:
            lines.append(f'\n[[{name}]]' if _is_tables(value) else f'\n[{name}]')
            write(name, each)
    path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return path


def _is_tables(value):
    return isinstance(value, list) and value != [] and isinstance(value[0], dict)
