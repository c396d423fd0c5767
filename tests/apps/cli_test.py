#!/usr/bin/env python3
"""The programs as a user and as a script meet them: exit codes, whole outputs, JSON, and what they say to bad input.

Arguments: the folder of the built programs, then patterns of case names. UPDATE_GOLDEN=1 writes tests/golden anew.
"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as xml

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
MEASURED = "tests/golden/h200x4-measured.json"
SECOND_HOST = "tests/golden/h200x4-second-host.json"
H200X4 = "configs/machines/h200x4.yaml"
EXAMPLE = "configs/batches/inspection-example.yaml"
WAFER = "configs/tasks/wafer-inspection.yaml"
TWO_LINES = "configs/tasks/two-lines.yaml"


class Programs(unittest.TestCase):
    built = pathlib.Path()

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tutti cli ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, text, name="f.yaml"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run_program(self, program, *words, **options):
        command = [str(self.built / program), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120, check=False, **options)

    def tutti(self, *words):
        return self.run_program("tutti/tutti", *words)

    def wafer(self, *words):
        return self.run_program("wafer_inspection/wafer_inspection", *words)

    def object_of(self, code, *words):
        run = self.tutti(*words)
        self.assertEqual(run.returncode, code, run.stderr)
        return json.loads(run.stdout)

    def refuses(self, run, *words, code=2):
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def is_golden(self, name, run, code=0):
        self.assertEqual(run.returncode, code, run.stderr)
        path = TESTS / "golden" / name
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(run.stdout, encoding="utf-8")
        self.assertEqual(run.stdout, path.read_text(encoding="utf-8"))


class Golden(Programs):
    def test_predict(self):
        self.is_golden("predict.txt", self.tutti("predict", EXAMPLE))
        self.is_golden("predict.json", self.tutti("predict", EXAMPLE, "--json"))

    def test_compare(self):
        self.is_golden("compare_batch.txt", self.tutti("compare", EXAMPLE))
        self.is_golden("compare_tasks.txt", self.tutti("compare", WAFER))

    def test_check(self):
        self.is_golden("check.txt", self.tutti("check", WAFER))
        self.is_golden("check_refused.txt", self.tutti("check", WAFER, "--set", "image=1GB", "--planner", "time_division"), 1)

    def test_run(self):
        self.is_golden("run.txt", self.tutti("run", WAFER, "--jobs", 20, "--set", "image=4MB"))
        self.is_golden("run.json", self.tutti("run", WAFER, "--jobs", 3, "--set", "image=4MB", "--json"))

    def test_wafer_inspection(self):
        self.is_golden("wafer_inspection.txt", self.wafer("--size", 256, "--jobs", 100))


class Json(Programs):
    def test_predict_has_the_contract_s_keys(self):
        answer = self.object_of(0, "predict", EXAMPLE, "--json")
        self.assertEqual(answer["schema_version"], 1)
        self.assertEqual((answer["planner"], answer["latency_ms"], answer["latest_ms"]), ("completion_aligned", 44.8, 44.8))
        self.assertEqual(answer["streams"][0]["transfer"], {"path": "direct", "start_ms": 33.6, "end_ms": 41.6, "rates_from": ["graph"]})
        self.assertEqual(answer["streams"][0]["kernel"], {"on": "gpu0", "start_ms": 41.6, "end_ms": 44.8})

    def test_compare_has_every_planner(self):
        answer = self.object_of(0, "compare", EXAMPLE, "--json")
        latencies = {row["planner"]: row["latency_ms"] for row in answer["planners"]}
        self.assertEqual(list(latencies), ["completion_aligned", "all_at_once", "bandwidth_allocation", "time_division", "gate_search"])
        self.assertEqual(latencies["gate_search"], 44.8)
        self.assertEqual(latencies["bandwidth_allocation"], 76.8)

    # 6, 3 and 3 MB through a host of 2 GB/s and links of 1: all at once or aligned they take 7.5 ms, and 6 where one short
    # copy waits for the other: a fifth less. Nothing is to say where no planner is sooner, or none is used.
    def test_check_names_the_planner_and_says_where_another_is_sooner(self):
        links = ", ".join(f"{{from: cpu0, to: gpu{i}, bandwidth: 1 GB/s}}" for i in range(3))
        gpus = ", ".join(f"gpu{i}: {{kind: gpu}}" for i in range(3))
        self.file(f"version: 1\nmachine: {{name: m, vertices: {{mem0: {{kind: memory}}, cpu0: {{kind: cpu}}, {gpus}}}, "
                  f"links: [{{from: mem0, to: cpu0, bandwidth: 2 GB/s}}, {links}]}}\n", "m.yaml")
        copies = ", ".join(f"{{name: s{i}, from: mem0, to: gpu{i}, size: {size} MB}}" for i, size in enumerate((6, 3, 3)))
        text = f"version: 1\nmachine: m.yaml\ntasks:\n- {{name: a, period: 20 ms, job: [{{batch: [{copies}]}}]}}\n"
        path = self.file(text)
        answer = self.object_of(0, "check", path, "--json")
        self.assertEqual((answer["planner"], answer["tasks"][0]["wcet_ms"]), ("completion_aligned", 7.5))
        searched = self.object_of(0, "check", path, "--planner", "gate_search", "--json")
        wcet = searched["tasks"][0]["wcet_ms"]
        self.assertEqual((searched["planner"], searched["notes"]), ("gate_search", []))
        self.assertLess(abs(wcet - 6), 0.01)
        self.assertEqual(answer["notes"], [f"under gate_search the Wcet of 'a' is {wcet:.3f} ms instead of 7.500 ms (-{100 - wcet / 0.075:.1f} %)"])
        run = self.tutti("check", path)
        self.assertIn("(non-preemptive edf, completion_aligned, utilization 0.3750)", run.stdout)
        self.assertTrue(run.stdout.endswith(f"\nnote: {answer['notes'][0]}\n"), run.stdout)
        # The file may ask for a planner, and the command line for another.
        asking = self.file(text.replace("tasks:", "planner: gate_search\ntasks:"), "asking.yaml")
        self.assertEqual(self.object_of(0, "check", asking, "--json")["tasks"], searched["tasks"])
        self.assertEqual(self.object_of(0, "check", asking, "--planner", "all_at_once", "--json")["planner"], "all_at_once")
        bound = self.object_of(0, "run", asking, "--jobs", 3, "--json")["summary"][0]["bound_ms"]
        self.assertEqual(bound, searched["tasks"][0]["worst_response_ms"])
        self.assertEqual(self.object_of(0, "run", path, "--jobs", 3, "--json")["summary"][0]["bound_ms"], 7.5)
        unknown = self.file(text.replace("tasks:", "planner: fastest\ntasks:"), "unknown.yaml")
        for command in ("check", "run", "compare"):
            self.refuses(self.tutti(command, unknown), ":3:10: 'fastest' is no planner; write one of completion_aligned, all_at_once")

    def test_check_says_schedulable_only_for_a_proof(self):
        answer = self.object_of(0, "check", WAFER, "--json")
        self.assertIs(answer["schedulable"], True)
        self.assertEqual(answer["verdict"], "schedulable")
        task = answer["tasks"][0]
        self.assertEqual([task["period_ms"], task["deadline_ms"], task["jitter_ms"]], [25, 60, 0])
        self.assertEqual(task["worst_response_ms"], task["wcet_ms"])  # alone, so nothing delays it

    def test_check_names_interval_and_blocker(self):
        # b (9 ms) has just started when a (3 ms) arrives: 12 ms of work in a's 10.
        path = self.file("version: 1\npolicy: rm\ntasks:\n- {name: a, period: 10 ms, wcet: 3 ms}\n- {name: b, period: 100 ms, wcet: 9 ms}\n")
        answer = self.object_of(1, "check", path, "--json")
        self.assertEqual((answer["schedulable"], answer["verdict"]), (False, "not_schedulable"))
        witness = next(test["witness"] for test in answer["tests"] if test["witness"])
        self.assertEqual((witness["interval_ms"], witness["load_ms"], witness["blocking_ms"], witness["blocker"]), (10, 12, 9, "b"))
        self.assertEqual(witness["by_task"], [{"name": "a", "load_ms": 3}])
        # a waits for b's 9 ms and takes its own 3.
        self.assertEqual((answer["tasks"][0]["worst_response_ms"], answer["tasks"][0]["slack_ms"]), (12, -2))

    def test_too_much_work_and_too_long_a_job_are_answers(self):
        for wcets in (("8 ms", "8 ms"), ("11 ms", "1 ms")):
            path = self.file("version: 1\ntasks:\n" + "".join(f"- {{name: t{i}, period: 10 ms, wcet: {w}}}\n" for i, w in enumerate(wcets)))
            self.assertEqual(self.object_of(1, "check", path, "--json")["verdict"], "not_schedulable")

    def test_run_has_jobs_and_a_summary(self):
        answer = self.object_of(0, "run", WAFER, "--set", "image=4MB", "--jobs", 4, "--json")
        self.assertEqual((answer["backend"], answer["clock"], answer["notes"], len(answer["jobs"])), ("sim", "virtual", [], 4))
        self.assertEqual([job["release_ms"] for job in answer["jobs"]], [0, 25, 50, 75])
        self.assertEqual([job["deadline_ms"] for job in answer["jobs"]], [60, 85, 110, 135])
        summary = answer["summary"][0]
        self.assertEqual((summary["released"], summary["completed"], summary["missed"], summary["overruns"]), (4, 4, 0, 0))
        self.assertGreaterEqual(summary["bound_ms"], summary["worst_response_ms"])
        self.assertEqual((summary["over_bound"], summary["worst_end_to_end_ms"]), (0, summary["worst_response_ms"]))
        self.assertEqual([(job["cause"], job["over_by_ms"]) for job in answer["jobs"]], [(None, None)] * 4)

    def test_device_memory_is_refused_with_the_amount(self):
        # 400 GB of image: 40 % in and 40 % out on gpu0, in ceil(60 / 25) = 3 sets, are 960 GB of its 141.
        answer = self.object_of(1, "check", WAFER, "--set", "image=400GB", "--json")
        memory = next(test for test in answer["tests"] if test["name"] == "device_memory")
        self.assertEqual(memory["verdict"], "not_schedulable")
        self.assertIn("960 GB on gpu0, which has 141 GB: 819 GB too much", memory["reason"])


class Usage(Programs):
    def test_help_has_an_example_everywhere(self):
        for words in ([], ["predict"], ["check"], ["compare"], ["run"], ["calibrate"], ["topology"], ["topology", "show"], ["topology", "detect"], ["bench"], ["bench", "methods"], ["bench", "copies"], ["verify"], ["capacity"], ["tasks"], ["tasks", "expand"]):
            run = self.tutti(*words, "--help")
            self.assertEqual(run.returncode, 0)
            self.assertIn("Example", run.stdout)
        self.assertIn("Example", self.wafer("--help").stdout)

    def test_mistakes_end_with_2(self):
        for words in ([], ["predict"], ["predict", EXAMPLE, "more"], ["predict", EXAMPLE, "--nonsense"], ["run", WAFER, "--jobs", "-3"],
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
        ):
            with self.subTest(words=words):
                self.refuses(self.tutti("run", WAFER, *words), sentence)
                self.refuses(self.wafer(*words), sentence)

    def test_a_typo_is_guessed(self):
        self.refuses(self.tutti("chek", WAFER), "did you mean 'check'?")
        self.refuses(self.tutti("predict", EXAMPLE, "--planner", "completion_alined"), "did you mean 'completion_aligned'?")

    def test_json_mode_prints_nothing_else(self):
        self.refuses(self.tutti("predict", "/no/such/file", "--json"))

    def test_a_set_without_guarantee_is_not_run(self):
        path = self.file("version: 1\ntasks: [{name: a, period: 10 ms, wcet: 11 ms}]\n")
        run = self.tutti("run", path, "--json")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("not run", run.stderr)

    def test_a_counter_example_is_replayed_and_misses(self):
        # With 400 MB of image a job takes 8 ms and more; quick waits for it: 1 + 8 > 4.
        text = (ROOT / WAFER).read_text(encoding="utf-8").replace("../machines", str(ROOT / "configs/machines"))
        path = self.file(text + "  - {name: quick, period: 4 ms, wcet: 1 ms}\n")
        shown = self.folder / "misses.yaml"
        answer = self.object_of(1, "check", path, "--set", "image=400MB", "--counter-example", shown, "--json")
        miss = answer["counter_example"]["misses"]
        self.assertEqual((miss["task"], miss["deadline_ms"]), ("quick", 4.000001))
        replayed = self.object_of(1, "run", path, "--set", "image=400MB", "--scenario", shown, "--json")
        late = [job for job in replayed["jobs"] if job["missed"]]
        self.assertEqual([(job["task"], job["index"], job["finish_ms"]) for job in late], [("quick", miss["index"], miss["finish_ms"])])

    def test_preemption_lets_a_quick_task_in(self):
        # quick cannot wait 3.7 ms for a whole job, nor 3.1 for its first batch; for a piece with the kernels behind it, it can.
        text = (ROOT / WAFER).read_text(encoding="utf-8").replace("../machines", str(ROOT / "configs/machines"))
        text += "  - {name: quick, period: 4 ms, wcet: 1 ms}\n"
        whole = self.file(text, "whole.yaml")
        batches = self.file(text.replace("policy: edf", "policy: edf\npreemption: between_batches"), "batches.yaml")
        pieces = self.file(text.replace("policy: edf", "policy: edf\npreemption: between_batches\ncut: 4 MB"), "pieces.yaml")
        sizes = ("--set", "image=65MB")
        self.assertEqual(self.object_of(1, "check", whole, *sizes, "--json")["verdict"], "not_schedulable")
        self.assertEqual(self.object_of(1, "check", batches, *sizes, "--json")["verdict"], "not_schedulable")
        answer = self.object_of(0, "check", pieces, *sizes, "--json")
        self.assertEqual((answer["verdict"], answer["preemption"]), ("schedulable", "between_batches"))
        run = self.object_of(0, "run", pieces, *sizes, "--for", "200ms", "--json")
        self.assertEqual([row["missed"] for row in run["summary"]], [0, 0])
        for row, task in zip(run["summary"], answer["tasks"]):
            self.assertLessEqual(row["worst_response_ms"], task["worst_response_ms"])

    def test_the_mends_of_a_set_in_parts_hold_and_its_counter_example_misses(self):
        text = (ROOT / WAFER).read_text(encoding="utf-8").replace("../machines", str(ROOT / "configs/machines"))
        text += "  - {name: quick, period: 4 ms, wcet: 1 ms}\n"
        batches = text.replace("policy: edf", "policy: edf\npreemption: between_batches")
        shown = self.folder / "misses.yaml"
        path = self.file(batches, "batches.yaml")
        sizes = ("--set", "image=65MB")
        answer = self.object_of(1, "check", path, *sizes, "--counter-example", shown, "--json")
        miss = answer["counter_example"]["misses"]
        replayed = self.object_of(1, "run", path, *sizes, "--scenario", shown, "--json")
        late = [job for job in replayed["jobs"] if job["missed"]]
        self.assertEqual([(job["task"], job["index"], job["finish_ms"]) for job in late], [(miss["task"], miss["index"], miss["finish_ms"])])
        remedy = answer["mends"][0]
        self.assertEqual((remedy["quantity"], remedy["from_bytes"], remedy["relative"]), ("cut", None, None))
        for more, code in (0, 0), (10_000_000, 1):  # half of the 26 MB of a copy; more than half is the whole
            cut = self.file(batches.replace("policy: edf", f"policy: edf\ncut: {remedy['to_bytes'] + more} B"), "cut.yaml")
            self.object_of(code, "check", cut, *sizes, "--json")
        self.assertIn("it would hold with: cut 25.99 MB instead of none\n", self.tutti("check", path, *sizes).stdout)

    def test_passing_between_batches_can_be_the_mend(self):
        text = (ROOT / WAFER).read_text(encoding="utf-8").replace("../machines", str(ROOT / "configs/machines"))
        path = self.file(text + "  - {name: quick, period: 4 ms, wcet: 1 ms}\n")
        remedy = self.object_of(1, "check", path, "--set", "image=60MB", "--json")["mends"][0]
        self.assertEqual((remedy["quantity"], remedy["from"], remedy["to"], remedy["relative"]), ("preemption", "none", "between_batches", None))

    def test_a_counter_example_needs_a_refusal(self):
        shown = self.folder / "misses.yaml"
        run = self.tutti("check", WAFER, "--counter-example", shown)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("there is no run to write", run.stderr)
        self.assertFalse(shown.exists())
        refused = self.file("version: 1\ntasks: [{name: a, period: 10 ms, wcet: 11 ms}]\n")
        self.refuses(self.tutti("check", refused, "--counter-example", self.folder / "none" / "misses.yaml"), "none")

    # One request is answered behind each job: behind that of a, b would be late; when a counts no more, b comes.
    def test_tasks_come_and_go_while_it_runs(self):
        tasks = self.file("""version: 1
