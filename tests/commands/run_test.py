#!/usr/bin/env python3
"""`./run`, read: each function that is called is there, once. Who uses it tests what it does."""
import collections
import re
import subprocess
import sys
import unittest

from command_case import SOURCE

SCRIPT = SOURCE / "run"
# Where a command may begin.
CALL = re.compile(r"(?m)(?:^|[;&|(]|\b(?:do|then|else)\b)[ \t]*"
                  r"((?!tactus_)[a-z]+(?:_[a-z]+)+)\b(?![=(\]\[])")


class Run(unittest.TestCase):
    def test_every_function_that_is_called_is_there_once(self):
        text = SCRIPT.read_text(encoding="utf-8")
        code = re.sub(r"(?s)<<'TEXT'.*?\nTEXT\n", "\n", text)
        defined = collections.Counter(re.findall(r"(?m)^(\w+)\(\) \{", code))
        self.assertEqual([name for name, times in defined.items() if times > 1], [])
        called = set(CALL.findall(code))
        self.assertIn("configure_and_build", called)
        self.assertEqual(called - set(defined), set())

    def test_help_names_every_command(self):
        done = subprocess.run([SCRIPT, "help"], capture_output=True, text=True, timeout=60,
                              check=True)
        commands = re.search(r"\n  ([a-z |-]+)\)\n    \"\$command\"", SCRIPT.read_text()).group(1)
        for name in commands.split(" | "):
            self.assertRegex(done.stdout, rf"(?m)^  {name}\b", name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
