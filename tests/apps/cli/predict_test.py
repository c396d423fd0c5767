#!/usr/bin/env python3
"""`tutti predict`, and what is said of bad machine and batch files."""
import sys

from programs import EXAMPLE, ONE_GPU, Programs, main


class Predict(Programs):
    def test_whole_outputs(self):
        self.is_golden("predict.txt", self.tutti("predict", EXAMPLE))
        self.is_golden("predict.json", self.tutti("predict", EXAMPLE, "--json"))

    def test_predict_has_the_contract_s_keys(self):
        answer = self.object_of(0, "predict", EXAMPLE, "--json")
        self.assertEqual(answer["schema_version"], 1)
        self.assertEqual((answer["planner"], answer["latency_ms"], answer["latest_ms"]), ("completion_aligned", 44.8, 44.8))
        self.assertEqual(answer["streams"][0]["transfer"], {"path": "direct", "start_ms": 33.6, "end_ms": 41.6, "rates_from": ["graph"]})
        self.assertEqual(answer["streams"][0]["kernel"], {"on": "gpu0", "start_ms": 41.6, "end_ms": 44.8})


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
        self.refuses(self.tutti("run", path), "f.yaml:7:13: ", "'sipn', which is not registered")


if __name__ == "__main__":
    sys.exit(main())
