"""What two servers answered to one call: where it differs, and whether that is explained."""
import dataclasses
import fnmatch
import json
import math
import tomllib

# What no two runs have alike.
MEASURED = ("ns", "last_inference", "tactus_queue_us", "tactus_execution_us")
ANY_NUMBER = "a number"
ERROR_TEXT = "a text"


@dataclasses.dataclass
class Difference:
    call: str
    at: str
    triton: object
    tactus: object
    why: str = ""


def is_measured(path):
    return any(part in MEASURED for part in path.split("."))


def flat(value, path=""):
    """{path: leaf} of nested objects and lists; what has a name is found by it in lists, whose
    order then does not count."""
    if isinstance(value, dict) and value:
        return {p: leaf for key, each in value.items()
                for p, leaf in flat(each, f"{path}.{key}" if path else str(key)).items()}
    if isinstance(value, list) and value:
        if all(isinstance(each, str) for each in value) and path.endswith("extensions"):
            value = [{"name": each} for each in value]
        named = all(isinstance(each, dict) and "name" in each for each in value)
        keys = [f"{each['name']}:{each.get('version', '')}" for each in value] if named else []
        if len(set(keys)) != len(value):
            keys = range(len(value))
        return {p: leaf for key, each in zip(keys, value)
                for p, leaf in flat(each, f"{path}[{key}]").items()}
    if is_measured(path) and str(value).isdigit():
        return {path: ANY_NUMBER}
    return {path: value}


def same(one, other):
    """Numbers of one precision may be written with more or fewer digits."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        return math.isclose(one, other, rel_tol=1e-6)
    return one == other and type(one) is type(other)


def hide_error(body):
    """The body of an error without its words, and those."""
    if isinstance(body, dict) and list(body) == ["error"] and isinstance(body["error"], str):
        return {"error": ERROR_TEXT}, body["error"]
    return body, None


def is_empty(value):
    return value == {} or value == []


def has_below(leaves, path):
    return any(each.startswith((f"{path}.", f"{path}[")) for each in leaves)


def differences(call, triton, tactus):
    """Where their statuses differ, all else does, so it alone is named."""
    if triton["status"] != tactus["status"]:
        return [Difference(call, "status", triton["status"], tactus["status"])]
    ours, theirs = flat(tactus), flat(triton)
    absent = object()
    found = []
    for path in dict.fromkeys([*theirs, *ours]):
        one, other = theirs.get(path, absent), ours.get(path, absent)
        if is_empty(one) and has_below(ours, path) or is_empty(other) and has_below(theirs, path):
            continue  # what is in the other one is named
        if one is absent or other is absent or not same(one, other):
            found.append(Difference(call, path, "(absent)" if one is absent else one,
                                    "(absent)" if other is absent else other))
    return found


def word(value):
    return value if isinstance(value, str) else json.dumps(value)


def fits(pattern, value):
    patterns = pattern if isinstance(pattern, list) else [pattern]
    return any(fnmatch.fnmatchcase(value, each) for each in patterns)


class Explanations:
    """explained.toml: which differences are meant, each with the row of docs/compatibility.md that
    says why (`why`, its first column)."""

    def __init__(self, text):
        self.rows = tomllib.loads(text).get("explained", [])
        self.used = [0] * len(self.rows)
        for row in self.rows:
            unknown = set(row) - {"why", "calls", "at", "triton", "tactus"}
            if unknown or "why" not in row or "calls" not in row:
                raise ValueError(f"explained.toml: {row}: needs why and calls; may have at, triton "
                                 "and tactus")

    def explain(self, difference):
        """Sets `why` of the first row that fits; whether one does."""
        for i, row in enumerate(self.rows):
            if (fits(row["calls"], difference.call) and fits(row.get("at", "*"), difference.at)
                    and fits(row.get("triton", "*"), word(difference.triton))
                    and fits(row.get("tactus", "*"), word(difference.tactus))):
                self.used[i] += 1
                difference.why = row["why"]
                return True
        return False

    def stale(self):
        return [row for row, used in zip(self.rows, self.used) if not used]

    def without_row(self, page):
        """Those whose reason no row of `page` begins with."""
        rows = {line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| ")}
        return sorted({row["why"] for row in self.rows} - rows)
