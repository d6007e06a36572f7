"""The rules of STYLE.md that a program can check. Each yields (line, message, remedy)."""
import re

from cpp_source import functions, without_comments_and_literals

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100

CPP = ('.h', '.cc')
SCRIPT = ('.py', '.sh', '')  # '': ./run and its like
BUILD = ('.cmake', 'CMakeLists.txt')

# Folders that code in virtual and in real time shares: whoever reads a clock here would make a
# simulation and a server differ.
BELOW_THE_DRIVERS = ('base', 'core', 'policies', 'planners', 'dispatch', 'workload', 'metrics',
                     'sim')

# Files whose structs mirror a document that has its own names for fields (profile and report JSON,
# scenario TOML, the command line, HTTP header fields) or hold a fit's coefficients: there, and only there, a duration may be a number with
# its unit in the name.
NAMES_WITH_UNITS = ('src/workload/profile_', 'src/workload/scenario', 'src/workload/json_reader',
                    'src/workload/bounds', 'src/workload/fleet_scenario', 'src/metrics/report',
                    'src/metrics/fleet_report', 'src/load/load_run',
                    'src/server/http/http_message', 'src/serving/serve_options')
# Fields that carry the name that KServe v2's statistics give them.
PROTOCOL_NAMES = {'last_inference_ms'}


def _lines_of(pattern, text):
    for match in re.finditer(pattern, text, re.MULTILINE):
        yield text.count('\n', 0, match.start()) + 1, match


def file_length(source):
    if source.kind not in CPP + SCRIPT:
        return
    count = source.text.count('\n')
    if count > MAX_FILE_LINES:
        yield MAX_FILE_LINES + 1, f'{count} lines, at most {MAX_FILE_LINES}', \
            'split it by what its parts are for'


def function_length(source):
    if source.kind not in CPP:
        return
    for function in functions(source.code):
        if function.lines > MAX_FUNCTION_LINES:
            yield function.first_line, \
                f'{function.name} has {function.lines} lines, at most {MAX_FUNCTION_LINES}', \
                'move its pure parts into functions with names of their own'


def line_length(source):
    if source.kind not in CPP + SCRIPT:
        return
    for number, line in enumerate(source.text.split('\n'), 1):
        if len(line) > MAX_COLUMNS and 'http' not in line and '#include' not in line:
            yield number, f'{len(line)} columns, at most {MAX_COLUMNS}', 'break the line'


def pragma_once(source):
    if source.kind == '.h' and not re.search(r'^#pragma once$', source.text, re.MULTILINE):
        yield 1, 'a header without #pragma once', 'add #pragma once under the opening comment'


def real_clock(source):
    if source.kind not in CPP or source.module not in BELOW_THE_DRIVERS:
        return
    if source.path.endswith('_bench.cc'):
        return
    clocks = (r'\b(?:steady_clock|system_clock|high_resolution_clock|clock_gettime|gettimeofday|'
              r'sleep_for|sleep_until|usleep|nanosleep)\b'
              r'|\bnow\s*\(\s*\)|\btime\s*\(\s*(?:nullptr|NULL|0)\s*\)')
    for line, match in _lines_of(clocks, source.code):
        yield line, f'{match.group(0)} below the drivers', \
            'take the instant as a parameter: only src/runtime and above read a clock'


def forbidden_words(source):
    if source.kind not in CPP:
        return
    code = re.sub(r'\b(?:google|protobuf|boost|grpc)(?:::\w+)*::(?:util|impl)\b|\bNVML_\w+',
                  lambda m: ' ' * len(m.group(0)), source.code)
    code = re.sub(r'^\s*#\s*include.*$', '', code, flags=re.MULTILINE)
    seen = set()
    for line, match in _lines_of(r'\b[A-Za-z_]\w*', code):
        parts = re.findall(r'[A-Z]?[a-z]+|[A-Z]+(?![a-z])', match.group(0))
        word = next((p for p in parts if p.lower() in EMPTY_WORDS), None)
        if word and (line, match.group(0)) not in seen:
            seen.add((line, match.group(0)))
            yield line, f'"{word}" in {match.group(0)} says nothing', \
                'name it after what it does or holds in the domain'
    stem = source.path.rsplit('/', 1)[-1].rsplit('.', 1)[0]
    for word in stem.split('_'):
        if word in EMPTY_WORDS:
            yield 1, f'"{word}" in the file name says nothing', 'name the file after its main type'


EMPTY_WORDS = {'manager', 'managers', 'helper', 'helpers', 'util', 'utils', 'utility', 'impl'}


def forbidden_constructs(source):
    if source.kind not in CPP:
        return
    for line, _ in _lines_of(r'\bstd::rand\b|\bsrand\s*\(|\brandom_device\b', source.code):
        yield line, 'a random number that no seed decides', 'draw it from base/rng.h, Rng::Stream'
    for line, _ in _lines_of(r'\busing\s+namespace\s+std\s*;', source.code):
        yield line, 'using namespace std', 'name what is used'
    if source.kind == '.h':
        for line, match in _lines_of(r'\busing\s+namespace\s+[\w:]+', source.code):
            if 'std;' not in match.group(0) and not match.group(0).endswith(' std'):
                yield line, 'using namespace in a header', 'name what is used'


def unit_in_name(source):
    if source.kind not in CPP or source.path.startswith(NAMES_WITH_UNITS):
        return
    if source.path.rsplit('/', 1)[-1].endswith(('_test.cc', '_bench.cc', '_for_test.h')):
        return
    # A call (`x.timeout_ms()`) reads a protobuf field, whose name is the protocol's.
    for line, match in _lines_of(r'\b[A-Za-z]\w*_ms\b(?!\s*\(\s*\))', source.code):
        start = match.start()
        if source.code[max(0, start - 1):start] in ('.', '>'):
            continue  # a use; the declaration is what is reported
        if match.group(0) in PROTOCOL_NAMES:
            continue
        yield line, f'{match.group(0)} has its unit in the name', \
            'make it a Duration (base/serving_time.h) and drop _ms'


