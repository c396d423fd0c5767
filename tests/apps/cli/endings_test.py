#!/usr/bin/env python3
"""How the programs end where they are asked to, where nobody takes their report, and where memory runs out."""
import json
import os
import pathlib
import resource
import shutil
import signal
import sys
import time

from programs import EXAMPLE, H200X4, INTERRUPTS, MEASURED, ROOT, TOO_SLOW, WAFER, Programs, main

SIM = "configs/machines/inspection-example.yaml"


class Signals(Programs):
    def ends(self, process, *numbers):
        for number in numbers:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        return out, err

    def real_time(self, wcet="1 ms", period="20 ms"):
        return ["run", self.file(f"version: 1\ntasks: [{{name: a, period: {period}, wcet: {wcet}}}]\n"), "--clock", "real", "--for", "300s", "--json"]

    def test_every_signal_drains_and_reports(self):
        for number in INTERRUPTS:
            with self.subTest(number=number):
                out, err = self.ends(self.start("tutti/tutti", *self.real_time()), number)
                self.assertIn("interrupted; the report covers what had run", err)
                self.assertLess(len(json.loads(out)["jobs"]), 15000)
                csv = self.folder / f"{number}.csv"
                out, err = self.ends(self.start("wafer_inspection/wafer_inspection", "--size", 256, "--count", 1, "--jobs", 1_000_000, "--csv", csv), number)
                self.assertIn("interrupted; the report covers what had run", err)
                self.assertTrue(out.startswith("wafer inspection on h200x4"), out)
                self.assertTrue(csv.exists())

    def test_commands_that_measure_say_so_and_write_nothing(self):
        for number in INTERRUPTS:
            for words in (["calibrate", "--machine", SIM, "--out", self.folder / "out", "--backend", "sim", "--copy", "4MiB", "--rounds", 1000],
                          ["verify", "--machine", SIM, "--backend", "sim", "--random", 100, "--repeats", 1000, "--largest", "256KiB", "--out", self.folder / "out"],
                          ["bench", "transfers", "--machine", SIM, "--backend", "sim", "--clock", "real", "--samples", 100000, "--svg", self.folder / "out"]):
                with self.subTest(number=number, command=words[0]):
                    out, err = self.ends(self.start("tutti/tutti", *words), number)
                    self.assertEqual(out, "")
                    self.assertIn("interrupted; ", err)
        self.assertEqual(list(self.folder.iterdir()), [])

    # While hackbench is the load, where it is installed, and threads of the program.
    def test_a_load_ends_with_the_command(self):
        def children(process):
            try:
                return set(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split())
            except OSError:
                return set()

        words = ["bench", "transfers", "--machine", SIM, "--backend", "sim", "--clock", "real", "--samples", 30000, "--only", "copies", "--to", "4B", "--load", "hackbench"]
        process = self.start("tutti/tutti", *words)
        seen = set()
        for _ in range(200):
            seen = children(process)
            if seen or process.poll() is not None or not shutil.which("hackbench"):
                break
            time.sleep(0.1)
        self.ends(process, signal.SIGINT)
        self.assertEqual([child for child in seen if pathlib.Path(f"/proc/{child}").exists()], [])

    # The job under way takes 250 s, so the first signal cannot end the run at once.
    def test_a_later_signal_ends_the_program(self):
        for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGHUP)):
            with self.subTest(first=first, second=second):
                process = self.start("tutti/tutti", *self.real_time(wcet="250 s", period="300 s"))
                process.send_signal(first)
                while process.poll() is None:
                    time.sleep(1)
                    process.send_signal(second)
                self.assertEqual(process.poll(), -second)

    # `timeout` signals the process and then its group; a closing terminal hangs up twice as well.
    def test_a_pair_of_signals_is_one_interrupt(self):
        self.ends(self.start("tutti/tutti", *self.real_time()), signal.SIGTERM, signal.SIGTERM)
        self.ends(self.start("tutti/tutti", *self.real_time()), signal.SIGHUP, signal.SIGTERM)

    def test_an_ignored_hangup_stays_ignored(self):
        process = self.start("tutti/tutti", *self.real_time(), ignored=[signal.SIGHUP])
        process.send_signal(signal.SIGHUP)
        time.sleep(1)
        self.assertIsNone(process.poll())
        self.ends(process, signal.SIGTERM)


    # A stop of 0.3 s meets 15 releases of a. What it meets is late by what the host did, and nothing waits for ever.
    def test_a_stopped_process_goes_on_and_says_why_jobs_were_late(self):
        tasks = self.file("version: 1\ntasks: [{name: a, period: 20 ms, wcet: 1 ms}, {name: b, period: 30 ms, deadline: 80 ms, wcet: 1 ms}]\n")
        journal = self.folder / "run.ttj"
        process = self.start("tutti/tutti", "run", tasks, "--clock", "real", "--for", "2s", "--json", "--journal", journal)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, err)
        jobs = json.loads(out)["jobs"]
        self.assertEqual(len(jobs), 100 + 67)
        late = [job for job in jobs if job["missed"]]
        self.assertTrue(late)
        self.assertLessEqual({job["cause"] for job in late}, {"release", "host", "dispatch", "blocking"})
        self.assertTrue({job["cause"] for job in late} & {"release", "host", "dispatch"})
        kept = self.object_of(1, "report", journal, "--json")
        self.assertEqual((kept["recorded_jobs"], kept["lost_jobs"]), (len(jobs), 0))

    def test_a_stopped_process_with_a_batch_under_way_ends_with_a_sentence(self):
        tasks = self.file(f"version: 1\nmachine: {ROOT / H200X4}\ntasks: [{{name: a, period: 20 ms, job: [{{batch: [{{from: mem0, to: gpu0, size: 1 MB, kernel: {{time: 15 ms}}}}]}}]}}]\n")
        process = self.start("tutti/tutti", "run", tasks, "--clock", "real", "--for", "2s", "--json")
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, err)
        jobs = json.loads(out)["jobs"]
        self.assertLessEqual(len(jobs), 100)
        self.assertTrue(all(job["cause"] for job in jobs if job["missed"]), out)
        self.assertTrue(TOO_SLOW in err or len(jobs) == 100, err)


