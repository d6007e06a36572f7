"""models/resnets.py: its graphs load, have the exits that they are to have, and are served by
`./run bench gpu --processor`, without a device."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnxruntime

PROGRAM = os.environ['TACTUS_BENCH_GPU']
SOURCE = pathlib.Path(__file__).resolve().parents[2]
NETWORKS = {'resnet50': 16, 'resnet101': 33, 'resnet152': 50}  # blocks of three convolutions
SIZE, CLASSES = 32, 100


def write(folder, *arguments):
    subprocess.run([sys.executable, '-B', SOURCE / 'models' / 'resnets.py', '--out', folder,
                    '--width', '4', *arguments], check=True, capture_output=True)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=['CPUExecutionProvider'])


class ResNetsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name) / 'resnets'
        write(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def test_each_exit_answers_each_row_and_no_two_alike(self):
        rows = np.random.default_rng(3).standard_normal((5, 3, SIZE, SIZE), np.float32)
        for name in NETWORKS:
            answers = []
            for number in (1, 2, 3, 4):
                graph = session(self.folder / name / '1' / f'exit{number}.onnx')
                answer, = graph.run(['logits'], {'input': rows})
                self.assertEqual(answer.shape, (5, CLASSES), name)
                self.assertTrue(np.isfinite(answer).all(), f'{name} {number}')
                self.assertGreater(answer.std(axis=0).max(), 1e-3, 'rows are told apart')
                alone, = graph.run(['logits'], {'input': rows[2:3]})
                np.testing.assert_allclose(alone[0], answer[2], rtol=1e-3, atol=1e-3)
                answers.append(answer)
            for shallow, deep in zip(answers, answers[1:]):
                self.assertGreater(np.abs(shallow - deep).max(), 1e-2)

    def test_an_exit_runs_its_stages_and_no_more_and_weights_lie_there_once(self):
        for name, blocks in NETWORKS.items():
            folder = self.folder / name / '1'
            graphs = [(folder / f'exit{number}.onnx').read_bytes() for number in (1, 2, 3, 4)]
            convolutions = [len(re.findall(rb'\x22\x04Conv', graph)) for graph in graphs]
            # The stem, three in each block and one where a stage begins.
            self.assertEqual(convolutions[3], 1 + 3 * blocks + 4, name)
            self.assertEqual(convolutions[0], 1 + 3 * 3 + 1, name)
            self.assertEqual(convolutions, sorted(set(convolutions)), name)
            size = (folder / 'weights.bin').stat().st_size
            self.assertLess(sum(map(len, graphs)), 400_000, 'weights are in the file beside them')
            self.assertGreater(size, 4 * 20_000)

    def test_the_same_seed_gives_the_same_files_and_another_seed_others(self):
        path = pathlib.Path('resnet50') / '1' / 'weights.bin'
        with tempfile.TemporaryDirectory() as other:
            other = pathlib.Path(other)
            write(other)
            self.assertEqual((self.folder / path).read_bytes(), (other / path).read_bytes())
            write(other, '--seed', '2')
            self.assertNotEqual((self.folder / path).read_bytes(), (other / path).read_bytes())

    def test_accuracies_are_said_to_be_the_papers(self):
        text = (self.folder / 'resnet152' / 'config.pbtxt').read_text(encoding='utf-8')
        self.assertIn('0.073, 0.172, 0.474, 0.780', text)
        self.assertIn("those of EdgeServing's table", text)

    def test_the_benchmark_serves_them_without_a_device_and_calls_it_no_result(self):
        path = pathlib.Path(self.place.name) / 'resnets.json'
        done = subprocess.run([PROGRAM, '--processor', '--quick', '--resnets', self.folder,
                               '--json', path], capture_output=True, text=True, check=False)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        report = json.loads(path.read_text(encoding='utf-8'))
        policies = {each['policy'] for each in report['runs']}
        self.assertLessEqual({'edgeserving', 'all-final', 'all-early'}, policies)
        for check in report['checks']:
            self.assertTrue(check['what'].startswith('no result of a device: the PROCESSOR'), check)
        for each in report['runs']:
            self.assertIn('no result of a device', each['source'])
            self.assertGreater(each['requests'], 0, each)

    def test_without_models_it_says_where_they_come_from(self):
        done = subprocess.run([PROGRAM, '--processor', '--quick'], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('models/resnets.py', done.stderr)


if __name__ == '__main__':
    unittest.main()
