#!/usr/bin/env python3
"""coverage.py BUILD_DIR [MODULE...]: which share of each module's lines the tests reached.

BUILD_DIR was built with the preset `coverage` and its tests have run. gcov, which comes with g++,
reads the counts; a line of a header counts as reached when one of its includers reached it.
"""
import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def counts_of(data_file):
    """file -> {line: count} for one translation unit."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(['gcov', '--json-format', str(data_file.resolve())], cwd=folder,
                       capture_output=True, check=False)
        found = {}
        for report in pathlib.Path(folder).glob('*.gcov.json.gz'):
            with gzip.open(report) as file:
                for entry in json.load(file)['files']:
                    lines = found.setdefault(entry['file'], {})
                    for line in entry['lines']:
                        number = line['line_number']
                        lines[number] = lines.get(number, 0) + line['count']
        return found


def module_of(path):
    parts = path.parts
    return '/'.join(parts[:3] if parts[1] == 'server' else parts[:2])


def main(arguments):
    build = pathlib.Path(arguments[0])
    wanted = {'src/' + name.replace('server_', 'server/') for name in arguments[1:]}
    root = pathlib.Path(__file__).resolve().parents[2]
    total = collections.defaultdict(dict)
    data = sorted(build.rglob('*.gcda'))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(counts_of, data):
            for name, lines in found.items():
                path = pathlib.Path(os.path.normpath(build / name))
                try:
                    path = path.resolve().relative_to(root)
                except ValueError:
                    continue
                if path.parts[0] != 'src' or path.stem.endswith(('_test', '_bench', '_for_test')):
                    continue
                if wanted and module_of(path) not in wanted:
                    continue
                for number, count in lines.items():
                    total[path][number] = total[path].get(number, 0) + count
    if not total:
        print(f'no counts below {build}: build the preset coverage and run its tests')
        return 1
    modules = collections.defaultdict(lambda: [0, 0])
    for path, lines in total.items():
        modules[module_of(path)][0] += sum(count > 0 for count in lines.values())
        modules[module_of(path)][1] += len(lines)
    print(f'{"module":<24}{"lines":>8}{"reached":>10}')
    for name, (reached, lines) in sorted(modules.items()):
        print(f'{name:<24}{lines:>8}{reached / lines:>10.1%}')
    reached, lines = (sum(column) for column in zip(*modules.values()))
    print(f'{"all":<24}{lines:>8}{reached / lines:>10.1%}')
    print('least reached:')
    share = {path: sum(count > 0 for count in lines.values()) / len(lines)
             for path, lines in total.items() if len(lines) >= 20}
    for path in sorted(share, key=share.get)[:10]:
        print(f'  {share[path]:>6.1%}  {path}')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
