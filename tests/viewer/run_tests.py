#!/usr/bin/env python3
"""Runs the tests of the viewer, as TAP; where node, its packages or Chromium are missing, or node is too old for one of the
packages, they are skipped, with the reason.

run_tests.py [TUTTI]: the program that makes the pages of journals.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
VIEWER = HERE.parents[1] / "apps/viewer"


def missing():
    """Why the tests cannot run; nothing where they can."""
    if shutil.which("node") is None:
        return "there is no node; tools/packages lists it under [viewer]"
    playwright = VIEWER / "node_modules/playwright-core/package.json"
    if not playwright.exists():
        return "apps/viewer has no node_modules; 'npm ci' there makes them"
    wanted = int(re.search(r"\d+", json.loads(playwright.read_text(encoding="utf-8"))["engines"]["node"])[0])
    found = int(re.search(r"\d+", subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout)[0])
    if found < wanted:
        return f"node {found} is too old for playwright-core, which wants {wanted}"
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
