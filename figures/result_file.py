"""A CSV file of results that a killed command takes up again: what is in it is not run twice.

Its first line says what the results depend on; a file with another first line begins anew.
"""
import csv


class ResultFile:
    def __init__(self, path, origin, header, fresh):
        """`origin` is one line. A last line that was cut off while it was written is dropped."""
        head = f"# {origin}\n{','.join(header)}\n"
        text = ''
        if path.exists():
            text = path.read_text(encoding='utf-8')
            text = text[:text.rfind('\n') + 1]
        lines = text[len(head):].splitlines() if text.startswith(head) and not fresh else []
        self.found = [cells for cells in csv.reader(lines) if len(cells) == len(header)]
        self._out = open(path, 'w', encoding='utf-8')
        self._out.write(head)
        self.append(self.found)

    def append(self, rows):
        """The rows reach the file together."""
        for cells in rows:
            assert not any(',' in cell or '\n' in cell for cell in cells), cells
        self._out.write(''.join(','.join(cells) + '\n' for cells in rows))
        self._out.flush()

    def close(self):
        self._out.close()
