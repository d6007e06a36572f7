"""release_test.py PROGRAM SOURCE: what a release is checked for, and the list of its parts.

Without this a release could have another version than its program says, or leave a library out.
"""
import pathlib
import sys
import unittest

PROGRAM, SOURCE = (pathlib.Path(each).resolve() for each in sys.argv[1:3])
sys.path.insert(0, str(SOURCE / 'tools/deploy'))
from binaries import brought, packages_of  # noqa: E402
from release import Failure, check_version, debian_packages, sbom, section_of  # noqa: E402


class Release(unittest.TestCase):
    def test_the_versions_of_the_tree_are_one(self):
        cmake = (SOURCE / 'CMakeLists.txt').read_text()
        header = (SOURCE / 'src/server/kserve/validation.h').read_text()
        version = cmake.split('project(tactus VERSION ')[1].split()[0]
        check_version(version, cmake, header)
        section_of((SOURCE / 'CHANGELOG.md').read_text(), version)
        with self.assertRaisesRegex(Failure, 'CMakeLists.txt has version'):
            check_version(version + '.1', cmake, header)
        with self.assertRaisesRegex(Failure, 'validation.h has version'):
            check_version(version, cmake, header.replace(f'"{version}"', '"9.9"'))

    def test_a_section_ends_at_the_next_and_is_not_anothers(self):
        changelog = '# Changes\n\n## 1.2.0 (today)\n\nNew.\n\n## 1.1.0\n\nOld.\n\n## 1.0.0\n'
        self.assertEqual(section_of(changelog, '1.2.0'), 'New.\n')
        self.assertEqual(section_of(changelog, '1.1.0'), 'Old.\n')
        for missing in ('1.0.0', '1.1', '1.2.00', '1x2.0'):
            with self.assertRaises(Failure, msg=missing):
                section_of(changelog, missing)

    def test_each_library_is_in_the_list_once_with_version_and_licence(self):
        packages = debian_packages(PROGRAM, (SOURCE / 'THIRD_PARTY.md').read_text())
        document = sbom('0.1', packages, '2026-01-01T00:00:00Z', '0' * 64)
        parts = {part['name']: part for part in document['packages']}
        self.assertEqual(len(parts), len(document['packages']))
        missing = packages_of(brought(PROGRAM).values()) - set(parts)
        self.assertEqual(missing, set())
        self.assertEqual(parts['libssl3']['licenseDeclared'], 'Apache-2.0')
        self.assertEqual(parts['libnghttp2-14']['licenseDeclared'], 'MIT')
        self.assertEqual(parts['onnxruntime']['licenseDeclared'], 'MIT')
        self.assertNotIn('libssl-dev', parts)  # its library is there
        self.assertIn('libcli11-dev', parts)  # headers only
        self.assertTrue(all(part['versionInfo'] for part in parts.values()))
        known = {part['SPDXID'] for part in document['packages']} | {'SPDXRef-DOCUMENT'}
        self.assertEqual(len(known), len(parts) + 1)
        for relation in document['relationships']:
            self.assertTrue({relation['spdxElementId'], relation['relatedSpdxElement']} <= known)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
