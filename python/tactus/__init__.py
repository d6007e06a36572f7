"""A client of Tactus and of other KServe v2 servers: tactus.Client (docs/guide/python.md).

Nothing is imported before it is used, since the command `tactus` starts here too.
"""


def __getattr__(name):
    if name in ("Client", "Answer", "Error", "Expired", "Refused"):
        from tactus import client
        return getattr(client, name)
    raise AttributeError(f"module 'tactus' has no attribute {name!r}")
