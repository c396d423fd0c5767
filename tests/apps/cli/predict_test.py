#!/usr/bin/env python3
"""`tutti predict`, and what is said of bad machine and batch files."""
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

from programs import EXAMPLE, ONE_GPU, ROOT, WAFER, Programs, main


class Predict(Programs):
    def test_whole_outputs(self):
        self.is_golden("predict.txt", self.tutti("predict", EXAMPLE))
        self.is_golden("predict.json", self.tutti("predict", EXAMPLE, "--json"))

    def test_predict_has_the_contract_s_keys(self):
        answer = self.object_of(0, "predict", EXAMPLE, "--json")
        self.assertEqual(answer["schema_version"], 1)
        self.assertEqual((answer["planner"], answer["latency_ms"], answer["latest_ms"]), ("best", 44.8, 44.8))
        self.assertEqual(answer["streams"][0]["transfer"], {"path": "direct", "start_ms": 33.6, "end_ms": 41.6, "rates_from": ["graph"]})
        self.assertEqual(answer["streams"][0]["kernel"], {"on": "gpu0", "start_ms": 41.6, "end_ms": 44.8})


class OnATerminal(Programs):
    """Text as a terminal shows it: as wide as its window, in colour, with a legend."""

    def shown(self, columns, *words, **environment):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        changed = {**os.environ, "TERM": "xterm", **environment}
        if "NO_COLOR" not in environment:
            changed.pop("NO_COLOR", None)
        process = subprocess.Popen([str(self.built / "tutti/tutti"), *map(str, words)], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.DEVNULL, env=changed)
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:  # the other side is closed
            pass
        os.close(ours)
        process.wait()
        return text.decode().replace("\r\n", "\n")

    def test_bars_fill_the_window(self):
        for columns in (80, 120, 211):
            with self.subTest(columns=columns):
                text = self.shown(columns, "predict", EXAMPLE, NO_COLOR="1")
                self.assertNotIn("\x1b", text)
                rows = [line for line in text.splitlines() if line.startswith("image")]
                self.assertEqual([len(row) for row in rows], [columns] * 4)

    def test_a_window_that_is_too_narrow_has_bars_of_ten(self):
        rows = [line for line in self.shown(20, "predict", EXAMPLE, NO_COLOR="1").splitlines() if line.startswith("image")]
        self.assertEqual([len(row.split()[-1]) for row in rows], [10] * 4)

    def test_marks_have_colours_and_a_legend(self):
        text = self.shown(120, "predict", EXAMPLE)
        self.assertRegex(text, "\x1b\\[36m=+\x1b\\[0m\x1b\\[33m#+\x1b\\[0m")
        self.assertRegex(text.splitlines()[-1], "=.* copy.*#.* kernel.* idle")
        self.assertIn("\x1b", self.tutti("predict", EXAMPLE, "--color", "always").stdout)
        self.assertNotIn("\x1b", self.shown(120, "predict", EXAMPLE, "--color", "never"))

    # The copies of a job of the wafer inspection, and their kernels, are drawn below the tables; nothing is in a pipe.
    def test_check_draws_a_job_of_each_task(self):
        text = self.shown(100, "check", WAFER, NO_COLOR="1")
        drawn = text[text.index("one job of"):].splitlines()
        self.assertIn("=", drawn[1])
        self.assertEqual({len(row) for row in drawn[1:-2]}, {100})
        self.assertIn("= copy", drawn[-1])
        self.assertNotIn("one job of", self.tutti("check", WAFER).stdout)


class BadInput(Programs):
    def predict(self, streams, machine=ONE_GPU):
        self.file(machine, "m.yaml")
        return self.tutti("predict", self.file(f"version: 1\nmachine: m.yaml\nstreams:\n{streams}\n"))

    def test_each_mistake_has_its_place(self):
        cases = (
            ("- {name: a, from: mem0, too: gpu0, size: 1 MB}", "f.yaml:4:25: unknown key 'too' in a stream; did you mean 'to'?"),
            ("- {name: a, from: mem0, to: gpu1, size: 1 MB}", "f.yaml:4:29: machine 'm' has no vertex 'gpu1'; did you mean 'gpu0'?"),
            ("- {name: a, from: mem0, to: gpu0, size: 1}", "f.yaml:4:41: '1' has no unit; write it like 64 MiB"),
            ("- {name: a, from: mem0, to: gpu0, size: -1 MB}", "f.yaml:4:41: '-1 MB' is negative"),
            ("- {name: a, from: gpu0, to: mem0, size: 1 MB}", "f.yaml:4:3: no way leads from 'gpu0' to 'mem0'"),
            ("- {name: a b, from: mem0, to: gpu0, size: 1 MB}", "f.yaml:4:10: 'a b' is no name"),
            ("- {name: a, from: mem0, to: gpu0, size: image}", "f.yaml:4:41: no parameter 'image' is defined"),
            ("- &x {name: a, from: mem0, to: gpu0, size: *x}", "f.yaml:4:44: "),
        )
        for stream, sentence in cases:
            with self.subTest(stream=stream):
                self.refuses(self.predict(stream), sentence)

    def test_a_mistake_in_the_machine_is_placed_there(self):
        machine = ONE_GPU.replace("8 GB/s", "0 GB/s")
        self.refuses(self.predict("- {name: a, from: mem0, to: gpu0, size: 1 MB}", machine), "m.yaml:8:41: '0 GB/s' is zero")

    def test_a_hundred_megabytes_of_nonsense(self):
        path = self.folder / "big.yaml"
        with open(path, "wb") as file:
            file.truncate(100_000_000)
        self.refuses(self.tutti("predict", path), "above 4 MiB")

    def test_an_unknown_kernel_is_named_before_the_run(self):
        self.file(ONE_GPU, "m.yaml")
        path = self.file("version: 1\nmachine: m.yaml\ntasks:\n- name: a\n  period: 10 ms\n  job:\n  - batch: [{kernel: {on: gpu0, time: 1 ms, name: sipn}}]\n")
        self.refuses(self.tutti("run", path, "--quiet"), "f.yaml:7:13: ", "'sipn', which is not registered")


if __name__ == "__main__":
    sys.exit(main())
