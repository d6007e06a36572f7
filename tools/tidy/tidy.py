#!/usr/bin/env python3
"""tidy.py [ROOT]: checks every file of the tree against the style rules of rules.py, and what
documents link (links.py), that each file is named by another (named.py), and that the pages of
the reference have what the code has (pages.py).

Prints `file:line: what is wrong (remedy: what to do)` for each violation and exits 1 if there is
one. Reads the files that git knows or would add; where there is no git, all but hidden ones.
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import links
import named
import pages
import rules

# The rules name what they forbid, and their test breaks every one of them.
OWN_FOLDER = 'tools/tidy/'
OF_OTHERS = 'third_party/'
TEXT = {'.h', '.cc', '.py', '.sh', '.cmake', '.md', '.toml', '.txt', '.json', '.proto', '.pbtxt',
        '.yml', ''}


def tree_files(root):
    listed = subprocess.run(
        ['git', '-C', str(root), 'ls-files', '--cached', '--others', '--exclude-standard'],
        capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return sorted(set(listed.stdout.split('\n')) - {''})
    return sorted(str(p.relative_to(root)) for p in root.rglob('*')
                  if p.is_file() and not any(part.startswith(('.', 'build'))
                                             for part in p.relative_to(root).parts))


def violations(root):
    documents, texts = {}, {}
    files = tree_files(root)
    for path in files:
        file = root / path
        name = file.name
        suffix = file.suffix if '.' in name.lstrip('.') else ''
        if suffix not in TEXT or name == 'LICENSE' or path.startswith(OF_OTHERS):
            continue
        try:
            text = file.read_text(encoding='utf-8')
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
        texts[path] = text
        if path.startswith(OWN_FOLDER):
            continue
        if suffix == '.md':
            documents[path] = text
        source = rules.Source(path, text)
        for rule in rules.RULES:
            for line, message, remedy in rule(source):
                yield path, line, message, remedy
    there = [path for path in files if (root / path).exists()]
    yield from links.violations(documents, there)
    yield from named.violations(texts, there)
    yield from pages.violations(texts)


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parents[2])
    count = 0
    for path, line, message, remedy in violations(root):
        print(f'{path}:{line}: {message} (remedy: {remedy})')
        count += 1
    print(f'tidy: {count} violation{"" if count == 1 else "s"}')
    return 1 if count else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
