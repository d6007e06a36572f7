#!/usr/bin/env python3
"""wheel.py PROGRAM FOLDER: packs the program as a wheel for Python's pip into FOLDER.

A wheel's files come from wherever pip is, so the program brings its libraries along (binaries.py);
the wheel's tag states the version of the C library. ONNX Runtime is a package of its own, which pip
installs beside (Requires-Dist); it and numpy take libstdc++ from the machine too.

Prints what is needed and how large things are, and the wheel's name last. The same program gives
the same wheel.
"""
import base64
import hashlib
import io
import pathlib
import platform
import re
import tempfile
import zipfile

from binaries import (ROOT, Failure, brought, collect, licences, needed_versions, output, run,
                      text_of)

# The newest that the wheel may need of the machine's libstdc++: those of GCC 12, as in Debian 12.
LIBSTDCXX = {'GLIBCXX': (3, 4, 30), 'CXXABI': (1, 3, 13)}
TIME = (1980, 1, 1, 0, 0, 0)


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
    run('wheel', __doc__, make)
