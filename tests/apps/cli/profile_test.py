#!/usr/bin/env python3
"""`tutti profile`: what it refuses. What it measures needs GPUs (tests/runtime/cuda)."""
import sys

from programs import Programs, main


class Profile(Programs):
    TASKS = "version: 1\nmachine: m.yaml\ntasks:\n- {name: a, period: 10 ms, job: [{batch: [{from: mem0, to: gpu0, size: 1 MB, kernel: {time: 1 ms}}]}]}\n"

    def tasks(self, text=TASKS):
        self.file("version: 1\nmachine: {name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, links: [{from: mem0, to: gpu0, bandwidth: 1 GB/s}]}\n", "m.yaml")
        return self.file(text)

    def refusal(self, code, *arguments):
        run = self.tutti("profile", *arguments)
        self.assertEqual((run.returncode, run.stdout), (code, ""), run.stderr)
        return run.stderr

    def test_the_simulated_machine_is_refused(self):
        self.assertIn("takes the times that are declared", self.refusal(2, self.tasks(), "--backend", "sim"))

    def test_bad_input_is_refused_before_anything_runs(self):
        self.assertIn("period", self.refusal(2, self.tasks(self.TASKS.replace("period", "perod"))))
        self.assertIn("nothing to measure", self.refusal(2, self.tasks("version: 1\ntasks: [{name: a, period: 10 ms, wcet: 1 ms}]\n")))
        self.assertIn("no-folder", self.refusal(2, self.tasks(), "--out", "/no-folder/t.yaml"))
        self.assertIn("--repeats", self.refusal(2, self.tasks(), "--repeats", 0))
        self.assertIn("--margin", self.refusal(2, self.tasks(), "--margin", -1))
        self.assertIn("--margin", self.refusal(2, self.tasks(), "--margin", "nan"))
        wrapped = self.tasks(self.TASKS.replace("{time: 1 ms}", "{time: &t 1 ms, worst: *t}"))
        self.assertIn("cannot be changed in place", self.refusal(2, wrapped, "--out", self.folder / "new.yaml"))

    def test_a_host_without_gpus_says_so(self):
        run = self.tutti("profile", self.tasks(), "--bind", "gpu0=0000:00:00.0")
        self.assertEqual((run.returncode, run.stdout), (3, ""), run.stderr)


if __name__ == "__main__":
    sys.exit(main())