class FullDisks(Programs):
    # The head and some records fit into 3000 bytes; the run has 400 jobs all the same, and the journal says what it lacks.
    def test_a_journal_on_a_full_disk_counts_what_it_loses(self):
        tasks = self.file("version: 1\ntasks: [{name: a, period: 10 ms, wcet: 1 ms}]\n")
        journal = self.folder / "run.ttj"
        full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))}
        run = self.run_program("tutti/tutti", "run", tasks, "--jobs", 400, "--json", "--journal", journal, **full)
        self.assertEqual(run.returncode, 0, run.stderr)
        answer = json.loads(run.stdout)
        self.assertEqual(len(answer["jobs"]), 400)
        self.assertIn("cannot be written (File too large)", run.stderr)
        lacks = [note for note in answer["notes"] if note.startswith("the journal has ")]
        self.assertRegex(lacks[0], r"^the journal has \d+ of 400 jobs: 0 found its ring full, \d+ could not be written$")
        kept = self.object_of(0, "report", journal, "--json")
        self.assertEqual(kept["recorded_jobs"], int(lacks[0].split()[3]))
        self.assertLess(kept["recorded_jobs"], 400)


class LostReports(Programs):
    def reports(self):
        """Words of commands of every sort that print a report, and their programs."""
        jobs = self.folder / "jobs.csv"
        self.assertEqual(self.tutti("tasks", "expand", "configs/tasks/periodic-offsets.yaml", "--out", jobs).returncode, 0)
        for words in (
            ["predict", EXAMPLE], ["predict", EXAMPLE, "--json"], ["check", WAFER], ["check", "--jobs", jobs], ["compare", EXAMPLE],
            ["run", WAFER, "--set", "image=1280kB", "--jobs", 4], ["run", WAFER, "--set", "image=1280kB", "--jobs", 4, "--json"], ["calibrate", "--plan", H200X4], ["calibrate", "--check", MEASURED, "--machine", H200X4],
            ["calibrate", "--from", MEASURED, "--machine", H200X4, "--out", self.folder / "machine.yaml"],
            ["verify", "--machine", SIM, "--backend", "sim", "--random", 2, "--repeats", 1, "--largest", "256KiB"],
            ["bench", "methods", "--machine", SIM, "--backend", "sim", "--size", "320kB", "--only", "example"], ["capacity", WAFER, "--parameter", "image"],
            ["topology", "show", H200X4], ["tasks", "expand", "configs/tasks/periodic-offsets.yaml"], ["--help"], ["--version"], ["run", "--help"],
        ):
            yield "tutti/tutti", words
        for words in (["--size", 256, "--jobs", 4], ["--size", 256, "--jobs", 4, "--json"], ["--help"], ["generate", "--images", self.folder / "wafers", "--size", 256]):
            yield "wafer_inspection/wafer_inspection", words

    def is_lost(self, reason, program, *words, **options):
        run = self.run_program(program, *words, **options)
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("standard output: the report cannot be written to its end", run.stderr)
        self.assertIn(reason, run.stderr)

    def test_a_full_disk_is_an_error_of_every_command(self):
        for program, words in self.reports():
            with self.subTest(program=program, words=words), open("/dev/full", "wb") as full:
                self.is_lost("" if words[-1] in ("--help", "--version") else "No space left on device", program, *words, stdout=full)

    def test_a_pipe_without_reader_and_a_closed_descriptor_are_silent(self):
        for program, words in (("tutti/tutti", ["run", WAFER, "--set", "image=1280kB", "--jobs", 4]), ("wafer_inspection/wafer_inspection", ["--size", 256, "--jobs", 8])):
            read, write = os.pipe()
            os.close(read)
            with os.fdopen(write, "wb") as pipe:
                run = self.run_program(program, *words, stdout=pipe)
                self.assertEqual((run.returncode, run.stderr), (141, ""))  # 128 + SIGPIPE
            closed = self.run_program(program, *words, preexec_fn=lambda: os.close(1))
            self.assertEqual((closed.returncode, closed.stderr), (0, ""))

    def test_files_are_written_all_the_same(self):
        with open("/dev/full", "wb") as full:
            words = ["--size", 256, "--jobs", 8, "--csv", self.folder / "a.csv", "--map", self.folder / "a.svg"]
            self.is_lost("", "wafer_inspection/wafer_inspection", *words, stdout=full)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["a.csv", "a.svg"])

    # The first file that is opened would have the number of a closed descriptor, and messages would end in it.
    def test_a_closed_standard_error_is_no_place_for_files(self):
        svg = self.folder / "x.svg"
        for closed in ((2,), (0, 2), (0, 1, 2)):
            run = self.run_program("tutti/tutti", "predict", EXAMPLE, "--svg", svg, preexec_fn=lambda numbers=closed: [os.close(number) for number in numbers])
            self.assertEqual(run.returncode, 0)
            self.assertTrue(svg.read_text(encoding="utf-8").endswith("</svg>\n"))
        self.assertEqual(self.run_program("tutti/tutti", "predict", "/no/such", preexec_fn=lambda: os.close(2)).returncode, 2)


class Memory(Programs):
    def test_the_end_of_memory_is_a_sentence(self):
        def little_memory():
            resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))

        # A picture has 256 MB; ten million records of jobs have more.
        for program, words in (("wafer_inspection/wafer_inspection", ["--size", 16_000, "--count", 1]),
                               ("tutti/tutti", ["run", self.file("version: 1\ntasks: [{name: a, period: 20 ms, wcet: 1 ms}]\n"), "--jobs", 10_000_000])):
            run = self.run_program(program, *words, preexec_fn=little_memory)
            self.refuses(run, "out of memory; ", code=3)


if __name__ == "__main__":
    sys.exit(main())
