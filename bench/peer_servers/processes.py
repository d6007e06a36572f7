"""A server with all processes that it started: they can be paused, and none outlives it."""
import contextlib
import os
import pathlib
import signal

from servers import Server


def stats():
    """(pid, parent, start) of every process."""
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            yield int(path.parent.name), int(fields[1]), int(fields[19])


def family(root):
    """(pid, start) of `root` and of all that descend from it."""
    children, starts = {}, {}
    for pid, parent, start in stats():
        children.setdefault(parent, []).append(pid)
        starts[pid] = start
    found, left = [], [root]
    while left:
        pid = left.pop()
        left += children.get(pid, [])
        if pid in starts:
            found.append((pid, starts[pid]))
    return found


class Tree(Server):
    """A server on some cores, whose processes are found by their parents."""
    stop_s = 5  # some first finish what nobody waits for

    def __init__(self, *arguments, cores, **options):
        own = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)  # what it starts inherits them
        try:
            super().__init__(*arguments, **options)
        finally:
            os.sched_setaffinity(0, own)

    def signal_all(self, number):
        for pid, _ in family(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def pause(self):
        """What it does when nobody calls shall cost the other servers nothing."""
        self.signal_all(signal.SIGSTOP)

    def resume(self):
        self.signal_all(signal.SIGCONT)

    def stop(self):
        self.resume()
        members = family(self.process.pid)
        code = super().stop()
        alive = {(pid, start) for pid, _, start in stats()}
        for pid, start in members:
            if (pid, start) in alive and pid != self.process.pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return code
