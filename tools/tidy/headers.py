#!/usr/bin/env python3
"""headers.py BUILD_DIR [SOURCE_DIR]: headers of src/ and apps/ compile by themselves.

Checks those that changed (tools/tidy/alone.py says since when); with TACTUS_COMPILE_ALL=1, or
outside git, all.

A header needs no check if the build compiled a source that includes it before anything else. The
others are compiled here, with the include paths from BUILD_DIR/compile_commands.json. Prints
`file:line: ...` for each that does not compile, and exits 1.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import sys

import alone

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


def first_error(header, build, source, output):
    for line in output.split('\n'):
        found = re.match(r'(.+?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)', line)
        if found:
            place = os.path.relpath(build / found.group(1), source)
            return f'{place}:{found.group(2)}: {found.group(3)}'
    return f'{header}:1: {output.strip()[:200]}'


def main(arguments):
    build = pathlib.Path(arguments[0]).resolve()
    source = pathlib.Path(arguments[1] if len(arguments) > 1 else
                          pathlib.Path(__file__).parents[2]).resolve()
    commands = json.loads((build / 'compile_commands.json').read_text())
    compiler, flags = compile_flags(commands)
    roots = [source / 'src', build / 'src/server']
    every = {h for folder in ('src', 'apps') for h in (source / folder).rglob('*.h')}
    compiled = compiled_by_build(commands, roots + [source / 'apps'])
    changed = alone.changed_files(source)
    wanted = every if changed is None else every & changed
    headers = sorted(wanted - compiled)
    objects = alone.folder_for_objects(build)

    def check(header):
        # Through a file of one #include line: a header given as the main file may not say
        # #pragma once without a warning. It names the header from the build's folder on, so that the
        # compiler cache knows it in every checkout.
        name = str(header.relative_to(source))
        stub = objects / f'{name.replace("/", ".")}.cc'
        stub.write_text(f'#include "{os.path.relpath(header, objects)}"\n')
        words = [compiler, *flags, '-c', str(stub)]
        return name, alone.compiler_errors(words, build, stub.with_suffix('.o'))

    failures = 0
    os.nice(10)  # the tests that run beside this one come first
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, errors in pool.map(check, headers):
            if errors is not None:
                failures += 1
                print(f'{first_error(name, build, source, errors)} [{name} does not compile by itself] '
                      '(remedy: include in the header what it uses)')
    print(f'headers: {len(every)}, of which {len(every) - len(wanted)} have not changed and '
          f'{len(wanted) - len(headers)} were compiled by the build; {len(headers)} compiled here, '
          f'{failures} do not compile by themselves')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
