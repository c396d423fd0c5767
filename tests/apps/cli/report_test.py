#!/usr/bin/env python3
"""`tutti report`, on journals that are written here after the description in runtime/trace/README.md."""
import random
import subprocess
import sys
import zlib

from programs import WAFER, Programs, main

MET, MISSED, DROPPED, FAILED, ABORTED, NEVER_RUN = range(6)
TRIGGER, RELEASE, GATE, BLOCKING, TRANSFER, KERNEL = range(6)
MS = 1_000_000


def number(value):
    data = bytearray()
    while value >= 0x80:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(data) + bytes([value])


def time(ns):
    return number(2 * ns if ns >= 0 else -2 * ns - 1)


def optional_time(ns):
    return number(0) if ns is None else number(1) + time(ns)


def text(value):
    data = value.encode()
    return number(len(data)) + data


def numbers(values):
    return number(len(values)) + b"".join(map(number, values))


def record(kind, payload):
    covered = bytes([kind, 0]) + len(payload).to_bytes(2, "little") + payload
    return b"\xa7ttj" + zlib.crc32(covered).to_bytes(4, "little") + covered


def start(file=0, first=0, day=0):
    # 1,790,000,000 s after 1970: 2026-09-21 14:13:20 UTC.
    started = (1_790_000_000 + 86_400 * day) * 10**9
    return record(1, number(1) + number(file) + number(started) + b"".join(map(text, ("0.2.0", "example", "non-preemptive edf", "sim", "virtual"))) + numbers([first]))


def task(position, name, period=10 * MS, bound=5 * MS):
    return record(2, number(position) + text(name) + time(period) + time(period) + optional_time(bound) + optional_time(None))


def job(index, verdict=MET, which=0, response=4 * MS, late=2000, cause=None, caused_by=None, streams=()):
    """Arrives every 10 ms, starts `late` behind it; a job that finished has a response."""
    arrival, started, finished = 10 * MS * index, verdict not in (DROPPED, NEVER_RUN), verdict in (MET, MISSED)
    flags = verdict + 8 * started + 16 * finished + 32 * (caused_by is not None) + 64 * (cause is not None)
    data = number(which) + number(index) + number(flags) + time(arrival) + time(0)
    data += (time(late) if started else b"") + (time(response - late) if finished else b"")
    data += time(10 * MS) + time(late) + time(0) + time(0) + number(0)
    data += (number(caused_by) if caused_by is not None else b"") + (number(cause) + time(MS) if cause is not None else b"")
    return data + number(len(streams)) + b"".join(number(batch) + number(stream) + time(begin) + time(length) for batch, stream, begin, length in streams)


def jobs(first, *entries):
    return record(3, number(0) + number(first) + b"".join(entries))


def lost(first, count):
    return record(4, number(0) + number(first) + number(count))


def end(count, continued=False):
    return record(5, number(continued) + number(count) + number(0) + number(0) + numbers([count]))


HEAD = start() + task(0, "inspect") + task(1, "log", 20 * MS, None)


