#!/usr/bin/env python3
"""A lint that reports nothing proves nothing: each rule must find its own violation, at its line."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))
import cpp_source

# What is broken -> (file, its text, the line reported, a word of the message)
BROKEN = {
    'a file too long': ('src/core/long.cc', '// x\n' * 601, 601, 'at most 600'),
    'a function too long':
        ('src/core/deep.cc', 'namespace a {\nint Deep() {\n' + '  Call();\n' * 70 + '}\n}\n', 2,
         'Deep has 72 lines'),
    'a method too long':
        ('src/core/kind.h',
         '#pragma once\nstruct Kind {\n  int Deep() const noexcept {\n' + '    Call();\n' * 70 +
         '  }\n};\n', 3, 'Deep has 72 lines'),
    'a long line': ('src/core/wide.cc', '\n// ' + 'x' * 98 + '\n', 2, '101 columns'),
    'no pragma once': ('src/core/twice.h', 'struct Twice {};\n', 1, '#pragma once'),
    'a clock in the core': ('src/core/clock.cc', '\nauto t = std::chrono::steady_clock::now();\n',
                            2, 'steady_clock'),
    'a clock in the simulator': ('src/sim/clock.cc', '\n\nauto t = Wall::now();\n', 3, 'now()'),
    'a sleep in a policy': ('src/policies/nap.cc', 'void F() { usleep(3); }\n', 1, 'usleep'),
    'a Manager': ('src/runtime/m.h', '#pragma once\nclass ModelManager {};\n', 2, 'Manager'),
    'a helper': ('src/runtime/h.cc', 'int parse_helper();\n', 1, 'helper'),
    'a util file': ('src/runtime/string_util.h', '#pragma once\n', 1, 'file name'),
    'an Impl': ('src/runtime/i.cc', 'struct EngineImpl {};\n', 1, 'Impl'),
    'std::rand': ('src/base/r.cc', '\nint x = std::rand();\n', 2, 'no seed'),
    'using namespace std': ('src/base/u.cc', 'using namespace std;\n', 1, 'using namespace std'),
    'using namespace in a header':
        ('src/base/u.h', '#pragma once\nusing namespace tactus;\n', 2, 'in a header'),
    'a unit in a name': ('src/core/unit.h', '#pragma once\nint timeout_ms = 3;\n', 2, 'timeout_ms'),
    'a mark of unfinished work': ('docs/a.md', 'fine\n' + 'TO' + 'DO: later\n', 2, 'unfinished'),
    'a folder of all tests': ('src/core/f_test.cc', '\nauto f = ::testing::TempDir() + "f";\n', 2,
                              'TempDir'),
    'a path of one machine': ('scenarios/a.toml', 'profile = "/home/ann/p.json"\n', 1,
                              'one machine'),
    'a script too wide': ('bench/wide', '#!/bin/sh\n# ' + 'x' * 99 + '\n', 2, '101 columns'),
    'an address in a script': ('tools/get.sh', '#!/bin/sh\ncurl https://example.org/x\n', 2,
                               'example.org'),
    'a load that is carried': ('docs/carry.md', 'fine\nas much as the lanes can carry\n', 2,
                               'say sustains'),
    'a load that a plan carries': ('src/core/c.h', '#pragma once\n// It carries all of the load.\n',
                                   2, 'say sustains'),
    'violations under another name': ('docs/late.md', 'fine\n\n0.3 % late or lost\n', 3,
                                      'say violations'),
    'a dead link': ('docs/dead.md', 'a\n\n[b](../src/gone.h), [c](dead.md#here)\n', 3,
                    '../src/gone.h leads to no file'),
    'a dead heading': ('docs/there.md', '# A (b), `c`\n\n[d](#a-b-c) [e](#gone)\n', 3,
                       '#gone leads to no heading'),
    'a dead picture': ('docs/picture.md', '![a](a.png)\n', 1, 'a.png leads to no file'),
    'a dead reference': ('docs/reference.md', '[a]\n\n[a]: a/b.md\n', 3, 'a/b.md leads to no file'),
    'a scenario that nothing names': ('scenarios/alone.toml', '', 1, 'no other file names'),
    'a figure that its paper does not list': ('figures/p/fig03.toml', '', 1, 'no other file names'),
    'a script that nothing imports': ('tools/alone.py', '', 1, 'no other file names'),
    'a metric that no page lists': ('src/server/metrics/m.cc', '\nauto n = "tactus_new_total";\n', 2,
                                    'tactus_new_total is not in docs/reference/metrics.md'),
    'a key that no page lists': ('src/workload/scenario.h', '//   new_key = 1\n#pragma once\n', 1,
                                 'the key new_key is not in docs/reference/scenario.md'),
    'a result without a word': ('docs/results/x/fig.csv', '1\n', 1, 'no document links'),
}

CLEAN = {
    'src/core/good.h': '// What it is.\n#pragma once\nstruct Good { int value = 0; };\n',
    # Words in comments and literals, digit separators, initialisers and lambdas are no violations.
    'src/core/good.cc': '''// steady_clock is what a Manager would read. timeout_ms
const char* kText = "std::rand() { in a string";
const char* kRaw = R"(using namespace std; { )";
constexpr int kMany = 1'000'000;
const auto kTable = Make({1, 2, 3});
int F(int x) { return x; }
''',
    'src/runtime/clock.cc': 'auto t = std::chrono::steady_clock::now();\n',
    'src/core/speed_bench.cc': 'auto t = std::chrono::steady_clock::now();\n',
    'src/metrics/report.h': '#pragma once\nstruct Run { double p50_ms = 0; };\n',
    'tests/fuzz_corpus/x_fuzz/seed': '{' * 200,
    'README.md': 'A call carries tensors; lanes carry out plans. A link carries less than half.\n'
                 'No request is lost. A frame that would be late is dropped.\n'
                 'See https://example.org/paper and `curl http://127.0.0.1:8000/v2`.\n'
                 '[a folder](docs), [a file](docs/results/README.md#top), `[x](y)`\n',
    'docs/results/README.md': '# Top\n```\n# here\n[code](is/no/link)\n```\n[rows](a.csv), [up](../..)\n',
    'docs/results/a.csv': '1\n',
    'CONTRIBUTING.md': 'A figure is listed in paper.toml; `tools/whole` draws it.\n',
    'figures/p/paper.toml': 'figures = ["3", "7a"]\n',
    'figures/p/fig03.toml': 'scenario = "light"\n',
    'figures/p/fig7a.toml': '',
    'scenarios/light.toml': '',
    'tools/whole': '#!/usr/bin/env python3\nimport part\n',
    'tools/part.py': '',
}


def run_tidy(files):
    with tempfile.TemporaryDirectory() as folder:
        for path, text in files.items():
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        done = subprocess.run([sys.executable, str(HERE / 'tidy.py'), folder],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class Tidy(unittest.TestCase):
    def test_every_rule_finds_its_violation(self):
        for what, (path, text, line, word) in BROKEN.items():
            with self.subTest(what):
                code, output = run_tidy({path: text})
                self.assertEqual(code, 1, output)
                hits = [o for o in output.split('\n') if o.startswith(f'{path}:{line}: ')]
                self.assertTrue(any(word in hit for hit in hits), output)
                self.assertTrue(all('(remedy: ' in hit for hit in hits), output)

    def test_one_tree_breaks_every_rule_at_once(self):
        code, output = run_tidy({path: text for path, text, _, _ in BROKEN.values()})
        self.assertEqual(code, 1)
        for path, _, line, _ in BROKEN.values():
            self.assertIn(f'{path}:{line}: ', output)

    def test_a_clean_tree_is_clean(self):
        code, output = run_tidy(CLEAN)
        self.assertEqual(code, 0, output)
        self.assertIn('tidy: 0 violations', output)

    def test_functions_of_a_class_with_lambdas_and_initialisers(self):
        code = cpp_source.without_comments_and_literals('''
namespace n {
class A : public B {
 public:
  A(int x) : x_{x}, y_(2) {
    auto f = [&](int z) { return z; };
  }
  int table_[2] = {1, 2};
};
}  // namespace n
TEST(A, Works) {
}
''')
        found = [(f.name, f.first_line, f.last_line) for f in cpp_source.functions(code)]
        self.assertEqual([('A', 5, 7), ('TEST', 11, 12)], found)


def commit_on_days(root, first, last):
    """All of root on the FIRST day of a month, and a commit that changes nothing on the LAST."""
    git = ['git', '-C', str(root), '-c', 'user.name=n', '-c', 'user.email=n@localhost']
    subprocess.run([*git, 'init', '-q'], check=True)
    subprocess.run([*git, 'add', '-A'], check=True)
    for day in (first, last):
        date = f'2026-01-0{day}T12:00:00Z'
        subprocess.run([*git, 'commit', '-q', '--allow-empty', '-m', 'n'], check=True,
                       env={**os.environ, 'GIT_AUTHOR_DATE': date, 'GIT_COMMITTER_DATE': date})


class Headers(unittest.TestCase):
    def check(self, text, source='', together=(), committed=False):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / 'src').mkdir()
            (root / 'build').mkdir()
            (root / 'src/h.h').write_text(text)
            (root / 'src/a.cc').write_text(source)
            (root / 'src/b.cc').write_text('#include <string>\n')
            (root / 'build/unity').mkdir()
            file = 'build/unity/h_0.cc' if together else 'src/a.cc'
            (root / 'build/unity/h_0.cc').write_text(
                ''.join(f'#include "../../src/{name}"\n' for name in together))
            if committed:
                commit_on_days(root, 1, 3)
            (root / 'build/compile_commands.json').write_text(json.dumps(
                [{'file': file, 'command': f'g++ -I{root}/src -std=c++20 -c {file}',
                  'directory': folder}]))
            done = subprocess.run(
                [sys.executable, str(HERE / 'headers.py'), str(root / 'build'), folder],
                capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_a_header_that_leans_on_its_includer_is_reported(self):
        code, output = self.check('#pragma once\n\ninline std::string Name();\n')
        self.assertEqual(code, 1)
        self.assertIn('src/h.h:3: ', output)
        self.assertIn('(remedy: ', output)

    def test_a_self_contained_header_passes(self):
        code, output = self.check('#pragma once\n#include <string>\ninline std::string Name();\n')
        self.assertEqual(code, 0, output)

    def test_what_a_source_includes_first_was_compiled_with_it(self):
        leans = '#pragma once\ninline std::string Name();\n'
        for source, here in (('// A source.\n#include "h.h"\n', 0), ('#include <string>\n'
                             '#include "h.h"\n', 1), ('#include "other.h"\n', 1)):
            code, output = self.check(leans, source)
            self.assertEqual(code, here, output)
            self.assertIn(f'{1 - here} were compiled by the build; {here} compiled here, ', output)

    def test_what_changed_long_before_the_last_commit_is_left_to_the_run_of_all(self):
        leans = '#pragma once\ninline std::string Name();\n'
        code, output = self.check(leans, committed=True)
        self.assertEqual(code, 0, output)
        self.assertIn('of which 1 have not changed', output)

    def test_of_sources_compiled_together_only_the_first_counts(self):
        leans = '#pragma once\ninline std::string Name();\n'
        for sources, here in ((('a.cc', 'b.cc'), 0), (('b.cc', 'a.cc'), 1)):
            code, output = self.check(leans, '#include "h.h"\n', together=sources)
            self.assertEqual(code, here, output)


class Benches(unittest.TestCase):
    def check(self, bench, header='#pragma once\n', committed=(), built=False):
        """benches.py on a tree of a.h and speed_bench.cc; COMMITTED: those that changed long ago."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / 'src').mkdir()
            (root / 'build').mkdir()
            files = {'a.h': header, 'speed_bench.cc': bench}
            for name in (*committed, None, *files):
                if name is None and committed:
                    commit_on_days(root, 1, 3)
                elif name is not None and not (root / 'src' / name).exists():
                    (root / 'src' / name).write_text(files[name])
            if built:
                (root / 'build/speed.o').write_text('')
            (root / 'build/compile_commands.json').write_text(json.dumps(
                [{'file': 'src/speed_bench.cc', 'directory': folder, 'command':
                  f'g++ -I{root}/src -std=c++20 -o build/speed.o -c src/speed_bench.cc'}]))
            done = subprocess.run(
                [sys.executable, str(HERE / 'benches.py'), str(root / 'build'), folder],
                capture_output=True, text=True, check=False)
            return done.returncode, done.stdout

    def test_one_that_does_not_compile_is_reported(self):
        code, output = self.check('int x = y;\n')
        self.assertEqual(code, 1)
        self.assertIn('speed_bench.cc:1', output)
        self.assertIn('(remedy: ', output)

    def test_one_that_compiles_passes(self):
        code, output = self.check('#include "a.h"\nint x = 1;\n')
        self.assertEqual(code, 0, output)
        self.assertIn('1 compiled here', output)

    def test_one_whose_header_changed_is_compiled(self):
        code, output = self.check('#include "a.h"\nint x = y;\n', committed=['speed_bench.cc'])
        self.assertEqual(code, 1, output)

    def test_one_of_which_nothing_changed_is_left_to_the_run_of_all(self):
        code, output = self.check('#include "a.h"\nint x = y;\n',
                                  committed=['speed_bench.cc', 'a.h'])
        self.assertEqual(code, 0, output)
        self.assertIn('0 compiled here', output)

    def test_one_that_the_build_compiled_is_not_compiled_again(self):
        code, output = self.check('int x = y;\n', built=True)
        self.assertEqual(code, 0, output)


if __name__ == '__main__':
    unittest.main()
