#!/usr/bin/env python3
"""release.py VERSION: a release of what is checked out, in out/release/VERSION: the wheel, the
Debian packages, the image, what they are made of (SPDX), what changed, and the sums of all; prints
what to upload. The packages for video and the image are made by root alone; where they cannot be
made, the release is without them and says so.

Nothing is built before all of this holds: VERSION is the project's and the server's, everything is
committed, and CHANGELOG.md has a section of VERSION.
"""
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time
import uuid

from binaries import ROOT, Failure, brought, compiled_in, output, packages_of

SKIPPED = 77  # the exit code of what cannot be made here
# THIRD_PARTY.md's words -> SPDX's identifiers.
LICENCES = {'public domain': 'LicenseRef-public-domain'}


def section_of(changelog, version):
    """The text below '## VERSION' (and what else is in that line), up to the next such heading."""
    found = re.search(rf'^## {re.escape(version)}(?![\w.])[^\n]*\n(.*?)(?=^## |\Z)', changelog,
                      re.MULTILINE | re.DOTALL)
    if not found or not found[1].strip():
        raise Failure(f'CHANGELOG.md says nothing of {version}; write a section "## {version}"')
    return found[1].strip() + '\n'


def check_version(version, cmake, header):
    for place, text, pattern in (
            ('CMakeLists.txt', cmake, r'project\(tactus VERSION ([0-9.]+)'),
            ('src/server/kserve/validation.h', header, r'kServerVersion = "([^"]*)"')):
        has = re.search(pattern, text)[1]
        if has != version:
            raise Failure(f'{place} has version {has}, not {version}; change it there')


def declared(third_party):
    """Debian package -> SPDX licence, of THIRD_PARTY.md's first table."""
    found = {}
    for row in third_party.split('\n## ')[1].splitlines():
        cells = [cell.strip() for cell in row.strip('|').split('|')]
        for package in re.findall(r'Debian ([a-z0-9.+-]+)', cells[-1]):
            words = [LICENCES.get(word, word) for word in cells[1].split(', ')]
            found[package] = ' AND '.join(words)
    return found


def sbom(version, packages, created, wheel_sha):
    """An SPDX 2.3 document. `packages`: as debian_packages() has them. ONNX Runtime is in the
    Debian package; pip installs it beside the wheel."""
    def package(name, number, licence, **more):
        return {'SPDXID': f'SPDXRef-{re.sub("[^A-Za-z0-9.-]", "-", name)}', 'name': name,
                'versionInfo': number, 'downloadLocation': 'NOASSERTION', 'filesAnalyzed': False,
                'licenseConcluded': 'NOASSERTION', 'licenseDeclared': licence,
                'copyrightText': 'NOASSERTION', **more}
    ours = package('tactus', version, 'Apache-2.0')
    parts = []
    for name, (number, _, licence) in sorted(packages.items()):
        parts.append(package(name, number, licence, externalRefs=[{
            'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl',
            'referenceLocator': f'pkg:deb/debian/{name}@{number.replace(":", "%3A")}'}]))
    fetched = re.search(r'^version=([0-9.]+)$',
                        (ROOT / 'tools/setup/onnxruntime.sh').read_text(), re.MULTILINE)[1]
    parts.append(package('onnxruntime', fetched, 'MIT', externalRefs=[{
        'referenceCategory': 'PACKAGE-MANAGER', 'referenceType': 'purl',
        'referenceLocator': f'pkg:pypi/onnxruntime@{fetched}'}]))
    headers = {name for name, (_, how, _) in packages.items() if how == 'header'}
    relations = [{'spdxElementId': 'SPDXRef-DOCUMENT', 'relationshipType': 'DESCRIBES',
                  'relatedSpdxElement': ours['SPDXID']}]
    relations += [{'spdxElementId': ours['SPDXID'],
                   'relationshipType': 'STATIC_LINK' if part['name'] in headers else 'DYNAMIC_LINK',
                   'relatedSpdxElement': part['SPDXID']} for part in parts]
    return {'spdxVersion': 'SPDX-2.3', 'dataLicense': 'CC0-1.0', 'SPDXID': 'SPDXRef-DOCUMENT',
            'name': f'tactus-{version}', 'documentNamespace': uuid.UUID(wheel_sha[:32]).urn,
            'creationInfo': {'created': created, 'creators': ['Tool: tactus release.py']},
            'hasExtractedLicensingInfos': [
                {'licenseId': 'LicenseRef-public-domain', 'name': 'public domain',
                 'extractedText': 'Dedicated to the public domain by its authors.'}],
            'packages': [ours, *parts], 'relationships': relations}


def debian_packages(program, third_party):
    """A program's parts: Debian package -> (version, 'linked' or 'header', SPDX licence)."""
    linked = packages_of(brought(program).values())
    licences = declared(third_party)
    shown = output('dpkg-query', '--show', '--showformat',
                   '${Package}\t${Version}\t${source:Package}\n', *linked, *compiled_in())
    rows = [line.split('\t') for line in shown.splitlines()]
    by_source = {source: licences[name] for name, _, source in rows if name in licences}
    of_linked = {source for name, _, source in rows if name in linked}
    # A library's headers are no part of their own.
    return {name: (number, 'linked' if name in linked else 'header',
                   by_source.get(source, 'NOASSERTION'))
            for name, number, source in rows if name in linked or source not in of_linked}


def release(version):
    check_version(version, (ROOT / 'CMakeLists.txt').read_text(),
                  (ROOT / 'src/server/kserve/validation.h').read_text())
    changes = section_of((ROOT / 'CHANGELOG.md').read_text(), version)
    if output('git', '-C', ROOT, 'status', '--porcelain'):
        raise Failure('not everything is committed (git status); a release is of a commit')
    made, lacks = [], []
    for script in (['package.sh'], ['video_package.sh', 'bookworm', 'trixie'],
                   ['check_container.sh', 'out/package'], ['package.sh', 'wheel']):
        done = subprocess.run([ROOT / 'tools/deploy' / script[0], *script[1:]], cwd=ROOT,
                              stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == SKIPPED:
            lacks.append(script[0])
            continue
        done.check_returncode()
        made += [ROOT / each for each in done.stdout.split() if each.startswith('out/package/')]

    out = ROOT / 'out/release' / version
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    files = [pathlib.Path(shutil.copy(path, out)) for path in made]
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    committed = int(output('git', '-C', ROOT, 'log', '-1', '--format=%ct'))
    created = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(committed))
    packages = debian_packages(ROOT / 'build/wheel/apps/tactus',
                               (ROOT / 'THIRD_PARTY.md').read_text())
    document = sbom(version, packages, created, sums[files[-1].name])
    for name, text in ((f'tactus-{version}.spdx.json', json.dumps(document, indent=1) + '\n'),
                       (f'tactus-{version}-changes.md', changes)):
        (out / name).write_text(text)
        sums[name] = hashlib.sha256(text.encode()).hexdigest()
    (out / 'SHA256SUMS').write_text(''.join(f'{digest}  {name}\n' for name, digest in sums.items()))

    commit = output('git', '-C', ROOT, 'rev-parse', 'HEAD').strip()
    print(f'release {version} of commit {commit}; tag it v{version} and upload, of {out}:')
    for path in sorted(out.iterdir()):
        print(f'  {path.name} ({path.stat().st_size / 1e6:.2f} MB)')
    if lacks:
        print(f'lacks what {" and ".join(lacks)} makes; see above why')


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        release(sys.argv[1])
    except Failure as failure:
        sys.exit(f'release: {failure}')
    except subprocess.CalledProcessError as error:
        sys.exit(f'release: {error.cmd[0]} failed')
