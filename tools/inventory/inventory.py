#!/usr/bin/env python3
"""inventory.py [SINCE]: what users write and read: commands, options, metrics, routes, keys of
scenarios and of configurations, error codes; as the sources of HEAD name them. With a commit, what
has come (+) and gone (-) since.

Read from the text of the sources, so nothing is built. A name that is moved from one file to
another is the same name.
"""
import argparse
import re
import subprocess
import sys

# What: files, and a pattern whose groups are the name's parts.
KINDS = {
    "command": (("apps/",), r'add_subcommand\(\s*"([\w-]+)"'),
    "option": (("apps/", "src/serving/", "src/server/", "bench/"), r'"(--[a-z][\w-]*)"'),
    "metric": (("src/",), r'"(tactus_[a-z_]+)"'),
    "route": (("docs/reference/http.md", "docs/http.md"), r"`((?:GET |POST |DELETE )?/[\w/{}.$-]+)`"),
    "scenario key": (("src/workload/scenario_fields",), r'Field<\w+>\{\s*"(\w+)",\s*"(\w+)"'),
    "configuration key": (("src/server/kserve/",),
                          r'(?:FindParameter\([\w.()]+|Parameter\(), "(\w+)"'),
    "error code": (("src/base/expected.h",), r"^\s+(k[A-Z]\w+),"),
}
TESTS = re.compile(r"_test\b|_testing|_for_test|_fuzz|/tests/|_bench\b")


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True,
                          errors="replace").stdout


def inventory(commit):
    """Names by kind."""
    found = {kind: set() for kind in KINDS}
    wanted = [path for places, _ in KINDS.values() for path in places]
    for path in git("ls-tree", "-r", "--name-only", commit).splitlines():
        if not path.startswith(tuple(wanted)) or TESTS.search(path):
            continue
        if not path.endswith((".cc", ".h", ".md")):
            continue
        text = git("show", f"{commit}:{path}")
        for kind, (places, pattern) in KINDS.items():
            if path.startswith(places):
                found[kind] |= {".".join(match.groups())
                                for match in re.finditer(pattern, text, re.MULTILINE)}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("since", nargs="?", help="a commit")
    options = parser.parse_args()
    now = inventory("HEAD")
    before = inventory(options.since) if options.since else None
    for kind, names in now.items():
        if before is None:
            print(f"{kind} ({len(names)}): {', '.join(sorted(names))}")
            continue
        come, gone = sorted(names - before[kind]), sorted(before[kind] - names)
        print(f"{kind}: {len(before[kind])} -> {len(names)}")
        for sign, each in (("+", come), ("-", gone)):
            for name in each:
                print(f"  {sign} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
