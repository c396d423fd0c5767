#!/usr/bin/env python3
"""`wafer_inspection`."""
import csv
import json
import os
import signal
import struct
import sys
import unittest

from programs import H200X4, ROOT, Programs, main


class WholeOutput(Programs):
    def test_whole_outputs(self):
        self.is_golden("wafer_inspection.txt", self.wafer("--size", 256, "--jobs", 100))


class Wafer(Programs):
    def test_pictures_come_back_from_files(self):
        made = self.wafer("generate", "--images", self.folder / "w", "--size", 256, "--count", 2)
        self.assertEqual(made.returncode, 0, made.stderr)
        run = self.wafer("--images", self.folder / "w", "--jobs", 10)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.split("\n")[-2].split(), ["10", "0", "0.021", "0.021", "0", "0.021", "60.000", "120", "120", "0"])

    def test_another_size_or_no_picture_is_refused(self):
        self.wafer("generate", "--images", self.folder / "w", "--size", 256, "--count", 1)
        self.refuses(self.wafer("--images", self.folder / "w", "--size", 512), "for generated images; leave them out here")
        self.refuses(self.wafer("--images", self.folder), "no .png, .tif or .tiff")
        (self.folder / "w" / "wafer000.png").write_bytes(b"no picture")
        self.refuses(self.wafer("--images", self.folder / "w"), "wafer000.png", "neither PNG nor TIFF")

    def test_pictures_without_a_truth_give_a_list_a_map_and_marked_pictures(self):
        self.wafer("generate", "--images", self.folder / "w", "--size", 256, "--count", 2, "--defects", 3)
        for truth in (self.folder / "w").glob("*.json"):
            truth.unlink()
        out = {name: self.folder / name for name in ("list.csv", "map.svg", "marked")}
        words = ["--images", self.folder / "w", "--csv", out["list.csv"], "--map", out["map.svg"], "--marked", out["marked"]]
        run = self.wafer(*words)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("20 columns and 30 rows of dies of 12 x 8 px from 8,8", run.stdout)
        self.assertIn("no truth is known", run.stdout)
        rows = list(csv.DictReader(out["list.csv"].read_text(encoding="utf-8").splitlines()))
        self.assertEqual(len(rows), 6)  # three planted in each of the two
        self.assertIn("6 defects in 2 pictures", out["map.svg"].read_text(encoding="utf-8"))
        self.assertEqual(sorted(path.name for path in out["marked"].iterdir()), ["wafer000.png", "wafer001.png"])
        report = json.loads(self.wafer(*words, "--json").stdout)
        self.assertEqual((report["schema_version"], report["truth"], report["dies"], report["defects"]), (1, None, "found", 6))
        self.assertEqual([(d["x_px"], d["y_px"]) for p in report["pictures"] for d in p["defects"]],
                         [(int(row["x_px"]), int(row["y_px"])) for row in rows])
        self.refuses(self.wafer("--images", self.folder / "w", "--marked", self.folder / "w"), "would replace the pictures")

    # The name of a picture is a text of somebody else: a terminal gets no escape sequence of it, a script gets it whole.
    def test_names_of_pictures_are_shown_without_controls(self):
        self.wafer("generate", "--images", self.folder / "w", "--size", 256, "--count", 1)
        (self.folder / "w/wafer000.json").unlink()
        name = "w\u202eafer\u009b2J\x1b[2J.png"
        (self.folder / "w/wafer000.png").rename(self.folder / "w" / name)
        run = self.wafer("--images", self.folder / "w", "--jobs", 1, "--json")
        self.assertEqual([picture["image"] for picture in json.loads(run.stdout)["pictures"]], [name])
        broken = (self.folder / "w" / name).read_bytes()[:500]
        (self.folder / "w" / name).write_bytes(broken)
        for shown in (run, self.wafer("--images", self.folder / "w")):
            self.assertNotRegex(shown.stdout + shown.stderr, "[\u202e\u009b\x1b]")
        self.assertIn("w?afer?2J?[2J.png: ", shown.stderr)

    def tiff(self, name, levels, width, bits=16, cut=None, **fields):
        """An uncompressed TIFF of one strip, low byte first; fields replace entries of its directory."""
        pixels = b"".join(level.to_bytes(bits // 8, "little") for level in levels)
        entries = {256: width, 257: len(levels) // width, 258: bits, 259: 1, 262: 1, 273: 8, 277: 1, 278: len(levels) // width, 279: len(pixels)}
        entries.update({int(tag[1:]): value for tag, value in fields.items()})
        directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(entries.items()))
        data = struct.pack("<2sHI", b"II", 42, 8 + len(pixels)) + pixels + directory + bytes(4)
        (self.folder / name).write_bytes(data[:cut])
        return self.folder / name

    # 20 x 24 dies of 10 x 12 px in 16 bits; one pixel of die column 3, row 5 is 300 levels brighter than 20000: in 8 bits
    # it would be one level.
    def test_sixteen_bit_tiffs_keep_their_depth(self):
        levels = [20000 + 40 * ((x % 10) * (y % 12) % 7) for y in range(288) for x in range(200)]
        levels[(5 * 12 + 4) * 200 + 34] += 300
        picture = self.tiff("deep.tif", levels, 200)
        run = self.wafer("--images", picture, "--die", "10x12", "--threshold", 250, "--jobs", 1, "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        report = json.loads(run.stdout)
        self.assertEqual((report["pixel_bits"], report["image_bytes"], report["dies"]), (16, 200 * 288 * 2, "given"))
        self.assertEqual([(d["die_column"], d["die_row"], d["x_in_die_px"], d["y_in_die_px"], d["area_px"], d["contrast_levels"])
                          for d in report["pictures"][0]["defects"]], [(3, 5, 4, 4, 1, 300)])

    def test_pictures_that_cannot_be_inspected_are_refused_by_name(self):
        flat = [100] * 6400
        good = self.tiff("good.tif", flat, 80)
        for picture, words in (
            (self.tiff("cut.tif", flat, 80, cut=900), "cut off or damaged"),
            (self.tiff("empty.tif", flat, 80, cut=0), "is empty"),
            (self.tiff("colour.tif", flat, 80, _262=2, _277=3), "3 samples a pixel"),
            (self.tiff("one-bit.tif", flat, 80, _258=1), "1-bit gray"),
            (self.tiff("palette.tif", flat, 80, _262=3), "palette"),
            (self.tiff("huge.tif", flat, 80, _256=4_000_000_000), "a side"),
            (self.folder / "missing.png", "no such file"),
            (good, "--die WIDTHxHEIGHT"),
        ):
            with self.subTest(picture=picture.name):
                self.refuses(self.wafer("--images", picture), picture.name, words)
        self.refuses(self.wafer("--images", good, self.tiff("bytes.tif", flat, 80, bits=8)), "bytes.tif", "good.tif", "bits a pixel")
        self.refuses(self.wafer("--images", good, "--die", "10"), "--die")
        self.refuses(self.wafer("--images", good, "--die", "10x10", "--csv", self.folder / "no" / "list.csv"), "list.csv")

    def test_another_machine_takes_the_place_of_the_task_set_s(self):
        machine = (ROOT / H200X4).read_text(encoding="utf-8").replace("name: h200x4", "name: elsewhere")
        run = self.wafer("--size", 256, "--jobs", 2, "--machine", self.file(machine))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.startswith("wafer inspection on elsewhere: sim backend, virtual clock, "), run.stdout)
        self.refuses(self.wafer("--machine", "/no/such"))

    def test_an_interrupt_drains_and_reports(self):
        process = self.start("wafer_inspection/wafer_inspection", "--size", 256, "--count", 1, "--jobs", 1_000_000)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("interrupted; the report covers what had run", err)
        self.assertLess(int(out.split("\n")[-2].split()[0]), 1_000_000)

    # The program finds the CUDA backend, which finds no driver that works.
    @unittest.skipUnless("TUTTI_FAKE_DRIVER" in os.environ, "this build has no CUDA")
    def test_a_host_without_a_driver_is_told(self):
        environment = {**os.environ, "LD_LIBRARY_PATH": os.environ["TUTTI_FAKE_DRIVER"], "FAKE_CUDA_VERSION": "0", "FAKE_CUDA_INIT": "0"}
        run = self.run_program("wafer_inspection/wafer_inspection", "--size", "256", "--backend", "cuda", env=environment)
        self.refuses(run, "there is no GPU driver on this host; install", code=3)

    def test_mistakes_end_with_2(self):
        for words in (["--size", "100"], ["--size", "x"], ["--jobs", "0"], ["--seed", "-1"], ["generate"], ["--tasks", "/no/such"], ["--clock", "sand"], ["nonsense"]):
            with self.subTest(words=words):
                self.refuses(self.wafer(*words))


if __name__ == "__main__":
    sys.exit(main())
