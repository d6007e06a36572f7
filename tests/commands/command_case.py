"""How the tests beside this file call a command: as a user does, told TACTUS SOURCE_FOLDER."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TACTUS, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
SCENARIO = SOURCE / "scenarios/three-resnets.toml"
SHORT = ["--set", "duration_s=2", "--set", "warmup_requests=10"]


def tactus(*words):
    return subprocess.run([TACTUS, *map(str, words)], capture_output=True, text=True, timeout=600)


def reproduce(*words):
    """What `./run figures` calls."""
    words = [sys.executable, "-B", SOURCE / "figures/reproduce.py", *words, "--programs",
             pathlib.Path(TACTUS).parent.parent]
    return subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=600)


class CommandCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def good(self, *words, code=0):
        done = tactus(*words)
        self.assertEqual(done.returncode, code, done.stderr)
        # What takes long says every 30 s how far it is (experiment/progress.h): no complaint.
        self.assertEqual(re.sub(r"(?m)^\d+/\d+(, about \d+ s left)?  .*\n", "", done.stderr), "")
        return done.stdout

    def in_vain(self, *words):
        """It ran, and what it was to find does not exist."""
        return self.good(*words, code=1)

    def bad(self, *words, says):
        done = tactus(*words)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stdout, "")
        self.assertIn(says, done.stderr)
        self.assertRegex(done.stderr, r"^tactus[a-z -]*: ")
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
