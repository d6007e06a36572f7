"""What documents say of other files: no relative link is dead, down to the heading that it names,
and no result lies there unnamed."""
import posixpath
import re

RESULTS = 'docs/results/'

_FENCE = re.compile(r'^(```|~~~).*?^\1[^\n]*$', re.DOTALL | re.MULTILINE)
_CODE = re.compile(r'^(```|~~~).*?^\1[^\n]*$|`[^`\n]*`', re.DOTALL | re.MULTILINE)
_LINK = re.compile(r'\]\(\s*<?([^)\s>]+)')
_REFERENCE = re.compile(r'^\s{0,3}\[[^\]]+\]:\s*<?([^\s>]+)', re.MULTILINE)
_ELSEWHERE = re.compile(r'[a-z][a-z0-9+.-]*:', re.IGNORECASE)
_HEADING = re.compile(r'^#{1,6} +(.+?)[ #]*$', re.MULTILINE)


def anchors(text):
    """What may follow # in a link to a document: its headings, as browsers of Markdown name them."""
    seen = {}
    for heading in _HEADING.findall(_FENCE.sub('', text)):
        words = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading)
        name = re.sub(r'[^\w\- ]', '', words).strip().lower().replace(' ', '-')
        count = seen.get(name, -1) + 1
        seen[name] = count
        yield f'{name}-{count}' if count else name


def relative_links(path, text):
    """(line, the link, the path that it leads to) for each relative link of a document."""
    code_blanked = _CODE.sub(lambda code: re.sub(r'[^\n]', ' ', code.group(0)), text)
    for pattern in (_LINK, _REFERENCE):
        for match in pattern.finditer(code_blanked):
            link = match.group(1)
            if _ELSEWHERE.match(link):
                continue
            target = posixpath.join(posixpath.dirname(path), link.split('#')[0])
            if link.startswith('#'):
                target = path
            yield (code_blanked.count('\n', 0, match.start(1)) + 1, link,
                   posixpath.normpath(target))


def violations(documents, files):
    """Of `documents` (path -> text of each *.md) among `files`: (path, line, message, remedy)."""
    places = set(files)
    for file in files:
        while file := posixpath.dirname(file):
            places.add(file)
    named = set()
    headings = {path: set(anchors(text)) for path, text in documents.items()}
    for path, text in documents.items():
        for line, link, target in relative_links(path, text):
            named.add(target)
            if target not in places and target != '.':
                yield path, line, f'{link} leads to no file of the tree', \
                    'link what is there, or name the command that makes it'
            anchor = link.partition('#')[2]
            if anchor and target in headings and anchor not in headings[target]:
                yield path, line, f'{link} leads to no heading of {target}', \
                    'name a heading that is there'
    for file in sorted(files):
        if file.startswith(RESULTS) and file not in named:
            yield file, 1, 'a result that no document links', \
                'link it where its figures are told, or remove it'
