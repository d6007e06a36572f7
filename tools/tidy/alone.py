"""What headers.py and benches.py share: which files have changed, and the compiling of one alone.

The files that changed are those that differ from the last commit that passed `./run test` here;
where none did, from where the branch left origin/main; on main itself, from the commit of six hours
before the last.
"""
import datetime
import os
import pathlib
import re
import shutil
import subprocess

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def changed_files(source):
    """The files that differ from the commit that is taken as good; None: all, or not known."""
    def git(*arguments):
        try:
            run = subprocess.run(['git', '-C', str(source), *arguments], capture_output=True,
                                 text=True, check=False)
        except FileNotFoundError:
            return ''
        return run.stdout.strip() if run.returncode == 0 else ''

    head, last = git('rev-parse', 'HEAD'), git('log', '-1', '--format=%cI')
    if not last or os.environ.get('TACTUS_COMPILE_ALL'):
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
    return {(source / name).resolve() for name in names if name}


def reached(file, roots):
    """The file, and every file of the repository that it includes."""
    found, left = set(), [file]
    while left:
        at = left.pop()
        if at in found:
            continue
        found.add(at)
        for name in INCLUDE.findall(at.read_text(encoding='utf-8')):
            here = next((r / name for r in (at.parent, *roots) if (r / name).is_file()), None)
            if here is not None:
                left.append(here.resolve())
    return found


def compiler_errors(words, folder, output):
    """What the compiler says of a command without -o; None where it compiles.

    Without optimisation that takes no longer than a check of the syntax, of which the compiler
    cache would remember nothing; so it serves what another checkout has compiled.
    """
    words = [*words, '-O0', '-g0', '-MD', '-MF', f'{output}.d', '-o', str(output)]
    if shutil.which('ccache'):
        words = ['ccache', *words]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr


def folder_for_objects(build):
    folder = pathlib.Path(build) / 'alone'
    folder.mkdir(exist_ok=True)
    return folder
