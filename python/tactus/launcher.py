"""The command `tactus` of an installed wheel: becomes the program that lies in bin/.

There is no process in between, so signals, exit codes and standard input are the program's.
"""
import importlib.util
import os
import pathlib
import signal
import sys


def onnx_runtime():
    """The library of the package onnxruntime (or onnxruntime-gpu), which is not imported."""
    found = importlib.util.find_spec("onnxruntime")
    for folder in found.submodule_search_locations or () if found else ():
        for library in sorted(pathlib.Path(folder, "capi").glob("libonnxruntime.so.*")):
            return library
    return None


def main():
    program = pathlib.Path(__file__).with_name("bin") / "tactus"
    library = None if os.environ.get("ONNXRUNTIME_ROOT") else onnx_runtime()
    if library:
        os.environ["ONNXRUNTIME_ROOT"] = str(library)
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):  # and so by what it becomes
        signal.signal(ignored_by_python, signal.SIG_DFL)
    os.execv(program, [sys.argv[0], *sys.argv[1:]])
