#!/usr/bin/env python3
"""layers.py [ROOT]: checks every #include under src/ against tools/layers/layers.toml, and that
table against the tactus_module calls of the CMake files.

Prints `file:line: what is wrong (remedy: what to do)` for each violation and exits 1 if there is
one.
"""
import pathlib
import re
import sys
import tomllib

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
MODULE_CALL = re.compile(r'^\s*tactus_module\(\s*(\w+)\s+([^)]*)\)', re.MULTILINE)
KEYWORDS = ('DIR', 'COLD', 'DEPS', 'VENDOR', 'TEST_DEPS', 'EXCLUDE')
# May be included by *_test.cc, *_bench.cc and *_fuzz.cc of any module.
TEST_TOOLS = ('gtest/', 'gmock/', 'benchmark/', 'fuzzer/')
TEST_FILE = re.compile(r'_(?:test|bench|fuzz)\.(?:cc|h)$')


class Table:
    def __init__(self, data):
        self.modules = data['module']
        self.folder_of = {name: entry.get('folder', name) for name, entry in self.modules.items()}
        self.vendors = data.get('vendor', [])
        self.families = data.get('families', {}).get('folders', [])
        self.system = data.get('system', {'names': [], 'folders': []})
        self.forbidden_standard = data.get('forbidden_standard', {})
        self.allowed_standard = data.get('allowed_standard', {})

    def module_of(self, path):
        """The module whose folder holds `path` (relative to src/); the deepest one."""
        holders = [name for name, folder in self.folder_of.items() if inside(path, folder)]
        return max(holders, key=lambda name: len(self.folder_of[name]), default=None)

    def reach(self, module, with_tests=False):
        """The modules that `module` may include: itself, what it uses, and what those use."""
        entry = self.modules[module]
        todo = [module, *(entry.get('tests', []) if with_tests else [])]
        seen = set()
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                todo += self.modules[name]['uses']
        return seen


def inside(path, folder):
    return path == folder or path.startswith(folder + '/')


def includes(text):
    """(line, header, whether in quotes) of each #include that is not in a comment."""
    text = re.sub(r'/\*.*?\*/', lambda m: re.sub(r'[^\n]', ' ', m.group(0)), text, flags=re.DOTALL)
    for match in INCLUDE.finditer(text):
        yield text.count('\n', 0, match.start(1)) + 1, match.group(2), match.group(1) == '"'


def check_own(table, path, header, is_test):
    """An include of a header of ours."""
    module, other = table.module_of(path), table.module_of(header)
    if other is None:
        return f'{header} belongs to no module', 'name it from src/, as in "core/lane.h"'
    if other not in table.reach(module, is_test):
        allowed = ', '.join(sorted(table.reach(module, is_test) - {module}))
        return f'{module} includes {header}, which is {other}', \
            f'{module} may include {allowed or "nothing of ours"}; move what both need below both'
    for family in table.families:
        if not (inside(path, family) and inside(header, family)) or is_test:
            continue
        here, there = (p.split('/')[1] if p.count('/') > 1 else None for p in (path, header))
        if here and there and here != there:
            return f'{family}/{here} includes {header} of its sibling {there}', \
                f'put what both need into {family}/ itself or into core/'
    return None


def vendor_entry(table, header, quoted):
    for entry in table.vendors:
        prefix = entry['prefix']
        if prefix == 'generated .pb.h':
            if quoted and header.endswith('.pb.h'):
                return entry
        elif header == prefix or header.startswith(prefix):
            return entry
    return None


def check_vendor(entry, path, header, is_test):
    if not any(inside(path, folder) for folder in entry['folders']):
        heavy = entry.get('headers', True)
        if not (is_test and not heavy):
            return f'{header} outside of {", ".join(entry["folders"])}', \
                'use what that folder offers instead; each library has its one place'
    in_header = path.endswith('.h') and path not in entry.get('inner', [])
    if in_header and not entry.get('headers', True):
        return f'{header} in a header', 'include it in the .cc file only: it is slow to compile'
    return None