def unfinished(source):
    for line, match in _lines_of(r'\b(?:TODO|FIXME|XXX|HACK)\b', source.text):
        yield line, f'{match.group(0)}: unfinished', 'finish it, or open an issue and drop the mark'


def shared_folder(source):
    if not source.path.endswith('_test.cc'):
        return
    for line, match in _lines_of(r'\bTempDir\(|\btemp_directory_path\(', source.code):
        yield line, f'{match.group(0)}) is where every test writes', \
            'a TemporaryFolder of the test, base/temporary_folder_test.h'


def outside_paths(source):
    pattern = r'(?<![\w./}$~:-])/(?:home|Users|root|work|mnt)/[\w.]'
    for line, match in _lines_of(pattern, source.text):
        yield line, 'a path of one machine', 'make it relative to the repository, or an argument'


def fetches_by_address(source):
    if source.kind not in SCRIPT + BUILD:
        return
    for line, match in _lines_of(r'\b(?:https?|ftp)://([\w.-]+)', source.text):
        host = match.group(1)
        if host in ('localhost', '127.0.0.1') or source.text[match.end(1):match.end(1) + 1] in '{$':
            continue
        yield line, f'the address of {host}', \
            'name the package and let apt, npm or pip ask the registry they are set up with'


# Words that had two meanings, or none that a reader would search for, and the word instead. Where the
# command line tells of a word's new name, `Renamed(` or RENAMED stands on the line.
RETIRED = {
    r'DispatchLoop|dispatch_loop': 'DispatchTurns',
    r'ReplyThread|reply_thread': 'ReplyQueue',
    r'AskPlanner': 'CurrentPlanQuestion',
    r'CorePlan|core_plan': 'CpuAffinity',
    r'[Bb]atons?': 'flat combining (FlatCombiner)',
    r'CallSlot': 'PendingCall',
    r'Deployment(?! file|;)|\bdeployments?_?\b': 'served models (ServedModels)',
    r'[Uu]nluck(?:y|ier|iest)': 'tail slowdown',
    r'ExcessTail|excess_tail': 'TailSlowdown',
    r'use_of|UseOf': 'utilization_base',
    r'[Hh]opeless|[Dd]oomed': 'unmeetable',
    r'_fps\b': 'pipeline requests per second are _rps too',
    r'[Rr]eorgani[sz](?:e|es|er|ed|ation)': 'plan transition',
    # Of a load: a call carries tensors, and the simulator carries decisions out.
    r'\b(?:polic(?:y|ies)|plans?|lanes?|slots?|devices?|machine|depth|batches)'
    r'(?: can| could| would| still)? carr(?:y|ies|ied)\b(?! out)'
    r'|\b[Cc]arr(?:y|ies|ied) [^.;\n]{0,30}\b(?:loads?\b|rates?\b|r/s|'
    r'(?:requests?|frames?)(?:/s| (?:a|per) second))|AddColumn\("carries"': 'sustains',
    r'\b(?:late|expired) or (?:lost|dropped|unanswered)\b|\b(?:bad|lost) %|% (?:bad|lost)\b'
    r'|\bbad (?:ratios?|requests)\b': 'violations, violation ratio (docs/reference/deadlines.md)',
    r'HowPlannedOtherwise|WhyNeverSplit|WhatEachLacks|SayWhatIsNeverServed|DoubtOfCores':
        'a verb and a noun (ExplainPlanMismatch, DescribeShortage)',
}
# Kubernetes has a Deployment, Ray Serve another, and papers have titles.
RETIRED_ELSEWHERE = ('docs/reference/autoscale.md', 'docs/guide/deploy.md',
                     'docs/research/papers/', 'tests/deploy/', 'tools/deploy/', 'tools/tidy/',
                     'src/server/proto/', 'bench/peer_servers/serve_ray.py', 'THIRD_PARTY.md')


def retired_words(source):
    if source.kind not in CPP + ('.md', '.py', '.toml', '.sh', ''):
        return
    if source.path.startswith(RETIRED_ELSEWHERE):
        return
    lines = source.text.split('\n')
    for word, instead in RETIRED.items():
        for line, match in _lines_of(word, source.text):
            # A random stream keeps its name: another one would draw other numbers.
            if any(mark in lines[line - 1] for mark in ('Renamed(', 'RENAMED', 'Rng::Stream(')):
                continue
            yield line, f'"{match.group(0)}" is a retired word', f'say {instead}'


RULES = (file_length, function_length, line_length, pragma_once, real_clock, forbidden_words,
         forbidden_constructs, unit_in_name, unfinished, shared_folder, outside_paths,
         fetches_by_address, retired_words)


class Source:
    """One text file of the tree."""

    def __init__(self, path, text):
        self.path = path  # from the root, with /
        self.text = text
        name = path.rsplit('/', 1)[-1]
        self.kind = name if name == 'CMakeLists.txt' else '.' + name.rsplit('.', 1)[1] \
            if '.' in name.lstrip('.') else ''
        if self.kind == '' and not text.startswith('#!'):
            self.kind = 'data'  # a seed of a fuzz target, say
        parts = path.split('/')
        self.module = parts[1] if parts[0] == 'src' and len(parts) > 2 else None
        self.code = without_comments_and_literals(text) if self.kind in CPP else text
