"""Pages of docs/reference that list what the code has: a metric or a key that is not there cannot be
looked up."""
import re

METRICS = 'docs/reference/metrics.md'
SCENARIO, KEYS = 'src/workload/scenario.h', 'docs/reference/scenario.md'

_METRIC = re.compile(r'"(tactus_[a-z_]+)"')
_KEY = re.compile(r'^ *(?:\[*([a-z_.]+)\]+|([a-z_]+) =)', re.MULTILINE)


def _names_metrics(path):
    return path.startswith('src/server/metrics/') or path == 'apps/scheduler.cc'


def _keys(text):
    return {table or key for table, key in _KEY.findall(text)}


def violations(texts):
    """Of `texts` (path -> text of each text file): (path, line, message, remedy)."""
    listed = set(re.findall(r'\w+', texts.get(METRICS, '')))
    for path, text in sorted(texts.items()):
        if not _names_metrics(path) or '_test.' in path:
            continue
        for match in _METRIC.finditer(text):
            if match.group(1) not in listed:
                yield path, text.count('\n', 0, match.start()) + 1, \
                    f'{match.group(1)} is not in {METRICS}', 'say there what it counts'
    comment = texts.get(SCENARIO, '').split('#pragma once')[0]
    keys = _keys(re.sub(r'^// ?', '', comment, flags=re.MULTILINE))
    for key in sorted(keys - _keys(texts.get(KEYS, ''))):
        yield SCENARIO, 1, f'the key {key} is not in {KEYS}', 'list it there'
