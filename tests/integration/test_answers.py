#!/usr/bin/env python3
"""Every answer is ONNX Runtime's, whatever the graph, its configuration, the protocol and how the
server runs: a part of the matrix of answers.py, with all graphs. `./run bench answers` asks all."""

import sys
import unittest

import answers


class AnswersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.matrix = answers.Matrix()
        except answers.NoOnnxPackage as missing:
            print(f"SKIPPED, NOTHING WAS TESTED: {missing}", file=sys.stderr)
            sys.exit(77)
        cls.addClassCleanup(cls.matrix.close)

    def assert_right(self, configuration, *servers):
        for kind in servers:
            with self.subTest(configuration=configuration, server=kind):
                results = self.matrix.serve(configuration, kind, rounds=0)
                counts = answers.count(results)
                print(f"config {configuration}, {kind}: {dict(counts)}", flush=True)
                wrong = answers.failures(results)
                self.assertFalse(wrong, "\n".join(wrong))
                self.assertGreater(counts["right"], 9 * counts["refused"])

    def test_without_a_configuration(self):
        self.assert_right("none", *answers.SERVERS)

    def test_with_what_init_writes(self):
        self.assert_right("init", "alone")
        self.assertEqual(self.matrix.not_inited, {})

    def test_with_a_declared_batch(self):
        self.assert_right("declared", "isolate")

    def test_a_batch_that_is_declared_and_false_is_refused_or_warned_of(self):
        said = self.matrix.judge_false_batches()
        self.assertEqual([name for name, line in said.items() if not line], [])
        kinds = {line.split(":")[0] for line in said.values()}
        self.assertEqual(kinds, {"refused", "warned"})
        self.assertGreater(len(said), 15)

    def test_a_difference_is_found(self):
        call = self.matrix.calls["dense"][2]
        self.assertIsNone(answers.difference(call.wanted, call.wanted))
        y = call.wanted["y"]
        for other in (y + 1e-2, y[:1], y.astype("f8")):
            self.assertIsNotNone(answers.difference({"y": other}, call.wanted))
        self.assertIsNotNone(answers.difference({}, call.wanted))


if __name__ == "__main__":
    unittest.main()
