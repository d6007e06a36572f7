#!/usr/bin/env python3
"""Compares two builds of Tactus: does `tactus simulate --json` report the same for every scenario?

    same_reports.py BASE_PROGRAM PROGRAM [--only SUBSTRING] [--set KEY=VALUE ...]

A change that moves code must move no figure. Both programs run every scenario of their own
checkout, and every figure of the two reports is compared; only what names the build or the machine
is left out. Exits with 1 if a report differs, or if none could be compared.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

# What a report says of the program and the machine that made it, not of the simulated world.
NOT_COMPARED = {"commit", "machine", "wall_s", "cpu_s", "requests_per_cpu_second"}


def differences(base, new, path=""):
    """Yields 'path: base -> new' for every figure that is not the same."""
    if isinstance(base, dict) and isinstance(new, dict):
        for key in sorted(base.keys() | new.keys()):
            if key in NOT_COMPARED:
                continue
            if key not in base or key not in new:
                yield f"{path}/{key}: only in the {'new' if key in new else 'base'} report"
            else:
                yield from differences(base[key], new[key], f"{path}/{key}")
    elif isinstance(base, list) and isinstance(new, list) and len(base) == len(new):
        for index, (one, other) in enumerate(zip(base, new)):
            yield from differences(one, other, f"{path}[{index}]")
    elif base != new or type(base) is not type(new):
        yield f"{path}: {base!r} -> {new!r}"


def report(program, scenario, settings, folder):
    """The JSON report of one scenario, or the error that the program printed instead."""
    out = folder / "report.json"
    out.unlink(missing_ok=True)
    arguments = [word for setting in settings for word in ("--set", setting)]
    ran = subprocess.run(
        [program, "simulate", scenario, "--json", out, *arguments],
        capture_output=True, text=True, check=False)
    if ran.returncode != 0 or not out.exists():
        return {"exit": ran.returncode, "error": ran.stderr.strip().replace(f"{scenario}", "FILE")}
    return json.loads(out.read_text())


def tree_of(program):
    """The checkout that a program was built in: build/PRESET/apps/tactus lies four levels below."""
    return pathlib.Path(program).resolve().parents[3]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("new")
    parser.add_argument("--only", default="", help="scenarios whose path contains this")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="for both programs, as in tactus simulate --set")
    options = parser.parse_args()

    base_tree, new_tree = tree_of(options.base), tree_of(options.new)
    scenarios = [path.relative_to(base_tree)
                 for path in sorted((base_tree / "scenarios").rglob("*.toml"))
                 if options.only in str(path)]
    if not scenarios:
        sys.exit(f"no scenario below {base_tree}/scenarios has '{options.only}' in its path")

    began, states = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        for done, name in enumerate(scenarios):
            started = time.monotonic()
            reports = [report(program, tree / name, options.set, pathlib.Path(folder))
                       for program, tree in ((options.base, base_tree), (options.new, new_tree))]
            # A file of another command (plan partition reads one) is refused by both.
            refused = all("error" in one for one in reports)
            found = [] if refused else list(differences(*reports))
            took, spent = time.monotonic() - started, time.monotonic() - began
            left = spent / (done + 1) * (len(scenarios) - done - 1)
            state = "differs" if found else "refused" if refused else "same"
            print(f"{state:8} {name}  ({took:.0f} s; about {left:.0f} s to go)", flush=True)
            for line in found[:5]:
                print(f"         {line}")
            if len(found) > 5:
                print(f"         and {len(found) - 5} more")
            states.append(state)
    print(f"{states.count('same')} reports are the same, {states.count('differs')} are not, "
          f"{states.count('refused')} scenarios were refused by both")
    return 1 if "differs" in states or "same" not in states else 0


if __name__ == "__main__":
    sys.exit(main())
