#!/usr/bin/env python3
"""How often commands enter the YAML parser: once a file, however much they search."""
import os
import sys

from programs import WAFER, Programs, main, preloaded

REFUSED = "configs/tasks/alarm-behind-image.yaml"


class Parsing(Programs):
    def documents_of(self, code, *words):
        path = self.folder / "documents"
        environment = preloaded(os.environ["TUTTI_COUNT_DOCUMENTS"], TUTTI_DOCUMENTS=str(path))
        run = self.run_program("tutti/tutti", *words, env=environment)
        self.assertEqual(run.returncode, code, run.stderr)
        return int(path.read_text(encoding="utf-8"))

    def test_a_check_reads_each_file_once(self):
        self.assertEqual(self.documents_of(0, "check", WAFER), 2)  # the tasks and their machine
        self.assertEqual(self.documents_of(1, "check", REFUSED), 2)
        misses = self.folder / "misses.yaml"
        self.assertEqual(self.documents_of(1, "check", REFUSED, "--counter-example", misses), 2)

    def test_searches_read_each_file_once(self):
        self.assertEqual(self.documents_of(0, "capacity", WAFER, "--parameter", "image"), 2)
        self.assertEqual(self.documents_of(0, "capacity", REFUSED, "--task", "alarm", "--of", "deadline"), 2)

    def test_a_replay_reads_its_scenario_too(self):
        misses = self.folder / "misses.yaml"
        self.documents_of(1, "check", REFUSED, "--counter-example", misses)
        self.assertEqual(self.documents_of(1, "run", REFUSED, "--scenario", misses), 3)


if __name__ == "__main__":
    sys.exit(main())
