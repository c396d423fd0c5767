#!/usr/bin/env python3
"""`tutti learn`: a trace in, a machine, a task set and a verdict out. The traces are made up here, of work that is known."""
import gzip
import json
import os
import random
import shutil
import re
import sqlite3
import sys

from programs import H200X4, ROOT, WAFER, Programs, main

MS = 1_000_000  # ns
UPLOAD, DOWNLOAD = 40_000_000, 8_000_000  # bytes
RATE = 20  # bytes a ns


def rounds(count=40, period=10 * MS, kernel=1 * MS, seed=1):
    """(start, end, kind, bytes, gpu, stream) of an upload, two kernels and a download in every period."""
    draw, records = random.Random(seed), []
    for job in range(count):
        at = 5 * MS + job * period + draw.randrange(50_000)
        for kind, size, length in (("u", UPLOAD, UPLOAD // RATE), ("k", 0, kernel + draw.randrange(20_000)), ("k", 0, kernel // 2), ("d", DOWNLOAD, DOWNLOAD // RATE)):
            records.append((at, at + length, kind, size, 0, 7))
            at += length + 5_000
    return records


def chrome(records):
    events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python /data/someone/secret/train.py"}}]
    for start, end, kind, size, gpu, stream in records:
        name = {"u": "Memcpy HtoD (Pinned -> Device)", "d": "Memcpy DtoH (Device -> Pinned)", "k": "void ns::secret_path::compare_dies<float>(float const*)"}[kind]
        events.append({"ph": "X", "cat": "kernel" if kind == "k" else "gpu_memcpy", "name": name, "pid": gpu, "tid": stream, "ts": start / 1000, "dur": (end - start) / 1000,
                       "args": {"device": gpu, "stream": stream, **({"bytes": size} if size else {})}})
    return json.dumps({"schemaVersion": 1, "traceEvents": events})


def export(records, path):
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, globalPid, bytes, copyKind, srcKind, dstKind)")
    database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, globalPid, shortName)")
    database.execute("INSERT INTO StringIds VALUES (5, 'compare_dies')")
    for start, end, kind, size, gpu, stream in records:
        if kind == "k":
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, 77, 5)", (start, end, gpu, stream))
        else:
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?, 77, ?, ?, ?, ?)", (start, end, gpu, stream, size, *((1, 1, 2) if kind == "u" else (2, 2, 1))))
    database.commit()
    database.close()


