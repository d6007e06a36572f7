#!/usr/bin/env python3
"""Each command that ./run names is a function of it, defined once: without this a function could
be lost, and `./run test`, which needs few of them, would pass."""
import pathlib
import re
import unittest

RUN = (pathlib.Path(__file__).resolve().parents[2] / 'run').read_text(encoding='utf-8')
OTHER_NAMES = {'test': 'test_all', 'same-reports': 'same_reports'}


class RunScript(unittest.TestCase):
    def setUp(self):
        self.functions = re.findall(r'^(\w+)\(\) \{', RUN, re.MULTILINE)

    def test_each_function_is_defined_once(self):
        self.assertEqual(sorted(self.functions), sorted(set(self.functions)))

    def test_each_command_of_the_help_is_a_function(self):
        text = RUN.split("<<'TEXT'")[1].split('\nTEXT')[0]
        commands = set(re.findall(r'^  ([a-z-]+)(?: |$)', text, re.MULTILINE))
        self.assertLess({'build', 'demo', 'test', 'setup', 'bench'}, commands)
        for command in commands:
            self.assertIn(OTHER_NAMES.get(command, command), self.functions)

    def test_no_function_calls_itself(self):
        code = RUN.replace(RUN.split("<<'TEXT'")[1].split('\nTEXT')[0], '')
        for name, body in re.findall(r'^(\w+)\(\) \{\n(.*?)^\}', code, re.MULTILINE | re.DOTALL):
            self.assertNotRegex(body, rf'(?m)^\s*{name}\b', name)


if __name__ == '__main__':
    unittest.main()
