#!/usr/bin/env python3
"""`tutti compare`."""
import os
import re
import sys
import xml.etree.ElementTree as xml

from programs import EXAMPLE, ROOT, WAFER, Programs, main

SVG = "{http://www.w3.org/2000/svg}"


class Compare(Programs):
    def test_whole_outputs(self):
        self.is_golden("compare_batch.txt", self.tutti("compare", EXAMPLE))
        self.is_golden("compare_tasks.txt", self.tutti("compare", WAFER))

    def test_compare_has_every_planner(self):
        answer = self.object_of(0, "compare", EXAMPLE, "--json")
        latencies = {row["planner"]: row["latency_ms"] for row in answer["planners"]}
        self.assertEqual(list(latencies), ["best", "completion_aligned", "all_at_once", "bandwidth_allocation", "static_allocation", "time_division", "gate_search"])
        self.assertEqual(latencies["gate_search"], 44.8)
        self.assertEqual(latencies["bandwidth_allocation"], 76.8)

    def test_planners_are_compared_in_the_order_in_which_they_are_named(self):
        named = ["time_division", "all_at_once"]
        words = [word for planner in named for word in ("--planner", planner)]
        for file in (EXAMPLE, WAFER):
            answer = self.object_of(0, "compare", file, "--json", *words)
            self.assertEqual([row["planner"] for row in answer["planners"]], named)
        self.refuses(self.tutti("compare", EXAMPLE, "--planner", "time_divison"), "did you mean 'time_division'?")

    def test_a_batch_has_nothing_to_set(self):
        for words in (("--set", "image=5MB"), ("--policy", "rm")):
            self.refuses(self.tutti("compare", EXAMPLE, *words), f"--set and --policy are for task sets, and {EXAMPLE} is a batch; leave them out")

    def test_planners_arrange_one_job_at_a_time_whatever_the_file_says(self):
        text = (ROOT / WAFER).read_text(encoding="utf-8").replace("../machines", str(ROOT / "configs/machines"))
        answer = self.object_of(0, "compare", self.file(re.sub(r"(?m)^tasks:", "overlap: on\ntasks:", text)), "--json", "--planner", "all_at_once")
        self.assertEqual([(row["planner"], row["overlap"]) for row in answer["planners"]], [("all_at_once", "off")])

    def picture(self, *words):
        """The elements of a picture; its colours are those of its own style sheet, and nothing in it is fetched."""
        drawing = self.folder / "picture.svg"
        run = self.tutti(*words, "--svg", drawing)
        self.assertEqual(run.returncode, 0, run.stderr)
        text = drawing.read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"<script|href|url\(|font-face|nan|inf", text), [])
        self.assertIn("prefers-color-scheme:dark", text)
        return xml.fromstring(text)

    def words_in(self, picture):
        return [element.text for element in picture.iter(SVG + "text")]

    def test_a_picture_has_each_planner_with_its_times(self):
        words = self.words_in(self.picture("compare", EXAMPLE))
        for title in ("4 streams on inspection-example", "completion_aligned: 44.800 ms, at the latest 44.800 ms",
                      "all_at_once: 52.800 ms, at the latest 52.800 ms", "bandwidth_allocation: 76.800 ms, at the latest 76.800 ms"):
            self.assertEqual(words.count(title), 1, title)
        for lane in ("gpu0 up", "gpu0 kernels", "gpu3 up", "gpu3 kernels"):
            self.assertEqual(words.count(lane), 7, lane)
        self.assertNotIn("gpu0 down", words)  # an engine that the batch does not use has no row

    def test_copies_of_all_kinds_set_up_and_host_work_have_their_rows(self):
        # A staged copy holds the engine down of its source and the engine up of its destination: two bars.
        picture = self.picture("predict", "tests/apps/cli/all_lanes.yaml")
        text = (self.folder / "picture.svg").read_text(encoding="utf-8")
        golden = ROOT / "tests/golden/predict.svg"
        if os.environ.get("UPDATE_GOLDEN"):
            golden.write_text(text, encoding="utf-8")
        self.assertEqual(golden.read_text(encoding="utf-8"), text)
        words = self.words_in(picture)
        lanes = ["gpu0 up", "gpu0 down", "gpu0 kernels", "gpu1 copies", "cpu0 host work"]
        self.assertEqual([word for word in words if word in lanes], lanes)
        tips = [tip.text for tip in picture.iter(SVG + "title")]
        self.assertEqual(len([tip for tip in tips if tip.startswith("across: staged copy of 50 MB, ")]), 4)  # set-up and data, twice
        self.assertIn("set-up of the batch", tips)

    def test_five_hundred_streams_have_a_short_legend(self):
        streams = "".join(f"- {{name: s{i}, from: mem0, to: gpu{i % 4}, size: {1 + i * 7 % 23} MB, kernel: {{time: 1 ms}}}}\n" for i in range(500))
        path = self.file(f'version: 1\nmachine: "{ROOT}/configs/machines/h200x4.yaml"\nstreams:\n{streams}')
        words = self.words_in(self.picture("predict", path, "--planner", "all_at_once"))
        self.assertEqual(words[-3:], ["s12", "s13", "and 486 more"])

    def test_a_batch_far_longer_than_the_shortest_is_cut_off(self):
        # 8 MB at 8 byte/ns and 12 streams: fixed shares of a twelfth make twelve one after the other.
        streams = "".join(f"- {{name: s{i}, from: mem0, to: gpu0, size: 8 MB}}\n" for i in range(12))
        path = self.file(f'version: 1\nmachine: "{ROOT}/configs/machines/inspection-example.yaml"\nstreams:\n{streams}')
        words = self.words_in(self.picture("compare", path))
        self.assertEqual([word.split(":")[0] for word in words if word.endswith("(cut off where the axis ends)")], ["bandwidth_allocation", "static_allocation"])

    def test_a_latest_finish_far_behind_the_batch_does_not_stretch_the_axis(self):
        # 10 MB at 10 byte/ns take 1 ms, and the host may hold a job up for 10 ms more.
        machine = (ROOT / "tests/apps/cli/two_gpus.yaml").read_text(encoding="utf-8").replace("setup: {batch: 300 us, transfer: 200 us, gate: 100 us}", "setup: {job: 10 ms}")
        self.file(machine, "m.yaml")
        words = self.words_in(self.picture("predict", self.file("version: 1\nmachine: m.yaml\nstreams:\n- {name: s, from: mem0, to: gpu0, size: 10 MB}\n")))
        self.assertIn("best: 1.000 ms, at the latest 11.000 ms (beyond the axis)", words)
        self.assertEqual(words[-3:], ["1000", "s", "s"])  # the last tick, in us; the bar; the legend

    def test_a_batch_without_length_can_be_drawn(self):
        path = self.file(f'version: 1\nmachine: "{ROOT}/configs/machines/inspection-example.yaml"\nstreams:\n- {{name: s, from: mem0, to: gpu0, size: 0}}\n')
        self.assertIn("all_at_once: 0.000 ms, at the latest 0.000 ms", self.words_in(self.picture("compare", path)))

    def test_a_picture_replaces_a_file_and_nothing_else(self):
        self.refuses(self.tutti("compare", WAFER, "--svg", self.folder / "x.svg"), "--svg draws one batch", "is a task set")
        for command in ("predict", "compare"):
            for path, why in ((self.folder, "this is a folder"), ("/no/such/folder/x.svg", "there is no folder 'no' in /")):
                self.refuses(self.tutti(command, EXAMPLE, "--svg", path), f"{path}: {why}")
        self.assertEqual(list(self.folder.iterdir()), [])
        self.file("old", "picture.svg")
        self.picture("compare", EXAMPLE)


if __name__ == "__main__":
    sys.exit(main())
