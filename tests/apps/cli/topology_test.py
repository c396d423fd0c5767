#!/usr/bin/env python3
"""`tutti topology`."""
import json
import os
import sys
import unittest
from xml.etree import ElementTree

from programs import Programs, main


SVG = "{http://www.w3.org/2000/svg}"


class Picture(Programs):
    def picture(self, *words):
        """The texts of a picture, which is the same file when it is drawn again."""
        drawing = self.folder / "m.svg"
        self.object_of(0, "topology", "show", *words, "--svg", drawing, "--json")
        first = drawing.read_bytes()
        self.object_of(0, "topology", "show", *words, "--svg", drawing, "--json")
        self.assertEqual(drawing.read_bytes(), first)
        self.assertLess(len(first), 20_000)
        self.assertNotRegex(first.decode(), "href|url\\(|@import")
        return [text.text for text in ElementTree.fromstring(first).iter(SVG + "text")]

    def test_a_picture_has_each_vertex_and_both_bandwidths_of_each_link(self):
        texts = self.picture("configs/machines/two-sockets.yaml")
        for name in ("two-sockets", "mem0", "mem1", "cpu0", "cpu1", "gpu0", "gpu1"):
            self.assertIn(name, texts)
        self.assertEqual([texts.count(label) for label in ("176 / 150", "48.6 / 50.4", "50 / 50")], [2, 2, 1])

    def test_shared_capacities_have_the_numbers_that_links_bear(self):
        texts = self.picture("configs/machines/h200x4.yaml")
        self.assertIn("[1] mem0-cpu0-both-ways: 206.9 GB/s for mem0 to cpu0 + 1.13 x cpu0 to mem0", texts)
        self.assertTrue([text for text in texts if text.endswith("[1 2 3 4 5]")])

    def test_a_batch_colours_the_links_that_it_fills(self):
        # 100 MB over links of 10 GB/s up take 10 ms; nothing goes down.
        self.file("version: 1\nmachine:\n  name: m\n  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n  links:\n"
                  "    - {from: mem0, to: gpu0, bandwidth: 10 GB/s, back: 8 GB/s}\n", "m.yaml")
        batch = self.file("version: 1\nstreams: [{from: mem0, to: gpu0, size: 100 MB}]\n", "b.yaml")
        self.assertIn("10 (100 %) / 8 (0 %)", self.picture(self.folder / "m.yaml", "--batch", batch))
        self.assertIn("#D55E00", (self.folder / "m.svg").read_text(encoding="utf-8"))

    def test_what_cannot_be_drawn_is_refused(self):
        self.refuses(self.tutti("topology", "show", "configs/machines/h200x4.yaml", "--svg", "/no/such/folder/m.svg"), "/no/such/folder/m.svg")
        self.refuses(self.tutti("topology", "show", "configs/machines/h200x4.yaml", "--batch", "configs/batches/inspection-example.yaml"), "--svg")
        self.refuses(self.tutti("topology", "show", "configs/machines/h200x4.yaml", "--svg", self.folder / "m.svg", "--batch", "configs/tasks/two-lines.yaml"), "task set")


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


class Show(Programs):
    MACHINE = "configs/machines/inspection-camera.yaml"

    # Into memory: 40 without 2.4 + 1 usually, and 36 without 3 + 4 at most.
    def test_background_load_is_listed_with_what_it_leaves(self):
        answer = self.object_of(0, "topology", "show", self.MACHINE, "--json")
        self.assertEqual(answer["devices"], ["camera0", "disk0"])
        self.assertEqual(answer["background"][0], {"from": "camera0", "to": "mem0", "nominal_gbps": 2.4, "most_gbps": 3,
                                                   "route": ["camera0", "switch0", "cpu0", "mem0"]})
        self.assertEqual(answer["background"][2]["route"], ["mem0", "cpu0", "mem0"])
        into_memory = next(link for link in answer["links"] if (link["from"], link["to"]) == ("cpu0", "mem0"))
        self.assertEqual((into_memory["nominal_gbps"], into_memory["guaranteed_gbps"]), (40, 36))
        self.assertAlmostEqual(into_memory["nominal_left_gbps"], 36.6)
        self.assertAlmostEqual(into_memory["guaranteed_left_gbps"], 29)
        text = self.tutti("topology", "show", self.MACHINE).stdout
        self.assertRegex(text, r"\ncpu0 -> mem0 +- +40.00 +36.00 +36.60 +29.00\n")
        self.assertIn("\ndevices: camera0, disk0\n", text)
        self.assertRegex(text, r"\ncamera0 -> switch0 -> cpu0 -> mem0 +2.40 +3.00\n")
        self.assertNotIn("left", self.tutti("topology", "show", "configs/machines/h200x4.yaml").stdout)


if __name__ == "__main__":
    sys.exit(main())