policy: edf
tasks:
  - {name: x1, period: 20 ms, wcet: 4 ms}
  - {name: x2, period: 20 ms, wcet: 4 ms}
  - {name: a, period: 20 ms, wcet: 12 ms}
  - {name: b, period: 7 ms, wcet: 3 ms}
""", "four.yaml")
        changes = self.file("""version: 1
start: [x1, x2, a]
changes:
  - {at: 12 ms, remove: a, add: b}
  - {at: 12 ms, remove: a}
  - {at: 30 ms, add: b}
""", "changes.yaml")
        ran = self.object_of(0, "run", tasks, "--changes", changes, "--for", "60ms", "--json")
        self.assertEqual([(c["answered_ms"], c["remove"], c["add"], c["granted"]) for c in ran["changes"]],
                         [(20, "a", "b", False), (24, "a", None, True), (40, None, "b", True)])
        self.assertFalse(any(job["missed"] for job in ran["jobs"]))
        self.assertIn("refused: with 'b' a deadline", self.tutti("run", tasks, "--changes", changes, "--for", "60ms").stdout)

    def test_changes_with_a_mistake_are_refused_with_their_place(self):
        path = self.file("version: 1\nchanges:\n  - {at: 1 ms, add: inspct}\n", "c.yaml")
        self.refuses(self.tutti("run", WAFER, "--changes", path, "--for", "1s"), "c.yaml:3:21:", "did you mean 'inspect'?")
        self.refuses(self.tutti("run", WAFER, "--changes", path), "--for")
        late = self.file("version: 1\nstart: []\nchanges: []\n", "l.yaml")
        ran = self.object_of(0, "run", WAFER, "--changes", late, "--for", "1s", "--json")
        self.assertEqual(ran["jobs"], [])

    def test_a_scenario_with_a_mistake_is_refused_with_its_place(self):
        path = self.file("version: 1\njobs: [{task: inspekt, arrival: 0, takes: 1 ms}]\n", "s.yaml")
        self.refuses(self.tutti("run", WAFER, "--scenario", path), "s.yaml:2:15:", "did you mean 'inspect'?")
        self.refuses(self.tutti("run", WAFER, "--scenario", path, "--jobs", 3), "--scenario")

    def test_an_interrupt_drains_and_reports(self):
        path = self.file("version: 1\ntasks: [{name: a, period: 20 ms, wcet: 1 ms}]\n")
        process = subprocess.Popen([str(self.built / "tutti/tutti"), "run", path, "--clock", "real", "--for", "60s", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertLess(len(json.loads(out)["jobs"]), 3000)

    def test_no_gpu_is_trouble(self):
        # Here there is no CUDA, or no driver; on a host with GPUs the machine file still has no bus ids.
        for run in (self.tutti("run", WAFER, "--backend", "cuda"), self.wafer("--size", 256, "--backend", "cuda")):
            self.refuses(run, code=run.returncode)
            self.assertIn(run.returncode, (2, 3))

    def test_without_peer_access_copies_go_through_memory(self):
        # 100 MB at 100 GB/s from GPU to GPU take 1 ms; through mem0 10 ms at 10 GB/s, behind a chunk of 1 MB: 0.1 ms.
        self.file("version: 1\nmachine:\n  name: m\n  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}, gpu1: {kind: gpu}}\n  links:\n"
                  "    - {from: mem0, to: gpu0, bandwidth: 10 GB/s, back: 10 GB/s}\n    - {from: mem0, to: gpu1, bandwidth: 10 GB/s, back: 10 GB/s}\n"
                  "    - {from: gpu0, to: gpu1, bandwidth: 100 GB/s}\n  staging: {chunk: 1 MB}\n", "m.yaml")
        path = self.file("version: 1\nmachine: m.yaml\ntasks:\n- {name: a, period: 1 s, job: [{batch: [{from: gpu0, to: gpu1, size: 100 MB}]}]}\n")
        for words, milliseconds in ([], 1), (["--no-peer"], 10.1):
            answer = self.object_of(0, "run", path, "--json", *words)
            self.assertEqual(answer["summary"][0]["worst_response_ms"], milliseconds)


class BadInput(Programs):
    MACHINE = "version: 1\nmachine:\n  name: m\n  vertices:\n    mem0: {kind: memory}\n    gpu0: {kind: gpu}\n  links:\n    - {from: mem0, to: gpu0, bandwidth: 8 GB/s}\n"

    def predict(self, streams, machine=MACHINE):
        self.file(machine, "m.yaml")
        return self.tutti("predict", self.file(f"version: 1\nmachine: m.yaml\nstreams:\n{streams}\n"))

    def test_each_mistake_has_its_place(self):
        cases = (
            ("- {name: a, from: mem0, too: gpu0, size: 1 MB}", "f.yaml:4:25: unknown key 'too' in a stream; did you mean 'to'?"),
            ("- {name: a, from: mem0, to: gpu1, size: 1 MB}", "f.yaml:4:29: machine 'm' has no vertex 'gpu1'; did you mean 'gpu0'?"),
            ("- {name: a, from: mem0, to: gpu0, size: 1}", "f.yaml:4:41: '1' has no unit; write it like 64 MiB"),
            ("- {name: a, from: mem0, to: gpu0, size: -1 MB}", "f.yaml:4:41: '-1 MB' is negative"),
            ("- {name: a, from: gpu0, to: mem0, size: 1 MB}", "f.yaml:4:3: no way leads from 'gpu0' to 'mem0'"),
            ("- {name: a b, from: mem0, to: gpu0, size: 1 MB}", "f.yaml:4:10: 'a b' is no name"),
            ("- {name: a, from: mem0, to: gpu0, size: image}", "f.yaml:4:41: no parameter 'image' is defined"),
            ("- &x {name: a, from: mem0, to: gpu0, size: *x}", "f.yaml:4:44: "),
        )
        for stream, sentence in cases:
            with self.subTest(stream=stream):
                self.refuses(self.predict(stream), sentence)

    def test_a_mistake_in_the_machine_is_placed_there(self):
        machine = self.MACHINE.replace("8 GB/s", "0 GB/s")
        self.refuses(self.predict("- {name: a, from: mem0, to: gpu0, size: 1 MB}", machine), "m.yaml:8:41: '0 GB/s' is zero")

    def test_a_hundred_megabytes_of_nonsense(self):
        path = self.folder / "big.yaml"
        with open(path, "wb") as file:
            file.truncate(100_000_000)
        self.refuses(self.tutti("predict", path), "above 4 MiB")

    def test_an_unknown_kernel_is_named_before_the_run(self):
        self.file(self.MACHINE, "m.yaml")
        path = self.file("version: 1\nmachine: m.yaml\ntasks:\n- name: a\n  period: 10 ms\n  job:\n  - batch: [{kernel: {on: gpu0, time: 1 ms, name: sipn}}]\n")
        self.refuses(self.tutti("run", path), "f.yaml:7:13: ", "'sipn', which is not registered")


class JobSets(Programs):
    HEADER = "Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority\n"
    # At full length all is in time; where b runs shorter, a starts before c is there again: c ends at 18 > 17 ms.
    PERIODIC = ("version: 1\npolicy: edf\narrivals: periodic\ntasks:\n- {name: a, period: 24 ms, wcet: 5 ms, offset: 4 ms, best_case: 5 ms}\n"
                "- {name: b, period: 24 ms, wcet: 3 ms, offset: 1 ms, best_case: BEST}\n- {name: c, period: 8 ms, wcet: 5 ms, offset: 1 ms, best_case: 5 ms}\n")

    def periodic(self, best):
        return self.file(self.PERIODIC.replace("BEST", best), f"{best}.yaml")

    def test_a_job_that_ends_early_makes_another_late(self):
        answer = self.object_of(0, "check", self.periodic("3 ms"), "--json")
        self.assertEqual((answer["verdict"], answer["arrivals"]), ("schedulable", "periodic"))
        self.assertEqual([task["worst_response_ms"] for task in answer["tasks"]], [15, 8, 7])
        exactness = {test["name"]: test["exactness"] for test in answer["tests"]}
        self.assertEqual((exactness["np_exploration"], exactness["np_edf_demand"]), ("exact", "sufficient"))
        answer = self.object_of(1, "check", self.periodic("2 ms"), "--json")
        self.assertEqual(answer["verdict"], "not_schedulable")
        self.assertIn("np_exploration: job 1 of 'c' arrives at 9 ms, is due at 17 ms and ends at ", answer["reasons"][0])
        runs = {test["name"]: test["late_run"] for test in answer["tests"]}
        self.assertEqual([name for name, run in runs.items() if run], ["np_exploration"])
        late = runs["np_exploration"][-1]
        self.assertEqual((late["task"], late["index"], late["arrival_ms"], late["ready_ms"], late["deadline_ms"]), ("c", 1, 9, 9, 17))
        self.assertGreater(late["finish_ms"], 17)
        self.assertAlmostEqual(late["finish_ms"] - late["start_ms"], 5)

    def test_what_expand_writes_check_reads_with_the_same_verdict(self):
        for best, code in ("3 ms", 0), ("2 ms", 1):
            jobs = self.folder / "jobs.csv"
            run = self.tutti("tasks", "expand", self.periodic(best), "--out", jobs)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertTrue(jobs.read_text(encoding="utf-8").startswith(self.HEADER))
            answer = self.object_of(code, "check", "--jobs", jobs, "--json")
            self.assertEqual(answer["schedulable"], code == 0)
            self.assertEqual(self.tutti("tasks", "expand", self.periodic(best)).stdout, jobs.read_text(encoding="utf-8"))
            between = self.tutti("tasks", "expand", self.file("preemption: between_batches\n" + self.PERIODIC.replace("BEST", best), "b.yaml"))
            self.assertTrue(between.stderr.startswith("note: a job set knows no preemption"), between.stderr)
            self.assertEqual(between.stdout, jobs.read_text(encoding="utf-8"))
            if code == 0:
                self.assertEqual([task["worst_response_ns"] for task in answer["tasks"]], [15_000_000, 8_000_000, 7_000_000])
                self.assertEqual(len(answer["jobs"]), sum(task["jobs"] for task in answer["tasks"]))
            else:
                self.assertEqual((answer["late_run"][-1]["task"], answer["late_run"][-1]["job"]), (2, 1))
                self.assertGreater(answer["late_run"][-1]["finish_ns"], 17_000_000)

    def test_a_run_keeps_the_machine_for_the_best_case(self):
        # Jobs without steps end at once; held for 5, 3, 5 and 5 ms they start as worked out for full lengths.
        answer = self.object_of(0, "run", self.periodic("3 ms"), "--jobs", 5, "--json")
        starts = {(job["task"], job["index"]): job["start_ms"] for job in answer["jobs"]}
        self.assertEqual(starts, {("c", 0): 1, ("b", 0): 6, ("c", 1): 9, ("a", 0): 14, ("c", 2): 19})

    def test_a_number_of_jobs_is_kept(self):
        run = self.tutti("tasks", "expand", self.periodic("3 ms"), "--jobs", 3)
        self.assertEqual(run.stdout, self.HEADER + "1, 0, 1000000, 1000000, 3000000, 3000000, 25000000, 25000000\n"
                         "2, 0, 1000000, 1000000, 5000000, 5000000, 9000000, 9000000\n0, 0, 4000000, 4000000, 5000000, 5000000, 28000000, 28000000\n")

    def test_a_job_set_has_a_report(self):
        path = self.file(self.HEADER + "1, 1, 0, 0, 1, 2, 4, 4\n2, 1, 0, 1, 3, 3, 9, 9\n", "j.csv")
        run = self.tutti("check", "--jobs", path)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.startswith("schedulable: every deadline is guaranteed (2 jobs, non-preemptive, 3 states)\n"), run.stdout)
        self.assertIn("\n1        1                 1                  2         2\n", run.stdout)  # 1 to 2, due 4
        self.assertIn("\n2        1                 4                  5         4\n", run.stdout)  # behind it, due 9
        empty = self.tutti("check", "--jobs", self.file(self.HEADER, "j.csv"))
        for option, value in ("--policy", "rm"), ("--planner", "all_at_once"), ("--set", "a=1"), ("--counter-example", "c.yaml"):
            refused = self.tutti("check", "--jobs", path, option, value)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(f"--jobs excludes {option}", refused.stderr)
        self.assertEqual(empty.returncode, 0)
        self.assertIn("the job set is empty", empty.stdout)

    def test_mistakes_end_with_2(self):
        for text, sentence in (("", "j.csv:1:1: the file is empty"), (self.HEADER + "1, 1, 0, 0, 5, 3, 9, 9\n", "j.csv:2:16: the Cost max 3 is below"),
                               ("1, 2\n", "j.csv:1:1: '1' stands where"), (self.HEADER + "1, 1, 0, 0, 1, 99999999999999999999, 9, 9\n", "j.csv:2:16: ")):
            with self.subTest(text=text):
                self.refuses(self.tutti("check", "--jobs", self.file(text, "j.csv")), sentence)
        self.refuses(self.tutti("check", "--jobs", "/no/such/file"), "/no/such/file: the file cannot be read")
        self.refuses(self.tutti("check"), "there is nothing to check")
        self.refuses(self.tutti("check", WAFER, "--jobs", WAFER))
        self.refuses(self.tutti("tasks", "expand", WAFER), "its arrivals are sporadic")
        self.refuses(self.tutti("tasks", "expand", self.periodic("3 ms"), "--jobs", 0))
        self.refuses(self.tutti("tasks", "expand", self.periodic("4 ms")), "4 ms.yaml:6:65: the best case of 'b' is above its wcet")
        far = self.file("version: 1\narrivals: periodic\ntasks:\n- {name: a, period: 999983 ns, wcet: 1 ns}\n- {name: b, period: 1 s, wcet: 1 ns}\n- {name: c, period: 999979 s, wcet: 1 ns}\n")
        self.refuses(self.tutti("tasks", "expand", far), "hyperperiod", "--jobs")
        self.assertEqual(self.object_of(0, "check", far, "--json")["verdict"], "schedulable")  # sporadic arrivals would do


class Partitions(Programs):
    """Two sockets that share nothing: one task on the left, two on the right."""
    NAMES = [["left"], ["right", "right-dark-field"]]

    def test_check_says_which_tasks_run_independently(self):
        self.is_golden("check_partitions.txt", self.tutti("check", TWO_LINES))
        answer = self.object_of(0, "check", TWO_LINES, "--json")
        self.assertEqual(answer["partitions"], self.NAMES)
        self.assertGreater(sum(task["wcet_ms"] / task["period_ms"] for task in answer["tasks"]), 1)
        self.assertLess(answer["utilization"], 1)
        about = {(test["name"], test["partition"]) for test in answer["tests"]}
        self.assertLessEqual({("device_memory", None), ("utilization", 0), ("utilization", 1)}, about)

    def test_one_partition_is_not_mentioned(self):
        answer = self.object_of(0, "check", WAFER, "--json")
        self.assertNotIn("partitions", answer)
        self.assertNotIn("partition", answer["tests"][0])
        self.assertNotIn("partition", self.tutti("check", WAFER).stdout)

    def test_a_refusal_is_about_one_of_them(self):
        scenario = self.folder / "late.yaml"
        words = (TWO_LINES, "--set", "right=90MB")
        answer = self.object_of(1, "check", *words, "--json", "--counter-example", scenario)
        self.assertTrue(all(reason.startswith("partition 1: ") for reason in answer["reasons"]), answer["reasons"])
        responses = {task["name"]: task["worst_response_ms"] for task in answer["tasks"]}
        self.assertEqual(responses["left"], self.object_of(0, "check", TWO_LINES, "--json")["tasks"][0]["worst_response_ms"])
        self.assertIsNone(responses["right"])
        self.assertTrue(answer["mends"])
        self.assertTrue(all(remedy["task"] in self.NAMES[1] or remedy["name"] == "right" for remedy in answer["mends"]), answer["mends"])
        self.assertNotIn("left", scenario.read_text(encoding="utf-8"))
        replayed = self.object_of(1, "run", *words, "--scenario", scenario, "--json")
        missed = [(job["task"], job["index"]) for job in replayed["jobs"] if job["missed"]]
        miss = answer["counter_example"]["misses"]
        self.assertEqual(missed, [(miss["task"], miss["index"])])

    def test_they_run_at_the_same_time(self):
        answer = self.object_of(0, "run", TWO_LINES, "--set", "left=1280kB", "--set", "right=640kB", "--jobs", 12, "--json")
        self.assertEqual([(job["task"], job["start_ms"]) for job in answer["jobs"] if job["index"] == 0 and job["task"] != "right-dark-field"],
                         [("right", 0), ("left", 0)])
        self.assertEqual(len(answer["jobs"]), 12)
        ends = [job["finish_ms"] for job in answer["jobs"]]
        self.assertEqual(ends, sorted(ends))
        text = self.tutti("run", TWO_LINES, "--set", "left=1280kB", "--set", "right=640kB", "--jobs", 12).stdout
        self.assertTrue(text.startswith("12 jobs on the sim backend, virtual clock, non-preemptive edf in 2 partitions\n"), text)

    def test_an_interrupt_ends_all(self):
        words = ["run", TWO_LINES, "--set", "left=1280kB", "--set", "right=640kB", "--clock", "real", "--for", "60s"]
        with subprocess.Popen([str(self.built / "tutti/tutti"), *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
            time.sleep(0.5)
            run.send_signal(signal.SIGINT)
            out, err = run.communicate(timeout=30)
        self.assertIn(run.returncode, (3, 130), err)  # a busy host is too slow at times
        self.assertIn("in 2 partitions", out)

    def test_a_job_set_is_of_one_partition(self):
        text = (ROOT / TWO_LINES).read_text(encoding="utf-8").replace("policy: edf", "policy: edf\narrivals: periodic")
        path = self.file(text.replace("../machines", str(ROOT / "configs/machines")))
        self.refuses(self.tutti("tasks", "expand", path), "falls into 2 partitions", "give --partition 0 to 1")
        self.refuses(self.tutti("tasks", "expand", path, "--partition", 2), "give --partition 0 to 1")
        left = self.tutti("tasks", "expand", path, "--partition", 0, "--jobs", 3).stdout.splitlines()
        right = self.tutti("tasks", "expand", path, "--partition", 1, "--jobs", 30).stdout.splitlines()
        self.assertEqual({line.split(",")[0] for line in left[1:]}, {"0"})
        self.assertEqual({line.split(",")[0] for line in right[1:]}, {"0", "1"})
        one = self.file("version: 1\narrivals: periodic\ntasks: [{name: a, period: 4 ms, wcet: 1 ms}]\n", "one.yaml")
        self.refuses(self.tutti("tasks", "expand", one, "--partition", 1), "--partition", "leave it out")
        self.assertEqual(self.tutti("tasks", "expand", one, "--partition", 0).stdout, self.tutti("tasks", "expand", one).stdout)


class Calibrate(Programs):
    def calibrate(self, document, *words):
        path = self.file(document if isinstance(document, str) else json.dumps(document), "m.json")
        return self.tutti("calibrate", "--from", path, "--out", self.folder / "out.yaml", *words)

    def measured(self, most_gpus=4):
        document = json.loads((ROOT / MEASURED).read_text(encoding="utf-8"))
        for entries in ("steady_state", "batches_all_at_once"):
            document[entries] = [entry for entry in document[entries] if all(s["gpu"] < most_gpus for s in entry["streams"])]
        return document

    def test_the_file_that_it_writes_is_a_machine(self):
        out = self.folder / "out.yaml"
        answer = self.object_of(0, "calibrate", "--from", MEASURED, "--out", out, "--json")
        self.assertEqual((answer["left_out"], len(answer["residuals"])), ([], 64))
        self.assertLess(answer["errors"]["table"]["rates"]["p95"], 0.005)
        self.assertGreater(answer["errors"]["plain_model"]["rates"]["p95"], 0.5)
        shown = self.object_of(0, "topology", "show", out, "--json")
        self.assertEqual((len(shown["links"]), len(shown["residuals"])), (10, 64))
        again = self.folder / "again.yaml"
        self.assertEqual(self.tutti("calibrate", "--from", MEASURED, "--out", again).returncode, 0)
        self.assertEqual(out.read_bytes(), again.read_bytes())

    def test_predictions_say_where_their_rates_come_from(self):
        batch = f"version: 1\nmachine: {ROOT / H200X4}\nstreams:\n- {{name: a, from: mem0, to: gpu0, size: 64 MB}}\n- {{name: b, from: gpu2, to: gpu1, size: 64 MB}}\n"
        answer = self.object_of(0, "predict", self.file(batch), "--json")
        self.assertEqual([stream["transfer"]["rates_from"] for stream in answer["streams"]], [["table"], ["graph"]])

    def test_check_holds_on_the_host_itself_and_not_on_another(self):
        self.assertIs(self.object_of(0, "calibrate", "--check", MEASURED, "--machine", H200X4, "--json")["holds"], True)
        answer = self.object_of(4, "calibrate", "--check", SECOND_HOST, "--machine", H200X4, "--json")
        self.assertIs(answer["holds"], False)
        self.assertLess(answer["moved"][0]["measured"], answer["moved"][0]["calibrated"])
        self.assertIn("does NOT hold", self.tutti("calibrate", "--check", SECOND_HOST, "--machine", H200X4).stdout)

    def test_plan_lists_what_to_measure(self):
        answer = self.object_of(0, "calibrate", "--plan", H200X4, "--json")
        self.assertLess(answer["total_ms"], 75_000)
        self.assertEqual(answer["combinations"][0], {"streams": [{"gpu": 0, "direction": "h2d"}]})
        self.assertIn({"streams": [{"from": "gpu0", "to": "gpu1"}]}, answer["ways"])

    def test_the_fit_goes_on_without_what_it_cannot_use(self):
        def left_out(change):
            document = self.measured(most_gpus=2)
            change(document)
            run = self.calibrate(document, "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
            return json.loads(run.stdout)["left_out"]

        rates = lambda document: document["steady_state"]
        twice = {"streams": self.measured()["steady_state"][0]["streams"], "gbps": [40]}
        for change, sentence in (
            (lambda d: rates(d).append(twice), "steady_state[13]: h2d 0 was measured 2 times, from 40.0 to 55.4 GB/s; measure it again"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, 120), "h2d 0 runs at 120.0 GB/s in h2d 0 1, more than its link carries alone (55.4)"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, "N/A"), 'steady_state[4]: h2d 0 has the rate "N/A"'),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, None), "steady_state[4]: h2d 0 has the rate null"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, 0), "steady_state[4]: h2d 0 has the rate 0"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, 1e300), "steady_state[4]: h2d 0 has the rate 1e+300"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, 1e-9), "steady_state[4]: h2d 0 has the rate 1e-09"),
            (lambda d: d["batches_all_at_once"].append({"streams": [{"gpu": 0, "direction": "h2d", "bytes": "x", "finish_us": 1}]}), 'h2d 0 has \'bytes\' "x"'),
            (lambda d: d["batches_all_at_once"].append({"streams": [{"gpu": 0, "direction": "h2d", "bytes": 1e6, "finish_us": 1}]}), "faster than its link carries it alone"),
        ):
            with self.subTest(sentence=sentence):
                sentences = left_out(change)
                self.assertEqual(len(sentences), 1)
                self.assertIn(sentence, sentences[0])
        self.assertEqual(left_out(lambda d: rates(d)[4]["gbps"].__setitem__(0, "55.3")), [])  # a number in a string

    def test_mistakes_end_with_2(self):
        stream = '{"gpu": 0, "direction": "h2d"}'
        for document, sentence in (
            ("", "m.json: this cannot be read, or is empty"),
            ('{"steady_state": [\n{"gbps": [NaN]}]}', "m.json:2:11: this is no JSON; NaN"),
            ("[]", "the file is no JSON object"),
            ("{}", "there is no 'steady_state'"),
            ('{"steady_state": 3}', "steady_state: this is no list"),
            ('{"steady_state": []}', "there is no combination of streams that can be used"),
            (f'{{"steady_state": [{{"streams": [{stream}], "gbps": [55]}}]}}', "d2h 0 was never measured"),
            (f'{{"steady_state": [{{"streams": [{stream}], "gbps": [55, 55]}}]}}', "steady_state[0]: 'gbps' has one rate for each of the 1 streams"),
            (f'{{"steady_state": [{{"streams": [{stream}, {stream}], "gbps": [55, 55]}}]}}', "steady_state[0]: h2d 0 stands twice"),
            ('{"steady_state": [{"streams": [{"gpu": 8, "direction": "h2d"}], "gbps": [55]}]}', "'gpu' is 8; it is a position from 0 to 7"),
            ('{"steady_state": [{"streams": [{"gpu": 0, "direction": "up"}], "gbps": [55]}]}', "'direction' is \"up\"; it is h2d or d2h"),
            ('{"steady_state": [{"streams": [{"gpu": 0, "direction": "h2d"}]}]}', "steady_state[0]: there is no 'gbps'"),
        ):
            with self.subTest(sentence=sentence):
                self.refuses(self.calibrate(document), sentence)
                self.assertFalse((self.folder / "out.yaml").exists())
        two_gpus = BadInput.MACHINE.replace("bandwidth: 8 GB/s", "bandwidth: 8 GB/s, back: 8 GB/s")
        self.refuses(self.calibrate(self.measured(), "--machine", self.file(two_gpus)), "gpu 3 was measured, and the machine 'm' has 1 GPUs")
        for words in ([], ["--from", MEASURED], ["--out", "x"], ["--check", MEASURED], ["--from", MEASURED, "--out", "/no/such/folder/x"],
                      ["--from", MEASURED, "--plan", H200X4], ["--from", "/no/such", "--out", "x"], ["--plan", "/no/such"], ["--check", "/no/such", "--machine", H200X4]):
            with self.subTest(words=words):
                self.refuses(self.tutti("calibrate", *words))
        for machine in (BadInput.MACHINE, BadInput.MACHINE.replace("mem0: {kind: memory}", "mem0: {kind: cpu}")):
            self.refuses(self.tutti("calibrate", "--check", MEASURED, "--machine", self.file(machine)), "name the machine that was measured")
            self.refuses(self.tutti("calibrate", "--plan", self.file(machine)))
        self.refuses(self.tutti("topology", "show", "/no/such"))
        self.refuses(self.tutti("topology"))


class Measure(Programs):
    """A machine that is measured, here the simulated one, and the file that describes it then."""

    MACHINE = "configs/machines/inspection-example.yaml"

    def calibrate(self, *words, out=None):
        return self.tutti("calibrate", "--machine", self.MACHINE, "--out", out or self.folder / "out.yaml", *words)

    def test_the_simulated_machine_finds_itself(self):
        out, measured, again = (self.folder / name for name in ("out.yaml", "measured.json", "again.yaml"))
        answer = self.object_of(0, "calibrate", "--machine", self.MACHINE, "--out", out, "--backend", "sim", "--copy", "64KiB",
                                "--rounds", 2, "--measured", measured, "--json")
        self.assertEqual(answer["left_out"], [])
        self.assertLess(answer["errors"]["graph"]["rates"]["worst"], 0.02)
        self.assertLess(answer["errors"]["graph"]["batch_lengths"]["worst"], 0.02)
        self.assertEqual(self.object_of(0, "topology", "show", out, "--json")["machine"], "inspection-example")
        latency = self.object_of(0, "predict", EXAMPLE, "--json")["latency_ms"]
        self.assertAlmostEqual(self.object_of(0, "predict", EXAMPLE, "--machine", out, "--json")["latency_ms"], latency, delta=0.02 * latency)
        # Two rounds over the same combinations, and batches with the medians of both.
        document = json.loads(measured.read_text(encoding="utf-8"))
        self.assertEqual(document["machine"], "the simulated machine inspection-example")
        self.assertEqual(len(document["steady_state"]), 2 * len(answer["residuals"]))
        self.assertEqual(len(document["batches_all_at_once"]), 40)
        # What was measured can be fitted again, and compared.
        self.object_of(0, "calibrate", "--machine", self.MACHINE, "--from", measured, "--out", again, "--json")
        self.assertEqual(again.read_text(encoding="utf-8"), out.read_text(encoding="utf-8"))
        self.assertIs(self.object_of(0, "calibrate", "--check", measured, "--machine", out, "--json")["holds"], True)

    def test_it_says_how_far_it_is(self):
        run = self.calibrate("--backend", "sim", "--copy", "4KiB", "--rounds", 2)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stderr, r"^gates and copy engines: [\d.]+ s\n\d+ combinations and 40 batches\nround 1 of at most 2\n"
                                     r"round 2 of at most 2: 19 medians in 20 are known within 0.00 %\nrates: [\d.]+ s\ncosts of commands: [\d.]+ s\n$")
        quick = self.calibrate("--backend", "sim", "--copy", "4KiB", "--quick", "--loaded")
        self.assertEqual(quick.returncode, 0, quick.stderr)
        self.assertIn("of at most 3", quick.stderr)
        self.assertIn("gates open late by: median 0.0 us", quick.stderr)
        self.assertIn("starts behind gates on a busy host", (self.folder / "out.yaml").read_text(encoding="utf-8"))

    def test_costs_of_the_file_are_found_again(self):
        costly = self.folder / "costly.yaml"
        text = (ROOT / self.MACHINE).read_text(encoding="utf-8")
        setup = "  setup: {batch: 7 us, gate: 2 us, transfer: 120 ns, kernel: 1.5 us}\n"
        costly.write_text(re.sub(r"  setup: .*\n", "", text) + setup, encoding="utf-8")
        out = self.folder / "out.yaml"
        run = self.tutti("calibrate", "--machine", costly, "--out", out, "--backend", "sim", "--copy", "64KiB", "--rounds", "1")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"a batch +[89]\.\d\d")  # batch and gate: 9 us
        self.assertRegex(run.stdout, r"a copy, up +0\.1[0-4]")
        self.assertRegex(run.stdout, r"a kernel +1\.[345]")

    def test_mistakes_are_told_before_anything_is_measured(self):
        out = self.folder / "out.yaml"
        for words, sentence in (
            (["--copy", "nonsense"], "--copy: 'nonsense' is no size of 4 KiB or more; write it like 128MiB"),
            (["--copy", "0"], "--copy: '0' is no size"),
            (["--rounds", "0"], "--rounds: "),
            (["--measured", "/no/such/folder/x"], "/no/such/folder/x: this cannot be written"),
            (["--gate", "host_timed"], "--bind and --gate are for GPUs"),
        ):
            with self.subTest(words=words):
                self.refuses(self.calibrate("--backend", "sim", *words), sentence)
                self.assertEqual(list(self.folder.iterdir()), [])
        for place in ("/no/such/folder/x", self.folder):
            self.refuses(self.calibrate("--backend", "sim", out=place), f"{place}: this cannot be written")
        self.refuses(self.calibrate("--backend", "abacus"), "--backend: there is no 'abacus'")
        self.refuses(self.tutti("calibrate", "--machine", self.MACHINE, "--backend", "sim"), "give --machine and --out to measure this host")
        self.refuses(self.tutti("calibrate", "--machine", "/no/such", "--out", out, "--backend", "sim"), "/no/such: ")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_no_gpu_is_trouble(self):
        # Here there is no CUDA, or no driver; on a host with GPUs the machine file still has no bus ids.
        for words in ([], ["--backend", "cuda", "--gate", "memory_wait"]):
            run = self.calibrate(*words)
            self.refuses(run, code=run.returncode)
            self.assertIn(run.returncode, (2, 3))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_interrupt_writes_nothing(self):
        process = subprocess.Popen([str(self.built / "tutti/tutti"), "calibrate", "--machine", self.MACHINE, "--out", str(self.folder / "out.yaml"),
                                    "--backend", "sim", "--copy", "4MiB", "--rounds", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        process.stderr.readline()  # it has begun
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertIn("interrupted; nothing was written", err)
        self.assertEqual(list(self.folder.iterdir()), [])


class Verify(Programs):
    """Predicted beside measured, here on the simulated machine, which does what is planned."""

    MACHINE = "configs/machines/inspection-example.yaml"

    def test_the_simulated_machine_is_as_predicted(self):
        out, worst = self.folder / "out.json", self.folder / "worst.yaml"
        words = ["verify", "--machine", self.MACHINE, "--backend", "sim", "--random", "24", "--largest", "256KiB", "--repeats", "1"]
        answer = self.object_of(0, *words, "--seed", "7", "--json", "--out", out, "--save-worst", worst)
        self.assertEqual(answer["above_latest"], 0)
        self.assertEqual(answer["seed"], 7)
        peers = answer["groups"]["peers"]["runs"]  # 5 of each such batch: two wake links
        self.assertEqual(answer["groups"]["all"]["runs"], 3 * 24 + peers // 5 * 2)
        self.assertEqual(answer["groups"]["all"]["length_errors"]["worst"], 0)
        for group in ("both ways", "kernels", "staged", "in a row"):
            self.assertIn(group, answer["groups"])
        self.assertEqual(json.loads(out.read_text(encoding="utf-8"))["above_latest"], 0)
        self.object_of(0, "predict", worst, "--json")
        by_clock = ["verify", "--machine", self.MACHINE, "--backend", "sim", "--random", "1", "--repeats", "1", "--seed", "clock", "--json"]
        self.assertNotEqual(self.object_of(0, *by_clock)["seed"], self.object_of(0, *by_clock)["seed"])
        self.assertIn("above latest", self.tutti(*words, "--loaded").stdout)

    def test_mistakes_end_with_2(self):
        for words in (["--random", "3"], ["--machine", self.MACHINE], ["--machine", self.MACHINE, "--random", "3", "--seed", "noon"],
                      ["--machine", self.MACHINE, "--random", "3", "--largest", "1"]):
            with self.subTest(words=words):
                self.refuses(self.tutti("verify", "--backend", "sim", *words))


class Detect(Programs):
    """These hold on every host: with GPUs, and without any, where there is one sentence and exit code 3."""

    def detect(self, *words):
        run = self.tutti("topology", "detect", *words)
        if run.returncode == 3:
            self.refuses(run, code=3)
            self.assertRegex(run.stderr, "; ")
            return None
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_gpus_have_ids(self):
        answer, text = self.detect("--json"), self.detect()
        if answer is None:
            self.assertIsNone(text)
            return
        for gpu in json.loads(answer)["gpus"]:
            self.assertRegex(gpu["bus_id"], "^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-9a-f]$")
            self.assertRegex(gpu["uuid"], "^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            self.assertIn(gpu["uuid"], text)

    def test_the_file_that_it_writes_is_a_machine(self):
        out = self.folder / "out.yaml"
        answer = self.detect("--out", out, "--name", "this-host", "--json")
        self.assertEqual(out.exists(), answer is not None)
        if answer is not None:
            self.assertEqual(json.loads(answer)["out"], str(out))
            self.assertEqual(self.object_of(0, "topology", "show", out, "--json")["machine"], "this-host")

    @unittest.skipUnless("TUTTI_FAKE_DRIVER" in os.environ, "this build has no CUDA")
    def test_a_driver_that_does_not_work_is_told_apart(self):
        for version, status, sentence in (
            (0, 0, "there is no GPU driver on this host; install"),
            (11000, 0, "the GPU driver serves CUDA 11.0 at most, and this program is built with CUDA "),
            (99000, 100, "the GPU driver finds no GPU; "),
            (99000, 803, "the GPU driver does not start (cudaErrorSystemDriverMismatch: "),
        ):
            with self.subTest(sentence=sentence):
                environment = {**os.environ, "LD_LIBRARY_PATH": os.environ["TUTTI_FAKE_DRIVER"],
                               "FAKE_CUDA_VERSION": str(version), "FAKE_CUDA_INIT": str(status)}
                self.refuses(self.run_program("tutti/tutti", "topology", "detect", env=environment), sentence, code=3)

    def test_a_file_that_cannot_be_written_is_refused(self):
        run = self.tutti("topology", "detect", "--out", "/no/such/folder/x")
        self.refuses(run, code=run.returncode)
        self.assertIn(run.returncode, (2, 3))

    def test_mistakes_end_with_2(self):
        self.refuses(self.tutti("topology", "detect", "--name", "a b"), "--name: 'a b' is no name")
        self.refuses(self.tutti("topology", "detect", "machine.yaml"))
        self.refuses(self.tutti("topology", "detect", "--out"))


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


class Capacity(Programs):
    """mem0 to gpu0 at 1 byte/ns, so a task that sends an image of x bytes every 10 ms fits up to 10 MB."""
    TASKS = "version: 1\nmachine: m.yaml\nparameters: {image: 4 MB, unused: 1 MB}\ntasks:\n- {name: a, period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: image}]}]}\n"
    NO_SIZES = "version: 1\ntasks:\n- {name: a, period: 10 ms, wcet: 2 ms}\n- {name: b, period: 20 ms, deadline: 16 ms, wcet: 6 ms}\n"

    def tasks(self, text=TASKS):
        self.file("version: 1\nmachine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s}]}\n", "m.yaml")
        return self.file(text)

    def test_the_largest_size_is_found(self):
        answer = self.object_of(0, "capacity", self.tasks(), "--parameter", "image", "--json", "--points", 6)
        self.assertEqual([answer[key] for key in ("schema_version", "quantity", "name", "task", "wanted", "policy", "now_bytes")],
                         [1, "parameter", "image", None, "largest", "edf", 4_000_000])
        self.assertEqual([row["planner"] for row in answer["planners"]], ["completion_aligned", "all_at_once", "bandwidth_allocation", "time_division"])
        for row in answer["planners"]:
            self.assertEqual((row["value_bytes"], row["beyond_bytes"], row["utilization"], row["wcet_growth"], row["holes"]),
                             (10_000_000, 10_001_000, 1.0, 1.0, []))
            # Up to a quarter beyond: 2.5 MB take a quarter of the time, so it could be four times as much.
            self.assertEqual([point["value_bytes"] for point in row["curve"]], [0, 2_500_000, 5_000_000, 7_500_000, 10_000_000, 12_500_000])
            self.assertEqual([point["schedulable"] for point in row["curve"]], [True] * 5 + [False])
            self.assertEqual([point["wcet_growth"] for point in row["curve"]], [None, 4, 2, 1.3333, 1, 0.8])

    def test_one_planner_and_text(self):
        run = self.tutti("capacity", self.tasks(), "--parameter", "image", "--planner", "time_division")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("largest 'image' with which every deadline is guaranteed (non-preemptive edf; now 4 MB)", run.stdout)
        self.assertEqual(run.stdout.split("\n")[3].split(), ["time_division", "10", "MB", "10.001", "MB", "1.0000", run.stdout.split("\n")[3].split()[-1]])

    def test_the_smallest_period_and_deadline_and_the_largest_wcet(self):
        # b (6) may just have started when a (2) arrives: a needs 8 ms. b behind a needs 8, too; with a's period of 8 one
        # more a fits into b's 16: 6 + 2 + 2 <= 16. a may take 10 - 6 = 4.
        for of, value in (("period", 8), ("deadline", 8), ("wcet", 4)):
            answer = self.object_of(0, "capacity", self.tasks(self.NO_SIZES), "--task", "a", "--of", of, "--json")
            self.assertEqual([row["value_ms"] for row in answer["planners"]], [value] * 4, of)
            self.assertEqual((answer["task"], answer["wanted"]), ("a", "largest" if of == "wcet" else "smallest"))

    def test_the_value_that_is_named_passes_check_and_the_next_does_not(self):
        for row in self.object_of(0, "capacity", WAFER, "--parameter", "image", "--json")["planners"]:
            for size, code in ((row["value_bytes"], 0), (row["beyond_bytes"], 1)):
                run = self.tutti("check", WAFER, "--planner", row["planner"], "--set", f"image={size} B")
                self.assertEqual(run.returncode, code, run.stdout)

    def test_planners_that_search_are_asked_only_where_the_set_or_the_caller_says_so(self):
        four = ["completion_aligned", "all_at_once", "bandwidth_allocation", "time_division"]
        for text, words, planners in (
            (self.TASKS, [], four),
            (self.TASKS, ["--planner", "gate_search"], ["gate_search"]),
            (self.TASKS.replace("tasks:", "planner: gate_search\ntasks:", 1), [], four + ["gate_search"]),
        ):
            with self.subTest(planners=planners):
                answer = self.object_of(0, "capacity", self.tasks(text), "--parameter", "image", "--points", 2, "--json", *words)
                self.assertEqual([(row["planner"], row["value_bytes"]) for row in answer["planners"]], [(planner, 10_000_000) for planner in planners])

    def test_the_drawing_is_well_formed(self):
        drawing = self.folder / "image.svg"
        run = self.tutti("capacity", WAFER, "--parameter", "image", "--svg", drawing, "--points", 20)
        self.assertEqual(run.returncode, 0, run.stderr)
        root = xml.parse(drawing).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("'image' in MB", words)
        for planner in ("completion_aligned", "all_at_once", "bandwidth_allocation", "time_division"):
            self.assertTrue(any(word.startswith(planner + ": ") for word in words), words)
        self.assertEqual(len(list(root.iter("{http://www.w3.org/2000/svg}path"))), 8)  # two curves a planner

    def test_what_has_no_answer_is_a_sentence(self):
        endless = "version: 1\nmachine: m.yaml\nparameters: {image: 1 B}\ntasks:\n- {name: a, period: 9000000000 s, job: [{batch: [{from: mem0, to: gpu0, size: 1% of image}]}]}\n"
        hopeless = self.TASKS + "- {name: b, period: 1 ms, wcet: 2 ms}\n"
        for text, words, sentence in (
            (self.TASKS, ["--parameter", "imagine"], "defines no parameter 'imagine'; did you mean 'image'?"),
            (self.NO_SIZES, ["--parameter", "image"], "defines no parameter 'image'; write 'parameters: {image: 160 MB}'"),
            (self.TASKS, ["--parameter", "unused"], "no size depends on 'unused'; write one like '40% of unused'"),
            (hopeless, ["--parameter", "image"], "with no value of 'image' that was tried is every deadline guaranteed (at 0 B: "),
            (endless, ["--parameter", "image"], "every 'image' up to the limit of 8388608 GiB is schedulable"),
            (self.NO_SIZES.replace("wcet: 2 ms", "wcet: 0").replace("wcet: 6 ms", "wcet: 0"), ["--task", "a", "--of", "period"], "every period of 'a' down to the limit of 1 ns is schedulable"),
            (self.NO_SIZES, ["--task", "c", "--of", "period"], "has no task 'c'"),
            (self.NO_SIZES, ["--task", "a", "--of", "perod"], "did you mean 'period'?"),
            (self.TASKS, ["--task", "a", "--of", "wcet"], "task 'a' declares no wcet"),
            (self.TASKS, [], "give either --parameter NAME, or --task NAME with --of period|deadline|wcet"),
            (self.TASKS, ["--parameter", "image", "--task", "a"], "give either"),
            (self.TASKS, ["--parameter", "image", "--of", "period"], "give either"),
            (self.TASKS, ["--parameter", "image", "--planner", "fastest"], "there is no planner 'fastest'"),
            (self.TASKS, ["--parameter", "image", "--svg", "/no/such/folder/x.svg"], "cannot be written"),
            (self.TASKS, ["--parameter", "image", "--points", "1"], ""),
        ):
            with self.subTest(words=words):
                self.refuses(self.tutti("capacity", self.tasks(text), *words), sentence)
                self.refuses(self.tutti("capacity", self.tasks(text), *words, "--json"), sentence)

    def test_a_refusal_says_what_would_mend_it(self):
        # 20 ms of every 10: half the image, half the transfer, twice the period.
        path = self.tasks(self.TASKS.replace("4 MB", "20 MB"))
        answer = self.object_of(1, "check", path, "--json")
        self.assertEqual(answer["mends"], [
            {"quantity": "parameter", "task": None, "name": "image", "line": None, "from_bytes": 20_000_000, "to_bytes": 10_000_000, "relative": -0.5},
            {"quantity": "size", "task": "a", "name": "stream0", "line": 5, "from_bytes": 20_000_000, "to_bytes": 10_000_000, "relative": -0.5},
            {"quantity": "period", "task": "a", "name": None, "line": 5, "from_ms": 10, "to_ms": 20, "relative": 1},
        ])
        self.assertEqual((answer["mends_left_out"], answer["wcet_growth"]), (None, 0.5))
        self.assertIn("it would hold with: 'image' 10 MB instead of 20 MB (-50 %)\n", self.tutti("check", path).stdout)
        self.assertEqual(self.tutti("check", path, "--set", "image=10MB").returncode, 0)
        self.assertEqual(self.object_of(0, "check", WAFER, "--json")["mends"], [])

    def test_ten_thousand_tasks_are_answered(self):
        path = self.file("version: 1\ntasks:\n" + "".join(f"- {{name: t{i}, period: 1 s, wcet: 1 ms}}\n" for i in range(10_000)))
        answer = self.object_of(1, "check", path, "--json")
        self.assertEqual(answer["mends"], [])
        self.assertIn("more than 2000 tasks", answer["mends_left_out"])


class Wafer(Programs):
    def test_pictures_come_back_from_files(self):
        made = self.wafer("generate", "--images", self.folder / "w", "--size", 256, "--count", 2)
        self.assertEqual(made.returncode, 0, made.stderr)
        run = self.wafer("--images", self.folder / "w", "--size", 256, "--jobs", 10)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.split("\n")[-2].split(), ["10", "0", "0.021", "0.021", "0", "0.021", "60.000", "120", "120", "0"])

    def test_another_size_or_no_picture_is_refused(self):
        self.wafer("generate", "--images", self.folder / "w", "--size", 256, "--count", 1)
        self.refuses(self.wafer("--images", self.folder / "w", "--size", 512), "256 x 256 pixels; 512 x 512 are declared")
        self.refuses(self.wafer("--images", self.folder), "no .png")
        (self.folder / "w" / "wafer000.png").write_bytes(b"no picture")
        self.refuses(self.wafer("--images", self.folder / "w", "--size", 256), "wafer000.png")

    def test_another_machine_takes_the_place_of_the_task_set_s(self):
        machine = (ROOT / H200X4).read_text(encoding="utf-8").replace("name: h200x4", "name: elsewhere")
        run = self.wafer("--size", 256, "--jobs", 2, "--machine", self.file(machine))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.startswith("wafer inspection on elsewhere: sim backend, virtual clock, "), run.stdout)
        self.refuses(self.wafer("--machine", "/no/such"))

    def test_an_interrupt_drains_and_reports(self):
        process = subprocess.Popen([str(self.built / "wafer_inspection/wafer_inspection"), "--size", "256", "--count", "1", "--jobs", "1000000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("interrupted; the report covers what had run", err)
        self.assertLess(int(out.split("\n")[-2].split()[0]), 1_000_000)

    def test_mistakes_end_with_2(self):
        for words in (["--size", "100"], ["--size", "x"], ["--jobs", "0"], ["--seed", "-1"], ["generate"], ["--tasks", "/no/such"], ["--clock", "sand"], ["nonsense"]):
            with self.subTest(words=words):
                self.refuses(self.wafer(*words))


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS / "support"))
    import tap

    Programs.built = pathlib.Path(sys.argv[1]).resolve()
    sys.exit(tap.main(sys.argv[2:]))
