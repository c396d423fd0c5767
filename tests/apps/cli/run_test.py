#!/usr/bin/env python3
"""`tutti run`."""
import json
import os
import signal
import subprocess
import sys
from xml.etree import ElementTree

from programs import ROOT, TOO_SLOW, WAFER, Programs, main


SVG = "{http://www.w3.org/2000/svg}"


class Run(Programs):
    def test_whole_outputs(self):
        self.is_golden("run.txt", self.tutti("run", WAFER, "--jobs", 20, "--set", "image=4MB"))
        self.is_golden("run.json", self.tutti("run", WAFER, "--jobs", 3, "--set", "image=4MB", "--json"))

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

    def test_real_time_reports_how_late_jobs_were_seen(self):
        path = self.file("version: 1\ntasks: [{name: a, period: 10 ms, wcet: 1 ms}]\n")
        for options in ((), ("--priority", 50), ("--priority", 50, "--wait", "block")):
            done = self.tutti("run", path, "--clock", "real", "--jobs", 4, "--json", *options)
            answer = json.loads(done.stdout)
            self.assertEqual(len(answer["jobs"]), 4)
            # A host that pauses for a period leaves jobs out: these were never seen.
            late = [job["late_ms"] for job in answer["jobs"] if job["late_ms"] is not None]
            self.assertGreaterEqual(min(late), 0)
            self.assertEqual(answer["lateness"]["worst_ms"], max(late))
            self.assertLessEqual(answer["lateness"]["median_ms"], answer["lateness"]["p999_ms"])
            self.assertGreater(answer["lateness"]["processor_share"], 0)
        self.assertIsNone(self.object_of(0, "run", path, "--json")["lateness"])

    def test_cores_that_are_not_there_are_refused(self):
        path = self.file("version: 1\ntasks: [{name: a, period: 10 ms, wcet: 1 ms}]\n")
        run = self.tutti("run", path, "--clock", "real", "--cores", "100000")
        self.assertEqual((run.returncode, run.stdout), (2, ""))
        self.assertIn("core 100000 is none that this program may use; name some of ", run.stderr)

    # Arrivals of the camera at 0, 10, ..., of the gate at 0, 20, ...; both always run at once, the camera first: from 0 to 2
    # ms, the gate from 2 to 5. An event after 0 is read at 10, and answered by the gate's job at 20: 25 ms; its data age is that
    # of the image of 0 until 25.
    def test_chains_are_measured_beside_their_bounds(self):
        path = self.file("version: 1\ntasks: [{name: camera, period: 10 ms, wcet: 2 ms}, {name: gate, period: 20 ms, wcet: 3 ms}]\n"
                         "chains: [{name: reject, tasks: [camera, gate], deadline: 35 ms}]\n")
        chain = self.object_of(0, "run", path, "--for", "100ms", "--json")["chains"][0]
        self.assertEqual((chain["worst_reaction_ms"], chain["worst_data_age_ms"], chain["bound_ms"]), (25, 25, 35))
        self.assertEqual((chain["reactions"], chain["over_bound"], chain["deadline_ms"], chain["over_deadline"]), (8, 0, 35, 0))
        self.assertIn("\nreject          8             25.000             25.000    35.000           0       35.000\n", self.tutti("run", path, "--for", "100ms").stdout)
        self.assertEqual(self.object_of(0, "run", WAFER, "--jobs", 2, "--json")["chains"], [])

    # Both arrive every 10 ms, and the one that comes first in the file starts first: 0 to 2, then 2 to 5 ms. An event after 0 is
    # read at 10 and answered at 15 ms.
    def test_a_task_comes_after_another(self):
        path = self.file("version: 1\ntasks: [{name: camera, period: 10 ms, wcet: 2 ms}, {name: inspect, after: camera, wcet: 3 ms}]\n"
                         "chains: [{name: both, tasks: [camera, inspect], deadline: 15 ms}]\n")
        answer = self.object_of(0, "run", path, "--for", "1s", "--json")
        finish = {job["index"]: job["finish_ms"] for job in answer["jobs"] if job["task"] == "camera"}
        starts = {job["index"]: job["start_ms"] for job in answer["jobs"] if job["task"] == "inspect"}
        self.assertEqual(len(starts), 100)
        self.assertTrue(all(starts[i] >= finish[i] for i in starts))
        chain = answer["chains"][0]
        self.assertEqual((chain["worst_reaction_ms"], chain["bound_ms"], chain["over_bound"]), (15, 15, 0))
        other = self.file("version: 1\ntasks:\n- {name: camera, period: 10 ms, wcet: 2 ms}\n- {name: inspect, period: 15 ms, after: camera, wcet: 3 ms}\n")
        self.refuses(self.tutti("run", other), ":4:27: the period of 'inspect', 15 ms, is not the 10 ms of 'camera', which it is after; join tasks of different rates with 'chains'")

    def test_a_shipped_chain_is_admitted_and_runs(self):
        smaller = ("configs/tasks/camera-inspect-gate.yaml", "--set", "image=1MB", "--json")
        answer = self.object_of(0, "run", *smaller, "--for", "2s")
        self.assertEqual({job["verdict"] for job in answer["jobs"]}, {"met"})
        chain = answer["chains"][0]
        bound = self.object_of(0, "check", *smaller)["chains"][0]
        self.assertEqual((chain["name"], chain["tasks"]), ("reject", ["camera", "inspect", "decide", "gate"]))
        self.assertEqual((chain["bound_ms"], chain["over_bound"]), (bound["worst_latency_ms"], 0))
        self.assertGreater(chain["reactions"], 90)
        self.assertLessEqual(chain["worst_reaction_ms"], chain["bound_ms"])
        self.assertLessEqual(chain["bound_ms"], chain["deadline_ms"])

    # The camera's link at a tenth of its 6.5 GB/s is slower than its frames, and no transfer crosses it.
    def test_a_shipped_station_keeps_its_bounds_beside_background_load(self):
        faults = self.file("version: 1\nfaults: [{kind: slow_link, route: [camera0, switch0], rate: 0.1}]\n", "faults.yaml")
        for words in (("--overlap", "off"), ("--overlap", "on"), ("--overlap", "off", "--faults", faults)):
            with self.subTest(words=words):
                run = self.object_of(0, "run", "configs/tasks/inspection-camera.yaml", "--for", "1s", "--json", *words)
                self.assertEqual([(task["missed"], task["over_bound"]) for task in run["summary"]], [(0, 0), (0, 0)])

    # A host that stands for 30 ms breaks responses and, with them, a chain: the sentence names it.
    def test_a_chain_over_its_bound_is_a_broken_promise(self):
        path = self.file("version: 1\ntasks: [{name: camera, period: 10 ms, wcet: 2 ms}, {name: gate, period: 20 ms, deadline: 500 ms, wcet: 3 ms}]\n"
                         "chains: [{name: reject, tasks: [camera, gate]}]\n")
        faults = self.file("version: 1\nfaults: [{kind: host_stall, at: 41 ms, lasts: 30 ms}]\n", "faults.yaml")
        run = self.tutti("run", path, "--for", "200ms", "--json", "--faults", faults)
        chain = json.loads(run.stdout)["chains"][0]
        self.assertGreater(chain["over_bound"], 0)
        self.assertIn("reactions of chain 'reject' took longer than its bound of ", run.stderr)

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

    # t0 takes 2.999999 of its 4 ms, so that t1 starts 1 ns before t3, which then waits for it: 14.999999 + 5 ms, due at 17.
    # Kernels and host steps are shortened likewise.
    def test_a_counter_example_with_a_shorter_job_misses_in_its_replay(self):
        machine = "{name: m, vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}, gpu0: {kind: gpu}}, links: [{from: mem0, to: cpu0, bandwidth: 10 GB/s}, {from: cpu0, to: gpu0, bandwidth: 10 GB/s}]}"
        self.file(f"version: 1\nmachine: {machine}\n", "m.yaml")
        for step in ("{{batch: [{{kernel: {{on: gpu0, time: {} ms}}}}]}}", "{{host: {} ms}}"):
            tasks = "".join(f"- {{name: t{i}, period: {period} ms, deadline: {deadline} ms, offset: {offset} ms, job: [{step.format(time)}]}}\n"
                            for i, (period, deadline, offset, time) in enumerate(((40, 40, 8, 4), (33, 33, 10, 4), (55, 55, 28, 5), (18, 6, 11, 5), (16, 10, 0, 1))))
            path = self.file(f"version: 1\nmachine: m.yaml\npolicy: rm\narrivals: periodic\noverlap: off\ntasks:\n{tasks}")
            shown = self.folder / "misses.yaml"
            answer = self.object_of(1, "check", path, "--counter-example", shown, "--json")
            self.assertIn("{task: t0, arrival: 8000000 ns, ready: 8000000 ns, takes: 2999999 ns}", shown.read_text(encoding="utf-8"))
            self.assertEqual(answer["counter_example"]["misses"]["finish_ms"], 19.999999)
            replayed = self.object_of(1, "run", path, "--scenario", shown, "--json")
            late = [job for job in replayed["jobs"] if job["missed"]]
            self.assertEqual([(job["task"], job["finish_ms"]) for job in late], [("t3", 19.999999)])

    def test_a_scenario_with_a_mistake_is_refused_with_its_place(self):
        path = self.file("version: 1\njobs: [{task: inspekt, arrival: 0, takes: 1 ms}]\n", "s.yaml")
        self.refuses(self.tutti("run", WAFER, "--scenario", path), "s.yaml:2:15:", "did you mean 'inspect'?")
        self.refuses(self.tutti("run", WAFER, "--scenario", path, "--jobs", 3), "--scenario")

    def test_a_bad_day_is_golden(self):
        slow = self.tutti("run", WAFER, "--for", "1s", "--faults", "configs/faults/slow-link.yaml", "--seed", 7, "--set", "image=4MB")
        self.is_golden("run_faults.txt", slow, code=3)
        self.assertEqual(slow.stderr, self.tutti("run", WAFER, "--for", "1s", "--faults", "configs/faults/slow-link.yaml", "--seed", 7, "--set", "image=4MB").stderr)

    def test_faults_are_counted_and_jobs_name_their_cause(self):
        ran = self.object_of(3, "run", WAFER, "--for", "1s", "--faults", "configs/faults/slow-link.yaml", "--seed", 7, "--set", "image=4MB", "--json")
        self.assertEqual([(fault["kind"], fault["task"]) for fault in ran["faults"]],
                         [("slow_link", None), ("slow_kernels", "inspect"), ("late_completion", None), ("host_stall", None)])
        self.assertEqual([fault["met"] for fault in ran["faults"]][::2], [4, 6])
        causes = {job["index"]: job["cause"] for job in ran["jobs"] if job["cause"]}
        self.assertEqual([causes[index] for index in (8, 9, 10, 11)], ["transfer"] * 4)
        self.assertEqual([causes[index] for index in (30, 31, 32)], ["dispatch"] * 3)
        kernels = [index for index, cause in causes.items() if cause == "kernel"]
        self.assertTrue(kernels)
        other = self.object_of(3, "run", WAFER, "--for", "1s", "--faults", "configs/faults/slow-link.yaml", "--seed", 8, "--set", "image=4MB", "--json")
        self.assertNotEqual(kernels, [job["index"] for job in other["jobs"] if job["cause"] == "kernel"])

    def test_a_kernel_that_hangs_is_given_up_on_either_clock(self):
        for words in ((), ("--clock", "real", "--watchdog", "2x+50ms")):
            run = self.tutti("run", WAFER, "--for", "1s", "--faults", "configs/faults/hung-kernel.yaml", "--set", "image=4MB", "--json", *words)
            self.assertEqual(run.returncode, 3, run.stderr)
            if words and TOO_SLOW in run.stderr:
                continue  # a busy host: the simulated machine gives up sooner
            jobs = json.loads(run.stdout)["jobs"]
            self.assertEqual([job["verdict"] for job in jobs][5], "failed")
            self.assertIn("kernel 'die_compare' of stream 'part0' has not returned within", jobs[5]["error"])
            self.assertEqual(jobs[5]["cause"], "kernel")

    def test_a_late_job_is_no_trouble_of_the_host_where_faults_were_asked_for(self):
        path = self.file("version: 1\nfaults:\n  - {kind: host_stall, at: 501 ms, lasts: 90 ms}\n", "stall.yaml")
        run = self.tutti("run", WAFER, "--for", "1s", "--set", "image=4MB", "--faults", path)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("over their bound: release ", run.stderr)
        self.assertNotIn("too slow", run.stderr)

    def test_faults_with_a_mistake_are_refused_with_their_place(self):
        path = self.file("version: 1\nfaults:\n  - {kind: hung_kernel, task: inspct}\n", "f.yaml")
        self.refuses(self.tutti("run", WAFER, "--faults", path), "f.yaml:3:31:", "did you mean 'inspect'?")
        self.refuses(self.tutti("run", WAFER, "--faults", "configs/faults/hung-kernel.yaml", "--backend", "cuda"), "--faults: only the simulated machine")

    def lossy(self):
        """Two lines of one partition, since nobody knows what `other` uses; gpu1 is lost at 50 ms."""
        tasks = self.file(f"""version: 1
machine: {ROOT}/configs/machines/h200x4.yaml
tasks:
  - {{name: inspect0, period: 20 ms, job: [{{batch: [{{from: mem0, to: gpu0, size: 20 MB}}]}}]}}
  - {{name: inspect1, period: 20 ms, job: [{{batch: [{{from: mem0, to: gpu1, size: 20 MB}}]}}]}}
  - {{name: other, period: 40 ms, wcet: 2 ms}}
""", "lines.yaml")
        return tasks, self.file("version: 1\nfaults:\n  - {kind: lost_gpu, gpu: gpu1, at: 50 ms}\n", "lost.yaml")

    def test_tasks_that_do_not_need_a_lost_gpu_go_on(self):
        tasks, faults = self.lossy()
        journal = self.folder / "run.ttj"
        run = self.tutti("run", tasks, "--for", "150ms", "--faults", faults, "--journal", journal)
        self.is_golden("run_lost_gpu.txt", run, code=3)
        self.is_golden("run_lost_gpu.stderr.txt", subprocess.CompletedProcess([], 0, self.without_files(run.stderr), run.stderr))
        self.assertEqual(self.object_of(3, "report", journal, "--json")["recorded_jobs"], 18)
        answer = self.object_of(3, "run", tasks, "--for", "150ms", "--faults", faults, "--json")
        replanned, = answer["replanned"]
        at = replanned["at_ms"]
        self.assertEqual(replanned, {"at_ms": at, "gpus": ["gpu1"], "ended": ["inspect1"], "resumed": ["inspect0", "other"],
                                     "resumed_at_ms": at, "refused": [], "reason": None})
        behind = [(job["task"], job["index"], job["release_ms"], job["verdict"]) for job in answer["jobs"] if job["release_ms"] >= at]
        first = {"inspect0": 4, "other": 2}
        self.assertEqual(sorted(behind), sorted((task, first[task] + i, round(at + period * i, 6), "met")
                                                for task, period, count in (("inspect0", 20, 5), ("other", 40, 3)) for i in range(count)))

    # 6 ms on the host, and 4 MB at 2 GB/s: 2 ms; then 1 ms on the host, and 9 ms.
    def test_programs_are_bound_by_the_cpu_or_the_gpu(self):
        self.file("version: 1\nmachine:\n  name: m\n  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n  links: [{from: mem0, to: gpu0, bandwidth: 2 GB/s}]\n", "m.yaml")
        path = self.file("version: 1\nmachine: m.yaml\ntasks:\n"
                         "- {name: thinks, period: 100 ms, job: [{host: 6 ms}, {batch: [{from: mem0, to: gpu0, size: 4 MB}]}]}\n"
                         "- {name: moves, period: 100 ms, offset: 50 ms, job: [{host: 1 ms}, {batch: [{from: mem0, to: gpu0, size: 18 MB}]}]}\n"
                         "- {name: other, period: 100 ms, wcet: 1 ms}\n")
        bound = self.object_of(0, "run", path, "--json", "--bound-by")["bound_by"]
        self.assertEqual([(row["task"], row["cpu_share"], row["gpu_share"], row["bound_by"]) for row in bound],
                         [("thinks", 0.75, 0.25, "cpu"), ("moves", 0.1, 0.9, "gpu")])
        self.assertAlmostEqual(bound[0]["amdahl_ceiling"], 1 / 0.75)
        self.assertNotIn("bound_by", self.object_of(0, "run", path, "--json"))
        self.assertNotIn("ceiling", self.tutti("run", path).stdout)
        self.assertIn("\nthinks         75.0   25.0  CPU          1.33\n", self.tutti("run", path, "--bound-by").stdout)

    def test_nothing_breaks_a_simulated_machine(self):
        self.refuses(self.tutti("run", WAFER, "--serialize"), "give --backend cuda")

    def test_an_interrupt_drains_and_reports(self):
        path = self.file("version: 1\ntasks: [{name: a, period: 20 ms, wcet: 1 ms}]\n")
        process = self.start("tutti/tutti", "run", path, "--clock", "real", "--for", "300s", "--json")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
        self.assertEqual(process.returncode, 130)
        self.assertLess(len(json.loads(out)["jobs"]), 15000)

    def test_responses_are_drawn_beside_bound_and_deadline(self):
        # Each job takes the bound, 2 ms: one bar of 20 jobs, around the line of the bound.
        path = self.file("version: 1\ntasks: [{name: a, period: 10 ms, deadline: 8 ms, wcet: 2 ms}]\n")
        drawing = self.folder / "r.svg"
        for _ in range(2):
            self.object_of(0, "run", path, "--jobs", 20, "--json", "--svg", drawing)
        root = ElementTree.fromstring(drawing.read_bytes())
        texts = [text.text for text in root.iter(SVG + "text")]
        self.assertIn("a: 20 responses, worst 2.000 ms, bound 2.000 ms, deadline 8.000 ms", texts)
        bars = [rect for rect in root.iter(SVG + "rect") if rect.find(SVG + "title") is not None]
        self.assertEqual(len(bars), 1)
        self.assertTrue(bars[0].find(SVG + "title").text.startswith("20 of 20 responses"))
        bound = next(line for line in root.iter(SVG + "line") if line.get("stroke-width") == "1.5")
        self.assertAlmostEqual(float(bars[0].get("x")) + float(bars[0].get("width")) / 2, float(bound.get("x1")), delta=1)
        self.refuses(self.tutti("run", path, "--svg", "/no/such/folder/r.svg"), "/no/such/folder/r.svg")

    def test_a_terminal_shows_a_run_while_it_runs(self):
        path = self.file("version: 1\ntasks: [{name: often, period: 20 ms, wcet: 1 ms}]\n")
        for quiet, shown in ([], True), (["--quiet"], False):
            master, slave = os.openpty()
            process = subprocess.Popen([str(self.built / "tutti/tutti"), "run", path, "--clock", "real", "--for", "2s", "--json", *quiet],
                                       stdout=subprocess.PIPE, stderr=slave, text=True)
            os.close(slave)
            json.loads(process.communicate(timeout=60)[0])  # nothing but one object
            try:
                text = os.read(master, 1 << 16).decode()
            except OSError:  # nobody wrote anything
                text = ""
            os.close(master)
            self.assertEqual(("often" in text and "worst response" in text and "model error -" in text), shown, text)

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


    # So many bytes that there were ten files without a limit; the newest have the last jobs.
    def test_the_newest_files_of_a_journal_are_kept(self):
        words = ("run", WAFER, "--set", "image=1MB", "--jobs", 3000, "--journal", "j", "--journal-size", "10 kB")
        counts = []
        for kept, limit in ((None, ()), (3, ("--journal-files", 3)), (1, ("--journal-files", 1))):
            folder = self.folder / str(kept)
            folder.mkdir()
            run = self.run_program("tutti/tutti", *words[:1], ROOT / WAFER, *words[2:], *limit, cwd=folder)
            self.assertEqual(run.returncode, 0, run.stderr)
            counts.append(len(list(folder.iterdir())))
            report = self.tutti("report", *folder.iterdir(), "--json")
            jobs = json.loads(report.stdout)["recorded_jobs"]
            (self.assertEqual if kept is None else self.assertLess)(jobs, 3000)
        self.assertGreater(counts[0], 10)
        self.assertEqual(counts[1:], [3, 1])
        self.assertEqual(self.tutti(*words[:-2], "--journal-files", 3).returncode, 2)
        self.assertEqual(self.tutti(*words, "--journal-files", 0).returncode, 2)


if __name__ == "__main__":
    sys.exit(main())
