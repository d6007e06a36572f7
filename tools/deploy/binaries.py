#!/usr/bin/env python3
"""The program with the libraries that it brings along, for the packages that we make.

Libraries whose names differ from one system to the next are brought, each named after its contents
and found beside the program. What all systems have is not: the C library, and libstdc++ with
libgcc_s, of which no process should have two.

binaries.py PROGRAM FOLDER: what the Debian package holds: FOLDER/lib, which is to be
/usr/lib/tactus, FOLDER/bin and FOLDER/licences. There apt installs what Debian 12 and 13 have under
one name: OpenSSL, zlib and libpq.
"""
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OF_ANY_MACHINE = r'ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)'
OF_DEBIAN = OF_ANY_MACHINE + r'|lib(ssl|crypto|z|pq)'
COMMON_LICENCES = pathlib.Path('/usr/share/common-licenses')


class Failure(Exception):
    """What is wrong, and the remedy."""


def output(*command):
    try:
        return subprocess.run([str(each) for each in command], capture_output=True, text=True,
                              check=True).stdout
    except FileNotFoundError:
        raise Failure(f'there is no {command[0]} here; install the packages of the group `package` '
                      'of tools/setup/packages.txt') from None
    except subprocess.CalledProcessError as error:
        raise Failure(f'{" ".join(map(str, command))}: {error.stderr.strip()}') from None


def needed(path):
    return output('patchelf', '--print-needed', path).split()


def brought(program, of_machine=OF_ANY_MACHINE):
    """The libraries that come along: name as the loader knows it -> file. None that only a library
    of the machine needs."""
    folders = [pathlib.Path('/usr/lib', triplet(program)), pathlib.Path('/usr/lib')]
    libraries, names = {}, needed(program)
    while names:
        name = names.pop()
        if name in libraries or re.match(rf'({of_machine})\.so', name):
            continue
        path = next((folder / name for folder in folders if (folder / name).exists()), None)
        if path is None:
            raise Failure(f'{program}: its library {name} was not found; install its package')
        libraries[name] = path.resolve()
        names += needed(libraries[name])
    return libraries


def triplet(program):
    """Whose machine a program is for, as Debian's folders are named and its tools begin."""
    machine = re.search(r'Machine: +(.*)', output('readelf', '--file-header', program))[1]
    return 'aarch64-linux-gnu' if machine == 'AArch64' else 'x86_64-linux-gnu'


def needed_versions(path):
    """The highest version of each set of symbols that a file needs: {'GLIBC': (2, 34), ...}."""
    highest = {}
    needs = output('readelf', '--version-info', '--wide', path).partition('.gnu.version_r')[2]
    for kind, version in re.findall(r'Name: (GLIBC|GLIBCXX|CXXABI)_([0-9.]+)\b', needs):
        number = tuple(int(each) for each in version.split('.'))
        highest[kind] = max(highest.get(kind, ()), number)
    return highest


def text_of(version):
    return '.'.join(map(str, version))


def unlike_any(name, path):
    """libz.so.1 -> libz-1a2b3c4d.so.1, so that no library of the machine is taken for it."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
    stem, dot, version = name.partition('.so')
    return f'{stem}-{digest}{dot}{version}'


def collect(program, folder, of_machine=OF_ANY_MACHINE):
    """Program and libraries, stripped and bound to each other, in `folder`: the files."""
    libraries, strip = brought(program, of_machine), f'{triplet(program)}-strip'
    names = {name: unlike_any(name, path) for name, path in libraries.items()}
    for name, path in [('tactus', program), *libraries.items()]:
        file = folder / names.get(name, name)
        file.write_bytes(path.read_bytes())
        file.chmod(0o755)
        output(strip, '--strip-all' if name == 'tactus' else '--strip-unneeded', file)
        needs = needed(file)
        # RPATH, not RUNPATH: LD_LIBRARY_PATH is for other programs' libraries. It comes first, and
        # each kind of edit alone: patchelf 0.14 mixes the texts up otherwise.
        output('patchelf', '--force-rpath', '--set-rpath', '$ORIGIN', file)
        if name in names:
            output('patchelf', '--set-soname', names[name], file)
        edits = [word for need in needs if need in names
                 for word in ('--replace-needed', need, names[need])]
        if edits:
            output('patchelf', *edits, file)
    return sorted(folder.iterdir())


def packages_of(paths):
    """The Debian packages that libraries are of; /usr/lib and /lib may be one folder."""
    ways = {way: path for path in paths for way in (str(path), str(path).removeprefix('/usr'))}
    said = subprocess.run(['dpkg-query', '--search', *ways], capture_output=True, text=True,
                          check=False).stdout  # it fails for the ways that are not found
    packages = {ways[file]: re.split('[:,]', package)[0] for package, _, file in
                (line.partition(': ') for line in said.splitlines()) if file in ways}
    for path in paths:
        if path not in packages:
            raise Failure(f'{path} is of no Debian package, so its licence is not known; build '
                          'packages on Debian with the packages of tools/setup/packages.txt')
    return set(packages.values())


def compiled_in():
    """The Debian packages of THIRD_PARTY.md's first table, but for those of other builds."""
    table = (ROOT / 'THIRD_PARTY.md').read_text().split('\n## ')[1]
    rows = [row for row in table.splitlines() if row.startswith('| ') and ' only ' not in row]
    return [package for row in rows for package in re.findall(r'Debian ([a-z0-9.+-]+)', row)]


def licences(libraries):
    """Name in the wheel -> text: ours, those of all that is inside, and the texts they refer to."""
    texts = {'LICENSE': (ROOT / 'LICENSE').read_bytes(),
             'THIRD_PARTY.md': (ROOT / 'THIRD_PARTY.md').read_bytes()}
    referred = set()
    for package in packages_of(libraries) | set(compiled_in()):
        file = pathlib.Path('/usr/share/doc') / package / 'copyright'
        if not file.exists():
            raise Failure(f'{file} is missing; install the Debian package {package}, with its '
                          'documentation')
        texts[f'{package}.copyright'] = file.read_bytes()
        referred |= set(re.findall(r'common-licenses/([A-Za-z][A-Za-z0-9.-]*[A-Za-z0-9])',
                                   file.read_text(errors='replace')))
    for name in referred:
        if (COMMON_LICENCES / name).exists():
            texts[f'common-licenses/{name}'] = (COMMON_LICENCES / name).read_bytes()
    return texts


def make(program, folder):
    shutil.rmtree(folder, ignore_errors=True)
    for each in ('lib', 'bin'):
        (folder / each).mkdir(parents=True)
    (folder / 'bin/tactus').symlink_to('../lib/tactus/tactus')
    collect(program, folder / 'lib', OF_DEBIAN)
    for name, text in licences(brought(program, OF_DEBIAN).values()).items():
        file = folder / 'licences' / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text)


def run(what, usage, work):
    """Of a script PROGRAM FOLDER: `work` with both, and what went wrong in one line."""
    if len(sys.argv) != 3:
        sys.exit(usage)
    try:
        work(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]))
    except Failure as failure:
        sys.exit(f'{what}: {failure}')


if __name__ == '__main__':
    run('package', __doc__, make)
