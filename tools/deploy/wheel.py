#!/usr/bin/env python3
"""wheel.py PROGRAM FOLDER: packs the program as a wheel for Python's pip into FOLDER.

A wheel's files come from wherever pip is, so the program brings its libraries along, each named
after its contents and found beside the program. What every machine with Python has is not brought:
the C library, whose version the wheel's tag states, and libstdc++ with libgcc_s, which ONNX
Runtime's wheel and numpy take from the machine too (a process that has two of them may mix them).
ONNX Runtime is a package of its own, which pip installs beside (Requires-Dist).

Prints what is needed and how large things are, and the wheel's name last. The same program gives
the same wheel.
"""
import base64
import hashlib
import io
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of the machine: all else that the program is linked with comes along.
OF_MACHINE = re.compile(r'(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so')
COMMON_LICENCES = pathlib.Path('/usr/share/common-licenses')
# The newest that the wheel may need of the machine's libstdc++: those of GCC 12, as in Debian 12.
LIBSTDCXX = {'GLIBCXX': (3, 4, 30), 'CXXABI': (1, 3, 13)}
TIME = (1980, 1, 1, 0, 0, 0)


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


def brought(program):
    """The libraries that come along: name as the loader knows it -> file."""
    libraries = {}
    for line in output('ldd', program).splitlines():
        name, _, rest = line.strip().partition(' => ')
        if OF_MACHINE.match(name.split(' ')[0].rpartition('/')[2]):
            continue
        path = rest.split(' (')[0]
        if not path.startswith('/'):
            raise Failure(f'{program}: its library {name} was not found; install its package')
        libraries[name] = pathlib.Path(path).resolve()
    return libraries


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


def collect(program, folder):
    """Program and libraries, stripped and bound to each other, in `folder`: the files."""
    libraries = brought(program)
    names = {name: unlike_any(name, path) for name, path in libraries.items()}
    for name, path in [('tactus', program), *libraries.items()]:
        file = folder / names.get(name, name)
        file.write_bytes(path.read_bytes())
        file.chmod(0o755)
        output('strip', '--strip-all' if name == 'tactus' else '--strip-unneeded', file)
        needs = output('patchelf', '--print-needed', file).split()
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
            raise Failure(f'{path} is of no Debian package, so its licence is not known; build the '
                          'wheel on Debian with the packages of tools/setup/packages.txt')
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


def api_version():
    """The least 1.N of ONNX Runtime that speaks the API of our headers."""
    header = ROOT / 'third_party/onnxruntime/include/onnxruntime_c_api.h'
    return re.search(r'#define ORT_API_VERSION (\d+)', header.read_text())[1]


def metadata(version):
    return f'''Metadata-Version: 2.1
Name: tactus
Version: {version}
Summary: Inference server that meets deadlines, and its Python client
License: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: onnxruntime >=1.{api_version()}, <2
Requires-Dist: numpy
Provides-Extra: grpc
Requires-Dist: tritonclient[grpc]; extra == "grpc"
Description-Content-Type: text/markdown

`tactus serve --models FOLDER` serves a model repository over KServe v2, by deadline;
`tactus.Client` calls it from Python. `tactus help` lists the commands.
'''


def write_wheel(path, files, version, tag):
    """files: name in the wheel -> (bytes, whether it is a program)."""
    info = f'tactus-{version}.dist-info'
    files = {
        **files,
        f'{info}/METADATA': (metadata(version).encode(), False),
        f'{info}/WHEEL': ('Wheel-Version: 1.0\nGenerator: tactus wheel.py\n'
                          f'Root-Is-Purelib: false\nTag: {tag}\n'.encode(), False),
        f'{info}/entry_points.txt': (b'[console_scripts]\ntactus = tactus.launcher:main\n', False)}
    record = io.StringIO()
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, program):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, so that the mode counts
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            wheel.writestr(entry, data)
        for name, (data, program) in sorted(files.items()):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
            record.write(f'{name},sha256={digest},{len(data)}\n')
            add(name, data, program)
        record.write(f'{info}/RECORD,,\n')
        add(f'{info}/RECORD', record.getvalue().encode(), False)


def make(program, out):
    version = output(program, "--version").split()[1].rstrip(",")
    with tempfile.TemporaryDirectory() as folder:
        binaries = collect(program, pathlib.Path(folder))
        needs = {each.name: needed_versions(each) for each in binaries}
        files = {f'tactus/bin/{each.name}': (each.read_bytes(), True) for each in binaries}
    highest = {kind: max(need.get(kind, (0,)) for need in needs.values())
               for kind in ('GLIBC', *LIBSTDCXX)}
    for kind, limit in LIBSTDCXX.items():
        if highest[kind] > limit:
            raise Failure(f'{kind}_{text_of(highest[kind])} is newer than GCC 12, whose libstdc++ '
                          'machines with this C library have; build the wheel on Debian 12')
    for source in sorted((ROOT / 'python/tactus').glob('*.py')):
        files[f'tactus/{source.name}'] = (source.read_bytes(), False)
    info = f'tactus-{version}.dist-info'
    for name, text in licences(brought(program).values()).items():
        files[f'{info}/licenses/{name}'] = (text, False)

    glibc = highest['GLIBC']
    tag = f'py3-none-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}'
    path = out / f'tactus-{version}-{tag}.whl'
    out.mkdir(parents=True, exist_ok=True)
    write_wheel(path, files, version, tag)

    setting = [name for name, need in needs.items() if need.get('GLIBC') == glibc]
    print(f'needs glibc {text_of(glibc)} (because of {", ".join(setting)}), '
          f'GLIBCXX_{text_of(highest["GLIBCXX"])}, CXXABI_{text_of(highest["CXXABI"])}')
    sizes = {name: len(data) / 1e6 for name, (data, _) in files.items()}
    program_mb = sizes['tactus/bin/tactus']
    libraries_mb = sum(mb for name, mb in sizes.items() if name.startswith('tactus/bin/lib'))
    print(f'program {program_mb:.1f} MB, {len(binaries) - 1} libraries {libraries_mb:.1f} MB, '
          f'all {sum(sizes.values()):.1f} MB; the wheel {path.stat().st_size / 1e6:.1f} MB')
    print(path)


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        make(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]))
    except Failure as failure:
        sys.exit(f'wheel: {failure}')
