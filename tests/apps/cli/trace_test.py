#!/usr/bin/env python3
"""`--trace` of `run`, `predict` and `verify`, against the Trace Event Format, and a validator that finds planted faults."""
import collections
import copy
import gzip
import json
import sys

from programs import EXAMPLE, WAFER, Programs, main

FAULTS = """version: 1
faults:
  - {kind: slow_kernels, task: inspect, times: 1, by: 70 ms, jobs: [5, 5]}
"""


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def ns(us):
    return round(us * 1000)


def faults_of(trace):
    """What is wrong with a trace, a sentence each: the format of each event, no overlapping slices, flows bound to slices."""
    faults, slices, names, counters = [], collections.defaultdict(list), {}, collections.defaultdict(list)
    processes, flows = {}, collections.defaultdict(list)
    if not isinstance(trace.get("traceEvents"), list):
        return ["no list of events"]
    for i, event in enumerate(trace["traceEvents"]):
        phase = event.get("ph")
        if phase not in ("X", "M", "C", "i", "s", "t", "f"):
            faults.append(f"event {i}: phase {phase}")
            continue
        if not all(isinstance(event.get(key), int) for key in ("pid", "tid")) or not isinstance(event.get("name"), str):
            faults.append(f"event {i}: no pid, tid or name")
            continue
        thread = event["pid"], event["tid"]
        if phase == "M":
            if event["name"] == "process_name":
                processes[event["pid"]] = event["args"]["name"]
            elif event["name"] == "thread_name":
                if thread in names:
                    faults.append(f"thread {thread} is named twice")
                names[thread] = event["args"]["name"]
            continue
        if not is_number(event.get("ts")):
            faults.append(f"event {i}: no ts")
            continue
        if phase == "X":
            if not is_number(event.get("dur")) or event["dur"] < 0:
                faults.append(f"event {i}: no dur")
                continue
            slices[thread].append((ns(event["ts"]), ns(event["ts"]) + ns(event["dur"])))
        elif phase == "C":
            counters[event["name"]].append(event["ts"])
            if not event.get("args") or not all(is_number(value) for value in event["args"].values()):
                faults.append(f"event {i}: a counter without numbers")
        elif phase == "i":
            if event.get("s") not in ("g", "p", "t"):
                faults.append(f"event {i}: scope of an instant")
        else:
            flows[event["cat"], event["id"]].append((event["ts"], phase, thread))
    for thread in slices:
        if thread not in names:
            faults.append(f"thread {thread} has no name")
        if thread[0] not in processes:
            faults.append(f"process {thread[0]} has no name")
        slices[thread].sort()
        for (_, end), (start, _) in zip(slices[thread], slices[thread][1:]):
            if start < end:
                faults.append(f"slices of thread {thread} overlap at {start} ns")
    for key, steps in flows.items():
        phases = "".join(phase for _, phase, _ in sorted(steps, key=lambda step: step[0]))
        if phases != "s" + "t" * (len(phases) - 2) + "f":
            faults.append(f"flow {key} is {phases}")
        for at, _, thread in steps:
            if not any(start <= ns(at) <= end for start, end in slices[thread]):
                faults.append(f"flow {key} is bound to no slice at {at} us")
    for name, times in counters.items():
        if times != sorted(times):
            faults.append(f"counter {name} goes back in time")
    return faults


