"""A comparison with the real Triton that overlooks a difference would call Tactus compatible where
it is not; one that excuses too much would too."""
import pathlib
import sys
import unittest

import judge

ROOT = pathlib.Path(__file__).resolve().parents[2]


def found(triton, tactus, name="http/x"):
    whole = ({"status": 200, **side} for side in (triton, tactus))
    return [(each.at, each.triton, each.tactus) for each in judge.differences(name, *whole)]


class Differences(unittest.TestCase):
    def test_equal_answers_have_none(self):
        answer = {"body": {"outputs": [{"name": "x", "data": [1, 2.5, "a", None, True]}]}}
        self.assertEqual(found(answer, answer), [])

    def test_a_status_that_differs_is_the_only_difference(self):
        self.assertEqual(found({"status": 400, "body": 1}, {"status": 404, "body": 2}),
                         [("status", 400, 404)])

    def test_each_value_that_differs_is_named(self):
        self.assertEqual(found({"body": {"a": [1, 2], "b": {}}}, {"body": {"a": [1, 3], "b": {}}}),
                         [("body.a[1]", 2, 3)])

    def test_what_one_of_them_lacks_is_named(self):
        self.assertEqual(found({"body": {"a": 1}}, {"body": {"b": 1}}),
                         [("body.a", 1, "(absent)"), ("body.b", "(absent)", 1)])
        self.assertEqual(found({"body": []}, {"body": [1]}),
                         [("body[0]", "(absent)", 1)])
        self.assertEqual(found({"body": {"a": {}}}, {"body": {}}),
                         [("body.a", {}, "(absent)")])

    def test_kinds_are_compared(self):
        for one, other in ((1, "1"), (True, 1), (0, False), (None, ""), (1, None), ({}, [])):
            self.assertEqual(len(found({"body": one}, {"body": other})), 1, (one, other))

    def test_numbers_may_have_more_or_fewer_digits(self):
        self.assertEqual(found({"body": 0.10000000149011612}, {"body": 0.1}), [])
        self.assertEqual(found({"body": 1.0}, {"body": 1}), [])
        self.assertEqual(len(found({"body": 0.1}, {"body": 0.10001})), 1)
        self.assertEqual(len(found({"body": 2**53}, {"body": 2**53 + 1})), 1)

    def test_the_order_of_what_has_names_does_not_count(self):
        a, b = {"name": "a", "v": 1}, {"name": "b", "v": 2}
        self.assertEqual(found({"body": [a, b]}, {"body": [b, a]}), [])
        self.assertEqual(len(found({"body": [a, b]}, {"body": [a, {**b, "v": 3}]})), 1)
        self.assertTrue(found({"body": [a, a]}, {"body": [a]}))
        self.assertEqual(found({"body": {"extensions": ["a", "b"]}},
                               {"body": {"extensions": ["b", "a"]}}), [])
        self.assertEqual(len(found({"body": {"shape": [1, 2]}}, {"body": {"shape": [2, 1]}})), 2)

    def test_of_measured_times_it_counts_only_that_they_are_numbers(self):
        self.assertEqual(found({"body": {"ns": 12}}, {"body": {"ns": "7"}}), [])
        self.assertEqual(len(found({"body": {"ns": 12}}, {"body": {"ns": "x"}})), 1)
        self.assertEqual(len(found({"body": {"count": 12}}, {"body": {"count": 7}})), 1)

    def test_the_words_of_an_error_are_taken_apart(self):
        self.assertEqual(judge.hide_error({"error": "no"}), ({"error": judge.ERROR_TEXT}, "no"))
        for body in ({"error": 1}, {"error": "no", "more": 1}, ["error"], "error", {}):
            self.assertEqual(judge.hide_error(body), (body, None))


TABLE = """
[[explained]]
why = "versions"
calls = ["http/a/*", "grpc/b"]
at = "status"
triton = "40?"
tactus = "404"
"""


class Explained(unittest.TestCase):
    def setUp(self):
        self.table = judge.Explanations(TABLE)

    def explained(self, call="http/a/1", at="status", triton=400, tactus=404):
        return self.table.explain(judge.Difference(call, at, triton, tactus))

    def test_a_row_explains_only_what_fits_all_of_it(self):
        self.assertTrue(self.explained())
        self.assertTrue(self.explained(call="grpc/b"))
        for other in ({"call": "http/b"}, {"call": "grpc/b/1"}, {"at": "body"}, {"triton": 500},
                      {"tactus": 400}):
            self.assertFalse(self.explained(**other), other)

    def test_a_row_that_explains_nothing_is_stale(self):
        self.assertEqual(len(self.table.stale()), 1)
        self.explained()
        self.assertEqual(self.table.stale(), [])

    def test_a_reason_is_the_first_column_of_a_row_of_the_page(self):
        self.assertEqual(self.table.without_row("versions\n| a | versions |\n"), ["versions"])
        self.assertEqual(self.table.without_row("| versions | x |\n"), [])

    def test_a_row_without_calls_or_with_unknown_keys_is_refused(self):
        for text in ('[[explained]]\nwhy = "x"\n', '[[explained]]\ncalls = "x"\n',
                     '[[explained]]\nwhy = "x"\ncalls = "*"\npath = "y"\n'):
            with self.assertRaises(ValueError):
                judge.Explanations(text)

    def test_each_reason_of_explained_toml_has_its_row_in_the_docs(self):
        table = judge.Explanations((ROOT / "tools/triton/explained.toml").read_text())
        self.assertEqual(table.without_row((ROOT / "docs/compatibility.md").read_text()), [])
        self.assertTrue(table.rows)


if __name__ == "__main__":
    sys.exit(unittest.main())
