#!/usr/bin/env python3
"""code_of.py PAGE FOLDER FILE...: writes the code blocks of a page that stand under
`<!-- file: NAME -->` into FOLDER. They must be the FILEs that are named."""
import pathlib
import re
import sys

BLOCK = re.compile(r'^<!-- file: (\S+) -->\n```cpp\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def main(page, folder, *expected):
    blocks = dict(BLOCK.findall(pathlib.Path(page).read_text(encoding='utf-8')))
    if sorted(blocks) != sorted(expected):
        sys.exit(f'{page}: has code of {sorted(blocks)}, where {sorted(expected)} is built')
    for name, code in blocks.items():
        (pathlib.Path(folder) / name).write_text(code, encoding='utf-8')


if __name__ == '__main__':
    main(*sys.argv[1:])
