"""No file lies in the tree unnamed: each document, picture, scenario, figure, benchmark and tool is
named by another file, so that a reader who meets it can find out what it is for."""
import posixpath
import re

FOLDERS = ('docs/', 'scenarios/', 'figures/', 'bench/', 'tools/')
# CMake finds sources by their endings.
FOUND_BY_ENDING = ('.cc', '.h')
KNOWN_BY_THEMSELVES = {'CMakeLists.txt', 'README.md', '.gitkeep'}

_WORD = re.compile(r'[\w.-]+')
_IMPORT = re.compile(r'^\s*(?:import|from) +([\w, ]+)', re.MULTILINE)
_FIGURES = re.compile(r'^figures = \[(.*?)\]', re.MULTILINE | re.DOTALL)


def _figures(texts):
    """The files of the figures that the paper.toml beside them lists."""
    for path, text in texts.items():
        listed = _FIGURES.search(text)
        if path.startswith('figures/') and path.endswith('/paper.toml') and listed:
            for figure in re.findall(r'"([^"]+)"', listed.group(1)):
                number = re.match(r'\d*', figure).group(0)
                names = {figure, f'fig{figure}', f'fig{number.zfill(2)}{figure[len(number):]}'}
                yield from (f'{posixpath.dirname(path)}/{name}.toml' for name in names)


def violations(texts, files):
    """Of `texts` (path -> text of each text file) among `files`: (path, line, message, remedy)."""
    namers = {}  # word -> the files that have it
    imported = set()
    for path, text in texts.items():
        for word in set(_WORD.findall(text)):
            namers.setdefault(word.strip('.'), set()).add(path)
        if path.endswith('.py') or text.startswith('#!'):
            for names in _IMPORT.findall(text):
                imported.update(_WORD.findall(names))
    figures = set(_figures(texts))
    for path in sorted(files):
        name = posixpath.basename(path)
        if not path.startswith(FOLDERS) or name in KNOWN_BY_THEMSELVES or \
                name.endswith(FOUND_BY_ENDING) or path in figures:
            continue
        stem, ending = posixpath.splitext(name)
        named = namers.get(name, set()) - {path}
        if ending == '.py':
            named = named or stem in imported
        elif ending == '.toml':  # a figure names its scenario without the ending
            named = named or namers.get(stem, set()) - {path}
        if not named:
            yield path, 1, 'a file that no other file names', \
                'say in a document what it is for, or remove it'
