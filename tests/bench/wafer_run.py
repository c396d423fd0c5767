#!/usr/bin/env python3
"""10,000 wafer inspections of 256 x 256 pixels on the virtual clock: their report, the time and the memory they take.

Usage: wafer_run.py BUILD_FOLDER
"""
import os
import statistics
import sys
import time

RUNS = 5


def run(program):
    """One run in a process of its own: wall-clock seconds, largest resident set in MB, and its report."""
    reading, writing = os.pipe()
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        os.execv(program, [program, "--size", "256", "--jobs", "10000"])
    os.close(writing)
    with os.fdopen(reading) as output:
        report = output.read()
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{program} failed:\n{report}")
    return time.monotonic() - started, usage.ru_maxrss / 1e3, report


def main():
    seconds, megabytes, reports = zip(*(run(f"{sys.argv[1]}/apps/wafer_inspection/wafer_inspection")
                                        for _ in range(RUNS)))
    print(reports[0])
    print("| 10,000 jobs of 256 x 256 | median s | shortest | longest | most memory, MB |\n|---|---|---|---|---|")
    print(f"| {RUNS} runs | {statistics.median(seconds):.2f} | {min(seconds):.2f} | {max(seconds):.2f} "
          f"| {max(megabytes):.0f} |")


if __name__ == "__main__":
    main()
