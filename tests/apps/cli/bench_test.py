#!/usr/bin/env python3
"""`tutti bench`."""
import json
import sys

from programs import Programs, main


class BenchMethods(Programs):
    MACHINE = "configs/machines/inspection-example.yaml"
    PLANNERS = ["completion_aligned", "all_at_once", "bandwidth_allocation", "time_division", "gate_search"]

    def methods(self, *words):
        return self.tutti("bench", "methods", "--machine", self.MACHINE, "--backend", "sim", *words)

    def test_the_published_example_has_its_figures(self):
        # A thousandth of the published sizes: 44.8, 76.8 and 56.533 us; all at once 52.8 us.
        answer = json.loads(self.methods("--size", "320kB", "--only", "example", "--json").stdout)
        self.assertEqual((answer["methods"], answer["holds"], answer["worst"]), (self.PLANNERS, True, "example"))
        rows = answer["workloads"][0]["methods"]
        for row, microseconds in zip(rows, (44.8, 52.8, 76.8, 56.533)):
            self.assertAlmostEqual(1000 * row["median_ms"], microseconds, delta=0.005)
            self.assertEqual(len(row["runs_ms"]), 15)
        self.assertAlmostEqual(rows[1]["gain_percent"], 100 * (1 - 44.8 / 52.8), delta=0.02)

    def test_every_workload_has_a_row(self):
        run = self.methods("--size", "320kB", "--repeats", 1, "--tolerance", 40)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("note: memcpy_batch is left out: ", run.stderr)
        rows = [line.split()[0] for line in run.stdout.split("\n") if line]
        for name in ("example", "wafer", "domain", "random-1", "random-20"):
            self.assertEqual(rows.count(name), 2, run.stdout)
        self.assertIn("random: median of 20 ", run.stdout)
        self.assertRegex(run.stdout.split("\n")[-2], "^at worst, on .*, completion_aligned is .* (faster|slower) than ")

    def test_a_method_that_is_faster_ends_with_1(self):
        # On a machine whose rates do not vary aligned streams start as late as they can, and leave free what others could
        # have used before: 24.816 ms in place of 19.155.
        slower = ("--size", "64MiB", "--repeats", 1, "--only", "random-1", "--seed", 3)
        run = self.methods(*slower)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("completion_aligned is 29.6 % slower than all_at_once; --tolerance is 2 %", run.stderr)
        self.assertEqual(self.methods(*slower, "--tolerance", 30).returncode, 0)

    def test_mistakes_end_with_2(self):
        for words, sentence in ((["--size", "3 B"], "--size: 3 B is no size of an image; give one from 512 B to 1024 GiB"),
                                (["--size", "large"], "--size: 'large'"), (["--repeats", "0"], ""), (["--tolerance", "-1"], ""),
                                (["--only", "rando"], "--only: there is no workload 'rando'; did you mean 'random'?"),
                                (["--only", "random-21"], "--only: there is no workload 'random-21'"), (["--seed", "x"], "")):
            with self.subTest(words=words):
                self.refuses(self.methods(*words), sentence)
        self.refuses(self.tutti("bench"))
        self.refuses(self.tutti("bench", "methods"))
        self.refuses(self.tutti("bench", "methods", "--machine", "/no/such/file"))


if __name__ == "__main__":
    sys.exit(main())
