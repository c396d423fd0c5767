"""What the program `tutti` does and the library does not: measuring a host, reading traces."""
from __future__ import annotations

import collections.abc
import json
import os
import shutil
import subprocess

from ._interface import Error


def program() -> str:
    """The program `tutti`: that in TUTTI_PROGRAM, or the first on the PATH."""
    found = os.environ.get("TUTTI_PROGRAM") or shutil.which("tutti")
    if not found:
        raise Error("the program 'tutti' is not there, and measuring and reading traces are its work; install it, or name it in TUTTI_PROGRAM")
    return found


def report_of(*words: str | os.PathLike, options: collections.abc.Mapping[str, object]) -> dict:
    """What a command prints with --json. Options without a value are left out, True is the option alone."""
    line = [program(), *map(os.fspath, words), "--json", "--quiet"]
    for name, value in options.items():
        if value is not None and value is not False:
            line.append("--" + name)
            if value is not True:
                line.append(os.fspath(value) if isinstance(value, os.PathLike) else str(value))
    run = subprocess.run(line, check=False, capture_output=True, text=True)
    if not run.stdout:
        raise Error(run.stderr.strip().removeprefix("error: ") or f"'tutti {words[0]}' ended with exit code {run.returncode}", run.returncode)
    return json.loads(run.stdout)