class Trace(Programs):
    def trace(self, *words, code=0, name="t.json"):
        path = self.folder / name
        run = self.tutti(*words, "--trace", path)
        self.assertEqual(run.returncode, code, run.stderr)
        data = path.read_bytes()
        self.assertEqual(data[:2] == b"\x1f\x8b", name.endswith(".gz"))
        trace = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
        self.assertEqual(faults_of(trace), [])
        self.assertEqual([path.name for path in self.folder.iterdir() if "journal" in path.name], [])
        return trace

    def events(self, trace, phase, category=None):
        return [event for event in trace["traceEvents"] if event["ph"] == phase and category in (None, event.get("cat"))]

    def processes(self, trace):
        return {event["pid"]: event["args"]["name"] for event in self.events(trace, "M") if event["name"] == "process_name"}

    # 6 jobs of 4 GPUs: a copy, a kernel and a copy back each, measured and predicted; the third job misses by a slow kernel.
    def test_of_a_run(self):
        words = ["run", WAFER, "--set", "image=1MB", "--jobs", "12", "--faults", self.file(FAULTS)]
        for name in ("t.json", "t.json.gz"):
            trace = self.trace(*words, code=1, name=name)
            names = self.processes(trace)
            for gpu in range(4):
                self.assertIn(f"gpu{gpu}", names.values())
                self.assertIn(f"gpu{gpu} predicted", names.values())
            for category, count in (("copy", 2 * 4 * 12), ("kernel", 4 * 12)):
                slices = self.events(trace, "X", category)
                self.assertEqual(sum(names[each["pid"]].endswith("predicted") for each in slices), count)
                self.assertEqual(len(slices), 2 * count)
            self.assertEqual(len(self.events(trace, "i", "deadline")), 12)
            misses = self.events(trace, "i", "miss")
            self.assertIn("inspect 5 missed", [miss["name"] for miss in misses])
            jobs = self.events(trace, "X", "job")
            self.assertEqual([job["args"]["cause"] for job in jobs if job["name"] == "inspect 5"], ["kernel"])
            self.assertEqual(sum(job["args"]["verdict"] == "missed" for job in jobs), len(misses))
            # Up, kernel, down on each GPU.
            self.assertEqual([len(self.events(trace, phase)) for phase in "stf"], [4 * 12] * 3)
            self.assertGreater(max(event["args"]["used"] for event in self.events(trace, "C")), 0)
            self.assertEqual(self.events(trace, "C")[-1]["args"]["used"], 0)

    def test_of_jobs_that_overlap(self):
        trace = self.trace("run", WAFER, "--set", "image=1MB", "--jobs", "12", "--overlap", "on")
        self.assertEqual(len(self.events(trace, "X", "kernel")), 2 * 4 * 12)

    def test_of_jobs_that_are_cut(self):
        self.trace("run", "configs/tasks/periodic-offsets.yaml", "--jobs", "20")

    # Two kernels of 5 ms on one GPU, due within 9 ms: the second ends after 10.
    def test_of_a_run_that_shows_why_a_set_is_refused(self):
        self.file("version: 1\nmachine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s}]}\n", "m.yaml")
        task = "- {{name: {}, period: 20 ms, deadline: 9 ms, job: [{{batch: [{{name: s, kernel: {{on: gpu0, time: 5 ms}}}}]}}]}}\n"
        path = self.file("version: 1\nmachine: m.yaml\ntasks:\n" + task.format("a") + task.format("b"))
        shown = self.folder / "shown.yaml"
        for overlap in "off", "on":
            with self.subTest(overlap=overlap):
                self.object_of(1, "check", path, "--json", "--overlap", overlap, "--counter-example", shown)
                trace = self.trace("run", path, "--scenario", shown, "--overlap", overlap, code=1)
                self.assertEqual([miss["name"] for miss in self.events(trace, "i", "miss")], ["b 0 missed"])
                names = self.processes(trace)
                kernels = [each["ts"] for each in self.events(trace, "X", "kernel") if names[each["pid"]] == "gpu0"]
                self.assertEqual(kernels, [0, 5000])

    def test_of_a_prediction(self):
        trace = self.trace("predict", EXAMPLE)
        self.assertEqual({name for name in self.processes(trace).values() if "gpu" in name}, {f"gpu{gpu} predicted" for gpu in range(4)})
        # image0 begins at 33.6 ms and ends at 41.6 ms; its kernel ends with the batch, at 44.8 ms.
        copies = [(each["ts"], each["dur"]) for each in self.events(trace, "X", "copy") if each["name"] == "image0"]
        self.assertEqual(copies, [(33600, 8000)])
        self.assertEqual([each["ts"] for each in self.events(trace, "i", "deadline")], [44800])
        # 8 GB/s of the shared link, 6 of each of the others, at most.
        self.assertLessEqual(max(event["args"]["used"] for event in self.events(trace, "C")), 100.01)

    def test_of_verified_batches(self):
        machine = "configs/machines/inspection-example.yaml"
        trace = self.trace("verify", "--machine", machine, "--backend", "sim", "--random", "6", "--largest", "256KiB", "--repeats", "1", "--seed", "7")
        self.assertEqual(len(self.events(trace, "X", "job")), 6)
        self.assertEqual(len(self.events(trace, "i", "deadline")), 6)
        self.assertIn("gpu0 predicted", self.processes(trace).values())

    def test_the_validator_finds_planted_faults(self):
        trace = self.trace("run", WAFER, "--set", "image=1MB", "--jobs", "3")

        def first(events, phase):
            return next(event for event in events if event["ph"] == phase)

        def overlap(events):
            slices = [event for event in events if event.get("cat") == "kernel"]
            twin = dict(slices[0], ts=slices[0]["ts"] + slices[0]["dur"] / 2)
            events.append(twin)

        plants = {
            "overlap at": overlap,
            "flow": lambda events: first(events, "t").update(ts=10**9),
            "has no name": lambda events: events.remove(next(event for event in events if event["name"] == "thread_name")),
            "no dur": lambda events: first(events, "X").pop("dur"),
            "no ts": lambda events: first(events, "i").pop("ts"),
            "without numbers": lambda events: first(events, "C").update(args={"used": "much"}),
            "scope": lambda events: first(events, "i").pop("s"),
            "phase": lambda events: first(events, "X").update(ph="Q"),
            "goes back": lambda events: first(events, "C").update(ts=10**12),
        }
        for words, plant in plants.items():
            with self.subTest(words):
                planted = copy.deepcopy(trace)
                plant(planted["traceEvents"])
                self.assertIn(words, " ".join(faults_of(planted)))

    def test_mistakes_end_with_2_before_anything_runs(self):
        self.refuses(self.tutti("run", WAFER, "--trace", self.folder), "this is a folder; name a file in it")
        self.refuses(self.tutti("predict", EXAMPLE, "--trace", "/no/such/folder/t.json"), "there is no folder 'no' in /")
        self.assertEqual(self.tutti("run", WAFER, "--trace", "t", "--journal", "j", "--journal-size", "1 MB").returncode, 2)


if __name__ == "__main__":
    sys.exit(main())
