#!/usr/bin/env python3
"""Each kind of forbidden arrow, drawn once: the lint must name its file, line and remedy."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent

TABLE = '''
[module]
base = { uses = [] }
core = { uses = ["base"] }
policies = { uses = ["core"] }
sim = { uses = ["core"], tests = ["policies"] }
runtime = { uses = ["core"] }
server_http = { folder = "server/http", uses = ["runtime"] }

[families]
folders = ["policies"]

[[vendor]]
prefix = "boost/"
folders = ["server/http"]

[[vendor]]
prefix = "nlohmann/"
folders = ["sim"]
headers = false

[[vendor]]
prefix = "generated .pb.h"
folders = ["server/http"]

[system]
names = ["unistd.h", "sys/"]
folders = ["runtime", "server"]

[forbidden_standard]
core = ["thread", "iostream"]

[allowed_standard]
"core/dump.cc" = ["iostream"]
'''

CMAKE = '''
tactus_module(base DIR base)
tactus_module(core DIR core DEPS base)
tactus_module(policies DIR policies DEPS core VENDOR fmt::fmt)
tactus_module(sim DIR sim DEPS core TEST_DEPS policies)
tactus_module(runtime DIR runtime DEPS core)
tactus_module(server_http DIR server/http DEPS runtime)
'''

# What is wrong -> (file, text, line, a word of the message)
BROKEN = {
    'an arrow upwards': ('core/a.h', '#pragma once\n#include "sim/event.h"\n', 2, 'which is sim'),
    'the two drivers': ('sim/b.cc', '#include "runtime/loop.h"\n', 1, 'which is runtime'),
    'a policy into a policy':
        ('policies/one/p.cc', '\n#include "policies/two/p.h"\n', 2, 'sibling two'),
    'code that leans on a module of its tests':
        ('sim/c.cc', '#include "policies/registry.h"\n', 1, 'which is policies'),
    'a library out of its folder': ('runtime/d.cc', '#include <boost/asio.hpp>\n', 1, 'outside of'),
    'a generated message out of its folder':
        ('runtime/e.cc', '#include "service.pb.h"\n', 1, 'outside of'),
    'a slow header in a header':
        ('sim/f.h', '#pragma once\n#include <nlohmann/json.hpp>\n', 2, 'in a header'),
    'an unknown library': ('runtime/g.cc', '#include <curl/curl.h>\n', 1, 'in no list'),
    'the operating system in the core': ('core/h.cc', '#include <unistd.h>\n', 1, 'operating'),
    'a thread in the core': ('core/i.cc', '\n\n#include <thread>\n', 3, '<thread> in core'),
    'a file in no module': ('stray/j.cc', '\n', 1, 'in no module'),
    'a header named from its own folder': ('core/k.cc', '#include "queue.h"\n', 1, 'no module'),
}

CLEAN = {
    'core/lane.h': '#pragma once\n#include <vector>\n#include "base/ids.h"\n',
    'policies/registry.cc': '#include "policies/one/p.h"\n#include "policies/two/p.h"\n',
    'policies/one/p.cc': '#include "policies/one/p.h"\n#include "policies/shared.h"\n',
    'sim/run_test.cc':
        '#include <gtest/gtest.h>\n#include "policies/registry.h"\n#include <thread>\n',
    'core/dump.cc': '#include <iostream>\n',
    'sim/run.cc': '// #include "runtime/loop.h"\n#include <nlohmann/json.hpp>\n',
    'server/http/s.cc':
        '#include <boost/beast.hpp>\n#include <sys/socket.h>\n#include "base/ids.h"\n',
}


def run_layers(files, table=TABLE, cmake=CMAKE):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        tree = {'tools/layers/layers.toml': table, 'src/CMakeLists.txt': cmake}
        tree |= {f'src/{path}': text for path, text in files.items()}
        for path, text in tree.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        done = subprocess.run([sys.executable, str(HERE / 'layers.py'), folder],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr


class Layers(unittest.TestCase):
    def test_each_forbidden_include_is_reported(self):
        for what, (path, text, line, word) in BROKEN.items():
            with self.subTest(what):
                code, output = run_layers({path: text})
                self.assertEqual(code, 1, output)
                hits = [o for o in output.split('\n') if o.startswith(f'src/{path}:{line}: ')]
                self.assertEqual(len(hits), 1, output)
                self.assertIn(word, hits[0])
                self.assertIn('(remedy: ', hits[0])

    def test_a_clean_tree_is_clean(self):
        code, output = run_layers(CLEAN)
        self.assertEqual(code, 0, output)

    def test_the_table_and_cmake_must_agree(self):
        code, output = run_layers({}, cmake=CMAKE.replace('sim DEPS core', 'sim DEPS core runtime'))
        self.assertEqual(code, 1)
        self.assertIn('src/CMakeLists.txt:5: sim:', output)
        code, output = run_layers({}, cmake=CMAKE + 'tactus_module(extra DIR extra)\n')
        self.assertIn('src/CMakeLists.txt:8: module extra is not in layers.toml', output)
        code, output = run_layers({'gone/a.h': '\n'}, table=TABLE.replace(
            '[families]', 'gone = { uses = [] }\n[families]'))
        self.assertIn('no tactus_module(gone', output)

    def test_a_part_keeps_to_the_arrows_of_the_whole(self):
        table = TABLE.replace('runtime = { uses = ["core"] }',
                              'runtime = { uses = ["core"], parts = { gpu = "runtime/gpu" } }')
        part = CMAKE + 'tactus_module(gpu DIR runtime/gpu DEPS core)\n'
        self.assertEqual(run_layers({}, table, part)[0], 0)
        code, output = run_layers({}, table, part.replace('gpu DEPS', 'gpu DEPS policies'))
        self.assertEqual(code, 1)
        self.assertIn("src/CMakeLists.txt:8: gpu, a part of runtime, ", output)

    def test_arrows_go_one_way(self):
        code, output = run_layers({}, table=TABLE.replace('base = { uses = [] }',
                                                          'base = { uses = ["core"] }'))
        self.assertEqual(code, 1)
        self.assertIn('core and base use each other', output)


if __name__ == '__main__':
    unittest.main()
