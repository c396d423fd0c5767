#!/usr/bin/env python3
"""`tutti advise`, and what is said of bad exchange files."""
import sys

from programs import Programs, main

CONTROL = "configs/control"


class Advise(Programs):
    def test_whole_outputs(self):
        self.is_golden("advise.txt", self.tutti("advise", f"{CONTROL}/halo-2d.yaml"))
        self.is_golden("advise.json", self.tutti("advise", f"{CONTROL}/halo-2d.yaml", "--json"))
        self.is_golden("advise_host.txt", self.tutti("advise", f"{CONTROL}/bfs.yaml"))

    def test_published_cases_have_their_answers(self):
        for name, advice, reason in (("hpgmg", "kernel", None), ("comd", "stream", None), ("bfs", "host", "known")):
            with self.subTest(name=name):
                answer = self.object_of(0, "advise", f"{CONTROL}/{name}.yaml", "--json")
                self.assertEqual((answer["schema_version"], answer["advice"], answer["reason"]), (1, advice, reason))

    def test_what_was_not_considered_is_null(self):
        answer = self.object_of(0, "advise", f"{CONTROL}/bfs.yaml", "--json")
        self.assertEqual(answer["modes"][2], {"mode": "kernel", "cpu_ms": None, "gpu_ms": None, "time_ms": None, "longer": None,
                                              "gain_percent": None, "program_gain_percent": None})
        self.assertIsNone(answer["overlap_ms"])

    # One send of 10 us that the host waits for, and 1 us of enqueueing: 2 + 10 + 5 host-driven, 10 + 5 on stream.
    def test_numbers_by_hand(self):
        path = self.file("version: 1\niterations: 2\nsends: [{launch: 2 us, run: 10 us, enqueue: 1 us, send: 5 us}]\n")
        answer = self.object_of(0, "advise", path, "--json")
        host, stream, _ = answer["modes"]
        self.assertEqual((host["cpu_ms"], host["gpu_ms"], stream["cpu_ms"], stream["gpu_ms"]), (0.034, 0.034, 0.006, 0.030))
        self.assertAlmostEqual(stream["gain_percent"], 100 * 4 / 34)
        self.assertEqual(answer["advice"], "stream")
        c2 = answer["conditions"][-1]
        self.assertEqual((c2["name"], c2["holds"], c2["left_ms"], c2["right_ms"]), ("C2", True, 0.010, 0.014))


class BadInput(Programs):
    def test_each_mistake_has_its_place(self):
        cases = (
            ("iterations: 1\nsend: []", "f.yaml:3:1: unknown key 'send' in an exchange file; did you mean 'sends'?"),
            ("iterations: 1\nsends: [{launch: 1 us, run: 1 us, enqueu: 1 us, send: 1 us}]", "f.yaml:3:35: unknown key 'enqueu' in a compute-and-send task; did you mean 'enqueue'?"),
            ("iterations: -1", "f.yaml:2:13: '-1' "),
            ("iterations: 1\nsynchronize_call: 3", "f.yaml:3:19: '3' has no unit"),
            ("iterations: 1\nfused: {launch: 1 us, sms: 1}", "f.yaml:3:8: 'blocks_per_sm' is missing in a fused kernel; add it"),
            ("sends: []", "f.yaml:1:1: 'iterations' is missing in an exchange file; add it"),
        )
        for keys, sentence in cases:
            for json in ([], ["--json"]):
                with self.subTest(keys=keys):
                    self.refuses(self.tutti("advise", self.file(f"version: 1\n{keys}\n"), *json), sentence)

    def test_no_file(self):
        self.refuses(self.tutti("advise", "/no/such/file"), "/no/such/file")


if __name__ == "__main__":
    sys.exit(main())