class Learn(Programs):
    def learned(self, trace, *words, code=0):
        return self.object_of(code, "learn", trace, "--out", self.folder / "out", *words, "--json")

    def read(self, name):
        return (self.folder / "out" / name).read_text(encoding="utf-8")

    def is_the_work(self, found):
        self.assertEqual([(task["release"], task["jobs"], task["copies"], task["kernels"], task["copied_bytes"]) for task in found["tasks"]],
                         [("periodic", 40, 2, 2, UPLOAD + DOWNLOAD)])
        self.assertAlmostEqual(found["tasks"][0]["period_ms"], 10, delta=0.01)
        self.assertLessEqual(found["tasks"][0]["jitter_ms"], 0.06)
        self.assertEqual((found["recognised_bytes_share"], found["recognised_kernel_share"], found["unassigned"]), (1, 1, 0))
        self.assertLess(found["replay"]["median_error"], 0.02)

    # 40 MB in 2 ms and 8 MB in 0.4 ms are 20 GB/s; the longest first kernel takes 1 ms and what was drawn.
    def test_all_formats_say_the_same(self):
        records = rounds()
        export(records, self.folder / "t.sqlite")
        self.file(chrome(records), "t.json")
        (self.folder / "t.json.gz").write_bytes(gzip.compress(chrome(records).encode()))
        for name in ("t.sqlite", "t.json", "t.json.gz"):
            with self.subTest(name=name):
                self.is_the_work(self.learned(self.folder / name))
                self.assertRegex(self.read("machine.yaml"), r"from: cpu0, to: gpu0, bandwidth: (\{nominal: )?(20|19\.99\d*) GB/s")

    def test_what_is_written_is_checked_and_scaled(self):
        export(rounds(), self.folder / "t.sqlite")
        found = self.learned(self.folder / "t.sqlite")
        self.assertEqual(json.loads(self.read("report.json")), {**found, "machine_file": "machine.yaml", "tasks_file": "tasks.yaml"})
        tasks = self.folder / "out/tasks.yaml"
        # 2.4 ms of copies and 1.5 of kernels, with gaps, in 10 ms.
        answer = self.object_of(0, "check", tasks, "--json")
        self.assertTrue(answer["schedulable"])
        self.assertTrue(3.9 < answer["tasks"][0]["wcet_ms"] < 4.2, answer["tasks"])
        self.assertEqual(self.tutti("capacity", tasks, "--parameter", "scale").returncode, 0)
        self.assertEqual(self.tutti("run", tasks, "--jobs", 5).returncode, 0)
        worst = max(float(number) for number in re.findall(r"worst: ([0-9.]+) ms", self.read("tasks.yaml")))
        self.assertGreaterEqual(worst * MS, max(end - start for start, end, kind, *_ in rounds() if kind == "k"))

    def test_questions_are_answered(self):
        export(rounds(), self.folder / "t.sqlite")
        twice = self.learned(self.folder / "t.sqlite", "--scale", 2)["what_if"]
        self.assertTrue(twice["verdict"]["schedulable"])
        # 2.4 ms of copies may grow by (10 - 4) / 2.4, a little less for gaps.
        self.assertTrue(3 < twice["largest_scale"] < 3.6, twice["largest_scale"])
        self.assertFalse(self.learned(self.folder / "t.sqlite", "--scale", 4, code=1)["what_if"]["verdict"]["schedulable"])
        more = self.learned(self.folder / "t.sqlite", "--gpus", 3)["what_if"]
        self.assertEqual((more["gpus"], len(more["verdict"]["tasks"])), (3, 3))
        self.assertIn("gpu2", self.read("what-if-machine.yaml"))
        faster = self.learned(self.folder / "t.sqlite", "--scale", 2, "--machine", H200X4)["what_if"]
        self.assertGreater(faster["largest_scale"], twice["largest_scale"])
        self.assertIn("gpu0", faster["bottleneck"]["name"])

    def test_private_names_are_left_out(self):
        self.file(chrome(rounds()), "t.json")
        run = self.tutti("learn", self.folder / "t.json", "--out", self.folder / "out")
        self.assertEqual(run.returncode, 0, run.stderr)
        written = run.stdout.replace(str(self.folder), "") + "".join(path.read_text(encoding="utf-8") for path in (self.folder / "out").iterdir() if path.name != "report.json")
        for private in ("secret", "someone", "train.py"):
            self.assertNotIn(private, written)
        self.assertIn("compare_dies", written)

    def test_a_run_of_our_own_is_learned(self):
        journal, trace = self.folder / "run.journal", self.folder / "run.json"
        self.assertEqual(self.tutti("run", WAFER, "--jobs", 20, "--journal", journal, "--trace", trace).returncode, 0)
        for path in (journal, trace):
            found = self.learned(path)
            self.assertEqual(found["recognised_bytes_share"], 1)
            self.assertAlmostEqual(found["tasks"][0]["period_ms"], 25, delta=0.05)

    def test_bad_input_is_said_in_a_sentence(self):
        out = ("--out", self.folder / "out")
        empty = self.file(json.dumps({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1}]}), "cpu.json")
        self.refuses(self.tutti("learn", empty, *out), "cpu.json: ", "has no copy and no kernel of a GPU", "--trace=cuda")
        self.refuses(self.tutti("learn", self.file(chrome(rounds(2)), "two.json"), *out), "comes 3 times", "record more rounds")
        self.refuses(self.tutti("learn", self.file("", "nothing"), *out), "this file is empty")
        self.refuses(self.tutti("learn", self.file("hello", "text"), *out), "this is no trace that can be read")
        self.refuses(self.tutti("learn", self.file("{}", "o.json"), *out), "no list 'traceEvents'")
        self.refuses(self.tutti("learn", self.folder / "none", *out), "there is no such file")
        self.refuses(self.tutti("learn", self.folder, *out), "folder")
        sqlite3.connect(self.folder / "other.sqlite").execute("CREATE TABLE a (b)").connection.close()
        self.refuses(self.tutti("learn", self.folder / "other.sqlite", *out), "no export of CUDA activities", "nsys export --type sqlite")
        self.refuses(self.tutti("learn", empty, *out, "--scale", 0), "--scale")
        self.refuses(self.tutti("learn", empty, *out, "--gpus", 0), "--gpus")
        export(rounds(), self.folder / "t.sqlite")
        self.refuses(self.tutti("learn", self.folder / "t.sqlite", "--out", self.file("a file", "no-folder")), "no-folder")
        self.assertFalse((self.folder / "out").exists())  # what is refused leaves nothing

    # What could be read is learned, and the exit code says that it was not all.
    def test_a_trace_that_is_cut_off_is_learned_as_far_as_it_goes(self):
        text = chrome(rounds())
        run = self.tutti("learn", self.file(text[:len(text) * 3 // 4], "cut.json"), "--out", self.folder / "out")
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, "note: the file ends early, or is damaged, at byte [0-9]+")
        self.assertRegex(run.stdout, "task0 +clock +(29|30)")

    # A sentence each, whatever is wrong: bytes that are changed or missing, at places of all formats.
    def test_damaged_files_get_a_sentence(self):
        draw = random.Random(3)
        export(rounds(8), self.folder / "t.sqlite")
        whole = [(self.folder / "t.sqlite").read_bytes(), chrome(rounds(8)).encode(), gzip.compress(chrome(rounds(8)).encode())]
        for number in range(60):
            damaged = bytearray(whole[number % 3])
            for _ in range(draw.choice((1, 5, 50))):
                damaged[draw.randrange(len(damaged))] = draw.randrange(256)
            if draw.random() < 0.3:
                del damaged[draw.randrange(1, len(damaged)):]
            path = self.folder / f"damaged{number}"
            path.write_bytes(damaged)
            run = self.tutti("learn", path, "--out", self.folder / "out")
            self.assertIn(run.returncode, (0, 2), f"{number}: {run.stderr}")
            if run.returncode == 2 and not run.stdout:
                notes = [line for line in run.stderr.splitlines() if line.startswith("note: ")]
                self.assertEqual(run.stderr.count("\n"), 1 + len(notes), run.stderr)
                self.assertIn(f"{path}: ", run.stderr)

    # The folder, the trace and the machine lie where nobody else should know.
    def test_files_have_no_paths_and_no_old_questions(self):
        secret = self.folder / "secret"
        secret.mkdir()
        trace = secret / "customer.json.gz"
        trace.write_bytes(gzip.compress(chrome(rounds()).encode())[:-400])
        shutil.copy(ROOT / H200X4, secret / "other.yaml")
        self.learned(trace, "--machine", secret / "other.yaml", code=2)
        self.assertNotRegex(self.read("report.json") + self.read("tasks.yaml") + self.read("machine.yaml"), "secret|customer|" + self.folder.name)
        self.assertEqual(json.loads(self.read("report.json"))["what_if"]["machine"], "other.yaml")
        self.learned(trace, code=2)
        self.assertFalse((self.folder / "out/what-if.yaml").exists())

    def test_a_pipe_is_refused(self):
        os.mkfifo(self.folder / "pipe")
        run = self.tutti("learn", self.folder / "pipe", "--out", self.folder / "out")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("this is no file but a pipe", run.stderr)

    def test_what_is_left_out_is_said(self):
        events = json.loads(chrome(rounds()))
        events["traceEvents"] += [{"ph": "X", "cat": "gpu_memcpy", "name": "CopyHostToDevice", "pid": 0, "tid": 1, "ts": 5, "dur": 1, "args": {"bytes": 4}}] * 3
        self.file(json.dumps(events), "t.json")
        run = self.tutti("learn", self.folder / "t.json", "--out", self.folder / "out")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("note: 3 events of GPUs were left out", run.stderr)
        self.assertRegex(run.stdout, "guess: deadlines: each job ends before the next one")

    def test_a_refusal_says_what_was_damaged(self):
        self.file(chrome(rounds(4))[:1400], "t.json")
        run = self.tutti("learn", self.folder / "t.json", "--out", self.folder / "out")
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, r"note: the file ends early, or is damaged, at byte \d+[\s\S]*by a clock or in a closed loop")


if __name__ == "__main__":
    sys.exit(main())
