"""A hook of mkdocs: pages link files of the tree that are not in docs/ and so not in the site.
There such a link becomes its text and the path. tools/tidy/links.py checks that the file exists."""
import posixpath
import re

_LINK = re.compile(r'(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(?:#[^)\s]*)?\)')
_FENCE = re.compile(r'(^```.*?^```$|`[^`\n]*`)', re.DOTALL | re.MULTILINE)
_PAGE = ('.md', '.png', '.jpg', '.svg', '.csv', '.json')


def _in_words(page):
    def words(match):
        text, link = match.group(1), match.group(2)
        if re.match(r'[a-z][a-z0-9+.-]*:', link, re.IGNORECASE):
            return match.group(0)
        path = posixpath.normpath(posixpath.join('docs', posixpath.dirname(page), link))
        if path.startswith('docs/') and path.endswith(_PAGE):
            return match.group(0)
        plain = text.strip('`')
        return f'`{path}`' if plain.endswith(posixpath.basename(path)) else f'{text} (`{path}`)'
    return words


def on_page_markdown(markdown, page, **_):
    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK.sub(_in_words(page.file.src_uri), part) for part in parts[::2]]
    return ''.join(parts)
