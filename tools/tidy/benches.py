#!/usr/bin/env python3
"""benches.py BUILD_DIR [SOURCE_DIR]: benchmarks, which `./run test` does not build, still compile.

Compiles each of which a file has changed (tools/tidy/alone.py says since when) and that the build
has not compiled since, with its command of BUILD_DIR/compile_commands.json and without optimisation.
With TACTUS_COMPILE_ALL=1, or outside git, all. Prints the first error of each that fails, and exits 1.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import sys

import alone

# How they are compiled, and what generates headers: where one changed, all benchmarks are compiled.
FOR_ALL = re.compile(r'\.(proto|cmake)$|^bench/CMakeLists\.txt$|^CMake[^/]*$')


def is_bench(file, source):
    return file.name.endswith('_bench.cc') or file.is_relative_to(source / 'bench')


def main(arguments):
    build = pathlib.Path(arguments[0]).resolve()
    source = pathlib.Path(arguments[1] if len(arguments) > 1 else
                          pathlib.Path(__file__).parents[2]).resolve()
    commands = json.loads((build / 'compile_commands.json').read_text())
    changed = alone.changed_files(source)
    if changed is not None and any(FOR_ALL.search(str(file.relative_to(source)))
                                   for file in changed if file.is_relative_to(source)):
        changed = None
    roots = [source / 'src', source / 'bench', source / 'apps']
    objects = alone.folder_for_objects(build)
    benches, wanted = 0, []
    for entry in commands:
        folder = pathlib.Path(entry['directory'])
        file = (folder / entry['file']).resolve()
        if not is_bench(file, source):
            continue
        benches += 1
        words = shlex.split(entry['command'])
        at = words.index('-o')
        built = folder / words[at + 1]
        files = alone.reached(file, roots)
        if changed is not None and not files & changed:
            continue
        if built.is_file() and built.stat().st_mtime >= max(f.stat().st_mtime for f in files):
            continue
        del words[at:at + 2]
        if os.path.basename(words[0]) == 'ccache':
            del words[0]
        name = str(file.relative_to(source)).replace('/', '.')
        wanted.append((words, folder, objects / f'{name}.o'))
    os.nice(10)  # the tests that run beside this one come first
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [errors for errors in pool.map(lambda what: alone.compiler_errors(*what), wanted)
                  if errors is not None]
    for errors in failed:
        first = re.search(r'^.*error: .*$', errors, re.MULTILINE)
        print(f'{first.group(0) if first else errors[-500:]} (remedy: ./run build all shows it)')
    print(f'benches: {benches}, of which {benches - len(wanted)} have not changed or were compiled '
          f'by the build; {len(wanted)} compiled here, {len(failed)} do not compile')
    return 1 if failed or not benches else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
