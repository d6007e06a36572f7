"""`./run bench gpu` from end to end on the fake device: without it the first command on a real one
would be the first time that most of the benchmark runs at all."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None

# A piece of what is said of each of the questions.
CHECKS = ('two lanes with shares had in common', 'a lane with 25 % ran on', 'urgent work: most ms',
          'batch of high priority: most ms', 'over a raw loop', "uses: share of fma of 'wide'",
          'in pairs in halves', 'P99 in fours', 'error of the linear model',
          'strait-high: violations of high', 'gpulets-equal: violations on parts',
          'gpulets-equal: planned requests/s', 'deferred at 5 % load: device time',
          "Figure 4: EdgeServing's violations", "Figure 4: All-Final's",
          "Figure 4 on ResNets: EdgeServing's violations", "Figure 4 on ResNets: All-Final's",
          'twin at 30 % load: P50', 'twin at 30 % load: P95')
POLICIES = ('strait', 'static-spatial', 'reactive-spatial', 'temporal', 'planned by gpulet-retry',
            'planned by nexus', 'symphony:published', 'edgeserving', 'all-final')


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          check=False)


class FakeRunTest(unittest.TestCase):
    def test_every_part_runs_and_says_that_it_is_fake(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'gpu.json'
            done = run('--fake', '--quick', '--json', path)
            self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
            report = json.loads(path.read_text(encoding='utf-8'))
        whats = [check['what'] for check in report['checks']]
        for what in whats:
            self.assertTrue(what.startswith('FAKE, no result: fake-cuda (no GPU)'), what)
        for piece in CHECKS:
            self.assertTrue(any(piece in what for what in whats), piece + '\n' + done.stdout)
        policies = {each['policy'] for each in report['runs']}
        self.assertLessEqual(set(POLICIES), policies)
        for each in report['runs']:
            self.assertTrue(each['source'].startswith('FAKE, no result: '), each)
            self.assertTrue(each['profile'].startswith('FAKE, no result: '), each)
            self.assertGreater(each['requests'], 0, each)
        # On the screen too: the device, each part, each run and each check.
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith('FAKE, no result: '), lines[0])
        parts = [line for line in lines if re.match(r'[a-z]+: ', line)]
        self.assertEqual(len(parts), 11, done.stdout)
        shown = [line for line in lines if ' met/s ' in line]
        self.assertEqual(len(shown), len(report['runs']), done.stdout)
        for line in parts + shown:
            self.assertIn('FAKE, no result: ', line)
        for what in whats:
            self.assertIn(what, done.stdout)
        self.assertNotIn('could not be measured', done.stderr)

    def test_fake_figures_do_not_get_where_results_are(self):
        done = run('--fake', '--quick', '--json', 'docs/results/gpu/checks.json')
        self.assertEqual(done.returncode, 2)
        self.assertIn('docs is for results', done.stderr)

    def test_parts_are_named_and_others_refused(self):
        listed = run('--list')
        self.assertEqual(listed.returncode, 0)
        for part in ('parts', 'priorities', 'engine', 'uses', 'interference', 'strait', 'shares',
                     'deferred', 'exits', 'resnets', 'twin'):
            self.assertIn('\n' + part if part != 'parts' else part, listed.stdout)
        self.assertNotEqual(run('--only', 'nothing').returncode, 0)


if __name__ == '__main__':
    PROGRAM = sys.argv.pop(1)
    unittest.main()
