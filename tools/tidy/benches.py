#!/usr/bin/env python3
"""benches.py BUILD_DIR: the benchmarks, which `./run test` does not build, still compile.

Checks the syntax of each with its command of BUILD_DIR/compile_commands.json. Prints the first error
of each that fails, and exits 1.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def is_bench(file):
    path = pathlib.Path(file)
    return path.name.endswith('_bench.cc') or path.is_relative_to(SOURCE / 'bench')


def check(entry):
    words = shlex.split(entry['command'])
    words = words[1:] if os.path.basename(words[0]) == 'ccache' else words
    done = subprocess.run([*words, '-fsyntax-only'], cwd=entry['directory'], capture_output=True,
                          text=True, check=False)
    return None if done.returncode == 0 else done.stderr


def main(build):
    commands = json.loads((pathlib.Path(build) / 'compile_commands.json').read_text())
    benches = [entry for entry in commands if is_bench(entry['file'])]
    os.nice(10)  # the tests that run beside this one come first
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [errors for errors in pool.map(check, benches) if errors is not None]
    for errors in failed:
        first = re.search(r'^.*error: .*$', errors, re.MULTILINE)
        print(f'{first.group(0) if first else errors[-500:]} (remedy: ./run build all shows it)')
    print(f'benches: {len(benches)}, {len(failed)} do not compile')
    return 1 if failed or not benches else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
