"""What a demo or a benchmark holds against a bar, and how it is printed."""


def check(what, value, bar, ok):
    return {'what': what, 'value': value, 'bar': bar, 'ok': bool(ok)}


def checks_text(checks):
    """A line for each check, the failed ones marked."""
    return '\n'.join(f"  {'ok  ' if c['ok'] else 'FAIL'} {c['what']}: {c['value']:.4g} "
                     f"(wanted {c['bar']})" for c in checks)


def all_hold(checks):
    return all(c['ok'] for c in checks)
