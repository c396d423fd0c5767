"""What the checks in this folder share: the files of the tree, their #include lines, and how a check ends."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple

sys.dont_write_bytecode = True

CPP = (".hpp", ".cpp", ".cu", ".cuh", ".h")
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>|(.*))')


class Include(NamedTuple):
    file: str  # from the root, with slashes
    line: int
    header: str
    quoted: bool

    @property
    def place(self):
        return f"{self.file}:{self.line}"


def root_from_command_line(description):
    """The tree to look at: the one this tool stands in, or another (the tests plant violations in one)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="root of the tree to check (default: this one)")
    return parser.parse_args().root.resolve()


def files(root, suffixes=("",)):
    """Every file with one of these suffixes that git tracks, or would: sorted, from the root, without build folders."""
    listed = None
    if (root / ".git").exists():
        try:
            command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
            git = subprocess.run(command, capture_output=True)
            listed = git.stdout.decode().split("\0") if git.returncode == 0 else None
        except FileNotFoundError:
            pass
    if listed is None:  # a copy of the sources, or no git on this machine
        listed = []
        for folder, below, names in os.walk(root):
            below[:] = [name for name in below if name not in (".git", "__pycache__")
                        and not (pathlib.Path(folder, name) / "meson-private").exists()]
            listed += [pathlib.Path(folder, name).relative_to(root).as_posix() for name in names]
    return sorted(name for name in set(listed) if name.endswith(suffixes) and (root / name).is_file())


def includes(root):
    """Every #include line of the C++ and CUDA sources."""
    for file in files(root, CPP):
        for number, line in enumerate((root / file).read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                quoted, system, other = match.groups()
                yield Include(file, number, quoted or system or other, system is None)


def finish(name, violations, looked_at):
    """Prints the violations, then one line that sums up; returns the exit code."""
    for violation in violations:
        print(violation)
    print(f"{name}: not in order, see above" if violations else f"{name}: {looked_at}, all in order")
    return 1 if violations else 0
