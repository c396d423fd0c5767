#!/usr/bin/env python3
"""A million events of a trace: time and memory of `tutti run --trace`, and of a trace and a page made of its journal.

Usage: trace_run.py BUILD_FOLDER
"""
import os
import pathlib
import statistics
import sys
import tempfile
import time

RUNS = 5
JOBS = 16000  # 64 events each: slices measured and predicted, flows, loads of links, instants


def run(*words):
    """One run in a process of its own: wall-clock seconds, largest resident set in MB."""
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(words[0], [str(word) for word in words])
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{words} failed")
    return time.monotonic() - started, usage.ru_maxrss / 1e3


def main():
    tutti = f"{sys.argv[1]}/apps/tutti/tutti"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        journal, trace, packed, page = (folder / each for each in ("j", "t.json", "t.json.gz", "p.html"))
        task_set = [tutti, "run", "configs/tasks/wafer-inspection.yaml", "--set", "image=40kB", "--jobs", JOBS]
        rows = (
            ("run --journal", [*task_set, "--journal", journal]),
            ("view JOURNAL --trace t.json", [tutti, "view", journal, "--trace", trace]),
            ("view JOURNAL --trace t.json.gz", [tutti, "view", journal, "--trace", packed]),
            ("run --trace t.json.gz", [*task_set, "--trace", packed]),
            ("view JOURNAL --html", [tutti, "view", journal, "--html", page]),
            ("view t.json.gz --html", [tutti, "view", packed, "--html", page]),
        )
        measured = [(what, *zip(*(run(*words) for _ in range(RUNS)))) for what, words in rows]
        events = sum(line.startswith('{"ph"') for line in trace.open(encoding="utf-8"))
        print(f"{JOBS} jobs, {events} events, {trace.stat().st_size / 1e6:.0f} MB, {packed.stat().st_size / 1e6:.1f} MB compressed; "
              f"journal {journal.stat().st_size / 1e6:.2f} MB, page {page.stat().st_size / 1e6:.2f} MB\n")
    print("| command | median s | longest s | most memory, MB |\n|---|---|---|---|")
    for what, seconds, megabytes in measured:
        print(f"| `{what}` | {statistics.median(seconds):.2f} | {max(seconds):.2f} | {max(megabytes):.0f} |")


if __name__ == "__main__":
    main()