def check_other(table, path, header, is_test):
    """A header of the system or of the standard library."""
    if any(header == name or (name.endswith('/') and header.startswith(name))
           for name in table.system['names']):
        if is_test or any(inside(path, folder) for folder in table.system['folders']):
            return None
        return f'{header}, an interface of the operating system, below the drivers', \
            'only ' + ', '.join(table.system['folders']) + ' may use it'
    if '.' in header or '/' in header:
        return f'{header} is in no list', \
            'give it a [[vendor]] entry with its one folder, or a name under [system]'
    module = table.module_of(path)
    allowed = is_test or header in table.allowed_standard.get(path, [])
    if not allowed and header in table.forbidden_standard.get(module, []):
        return f'<{header}> in {module}', 'no threads, locks or streams there: see ARCHITECTURE.md'
    return None


def check_file(table, source, path):
    is_test = bool(TEST_FILE.search(path))
    if table.module_of(path) is None:
        yield 1, f'src/{path} is in no module of layers.toml', 'add a module, or move the file'
        return
    for line, header, quoted in includes((source / path).read_text(encoding='utf-8')):
        if is_test and header.startswith(TEST_TOOLS):
            continue
        entry = vendor_entry(table, header, quoted)
        if entry:
            found = check_vendor(entry, path, header, is_test)
        elif quoted:
            found = check_own(table, path, header, is_test)
        else:
            found = check_other(table, path, header, is_test)
        if found:
            yield line, *found


def cmake_modules(source):
    """name -> (file, line, folder, DEPS, TEST_DEPS) of each tactus_module call."""
    found = {}
    for file in sorted(source.rglob('CMakeLists.txt')):
        text = re.sub(r'#.*', '', file.read_text(encoding='utf-8'))
        base = file.parent.relative_to(source)
        for match in MODULE_CALL.finditer(text):
            lists, key = {word: [] for word in KEYWORDS}, None
            for word in match.group(2).split():
                if word in KEYWORDS:
                    key = word
                elif key:
                    lists[key].append(word)
            folder = str(base / lists['DIR'][0]) if lists['DIR'] else str(base)
            line = text.count('\n', 0, match.start(1)) + 1
            found[match.group(1)] = (f'src/{file.relative_to(source)}', line, folder,
                                     lists['DEPS'], lists['TEST_DEPS'])
    return found


def check_parts(table, built):
    """Targets that are parts of a module; takes them out of `built`."""
    for whole, entry in table.modules.items():
        for part, folder in entry.get('parts', {}).items():
            if part not in built:
                continue
            file, line, built_folder, uses, tests = built.pop(part)
            beyond = sorted({*uses, *tests} - {*entry['uses'], *entry.get('tests', [])})
            if built_folder != folder or beyond:
                yield file, line, f'{part}, a part of {whole}, is built from {built_folder} and ' \
                    f'uses {beyond} beyond what {whole} may', 'keep to layers.toml'


def check_cmake(table, source):
    built = cmake_modules(source)
    yield from check_parts(table, built)
    for name, (file, line, folder, uses, tests) in built.items():
        entry = table.modules.get(name)
        if entry is None:
            yield file, line, f'module {name} is not in layers.toml', 'add it there with its arrows'
            continue
        said = (table.folder_of[name], sorted(entry['uses']), sorted(entry.get('tests', [])))
        if said != (folder, sorted(uses), sorted(tests)):
            yield file, line, f'{name}: folder {folder}, DEPS {uses}, TEST_DEPS {tests} here, ' \
                f'but {said[0]}, {said[1]}, {said[2]} in layers.toml', 'make the two agree'
    for name in table.modules:
        if name not in built and (source / table.folder_of[name]).is_dir():
            yield 'tools/layers/layers.toml', 1, f'no tactus_module({name} ...) in src/', \
                'drop the entry, or build the module'


def check_cycles(table):
    for name, entry in table.modules.items():
        for used in entry['uses']:
            if name in table.reach(used):
                yield 'tools/layers/layers.toml', 1, f'{name} and {used} use each other', \
                    'the arrows go one way: move what both need below both'


def violations(root, table_file):
    table = Table(tomllib.loads(table_file.read_text(encoding='utf-8')))
    source = root / 'src'
    yield from check_cycles(table)
    yield from check_cmake(table, source)
    for file in sorted(p for p in source.rglob('*') if p.suffix in ('.h', '.cc')):
        path = str(file.relative_to(source))
        for line, message, remedy in check_file(table, source, path):
            yield f'src/{path}', line, message, remedy


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2])
    count = 0
    for path, line, message, remedy in violations(root, root / 'tools/layers/layers.toml'):
        print(f'{path}:{line}: {message} (remedy: {remedy})')
        count += 1
    print(f'layers: {count} violation{"" if count == 1 else "s"}')
    return 1 if count else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
