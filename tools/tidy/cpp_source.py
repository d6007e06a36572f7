"""Just enough C++ reading for the style rules: code without comments and literals, and functions."""
import re
from typing import NamedTuple

_TOKEN = re.compile(
    r'//[^\n]*'                                  # a line comment
    r'|/\*.*?\*/'                                # a block comment
    r'|R"(?P<tag>[^ ()\\\t\n]{0,16})\(.*?\)(?P=tag)"'  # a raw string
    r'|"(?:[^"\\\n]|\\.)*"'                      # a string
    r"|(?<![0-9A-Za-z_])'(?:[^'\\\n]|\\.)+'",    # a character, not a digit separator
    re.DOTALL)


def without_comments_and_literals(text):
    """The same text, every comment and literal blanked; lines and columns stay where they were."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group(0))
    return _TOKEN.sub(blank, text)


class Function(NamedTuple):
    name: str
    first_line: int
    last_line: int

    @property
    def lines(self):
        return self.last_line - self.first_line + 1


_NOT_A_FUNCTION = re.compile(r'\b(namespace|class|struct|union|enum|concept)\b[^()]*$')
# `A(int x) : x_` before `{x}`: a member's initialiser, not the constructor's body.
_MEMBER_INITIALISER = re.compile(r'\)[^;{}]*[^:]:[^:].*\w$', re.DOTALL)
_NAME = re.compile(r'([~\w:]+|operator\s*[^\s(]+)\s*\(')


def _is_function_head(head):
    """Whether what stands before a brace, since the last statement, opens a function's body."""
    head = head.strip()
    if '(' not in head or _NOT_A_FUNCTION.search(head):
        return False
    # `auto table = Make({` and `int a[] = f(x){` are initialisers.
    before_parameters = head.split('(', 1)[0]
    return not re.search(r'[^=<>!]=[^=]?\s*\w*$', before_parameters)


_LEADING = re.compile(r'(?:\s|(?:public|protected|private)\s*:)*')


def _head_line(code, start):
    """The line where the head begins, behind blank lines and `public:`."""
    return code.count('\n', 0, _LEADING.match(code, start).end()) + 1


def functions(code):
    """Every outermost function of `code`, which without_comments_and_literals has cleaned."""
    code = re.sub(r'^[ \t]*#.*(?:\\\n.*)*$', lambda m: re.sub(r'[^\n]', ' ', m.group(0)), code,
                  flags=re.MULTILINE)
    found = []
    depth = 0             # of braces
    body_depth = None     # the depth at which the present function's body opened
    head_start = 0
    current = None
    initialiser_depth = None
    for match in re.finditer(r'[{};]', code):
        at, mark = match.start(), match.group(0)
        if mark == '{':
            if body_depth is None and initialiser_depth is None:
                head = code[head_start:at]
                if _MEMBER_INITIALISER.search(head):
                    initialiser_depth = depth
                elif _is_function_head(head):
                    name = _NAME.search(head)
                    current = (name.group(1) if name else '?', _head_line(code, head_start))
                    body_depth = depth
            depth += 1
        elif mark == '}':
            depth -= 1
            if initialiser_depth is not None and depth == initialiser_depth:
                initialiser_depth = None
                continue  # the head goes on
            if body_depth is not None and depth == body_depth:
                found.append(Function(current[0], current[1], code.count('\n', 0, at) + 1))
                body_depth = None
        if body_depth is None and initialiser_depth is None:
            head_start = at + 1
    return found
