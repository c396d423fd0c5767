#!/usr/bin/env python3
"""Runs the tests of the viewer, as TAP; where node, its packages or Chromium are missing they are skipped, with the reason.

run_tests.py [TUTTI]: the program that makes the pages of journals.
"""
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VIEWER = HERE.parents[1] / "apps/viewer"


def missing():
    """Why the tests cannot run; nothing where they can."""
    if shutil.which("node") is None:
        return "there is no node; tools/packages lists it under [viewer]"
    if not (VIEWER / "node_modules/playwright-core").is_dir():
        return "apps/viewer has no node_modules; 'npm ci' there makes them"
    if not os.path.exists(os.environ.get("CHROMIUM", "/usr/bin/chromium")):
        return "there is no Chromium; tools/packages lists it under [viewer], and CHROMIUM names another one"
    return None


def main():
    if reason := missing():
        print(f"1..0 # SKIP {reason}")
        return 0
    # Measurements of frames are for `npm test`: they depend on what else the host does.
    tests = sorted(str(path) for path in HERE.glob("*_test.mjs") if path.name != "frames_test.mjs")
    environment = dict(os.environ, **({"TUTTI": sys.argv[1]} if len(sys.argv) > 1 else {}))
    return subprocess.run(["node", "--test", "--test-reporter=tap", *tests], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
