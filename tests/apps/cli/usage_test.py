#!/usr/bin/env python3
"""What all commands have in common: help, typos, exit codes."""
import json
import os
import pty
import re
import sys

from programs import EXAMPLE, H200X4, MEASURED, ROOT, TWO_LINES, WAFER, Programs, main

WITHOUT_RESULTS = ("accelerate", "completion", "manual", "schema")  # standard output is that of a program, or a file


class Usage(Programs):
    def test_help_has_an_example_everywhere(self):
        for words in ([], ["predict"], ["check"], ["compare"], ["run"], ["calibrate"], ["topology"], ["topology", "show"], ["topology", "detect"], ["topology", "import"], ["bench"], ["bench", "methods"], ["bench", "copies"], ["bench", "transfers"], ["verify"], ["report"], ["capacity"], ["doctor"], ["advise"], ["tasks"], ["tasks", "expand"], ["tasks", "import"]):
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

    # Numbers that a file may hold and hardly means: the exit code stays that of the answer.
    def test_values_that_are_none_are_refused(self):
        for words in (["run", WAFER, "--journal", ""], ["run", WAFER, "--clock", ""], ["check", WAFER, "--policy", ""], ["predict", EXAMPLE, "--svg", ""], ["schema", ""]):
            with self.subTest(words=words):
                self.refuses(self.tutti(*words), "the value is empty; give one, or leave the option out")
        self.refuses(self.tutti("run", WAFER, "--for", "0"), "--for: no job arrives in no time")
        self.refuses(self.tutti("run", WAFER, "--journal", self.folder / "j", "--journal-size", "1 B"), "--journal-size: files of 1 B would be too many; give 4 KiB or more")
        self.refuses(self.tutti("check", WAFER, "--policy"), "--policy needs a value; 'tutti check --help' tells how it goes")
        self.refuses(self.tutti("run", WAFER, "--jobs", "many"), "--jobs: 'many' is no whole number from 1 to 10000000;")
        self.refuses(self.tutti("check", WAFER, "--set", "image=50%"), "'50%' is a share, and this is what shares are of; write a size like 160MB")
        # A value out of range is no command, where a program runs without one.
        self.refuses(self.wafer("--jobs", "0"), "--jobs: '0' is no whole number from 1 to")
        self.refuses(self.wafer("genrate"), "there is no command 'genrate'; did you mean 'generate'?")

    def test_doubtful_numbers_get_a_note_with_their_place(self):
        example = (ROOT / "configs/machines/inspection-example.yaml").read_text(encoding="utf-8")
        machine = self.file(example.rstrip("\n").replace("bandwidth: 32 GB/s", "bandwidth: {nominal: 32 GB/s, theoretical: 25.6 GB/s}", 1)
                            + "\n  margin: {relative: 10}\n", "doubtful.yaml")
        tasks = self.file(f"""version: 1
machine: "{machine}"
parameters: {{image: 32 MB}}
tasks:
  - name: a
    period: 2 s
    job:
      - batch:
          - {{from: mem0, to: gpu0, size: 0 MB}}
          - {{from: mem0, to: gpu1, size: 140% of image}}
""")
        run = self.tutti("check", tasks)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("doubtful.yaml:", run.stderr)
        for note in ("a margin of 10 is 1000 %, which makes each bound 11 times as long; did you mean 0.1?\n",
                     "this link moves 32 GB/s where its standard allows 25.6; one of the two is wrong, and plans use the first\n",
                     f"note: {tasks}:9:42: this transfer moves nothing; give it a size above 0, or leave it out\n",
                     f"note: {tasks}:10:42: 140% of 'image' is more than all of it; a share is at most 100%\n"):
            self.assertIn(note, run.stderr)
        self.assertNotIn("note:", self.tutti("check", tasks, "--quiet").stderr)

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

    def test_a_missing_command_is_named(self):
        self.refuses(self.tutti("topology"), "a command is missing: one of show, detect, import; 'tutti topology --help'")
        self.refuses(self.tutti("-v", "tasks"), "a command is missing: one of expand, import; 'tutti tasks --help'")
        self.refuses(self.tutti(), "a command is missing: one of ", "'tutti --help'")

    def test_a_typo_is_guessed(self):
        self.refuses(self.tutti("chek", WAFER), "did you mean 'check'?")
        self.refuses(self.tutti("predict", EXAMPLE, "--planner", "completion_alined"), "did you mean 'completion_aligned'?")

        self.refuses(self.tutti("topology", "shwo", H200X4), "there is no command 'shwo'; did you mean 'show'?", "'tutti topology --help'")
        self.refuses(self.tutti("-v", "--color", "never", "chekc", WAFER), "did you mean 'check'?")
        self.refuses(self.tutti("predict", EXAMPLE, "--planer", "x"), "there is no option '--planer'; did you mean '--planner'?", "'tutti predict --help'")
        self.refuses(self.tutti("check", "--polcy=edf"), "did you mean '--policy'?")  # before the file that is missing
        self.refuses(self.tutti("check", WAFER, "--frobnicate"), "there is no option '--frobnicate'; 'tutti check --help'")
        self.refuses(self.wafer("--imags", "x"), "did you mean '--images'?")
        self.refuses(self.wafer("generate", "--sise", "x"), "did you mean '--size'?")
        self.refuses(self.tutti("predict", EXAMPLE, "more"), "'more' is one argument too many")
        self.refuses(self.tutti("predict", EXAMPLE, "--color", "alway"), "there is no 'alway'; did you mean 'always'?")

    def test_every_command_has_the_common_options(self):
        leaves = list(self.leaves())
        self.assertGreater(len(leaves), 20)
        for words in leaves:
            with self.subTest(words=words):
                run = self.tutti(*words, "--help")
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                for option in ("--quiet", "--color", "--verbose") + (("--json",) if words[0] not in WITHOUT_RESULTS else ()):
                    self.assertIn(option, run.stdout)
                self.assertIn("Example", run.stdout)

    def test_quiet_leaves_results_and_errors(self):
        file = self.file((ROOT / WAFER).read_text(encoding="utf-8").replace("name: die_compare", "name: unknown_kernel").replace("../machines", str(ROOT / "configs/machines")))
        loud, quiet = self.tutti("check", file), self.tutti("check", file, "--quiet")
        self.assertIn("note: 'tutti run' knows no kernel 'unknown_kernel'", loud.stderr)
        self.assertEqual((quiet.returncode, quiet.stdout, quiet.stderr), (loud.returncode, loud.stdout, ""))
        self.assertEqual(self.tutti("-q", "check", file).stderr, "")  # in front of the command, too
        self.refuses(self.tutti("check", "/no/such/file", "-q"), "/no/such/file")

    def test_logs_stay_off_standard_output(self):
        plain = self.tutti("predict", EXAMPLE, "--json")
        self.assertEqual(plain.stderr, "")
        # In each place of the line: every command has a flag of its own for the same setting.
        for words in (["predict", EXAMPLE, "--json", "-v"], ["predict", "-v", EXAMPLE, "--json"], ["-v", "predict", EXAMPLE, "--json"],
                      ["--verbose", "predict", EXAMPLE, "--json", "-vv"]):
            with self.subTest(words=words):
                logged = self.tutti(*words)
                self.assertEqual(plain.stdout, logged.stdout)
                for line in logged.stderr.splitlines():
                    self.assertRegex(line, r"^log [0-9.]+ ms: ")
                for word in (EXAMPLE, "planner best", "exit code 0"):
                    self.assertIn(word, logged.stderr)

    def test_colours_are_asked_for_or_for_a_terminal(self):
        def printed(*words, **variables):
            with_variables = {key: value for key, value in {**os.environ, "TERM": "xterm", **variables}.items() if value is not None}
            return self.run_program("tutti/tutti", "check", TWO_LINES, *words, env=with_variables).stdout

        plain = printed(NO_COLOR=None)
        self.assertNotIn("\x1b", plain)
        coloured = printed("--color", "always")
        self.assertIn("\x1b[32mschedulable", coloured)
        self.assertEqual(re.sub("\x1b\\[[0-9]*m", "", coloured), plain)
        self.assertIn("\x1b[32m", printed("--color", "always", NO_COLOR="1"))  # what is said is stronger
        self.assertEqual(json.loads(printed("--color", "always", "--json"))["verdict"], "schedulable")

        def on_terminal(*words, **variables):
            ours, theirs = pty.openpty()
            run = self.run_program("tutti/tutti", "predict", EXAMPLE, *words, stdout=theirs, env={**os.environ, "TERM": "xterm", "NO_COLOR": "", **variables})
            os.close(theirs)
            shown = b""
            while True:
                try:
                    shown += os.read(ours, 1 << 16)
                except OSError:
                    break
            os.close(ours)
            self.assertEqual(run.returncode, 0)
            return shown

        self.assertIn(b"\x1b[1m", on_terminal())
        for words, variables in ((["--color", "never"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})):
            self.assertNotIn(b"\x1b", on_terminal(*words, **variables))

    def test_a_file_of_the_wrong_kind_is_named_for_what_it_is(self):
        journal = str(self.folder / "j.journal")
        self.assertEqual(self.tutti("run", WAFER, "--clock", "virtual", "--jobs", 3, "--journal", journal).returncode, 0)
        jobs = str(self.folder / "jobs.csv")
        self.assertEqual(self.tutti("tasks", "expand", "configs/tasks/periodic-offsets.yaml", "--out", jobs).returncode, 0)
        report = self.file(self.tutti("predict", EXAMPLE, "--json").stdout, "report.json")
        files = {"a machine file": (H200X4, "topology show {}"), "a batch": (EXAMPLE, "predict {}"), "a task set": (WAFER, "check {}"),
                 "an exchange file": ("configs/control/bfs.yaml", "advise {}"), "a list of changes": ("configs/changes/line-pauses.yaml", "--changes {}"),
                 "a scenario": ("configs/scenarios/alarm-behind-image.yaml", "--scenario {}"), "a list of faults": ("configs/faults/slow-link.yaml", "--faults {}"),
                 "a journal": (journal, "report {}"), "a list of measured rates": (MEASURED, "calibrate --from {}"), "a job set": (jobs, "check --jobs {}"),
                 "an output of --json": (report, "'tutti view {} --html PAGE.html' draws what 'predict' wrote"), "a picture": ("configs/batches/inspection-example.svg", "no command")}
        readers = {"a machine file": ["topology", "show"], "a batch": ["predict"], "a task set": ["check"], "an exchange file": ["advise"], "a journal": ["report"],
                   "a job set": ["check", "--jobs"], "a list of measured rates": ["calibrate", "--out", str(self.folder / "m.yaml"), "--from"], "a list of faults": ["run", WAFER, "--faults"],
                   "a scenario": ["run", WAFER, "--scenario"], "a list of changes": ["run", WAFER, "--for", "1s", "--changes"]}
        for wanted, words in readers.items():
            for kind, (file, command) in files.items():
                with self.subTest(reader=words, file=file):
                    if kind == wanted:
                        self.assertNotIn(", not ", self.tutti(*words, file).stderr)
                    else:
                        self.refuses(self.tutti(*words, file), f"{file} is {kind}, not {wanted}; ", command.format(file))
        self.refuses(self.tutti("compare", H200X4), "is a machine file, not a batch or a task set")
        self.refuses(self.tutti("predict", EXAMPLE, "--machine", WAFER), "is a task set, not a machine file")
        # Pipes are read once, by their reader.
        self.assertEqual(self.run_program("tutti/tutti", "predict", "/dev/stdin", "--machine", str(ROOT / "configs/machines/inspection-example.yaml"), input=(ROOT / EXAMPLE).read_text(encoding="utf-8")).returncode, 0)

    def leaves(self, *words):
        """All commands that have none below them."""
        listed = self.tutti(*words, "--help").stdout.partition("Subcommands:\n")[2].partition("\n\n")[0]
        below = re.findall(r"^  ([a-z]+)", listed, re.MULTILINE)
        if not below:
            yield words
        for word in below:
            yield from self.leaves(*words, word)

    def test_the_version_is_that_of_the_project(self):
        version = re.search(r"version: '([0-9.]+)'", (ROOT / "meson.build").read_text(encoding="utf-8"))[1]
        for run, name in ((self.tutti("--version"), "tutti"), (self.wafer("--version"), "wafer_inspection")):
            self.assertEqual((run.returncode, run.stdout, run.stderr), (0, f"{name} {version}\n", ""))

    def test_json_mode_prints_nothing_else(self):
        self.refuses(self.tutti("predict", "/no/such/file", "--json"))


if __name__ == "__main__":
    sys.exit(main())
