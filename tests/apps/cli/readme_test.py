#!/usr/bin/env python3
"""The commands of the README and of the tutorial, as they stand there; those for GPUs run to their refusal where there
is none."""
import re
import shlex
import subprocess
import sys
import textwrap
import unittest

from programs import H200X4, ROOT, Programs, main


class Documents(Programs):
    """Runs commands in a folder that looks like a fresh clone."""

    def setUp(self):
        super().setUp()
        for name in ("configs", "tests"):
            (self.folder / name).symlink_to(ROOT / name)

    def run_line(self, line):
        program, *words = shlex.split(line, comments=True)
        path = "tutti/tutti" if program == "$t" else program.removeprefix("build/apps/")
        return subprocess.run([str(self.built / path), *words], capture_output=True, text=True, cwd=self.folder, timeout=120,
                              check=False)


class Readme(Documents):
    # Exit codes other than 0: another host than the one that was calibrated, a set that is refused, its run that misses.
    CODES = {"calibrate --check": 4, "alarm-behind-image": 1}

    def code_of(self, line):
        return next((code for words, code in self.CODES.items() if words in line), 0)

    def commands(self, heading):
        section = (ROOT / "README.md").read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
        lines = [line.strip() for line in section.split("\n") if re.match(r"    (\$t|build/apps/\S+) ", line)]
        self.assertGreater(len(lines), 4)
        return lines

    def test_what_a_station_is_asked_has_answers(self):
        for line in self.commands("Your own station"):
            with self.subTest(line):
                run = self.run_line(line)
                self.assertEqual(run.returncode, self.code_of(line), run.stderr)
                self.assertNotEqual(run.stdout + run.stderr, "")

    def test_what_is_for_gpus_runs_or_says_that_there_are_none(self):
        for name in ("detected.yaml", "machine.yaml"):
            (self.folder / name).write_text((ROOT / H200X4).read_text(encoding="utf-8"), encoding="utf-8")
        for line in self.commands("Your own GPUs"):
            if line.startswith("$t run ") or "/wafer_inspection/" in line:
                line += " --jobs 10" if "--for" not in line else ""
            with self.subTest(line):
                run = self.run_line(line)
                needs_gpus = "--plan" not in line and "tests/golden" not in line
                self.assertIn(run.returncode, (0, 3) if needs_gpus else (self.code_of(line),), run.stderr)
                if run.returncode == 3:
                    self.assertEqual(run.stderr.count("\n"), 1, run.stderr)

    def test_the_shipped_counter_example_is_what_check_writes(self):
        tasks, written = "configs/tasks/alarm-behind-image.yaml", self.folder / "misses.yaml"
        self.assertEqual(self.tutti("check", tasks, "--counter-example", written).returncode, 1)
        shipped = (ROOT / "configs/scenarios/alarm-behind-image.yaml").read_text(encoding="utf-8")
        self.assertEqual(shipped.split("\n", 2)[2], written.read_text(encoding="utf-8"))  # two comments in front


class Tutorial(Documents):
    """Blocks of the tutorial: a file, named in its first line, or commands with lines of their output below each."""

    def blocks(self):
        text = (ROOT / "configs/README.md").read_text(encoding="utf-8")
        section = text.split("\n## From an empty file to a checked station\n")[1].split("\n## ")[0]
        return [textwrap.dedent(block) for block in re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)]

    def runs(self, line):
        """Runs a command of the tutorial. Returns the lines that it prints."""
        code = int((re.findall(r"# exit code (\d)", line) or [0])[0])
        if line.startswith("$ "):
            run = subprocess.run(line[2:], shell=True, capture_output=True, text=True, cwd=self.folder, check=False)
        else:
            run = self.run_line(line)
        self.assertIn(run.returncode, (0, 3) if "without a GPU" in line else (code,), run.stdout + run.stderr)
        return [printed.strip() for printed in run.stdout.split("\n")]

    def test_every_step_does_what_the_text_says(self):
        files, commands = [], 0
        for block in self.blocks():
            name = re.match(r"# (\S+\.yaml): ", block)
            if name:
                files.append(name[1])
                # Without GPUs nothing is measured, and the guessed machine stands for the measured one.
                for written in [name[1]] + ["detected.yaml", "machine.yaml"] * (name[1] == "station.yaml"):
                    self.file(block, written)
                continue
            printed = []
            for line in block.splitlines():
                with self.subTest(line):
                    if line.startswith("$"):
                        printed = self.runs(line)
                        commands += 1
                    elif not line.startswith("t="):
                        self.assertIn(line.strip(), printed)
                        printed = printed[printed.index(line.strip()) + 1:]
        self.assertEqual(files, ["station.yaml", "batch.yaml", "tasks.yaml"])
        self.assertGreater(commands, 14)


class Glossary(unittest.TestCase):
    def test_its_sources_are_listed(self):
        keys = set(re.findall(r"^\| ([A-Z]\w+) \|", (ROOT / "model/REFERENCES.md").read_text(encoding="utf-8"), re.MULTILINE))
        self.assertIn("LL73", keys)
        rows = re.findall(r"^\| (.+) \| (.+) \| (.*)\|$", (ROOT / "model/GLOSSARY.md").read_text(encoding="utf-8"), re.MULTILINE)
        sources = {key for _, _, cell in rows for key in cell.strip().split(", ") if key and key not in ("source", "---")}
        self.assertIn("LL73", sources)
        self.assertLessEqual(sources, keys)


if __name__ == "__main__":
    sys.exit(main())
