"""tools/street/twin.py: which plan and which links the simulated twin of a run is told. Otherwise
the twin would be that of the first plan, or of links that no call ever had."""

import datetime
import pathlib
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tools" / "street"))
import twin  # noqa: E402

BEGIN = 1_000_000.0


def at(seconds):
    moment = datetime.datetime.fromtimestamp(BEGIN + seconds, datetime.timezone.utc)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def plan(number, decided, fate="adopted"):
    return {"epoch": number, "decided": at(decided), "fate": fate, "plan": {"epoch": number}}


def served(plans, begin=0, end=60):
    return twin.served_longest(plans, BEGIN + begin, BEGIN + end)["epoch"]


class PlanTest(unittest.TestCase):
    def test_the_plan_that_served_longest_within_the_run(self):
        self.assertEqual(served([plan(1, -100), plan(2, 20)]), 2)
        self.assertEqual(served([plan(1, -100), plan(2, 40)]), 1, "before the run does not count")
        self.assertEqual(served([plan(1, 0), plan(2, 20), plan(3, 50), plan(4, 500)]), 2)
        self.assertEqual(served([plan(3, 50), plan(2, 20), plan(1, 0)]), 2, "in whatever order")

    def test_plans_that_never_served_do_not_count(self):
        self.assertEqual(served([plan(1, -100), plan(2, 1, "abandoned")]), 1)
        with self.assertRaisesRegex(twin.Refused, "no plan that was adopted"):
            served([plan(1, 0, "abandoned")])


class LinksTest(unittest.TestCase):
    DECLARED = {"cam1": (64.0, 10, 0.0), "cam2": (16.0, 10, 0.0)}

    def links(self, *rows):
        told = [{"from": name, "to": "server", "mbps": mbps, "at": at(when)}
                for name, mbps, when in rows]
        return twin.measured_links(told, self.DECLARED, BEGIN, BEGIN + 60)

    def test_the_median_of_the_run(self):
        links = self.links(("cam1", 20, 5), ("cam1", 30, 15), ("cam1", 90, 25), ("cam1", 1, 100))
        self.assertEqual(links["cam1"], (30, 10, 0.0))
        self.assertEqual(links["cam2"], self.DECLARED["cam2"], "nothing was measured of it")

    def test_never_more_than_the_link_has(self):
        self.assertEqual(self.links(("cam2", 50, 5))["cam2"], (16.0, 10, 0.0))

    def test_a_link_that_nothing_crossed_is_as_declared(self):
        self.assertEqual(self.links(("cam2", 0, 5))["cam2"], (16.0, 10, 0.0))


if __name__ == "__main__":
    unittest.main()
