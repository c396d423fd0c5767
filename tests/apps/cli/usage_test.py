#!/usr/bin/env python3
"""What all commands have in common: help, typos, exit codes."""
import re
import sys

from programs import EXAMPLE, ROOT, WAFER, Programs, main


class Usage(Programs):
    def test_help_has_an_example_everywhere(self):
        for words in ([], ["predict"], ["check"], ["compare"], ["run"], ["calibrate"], ["topology"], ["topology", "show"], ["topology", "detect"], ["bench"], ["bench", "methods"], ["bench", "copies"], ["bench", "transfers"], ["verify"], ["report"], ["capacity"], ["doctor"], ["advise"], ["tasks"], ["tasks", "expand"]):
            run = self.tutti(*words, "--help")
            self.assertEqual(run.returncode, 0)
            self.assertIn("Example", run.stdout)
        self.assertIn("Example", self.wafer("--help").stdout)

    def test_mistakes_end_with_2(self):
        for words in ([], ["predict"], ["advise"], ["predict", EXAMPLE, "more"], ["predict", EXAMPLE, "--nonsense"], ["run", WAFER, "--jobs", "-3"],
                      ["run", WAFER, "--jobs", "0"], ["run", WAFER, "--jobs", "x"], ["run", WAFER, "--seed", "-1"], ["run", WAFER, "--seed", "99999999999999999999"], ["run", WAFER, "--for", "3"],
                      ["run", WAFER, "--jobs", "3", "--for", "3s"], ["run", WAFER, "--clock", "sundial"], ["run", WAFER, "--backend", "abacus"],
                      ["check", WAFER, "--policy", "fifo"], ["check", WAFER, "--set", "image"], ["check", WAFER, "--set", "image=3"],
                      ["check", WAFER, "--set", "pixels=3 MB"], ["predict", "/no/such/file"], ["predict", str(ROOT)]):
            with self.subTest(words=words):
                self.refuses(self.tutti(*words))

    def test_options_of_gpus_are_refused_where_they_make_no_sense(self):
        for words, sentence in (
            (["--backend", "abacus"], "--backend: there is no 'abacus'; give one of sim, cuda"),
            (["--backend", "cuda", "--clock", "virtual"], "--clock: GPUs run in real time"),
            (["--bind", "gpu0=0000:06:00.0"], "--bind and --gate are for GPUs"),
            (["--gate", "host_timed"], "--bind and --gate are for GPUs"),
            (["--backend", "cuda", "--gate", "hots_timed"], "did you mean 'host_timed'?"),
            (["--backend", "cuda", "--bind", "gpu0"], "--bind: 'gpu0' is no GPU=BUSID"),
            (["--backend", "cuda", "--bind", "gpu0=0000:06:00.0", "gpu1=0000:07:00.0"], ""),
            (["--wait", "yeild"], "--wait: there is no 'yeild'"),
            (["--pinned-limit", "4 GiB"], "--pinned-limit is for GPUs"),
            (["--backend", "cuda", "--pinned-limit", "0"], "--pinned-limit: '0' is no size above 0"),
            (["--watchdog", "5"], "--watchdog: '5' is no limit; write it like 10x+2s"),
        ):
            with self.subTest(words=words):
                self.refuses(self.tutti("run", WAFER, *words), sentence)
                self.refuses(self.wafer(*words), sentence)

    def test_a_typo_is_guessed(self):
        self.refuses(self.tutti("chek", WAFER), "did you mean 'check'?")
        self.refuses(self.tutti("predict", EXAMPLE, "--planner", "completion_alined"), "did you mean 'completion_aligned'?")

    def test_the_version_is_that_of_the_project(self):
        version = re.search(r"version: '([0-9.]+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))[1]
        for run, name in ((self.tutti("--version"), "tutti"), (self.wafer("--version"), "wafer_inspection")):
            self.assertEqual((run.returncode, run.stdout, run.stderr), (0, f"{name} {version}\n", ""))

    def test_json_mode_prints_nothing_else(self):
        self.refuses(self.tutti("predict", "/no/such/file", "--json"))


if __name__ == "__main__":
    sys.exit(main())
