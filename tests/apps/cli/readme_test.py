#!/usr/bin/env python3
"""The commands of the README, as they stand there; those for GPUs run to their refusal where there is none."""
import re
import shlex
import subprocess
import sys

from programs import H200X4, ROOT, Programs, main


class Readme(Programs):
    # Exit codes other than 0: another host than the one that was calibrated, a set that is refused, its run that misses.
    CODES = {"calibrate --check": 4, "alarm-behind-image": 1}

    def code_of(self, line):
        return next((code for words, code in self.CODES.items() if words in line), 0)

    def setUp(self):
        super().setUp()
        for name in ("configs", "tests"):
            (self.folder / name).symlink_to(ROOT / name)

    def commands(self, heading):
        section = (ROOT / "README.md").read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
        lines = [line.strip() for line in section.split("\n") if re.match(r"    (\$t|build/apps/\S+) ", line)]
        self.assertGreater(len(lines), 4)
        return lines

    def run_line(self, line):
        program, *words = shlex.split(line, comments=True)
        path = "tutti/tutti" if program == "$t" else program.removeprefix("build/apps/")
        return subprocess.run([str(self.built / path), *words], capture_output=True, text=True, cwd=self.folder, timeout=120,
                              check=False)

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
        self.assertEqual(shipped.split("\n", 1)[1], written.read_text(encoding="utf-8"))


if __name__ == "__main__":
    sys.exit(main())
