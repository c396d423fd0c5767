#!/usr/bin/env python3
"""`wafer_inspection`."""
import signal
import subprocess
import sys
import time

from programs import H200X4, ROOT, Programs, main


class WholeOutput(Programs):
    def test_whole_outputs(self):
        self.is_golden("wafer_inspection.txt", self.wafer("--size", 256, "--jobs", 100))


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
    sys.exit(main())