class Report(Programs):
    def journal(self, data, name="run.journal"):
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def row(self, answer, name="inspect"):
        return next(row for row in answer["summary"] if row["task"] == name)

    def test_whole_outputs(self):
        # 97 jobs in time, with responses of 1 to 97 us * 40; then a miss, a drop, an abort; three lost; and a torn end.
        many = [job(i, response=40_000 * (i + 1), late=1000 + i) for i in range(97)]
        bad = [job(97, MISSED, response=12 * MS, cause=BLOCKING, caused_by=1), job(98, DROPPED), job(99, ABORTED, cause=KERNEL)]
        data = HEAD + jobs(0, *many, *bad) + lost(100, 3) + jobs(103, job(103, which=1, response=3 * MS, streams=((0, 2, 5000, MS),)))
        self.journal(data + end(104)[:-4])
        for words, name in (([], "report.txt"), (["--json"], "report.json")):
            run = self.run_program("tutti/tutti", "report", "run.journal", "--jobs", 3, *words, cwd=self.folder)
            self.is_golden(name, run, code=1)

    # 40 us * 49 = 1.96 ms is the 49th of 98 responses, and 97 of 98 are at most 3.88 ms: 99 % of them at most 12 ms.
    def test_quantiles_are_at_most_a_64th_above(self):
        many = [job(i, response=40_000 * (i + 1)) for i in range(97)] + [job(97, MISSED, response=12 * MS)]
        row = self.row(self.object_of(1, "report", self.journal(HEAD + jobs(0, *many) + end(98)), "--json"))
        for key, exact in (("median_ms", 1.96), ("p90_ms", 0.04 * 89), ("p99_ms", 12), ("p999_ms", 12), ("worst_ms", 12)):
            self.assertGreaterEqual(row["response"][key], exact)
            self.assertLessEqual(row["response"][key], exact * 65 / 64)

    def test_exit_codes(self):
        for entries, code in (((job(0),), 0), ((job(0, NEVER_RUN),), 0), ((), 0), ((job(0, MISSED, response=11 * MS),), 1), ((job(0, DROPPED),), 1),
                              ((job(0, ABORTED),), 1), ((job(0, FAILED),), 3), ((job(0, cause=GATE),), 3), ((job(0, cause=GATE), job(1, DROPPED)), 1)):
            with self.subTest(entries=entries):
                answer = self.object_of(code, "report", self.journal(HEAD + jobs(0, *entries) + end(len(entries))), "--json")
                self.assertEqual((answer["schema_version"], answer["recorded_jobs"]), (1, len(entries)))
                self.assertEqual(answer["files"][0]["state"], "ended")

    def test_causes_and_who_caused_them(self):
        entries = [job(0, cause=BLOCKING, caused_by=1), job(1, cause=BLOCKING, caused_by=1), job(2, cause=TRANSFER)]
        path = self.journal(HEAD + jobs(0, *entries) + end(3))
        row = self.row(self.object_of(3, "report", path, "--json"))
        self.assertEqual((row["over_bound"], row["causes"], row["caused_by"]), (3, {"blocking": 2, "transfer": 1}, {"log": 2}))
        run = self.tutti("report", path)
        self.assertIn("3 of 3 jobs of 'inspect' over their bound, by up to 1 ms: blocking 2, transfer 1; caused by task 'log' 2", run.stdout)

    # Jobs of both tasks start 2 us behind 10 k ms and end 4 ms behind it. An event just after a start of 'inspect' is read by
    # its next job, which ends 14 ms later; the next job of 'log' ends 10 ms after that: 23.998 ms. Of 5 jobs, 3 reactions end.
    def test_chains_are_measured(self):
        entries = [job(k, which=which) for k in range(5) for which in (0, 1)]
        for bound, deadline, code in ((24, 30, 0), (23, 30, 3), (24, 23, 1)):
            chain = record(6, text("see") + numbers([0, 1]) + optional_time(bound * MS) + optional_time(deadline * MS))
            path = self.journal(HEAD + chain + jobs(0, *entries) + end(10))
            answer = self.object_of(code, "report", path, "--json")["chains"][0]
            self.assertEqual((answer["name"], answer["tasks"], answer["reactions"], answer["worst_reaction_ms"]), ("see", ["inspect", "log"], 3, 23.998))
            self.assertEqual((answer["over_bound"], answer["over_deadline"]), (3 * (bound == 23), 3 * (deadline == 23)))
            self.assertIn("see            3             23.998", self.tutti("report", path).stdout)
            self.assertEqual(self.object_of(0, "report", path, "--json", "--task", "inspect")["chains"], [])
        lossy = self.journal(HEAD + chain + jobs(0, *entries[:4]) + lost(4, 2) + jobs(6, *entries[6:]) + end(10))
        answer = self.object_of(0, "report", lossy, "--json")["chains"][0]
        self.assertEqual((answer["reactions"], answer["runs_not_measured"]), (0, 1))
        self.assertIn("chain 'see' was not measured in 1 run, of which jobs are missing", self.tutti("report", lossy).stdout)
        # Two files that follow each other are one run; a third one whose neighbour is missing is measured by itself.
        head = task(0, "inspect") + task(1, "log") + chain
        parts = [self.journal(start(n, 2 * n) + head + jobs(2 * n, *entries[2 * n:2 * n + 2]) + end(2 * n + 2, True), f"part{n}") for n in (0, 1, 2, 4)]
        self.assertEqual(self.object_of(1, "report", *parts[:3], "--json")["chains"][0]["reactions"], 1)
        self.assertEqual(self.object_of(0, "report", parts[0], parts[1], parts[3], "--json")["chains"][0]["reactions"], 0)
        # A file without an end may lack jobs: those behind it are measured by themselves.
        torn = self.journal(start(1, 2) + head + jobs(2, *entries[2:4]), "torn")
        self.assertEqual(self.object_of(0, "report", parts[0], torn, parts[2], "--json")["chains"][0]["reactions"], 0)
        # Another chain of that name has a row of its own.
        other = self.journal(start(day=1) + task(0, "inspect") + task(1, "log") + record(6, text("see") + numbers([1, 0]) + number(0) + number(0)) + jobs(0, *entries) + end(10), "other")
        whole = self.journal(HEAD + chain + jobs(0, *entries) + end(10), "whole")
        rows = self.object_of(1, "report", whole, other, "--json")["chains"]
        self.assertEqual([(row["tasks"], row["bound_ms"], row["reactions"]) for row in rows], [(["inspect", "log"], 24, 3), (["log", "inspect"], None, 3)])
        odd = self.journal(HEAD + record(6, text("odd") + numbers([0, 10**9]) + number(0) + number(0)) + jobs(0, job(0)) + end(1), "odd")
        self.assertEqual(self.object_of(0, "report", odd, "--json")["chains"][0]["runs_not_measured"], 1)

    def test_what_is_no_journal_is_refused(self):
        empty = self.journal(b"", "empty")
        self.refuses(self.tutti("report", WAFER), f"{WAFER} is a task set, not a journal")
        for path, why in ((self.file("neither\n"), "this "), (self.folder, "this is a folder"), ("/no/such/file", "there is no folder 'no' in /"),
                          ("/dev/null/x", "'/dev/null' is no folder")):
            self.refuses(self.tutti("report", path), f"{path}: {why}")
        for words in ([], [empty, WAFER], [empty, "--jobs", "0"], [empty, "--nonsense"]):
            self.refuses(self.tutti("report", *words))
        self.assertEqual(self.object_of(0, "report", empty, "--json")["files"][0]["state"], "cut_off")

    def test_a_task_that_is_not_there_is_guessed(self):
        path = self.journal(HEAD + jobs(0, job(0), job(1, DROPPED, which=1)) + end(2))
        self.refuses(self.tutti("report", path, "--task", "inspct"), "did you mean 'inspect'?")
        self.refuses(self.tutti("report", path, "--task", "welding"), "there is no task 'welding' in these journals; give one of inspect")
        self.refuses(self.tutti("report", path, f"{self.folder}/./run.journal"), "is given twice, and its jobs would count twice; leave one out")
        answer = self.object_of(0, "report", path, "--task", "inspect", "--json", "--jobs", 5)
        self.assertEqual(([row["task"] for row in answer["summary"]], [row["index"] for row in answer["jobs"]]), (["inspect"], [0]))

    # NAME is the newest file, and comes first in a list of names.
    def test_files_of_a_run_are_put_in_order(self):
        newest = self.journal(start(2, 4) + task(0, "inspect") + jobs(4, job(4), job(5)) + end(6), "j")
        oldest = self.journal(start(0, 0) + task(0, "inspect") + jobs(0, job(0), job(1)) + end(2, True), "j.1")
        middle = self.journal(start(1, 2) + task(0, "inspect") + jobs(2, job(2), job(3)) + end(4, True), "j.2")
        answer = self.object_of(0, "report", newest, oldest, middle, "--json", "--jobs", 3)
        self.assertEqual([file["state"] for file in answer["files"]], ["continued", "continued", "ended"])
        self.assertEqual([row["index"] for row in answer["jobs"]], [3, 4, 5])
        self.assertEqual((self.row(answer)["jobs"], answer["damaged_jobs"]), (6, 0))

    def test_tasks_of_the_same_name_are_one(self):
        first = self.journal(start() + task(0, "log") + task(1, "inspect") + jobs(0, job(0, which=1)) + end(1), "a")
        second = self.journal(start(day=1) + task(0, "inspect") + jobs(0, job(0)) + end(1), "b")
        answer = self.object_of(0, "report", second, first, "--json")
        self.assertEqual([(row["task"], row["jobs"]) for row in answer["summary"]], [("log", 0), ("inspect", 2)])
        self.assertEqual(self.tutti("report", second, first).stdout.count("run of "), 2)

    # A damaged description costs the name, a damaged record its jobs.
    def test_damage_is_reported_and_the_rest_is_read(self):
        described, first, second = task(0, "inspect"), jobs(0, job(0), job(1)), jobs(2, job(2))
        data = bytearray(start() + described + first + second + end(3))
        data[len(start()) + 15] ^= 1
        data[len(start()) + len(described) + 20] ^= 1
        answer = self.object_of(0, "report", self.journal(data), "--json")
        self.assertEqual([(row["task"], row["jobs"], row["deadline_ms"]) for row in answer["summary"]], [("#0", 1, None)])
        self.assertEqual((answer["damaged_jobs"], answer["files"][0]["damaged_bytes"]), (2, len(described) + len(first)))
        self.assertIn(f"{len(described) + len(first)} bytes damaged, 2 jobs in them", self.tutti("report", self.journal(data)).stdout)

    def test_any_damage_ends_with_an_answer(self):
        whole = HEAD + jobs(0, *[job(i) for i in range(20)]) + lost(20, 2) + jobs(22, job(22, MISSED, response=11 * MS)) + end(23)
        draw = random.Random(1)
        for _ in range(60):
            data = bytearray(whole[: draw.randrange(len(whole) + 1)])
            for _ in range(draw.randrange(4) if data else 0):
                data[draw.randrange(len(data))] = draw.randrange(256)
            run = self.tutti("report", self.journal(data), *draw.choice(([], ["--json"], ["--jobs", 30])))
            self.assertIn(run.returncode, (0, 1, 2), run.stderr)
            self.assertEqual(run.stdout == "", run.returncode == 2)

    def test_a_pipe_is_read(self):
        data = HEAD + jobs(0, job(0)) + end(1)
        run = subprocess.run([str(self.built / "tutti/tutti"), "report", "/dev/stdin"], input=data, stdout=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"1 jobs in 1 file", run.stdout)

    def test_names_that_are_no_text_harm_nothing(self):
        data = start() + record(2, number(0) + number(6) + b"\xff\xfe\x1b[2J" + time(0) + time(0) + number(0) + number(0)) + jobs(0, job(0)) + end(1)
        path = self.journal(data)
        self.assertNotIn("\x1b", subprocess.run([str(self.built / "tutti/tutti"), "report", path], stdout=subprocess.PIPE, timeout=60, check=False).stdout.decode(errors="replace"))
        self.assertEqual(len(self.object_of(0, "report", path, "--json")["summary"]), 1)


if __name__ == "__main__":
    sys.exit(main())
