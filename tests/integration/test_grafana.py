"""deploy/grafana/tactus.json: each of its queries finds series on the page of a real server."""
import json
import re
import shutil
import unittest

from serving import SOURCE, Server

BOARD = json.loads((SOURCE / "deploy/grafana/tactus.json").read_text())
SERIES = re.compile(r"^(\w+)(?:\{(.*)\})? ")
LABEL = re.compile(r'(\w+)(!~|=~|!=|=)"([^"]*)"')
SELECTOR = re.compile(r"\b((?:tactus|process)_\w+)(?:\{([^}]*)\})?")


def series_of(page):
    """The page's series: (name, labels)."""
    lines = (SERIES.match(line) for line in page.splitlines() if not line.startswith("#"))
    return [(line[1], {name: value for name, _, value in LABEL.findall(line[2] or "")})
            for line in lines if line]


def fits(labels, matchers):
    """Whether a series with these labels is one of the selector."""
    def one(name, how, value):
        has = labels.get(name, "")
        return {"=": has == value, "!=": has != value, "=~": bool(re.fullmatch(value, has)),
                "!~": not re.fullmatch(value, has)}[how]
    return all(one(*each) for each in LABEL.findall(matchers or ""))


def fill(root):
    shutil.copytree(SOURCE / "models/ee_s", root / "ee_s")


def call(**parameters):
    return json.dumps({"parameters": parameters, "inputs": [
        {"name": "input", "shape": [1, 1, 28, 28], "datatype": "FP32", "data": [0.5] * 784}]})


class BoardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(fill=fill)
        cls.addClassCleanup(cls.server.close)
        for _ in range(3):
            status, _, answer = cls.server.post("/v2/models/ee_s/infer", call().encode())
            assert status == 200, answer
        status, _, _ = cls.server.post("/v2/models/ee_s/infer", call(timeout=1).encode())
        assert status == 504, status  # a microsecond: it enters no queue
        cls.series = series_of(cls.server.get("/metrics", cls.server.metrics_page))

    def test_each_query_finds_what_it_asks_for(self):
        queries = [(panel["title"], target["expr"]) for panel in BOARD["panels"]
                   for target in panel["targets"]]
        self.assertGreater(len(queries), 10)
        for title, query in queries:
            selectors = SELECTOR.findall(query)
            self.assertTrue(selectors, query)
            for name, matchers in selectors:
                with self.subTest(panel=title, metric=name):
                    found = [labels for metric, labels in self.series
                             if metric == name and fits(labels, matchers)]
                    self.assertTrue(found, f"{name}{{{matchers}}} is on no page")
                    used = set(re.findall(r"by \(([\w, ]+)\)", query))
                    for label in {each.strip() for part in used for each in part.split(",")}:
                        self.assertIn(label, found[0])

    def test_it_asks_the_source_that_its_user_chooses(self):
        self.assertEqual(BOARD["uid"], "tactus")
        self.assertEqual({panel["datasource"]["uid"] for panel in BOARD["panels"]},
                         {"${datasource}"})
        ids = [panel["id"] for panel in BOARD["panels"]]
        self.assertEqual(len(ids), len(set(ids)))


if __name__ == "__main__":
    unittest.main()
