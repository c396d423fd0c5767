#!/usr/bin/env python3
"""`tutti capacity`."""
import sys
import xml.etree.ElementTree as xml

from programs import WAFER, Programs, main


SEARCHLESS = ["completion_aligned", "all_at_once", "bandwidth_allocation", "static_allocation", "time_division"]


class Capacity(Programs):
    """mem0 to gpu0 at 1 byte/ns, so a task that sends an image of x bytes every 10 ms fits up to 10 MB."""
    TASKS = "version: 1\nmachine: m.yaml\noverlap: off\nparameters: {image: 4 MB, unused: 1 MB}\ntasks:\n- {name: a, period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: image}]}]}\n"
    NO_SIZES = "version: 1\ntasks:\n- {name: a, period: 10 ms, wcet: 2 ms}\n- {name: b, period: 20 ms, deadline: 16 ms, wcet: 6 ms}\n"

    def tasks(self, text=TASKS):
        self.file("version: 1\nmachine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s}]}\n", "m.yaml")
        return self.file(text)

    def test_the_largest_size_is_found(self):
        answer = self.object_of(0, "capacity", self.tasks(), "--parameter", "image", "--json", "--points", 6)
        self.assertEqual([answer[key] for key in ("schema_version", "quantity", "name", "task", "wanted", "policy", "now_bytes")],
                         [1, "parameter", "image", None, "largest", "edf", 4_000_000])
        self.assertEqual([row["planner"] for row in answer["planners"]], ["best", *SEARCHLESS])
        for row in answer["planners"]:
            self.assertEqual((row["value_bytes"], row["beyond_bytes"], row["utilization"], row["wcet_growth"], row["holes"]),
                             (10_000_000, 10_001_000, 1.0, 1.0, []))
            # Up to a quarter beyond: 2.5 MB take a quarter of the time, so it could be four times as much.
            self.assertEqual([point["value_bytes"] for point in row["curve"]], [0, 2_500_000, 5_000_000, 7_500_000, 10_000_000, 12_500_000])
            self.assertEqual([point["schedulable"] for point in row["curve"]], [True] * 5 + [False])
            self.assertEqual([point["wcet_growth"] for point in row["curve"]], [None, 4, 2, 1.3333, 1, 0.8])

    # Buffers that join two shares: only even images are possible, and odd ones are no answer of a test.
    def test_values_that_make_no_valid_file_are_not_refused_by_a_test(self):
        text = self.TASKS.replace("period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: image}]}]", "period: 10 ms, buffers: {f: {in: mem0, size: image}, g: {in: gpu0, size: image}}, job: "
                                  "[{batch: [{copy: f, size: 50% of image, to: g}, {copy: f, at: 50% of image, size: 50% of image, to: g, to_at: 50% of image}]}, {batch: [{kernel: {reads: [g], time: 1 ns}}]}]")
        answer = self.object_of(0, "capacity", self.tasks(text), "--parameter", "image", "--json", "--planner", "time_division")
        self.assertEqual(answer["planners"][0]["holes"], [])
        self.assertGreater(answer["planners"][0]["value_bytes"], 9_990_000)

    # The engine is in use for all the time at 10 MB, whether jobs overlap or not; kernels of 5 ms at 10 MB leave 6.7 of it
    # where they do not.
    def test_jobs_that_overlap_have_a_row(self):
        text = self.TASKS.replace("size: image", "size: image, kernel: {throughput: 2 GB/s}").replace("period: 10 ms", "period: 10 ms, deadline: 20 ms")
        answer = self.object_of(0, "capacity", self.tasks(text), "--parameter", "image", "--overlap", "auto", "--json")
        self.assertEqual([(row["planner"], row["overlap"], row["value_bytes"]) for row in answer["planners"] if row["planner"] in ("completion_aligned", None)],
                         [("completion_aligned", "off", 6_666_600), (None, "on", 10_000_000)])
        answer = self.object_of(0, "capacity", self.tasks(text), "--parameter", "image", "--overlap", "on", "--json")
        self.assertEqual([row["planner"] for row in answer["planners"]], [None])

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
            self.assertEqual([row["value_ms"] for row in answer["planners"]], [value] * 6, of)
            self.assertEqual((answer["task"], answer["wanted"]), ("a", "largest" if of == "wcet" else "smallest"))

    def test_the_value_that_is_named_passes_check_and_the_next_does_not(self):
        for row in self.object_of(0, "capacity", WAFER, "--parameter", "image", "--json")["planners"]:
            words = ["--planner", row["planner"]] if row["planner"] else []
            for size, code in ((row["value_bytes"], 0), (row["beyond_bytes"], 1)):
                run = self.tutti("check", WAFER, *words, "--overlap", row["overlap"], "--set", f"image={size} B")
                self.assertEqual(run.returncode, code, run.stdout)

    def test_planners_that_search_are_asked_only_where_the_set_or_the_caller_says_so(self):
        for text, words, planners in (
            (self.TASKS, [], ["best", *SEARCHLESS]),
            (self.TASKS, ["--planner", "gate_search"], ["gate_search"]),
            (self.TASKS.replace("tasks:", "planner: gate_search\ntasks:", 1), [], [*SEARCHLESS, "gate_search"]),
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
        for planner in ("best", *SEARCHLESS):
            self.assertTrue(any(word.startswith(planner + ": ") for word in words), words)
        self.assertEqual(len(list(root.iter("{http://www.w3.org/2000/svg}path"))), 14)  # two curves a row, overlap's too

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
            (self.TASKS, ["--parameter", "image", "--svg", "/no/such/folder/x.svg"], "/no/such/folder/x.svg: there is no folder 'no' in /"),
            (self.TASKS, ["--parameter", "image", "--points", "1"], ""),
        ):
            with self.subTest(words=words):
                self.refuses(self.tutti("capacity", self.tasks(text), *words), sentence)
                self.refuses(self.tutti("capacity", self.tasks(text), *words, "--json"), sentence)

    def test_a_refusal_says_what_would_remedy_it(self):
        # 20 ms of every 10: half the image, half the transfer, twice the period.
        path = self.tasks(self.TASKS.replace("4 MB", "20 MB"))
        answer = self.object_of(1, "check", path, "--json")
        self.assertEqual(answer["mends"], [
            {"quantity": "parameter", "task": None, "name": "image", "line": None, "from_bytes": 20_000_000, "to_bytes": 10_000_000, "relative": -0.5},
            {"quantity": "size", "task": "a", "name": "stream0", "line": 6, "from_bytes": 20_000_000, "to_bytes": 10_000_000, "relative": -0.5},
            {"quantity": "period", "task": "a", "name": None, "line": 6, "from_ms": 10, "to_ms": 20, "relative": 1},
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


if __name__ == "__main__":
    sys.exit(main())
