#!/usr/bin/env python3
"""`wafer_inspection --camera`: what it refuses, and runs with a GigE Vision camera of Aravis on the loopback interface.

The camera is a process of this test. Its frames are generated wafers, with 12 defects each. No case measures time.
"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from programs import H200X4, ROOT, TOO_SLOW, WAFER, Programs, main

CAMERA = os.environ.get("WAFER_FAKE_CAMERA")
TASKS = "configs/tasks/wafer-inspection-camera.yaml"
needs_aravis = unittest.skipUnless(CAMERA, "this build has no Aravis")


class Refusals(Programs):
    def test_mistakes_end_with_2(self):
        for words, sentence in (
            (["--images", "x.png"], "--camera gives the pictures"),
            (["--size", "512"], "--camera gives the pictures"),
            (["--marked", "folder"], "frames of a camera are not; leave it out"),
            (["--clock", "virtual"], "--camera needs the real clock"),
        ):
            with self.subTest(words=words):
                self.refuses(self.wafer("--camera", *words), sentence)

    def test_a_camera_that_cannot_be_had_is_refused(self):
        run = self.wafer("--camera", "Nobody-Has-This-1")
        if CAMERA:
            self.refuses(run, "'Nobody-Has-This-1' is not found", code=3)
        else:
            self.refuses(run, "built without Aravis; install libaravis-dev and libusb-1.0-0-dev", "-Dcamera=enabled, and build anew")

    # A ramp of gray levels has no dies.
    @needs_aravis
    def test_frames_and_task_sets_that_do_not_fit_end_with_2(self):
        self.refuses(self.wafer("--camera", "Fake_1"), "the first frame of Fake_1: ", "--die WIDTHxHEIGHT")
        self.refuses(self.wafer("--camera", "Fake_1", "--tasks", WAFER), "task 'inspect' needs 'release: external'", TASKS)


@needs_aravis
class Camera(Programs):
    def setUp(self):
        super().setUp()
        self.serial = f"T{os.getpid()}"
        self.name = f"Aravis-Fake-{self.serial}"
        self.start_camera()
        machine = (ROOT / H200X4).read_text(encoding="utf-8").replace("absolute: 0 ns", "absolute: 200 ms")
        tasks = (ROOT / TASKS).read_text(encoding="utf-8")
        for usual, slow in (("../machines/h200x4.yaml", self.file(machine, "slow.yaml")), ("period: 25 ms", "period: 500 ms"), ("deadline: 60 ms", "deadline: 1500 ms")):
            self.assertIn(usual, tasks)
            tasks = tasks.replace(usual, slow)
        self.words = ["--camera", self.name, "--tasks", self.file(tasks), "--priority", "50", "--wait", "block"]

    def start_camera(self):
        self.camera = subprocess.Popen([CAMERA, self.serial, "256"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end_camera, self.camera)
        if self.camera.stdout.readline() != "ready\n":
            self.assertEqual(self.camera.wait(), 3)
            self.skipTest("port 3956 of the loopback interface is in use")

    @staticmethod
    def end_camera(camera):
        camera.stdin.close()
        camera.wait()
        camera.stdout.close()

    def inspect(self, *words):
        """A run; again where the host stood for some ms, which ends a simulated machine on the real clock."""
        while True:
            run = self.wafer(*self.words, *words)
            if TOO_SLOW not in run.stderr:
                return run

    def ended(self, end):
        """A long run, ended by what is called with its process: exit code, report and remarks; again where the host stood."""
        while True:
            process = self.start("wafer_inspection/wafer_inspection", *self.words, "--jobs", 1_000_000)
            time.sleep(4)  # so that frames have come
            end(process)
            out, err = process.communicate()
            if TOO_SLOW not in err:
                return process.returncode, out, err
            if self.camera.poll() is not None:
                self.start_camera()

    def test_each_job_inspects_a_frame(self):
        run = self.inspect("--jobs", 5, "--json", "--csv", self.folder / "list.csv")
        self.assertEqual(run.returncode, 0, run.stderr)
        report = json.loads(run.stdout)
        self.assertEqual((report["jobs"], report["clock"], report["dies"], report["truth"]), (5, "real", "found", None))
        self.assertEqual([picture["image"] for picture in report["pictures"]], [f"frame00000{n}" for n in range(5)])
        found = [picture["defects"] for picture in report["pictures"]]
        self.assertEqual([len(defects) for defects in found], [12] * 5)
        # Three wafers in turn: a frame is that of three frames before.
        self.assertEqual(found[:2], found[3:])
        self.assertNotEqual(found[0], found[1])
        camera = report["camera"]
        self.assertEqual((camera["name"], camera["frames"]), (self.name, 5))
        self.assertEqual([camera[key] for key in ("incomplete", "underruns", "not_seen", "too_early")], [0, 0, 0, 0])
        self.assertEqual((camera["triggers"]["seen"], camera["triggers"]["dropped"]), (5, 0))
        self.assertEqual(len((self.folder / "list.csv").read_text(encoding="utf-8").splitlines()), 1 + 5 * 12)

    def test_the_report_says_what_became_of_the_frames(self):
        run = self.inspect("--jobs", 2)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"camera {self.name}: 2 frames released a job; lost: 0 incomplete, 0 without a free buffer, 0 not seen, 0 too early", run.stdout)
        self.assertIn(f"(found in the first frame of {self.name})", run.stdout)
        self.assertEqual(run.stdout.split("\n")[-2].split()[-2:], ["2", "24"])

    def test_an_interrupt_ends_the_run(self):
        code, out, err = self.ended(lambda process: process.send_signal(signal.SIGINT))
        self.assertEqual(code, 130, err)
        self.assertIn(f"camera {self.name}: ", out)

    def test_a_camera_that_goes_ends_the_run_with_3(self):
        code, _, err = self.ended(lambda _: (self.camera.kill(), self.camera.wait()))
        self.assertEqual(code, 3, err)
        self.assertIn(f"camera {self.name}: the connection is lost", err)


if __name__ == "__main__":
    sys.exit(main())
