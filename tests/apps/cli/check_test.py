#!/usr/bin/env python3
"""`tutti check`."""
import sys

from programs import ROOT, WAFER, Programs, main


class Check(Programs):
    # The alarm's own 40 us and 200 us leave 3.16 ms for a piece with its kernel of 2 ms: 29 MB. In three of them, 87 MB.
    def test_a_set_is_cut_further_where_that_helps(self):
        cut = "tests/apps/cli/cut.yaml"
        for size, pieces in ((1, None), (29, None), (30, 15), (40, 20), (41, None), (58, None), (59, 19.66), (80, 26.66), (81, None), (87, None)):
            answer = self.object_of(0, "check", cut, "--set", f"image={size}MB", "--json")
            self.assertEqual([cut["task"] for cut in answer.get("cuts", [])], [] if pieces is None else [None], size)
            for smaller in answer.get("cuts", []):
                self.assertTrue(pieces <= smaller["bytes"] / 1e6 < size, answer["cuts"])
        self.assertIn("  cut into pieces of at most 29.99 MB, since it does not hold with those of 40 MB\n",
                      self.tutti("check", cut).stdout)
        self.assertIn("  'inspect' is cut into pieces of at most 29.99 MB, since it does not hold with those of 40 MB\n",
                      self.tutti("check", "tests/apps/cli/cut_task.yaml").stdout)
        self.assertEqual(self.tutti("check", cut, "--set", "image=500MB").returncode, 1)
        run = self.object_of(0, "run", cut, "--jobs", 40, "--json")
        self.assertEqual([(task["missed"], task["over_bound"]) for task in run["summary"]], [(0, 0)] * 2)

    def test_whole_outputs(self):
        self.is_golden("check.txt", self.tutti("check", WAFER))
        self.is_golden("check_refused.txt", self.tutti("check", WAFER, "--set", "image=1GB", "--planner", "time_division", "--overlap", "off"), 1)

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
        answer = self.object_of(0, "check", path, "--planner", "completion_aligned", "--json")
        self.assertEqual((answer["planner"], answer["tasks"][0]["wcet_ms"]), ("completion_aligned", 7.5))
        searched = self.object_of(0, "check", path, "--planner", "gate_search", "--json")
        wcet = searched["tasks"][0]["wcet_ms"]
        self.assertEqual((searched["planner"], searched["notes"]), ("gate_search", []))
        self.assertLess(abs(wcet - 6), 0.01)
        self.assertEqual(answer["notes"], [f"under best the Wcet of 'a' is {wcet:.3f} ms instead of 7.500 ms (-{100 - wcet / 0.075:.1f} %)"])
        by_default = self.object_of(0, "check", path, "--json")
        self.assertEqual((by_default["planner"], by_default["tasks"][0]["wcet_ms"], by_default["notes"]), ("best", wcet, []))
        run = self.tutti("check", path, "--planner", "completion_aligned")
        self.assertIn("(non-preemptive edf, completion_aligned, utilization 0.3750)", run.stdout)
        self.assertTrue(run.stdout.endswith(f"\nnote: {answer['notes'][0]}\n"), run.stdout)
        # The file may ask for a planner, and the command line for another.
        asking = self.file(text.replace("tasks:", "planner: gate_search\ntasks:"), "asking.yaml")
        self.assertEqual(self.object_of(0, "check", asking, "--json")["tasks"], searched["tasks"])
        self.assertEqual(self.object_of(0, "check", asking, "--planner", "all_at_once", "--json")["planner"], "all_at_once")
        bound = self.object_of(0, "run", asking, "--jobs", 3, "--json")["summary"][0]["bound_ms"]
        self.assertEqual(bound, searched["tasks"][0]["worst_response_ms"])
        self.assertEqual(self.object_of(0, "run", path, "--jobs", 3, "--json")["summary"][0]["bound_ms"], wcet)
        unknown = self.file(text.replace("tasks:", "planner: fastest\ntasks:"), "unknown.yaml")
        for command in ("check", "run", "compare"):
            self.refuses(self.tutti(command, unknown), ":3:10: 'fastest' is no planner; write one of best, completion_aligned")

    # 6 ms of copy and 5 of kernel every 10 ms: one job at a time takes 11. Overlapping, the engine is in use for 60 % of the
    # time and the GPU for 50, and a job ends after 11 ms.
    def test_jobs_that_overlap(self):
        self.file("version: 1\nmachine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s}]}\n", "m.yaml")
        text = "version: 1\nmachine: m.yaml\ntasks:\n- {name: a, period: 10 ms, deadline: 12 ms, job: [{batch: [{name: s, from: mem0, to: gpu0, size: 6 MB, kernel: {time: 5 ms}}]}]}\n"
        path = self.file(text)
        off = self.object_of(1, "check", path, "--json", "--overlap", "off")
        self.assertEqual((off["overlap"], off["resources"]), ("off", []))
        self.assertEqual({key: off["mends"][0][key] for key in ("quantity", "from", "to")}, {"quantity": "overlap", "from": "off", "to": "on"})
        for words in (["--overlap", "on"], ["--overlap", "auto"], []):
            on = self.object_of(0, "check", path, "--json", *words)
            self.assertEqual((on["overlap"], on["planner"], on["utilization"]), ("on", None, 0.6))
            self.assertEqual(on["resources"], [{"name": "gpu0 copies in", "utilization": 0.6}, {"name": "gpu0", "utilization": 0.5}])
            task = on["tasks"][0]
            self.assertEqual((task["wcet_ms"], task["worst_response_ms"], task["slack_ms"]), (11, 11, 1))
            self.assertEqual([(stage["stage"], stage["resource"], stage["worst_ms"], stage["from_ms"], stage["deadline_ms"]) for stage in task["stages"]],
                             [("copy of s", "gpu0 copies in", 6, 0, 6), ("kernel of s", "gpu0", 5, 6, 11)])
        self.assertIn("schedulable: every deadline is guaranteed (non-preemptive edf by local deadline, jobs overlap, utilization 0.6000)",
                      self.tutti("check", path, "--overlap", "on").stdout)
        self.refuses(self.tutti("check", path, "--overlap", "of"), "--overlap: there is no 'of'; did you mean 'off'? give off, on or auto")
        asking = self.file(text.replace("tasks:", "overlap: on\ntasks:"), "asking.yaml")
        self.assertEqual(self.object_of(0, "check", asking, "--json")["overlap"], "on")
        run = self.object_of(0, "run", asking, "--json", "--jobs", "20")
        self.assertEqual((run["overlap"], run["summary"][0]["missed"], run["summary"][0]["over_bound"], run["summary"][0]["worst_response_ms"]), ("on", 0, 0, 11))
        self.assertIn("non-preemptive edf by local deadline, jobs overlap", self.tutti("run", asking, "--jobs", "2").stdout)
        self.refuses(self.tutti("run", asking, "--scenario", self.file("version: 1\njobs: [{task: a, arrival: 0, takes: 1 ms}]\n", "takes.yaml")),
                     "takes.yaml:2:37: where jobs overlap, their operations take what the machine gives them; leave 'takes' out")
        changes = self.file("version: 1\nstart: [a]\nchanges: [{at: 20 ms, remove: a}, {at: 60 ms, add: a}]\n", "changes.yaml")
        run = self.object_of(0, "run", asking, "--changes", changes, "--for", "100ms", "--json")
        self.assertEqual((run["overlap"], run["summary"][0]["missed"], run["summary"][0]["over_bound"], run["summary"][0]["bound_ms"]), ("on", 0, 0, 11))
        self.assertEqual([change["granted"] for change in run["changes"]], [True, True])
        self.refuses(self.tutti("check", self.file(text.replace("tasks:", "overlap: maybe\ntasks:"), "maybe.yaml")), "'maybe' is no overlap; write one of off, on, auto")
        declared = self.file("version: 1\noverlap: on\ntasks:\n- {name: a, period: 10 ms, wcet: 2 ms}\n", "declared.yaml")
        answer = self.object_of(1, "check", declared, "--json")
        self.assertEqual(answer["verdict"], "unknown")
        self.assertIn("task 'a' says how long its jobs take, not what they hold", answer["reasons"][0])
        # A period of 5 ms is short of the copy's 6.
        late = self.object_of(1, "check", self.file(text.replace("period: 10 ms", "period: 5 ms")), "--json", "--overlap", "on")
        self.assertEqual(late["verdict"], "not_schedulable")
        self.assertIn({"quantity": "period", "name": None, "task": "a"}, [{key: mend[key] for key in ("quantity", "name", "task")} for mend in late["mends"]])

    # EDF: responses of 5 ms, and no job of the gate that comes behind one of the camera goes before it: 10 + 0 + 20 + 5 ms.
    def test_chains_are_bounded_and_keep_their_deadlines(self):
        tasks = "version: 1\ntasks: [{name: camera, period: 10 ms, wcet: 2 ms}, {name: gate, period: 20 ms, wcet: 3 ms}]\n"
        path = self.file(tasks + "chains: [{name: reject, tasks: [camera, gate], deadline: 40 ms}, {name: back, tasks: [gate, camera]}]\n")
        chains = self.object_of(0, "check", path, "--json")["chains"]
        self.assertEqual(chains[0], {"name": "reject", "tasks": ["camera", "gate"], "worst_latency_ms": 35, "data_age_ms": 35, "deadline_ms": 40})
        self.assertEqual((chains[1]["name"], chains[1]["deadline_ms"]), ("back", None))
        self.assertIn("\nreject  camera -> gate             35.000             35.000       40.000     5.000\n", self.tutti("check", path).stdout)
        late = self.file(tasks + "chains: [{name: reject, tasks: [camera, gate], deadline: 34 ms}]\n")
        answer = self.object_of(1, "check", late, "--json")
        self.assertEqual((answer["verdict"], answer["schedulable"]), ("unknown", False))
        self.assertEqual(answer["reasons"], ["chain 'reject': no proof that its reaction time keeps its deadline of 34 ms; the bound is 35 ms"])
        self.assertEqual(answer["chains"][0]["worst_latency_ms"], 35)
        self.assertIn("period", [mend["quantity"] for mend in answer["mends"]])
        run = self.tutti("run", late)
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn("chain 'reject': no proof", run.stderr)

    def test_chains_with_a_mistake_are_refused_with_their_place(self):
        tasks = "version: 1\ntasks: [{name: camera, period: 10 ms, wcet: 2 ms}, {name: gate, period: 20 ms, wcet: 3 ms}]\nchains:\n"
        for chain, words in (("{name: a, tasks: [camera, gate, camera]}", ":4:35: task 'camera' comes twice, so the chain runs in a circle; list each task once"),
                             ("{name: a, tasks: [camera, gates]}", ":4:29: the task set has no task 'gates'; did you mean 'gate'?"),
                             ("{name: a, tasks: []}", ":4:20: a chain without tasks has no latency; list its tasks"),
                             ("{name: a, tasks: [gate], deadline: 0}", ":4:38: the deadline must be at least 1 ns; write a time like 100 ms"),
                             ("{name: a b, tasks: [gate]}", ":4:10: ")):
            self.refuses(self.tutti("check", self.file(tasks + "- " + chain + "\n")), words)

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

    def test_device_memory_is_refused_with_the_amount(self):
        # 400 GB of image: 40 % in and 40 % out on gpu0, in ceil(60 / 25) = 3 sets, are 960 GB of its 141.
        answer = self.object_of(1, "check", WAFER, "--set", "image=400GB", "--json")
        memory = next(test for test in answer["tests"] if test["name"] == "device_memory")
        self.assertEqual(memory["verdict"], "not_schedulable")
        self.assertIn("960 GB on gpu0, which has 141 GB: 819 GB too much", memory["reason"])

    # Two kernels of 5 ms on one GPU, due within 9: the second is done after 10.
    def test_a_refusal_of_jobs_that_overlap_is_shown(self):
        self.file("version: 1\nmachine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s}]}\n", "m.yaml")
        task = "- {{name: {}, period: 20 ms, deadline: 9 ms, job: [{{batch: [{{name: s, kernel: {{on: gpu0, time: 5 ms}}}}]}}]}}\n"
        path = self.file("version: 1\nmachine: m.yaml\noverlap: on\ntasks:\n" + task.format("a") + task.format("b"))
        shown = self.folder / "shown.yaml"
        answer = self.object_of(1, "check", path, "--json", "--counter-example", shown)
        self.assertEqual((answer["verdict"], answer["counter_example"]), ("not_schedulable", {"jobs": 2, "misses": None}))
        self.assertEqual(answer["tests"][1]["witness"]["interval_ms"], 9)
        self.assertEqual(answer["tests"][1]["witness"]["load_ms"], 10)
        self.assertIn("a run of 2 jobs that misses, whatever the order; --counter-example FILE writes it, 'tutti run --scenario FILE --overlap on'",
                      self.tutti("check", path).stdout)
        self.assertEqual(shown.read_text(encoding="utf-8"), "version: 1\njobs:\n  - {task: a, arrival: 0 ns, ready: 0 ns}\n  - {task: b, arrival: 0 ns, ready: 0 ns}\n")
        replayed = self.object_of(1, "run", path, "--scenario", shown, "--json")
        self.assertEqual([(job["finish_ms"], job["missed"]) for job in replayed["jobs"]], [(5, False), (10, True)])
        refused = self.tutti("run", path, "--scenario", shown, "--overlap", "off")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("shown.yaml:3:5: 'takes' is missing", refused.stderr)

    def test_the_remedies_of_a_set_in_regions_hold_and_its_counter_example_misses(self):
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
        for more, further in (0, False), (10_000_000, True):  # half of the 26 MB of a copy; more than half is the whole
            cut = self.file(batches.replace("policy: edf", f"policy: edf\ncut: {remedy['to_bytes'] + more} B"), "cut.yaml")
            self.assertEqual("cuts" in self.object_of(0, "check", cut, *sizes, "--json"), further)
        self.assertIn("it would hold with: cut 25.99 MB instead of none\n", self.tutti("check", path, *sizes).stdout)

    def test_passing_between_batches_can_be_the_remedy(self):
        text = (ROOT / WAFER).read_text(encoding="utf-8").replace("../machines", str(ROOT / "configs/machines"))
        path = self.file(text + "  - {name: quick, period: 4 ms, wcet: 1 ms}\n")
        remedy = self.object_of(1, "check", path, "--set", "image=60MB", "--json")["mends"][0]
        self.assertEqual((remedy["quantity"], remedy["from"], remedy["to"], remedy["relative"]), ("preemption", "none", "between_batches", None))

    # 10 ms of copy hold up a task that must be over within 10 ms, and takes 4; two halves do not.
    def test_cutting_copies_can_be_the_remedy(self):
        self.file("version: 1\nmachine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s}]}\n", "m.yaml")
        path = self.file("version: 1\nmachine: m.yaml\ntasks:\n- {name: quick, period: 10 ms, wcet: 4 ms}\n"
                         "- {name: long, period: 40 ms, job: [{batch: [{from: mem0, to: gpu0, size: 10 MB}]}]}\n")
        self.assertIn("it would hold with: preemption: between_batches, cut 9.999 MB instead of none\n", self.tutti("check", path).stdout)

    def test_a_counter_example_needs_a_refusal(self):
        shown = self.folder / "misses.yaml"
        run = self.tutti("check", WAFER, "--counter-example", shown)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("there is no run to write", run.stderr)
        self.assertFalse(shown.exists())
        refused = self.file("version: 1\ntasks: [{name: a, period: 10 ms, wcet: 11 ms}]\n")
        self.refuses(self.tutti("check", refused, "--counter-example", self.folder / "none" / "misses.yaml"), "none")


if __name__ == "__main__":
    sys.exit(main())
