"""What a trace says about the program that it was taken of: the command `tutti learn`."""
from __future__ import annotations

import json
import os
import shutil
import subprocess

from ._interface import Error


def program() -> str:
    """The program `tutti`: that in TUTTI_PROGRAM, or the first on the PATH."""
    found = os.environ.get("TUTTI_PROGRAM") or shutil.which("tutti")
    if not found:
        raise Error("the program 'tutti' is not there, and traces are its work; install it, or name it in TUTTI_PROGRAM")
    return found


def report_of(trace: str | os.PathLike, out: str | os.PathLike, scale: float | None, gpus: int | None,
              machine: str | os.PathLike | None) -> dict:
    """What the command prints with --json. Warnings of a trace that is cut off are in its notes."""
    words = [program(), "learn", os.fspath(trace), "--out", os.fspath(out), "--json", "--quiet"]
    for name, value in (("--scale", scale), ("--gpus", gpus), ("--machine", machine)):
        if value is not None:
            words += [name, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    run = subprocess.run(words, check=False, capture_output=True, text=True)
    if not run.stdout:
        raise Error(run.stderr.strip().removeprefix("error: ") or f"'tutti learn' ended with exit code {run.returncode}", run.returncode)
    return json.loads(run.stdout)

