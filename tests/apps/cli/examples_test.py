#!/usr/bin/env python3
"""The examples, from the root of the tree as they stand."""
import sys

from programs import TOO_SLOW, Programs, main


class Examples(Programs):
    def prints(self, name, line, *words):
        run = self.run_program(f"examples/{name}", *words)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(run.stdout, line + "\n")

    def test_hello(self):
        self.prints("hello", "44.800 ms, and never more than 44.800 ms")

    def test_two_tasks(self):
        self.prints("two_tasks", "120 jobs, 0 missed deadlines, 0 wrong pixels")

    def test_reduction(self):
        self.prints("reduction", "88 totals right, 80 shown last")

    # A frame that the host sees late may lie in a slot that is written again: then it is not counted as it was.
    # A busy host is too slow to play the machine, and says so.
    def test_camera_ring(self):
        run = self.run_program("examples/camera_ring")
        if run.returncode == 3:
            self.assertTrue(run.stderr.startswith(TOO_SLOW), run.stderr)
        else:
            self.assertEqual(run.stderr, "")
            self.assertRegex(run.stdout, r"^(\d+) of 40 frames counted right\n$")

    def test_a_file_that_is_not_there(self):
        for name in ("camera_ring", "hello", "reduction", "two_tasks"):
            with self.subTest(name):
                self.refuses(self.run_program(f"examples/{name}", "nowhere.yaml"), "nowhere.yaml")

    def test_kernels_of_cuda_on_the_simulated_machine(self):
        # 64 MB at 12 GB/s take 5.333... ms, rounded up to a nanosecond, and the kernel 0.2 ms behind them.
        lines = {"cuda_kernel": "predicted 5.533 ms, took 5.533 ms",
                 "network": "100 jobs, 0 missed deadlines, 100 frames in the right class",
                 "pulse_compression": "100 jobs, 0 missed deadlines, 800 of 800 targets found"}
        for name, line in lines.items():
            with self.subTest(name):
                if not (self.built / "examples" / name).exists():
                    self.skipTest("this build has no CUDA, or not its libraries")
                self.prints(name, line)


if __name__ == "__main__":
    sys.exit(main())
