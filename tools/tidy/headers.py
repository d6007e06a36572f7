#!/usr/bin/env python3
"""headers.py BUILD_DIR [SOURCE_DIR]: headers of src/ and apps/ compile by themselves.

Checks those that changed since the last commit that passed `./run test` here; where none did, since
the branch left origin/main; on main itself, in the six hours before the last commit. With
TACTUS_ALL_HEADERS=1, or outside git, all.

A header needs no check if the build compiled a source that includes it before anything else. The
others are compiled here, with the include paths from BUILD_DIR/compile_commands.json, and not again
until one of them, or a header of this repository that it includes, changes (BUILD_DIR/headers.json
remembers). Prints `file:line: ...` for each that does not compile, and exits 1.
"""
import concurrent.futures
import datetime
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
ANY_INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def compile_flags(commands):
    """The compiler, and the include paths, definitions and standard of all commands together."""
    compiler, flags = None, []
    for entry in commands:
        if not entry['file'].endswith(('.cc', '.cxx')):
            continue
        words = shlex.split(entry['command'])
        if os.path.basename(words[0]) == 'ccache':
            words = words[1:]
        compiler = compiler or words[0]
        for at, word in enumerate(words):
            if word == '-isystem':
                pair = (word, words[at + 1])
            elif word.startswith(('-I', '-std=')):
                pair = (word,)
            else:
                continue
            if pair not in flags:
                flags.append(pair)
    return compiler, [word for pair in flags for word in pair]


def compiled_by_build(commands, roots):
    """The headers that are the first thing that a source includes."""
    found = set()
    for entry in commands:
        folder = pathlib.Path(entry['directory'])
        output = re.search(r' -o (\S+)', entry['command'])
        if output is not None and not (folder / output.group(1)).exists():
            continue  # listed, and not built
        file = (folder / entry['file']).resolve()
        if file.parent.name == 'unity':
            # Sources that are compiled together: what the first includes, no other has prepared.
            first = ANY_INCLUDE.search(file.read_text(encoding='utf-8')).group(2)
            file = (file.parent / first).resolve()
        first = ANY_INCLUDE.search(file.read_text(encoding='utf-8')) if file.is_file() else None
        if first is None or first.group(1) != '"':
            continue
        for root in (file.parent, *roots):
            if (root / first.group(2)).is_file():
                found.add((root / first.group(2)).resolve())
                break
    return found


def closure_digest(header, roots, seen=None):
    """A digest of the header and of every header of the repository that it reaches."""
    seen = {} if seen is None else seen
    if header in seen or not header.is_file():
        return seen
    text = header.read_text(encoding='utf-8')
    seen[header] = hashlib.sha256(text.encode()).hexdigest()
    for name in INCLUDE.findall(text):
        for root in (header.parent, *roots):
            if (root / name).is_file():
                closure_digest((root / name).resolve(), roots, seen)
                break
    return seen


def changed_headers(source):
    """The headers that differ from the commit that is taken as good; None: not known."""
    def git(*arguments):
        try:
            run = subprocess.run(['git', '-C', str(source), *arguments], capture_output=True,
                                 text=True, check=False)
        except FileNotFoundError:
            return ''
        return run.stdout.strip() if run.returncode == 0 else ''

    head, last = git('rev-parse', 'HEAD'), git('log', '-1', '--format=%cI')
    if not last:
        return None
    passed = source / '.cache/passed-commit'
    base = passed.read_text().strip() if passed.is_file() else ''
    if not base or git('merge-base', base, 'HEAD') != base:
        base = git('merge-base', 'origin/main', 'HEAD')
        if base in ('', head):
            before = datetime.datetime.fromisoformat(last) - datetime.timedelta(hours=6)
            base = git('rev-list', '-1', f'--before={before.isoformat()}', 'HEAD')
    if not base:
        return None
    names = git('diff', '--name-only', '--diff-filter=d', base).split('\n')
    names += git('ls-files', '--others', '--exclude-standard').split('\n')
    return {(source / name).resolve() for name in names if name.endswith('.h')}


def first_error(header, source, output):
    for line in output.split('\n'):
        found = re.match(r'(.+?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)', line)
        if found:
            place = os.path.relpath(found.group(1), source)
            return f'{place}:{found.group(2)}: {found.group(3)}'
    return f'{header}:1: {output.strip()[:200]}'


def main(arguments):
    build = pathlib.Path(arguments[0]).resolve()
    source = pathlib.Path(arguments[1] if len(arguments) > 1 else
                          pathlib.Path(__file__).parents[2]).resolve()
    commands = json.loads((build / 'compile_commands.json').read_text())
    compiler, flags = compile_flags(commands)
    memory_file = build / 'headers.json'
    memory = json.loads(memory_file.read_text()) if memory_file.is_file() else {}
    roots = [source / 'src', build / 'src/server']
    every = {h for folder in ('src', 'apps') for h in (source / folder).rglob('*.h')}
    compiled = compiled_by_build(commands, roots + [source / 'apps'])
    changed = None if os.environ.get('TACTUS_ALL_HEADERS') else changed_headers(source)
    wanted = every if changed is None else every & changed
    headers = sorted(wanted - compiled)

    def check(header):
        name = str(header.relative_to(source))
        reached = closure_digest(header, roots)
        digest = hashlib.sha256(repr([sorted(reached.values()), compiler, flags]).encode())
        if memory.get(name) == digest.hexdigest():
            return name, digest.hexdigest(), None
        # Through a file of one #include line: a header given as the main file may not say
        # #pragma once without a warning.
        run = subprocess.run([compiler, *flags, '-fsyntax-only', '-x', 'c++', '-'],
                             input=f'#include "{header}"\n', capture_output=True, text=True,
                             check=False)
        return name, digest.hexdigest(), None if run.returncode == 0 else run.stderr

    failures = 0
    os.nice(10)  # the tests that run beside this one come first
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, digest, errors in pool.map(check, headers):
            if errors is None:
                memory[name] = digest
                continue
            failures += 1
            memory.pop(name, None)
            print(f'{first_error(name, source, errors)} [{name} does not compile by itself] '
                  '(remedy: include in the header what it uses)')
    memory_file.write_text(json.dumps(memory))
    print(f'headers: {len(every)}, of which {len(every) - len(wanted)} have not changed and '
          f'{len(wanted) - len(headers)} were compiled by the build; {len(headers)} compiled here, '
          f'{failures} do not compile by themselves')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
