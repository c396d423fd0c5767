#!/usr/bin/env python3
"""`tutti calibrate`, from measured rates and on a machine."""
import json
import re
import signal
import subprocess
import sys

from programs import EXAMPLE, H200X4, MEASURED, ONE_GPU, ROOT, SECOND_HOST, Programs, main


class Calibrate(Programs):
    def calibrate(self, document, *words):
        path = self.file(document if isinstance(document, str) else json.dumps(document), "m.json")
        return self.tutti("calibrate", "--from", path, "--out", self.folder / "out.yaml", *words)

    def measured(self, most_gpus=4):
        document = json.loads((ROOT / MEASURED).read_text(encoding="utf-8"))
        for entries in ("steady_state", "batches_all_at_once"):
            document[entries] = [entry for entry in document[entries] if all(s["gpu"] < most_gpus for s in entry["streams"])]
        return document

    def test_the_file_that_it_writes_is_a_machine(self):
        out = self.folder / "out.yaml"
        answer = self.object_of(0, "calibrate", "--from", MEASURED, "--out", out, "--json")
        self.assertEqual((answer["left_out"], len(answer["residuals"])), ([], 64))
        self.assertLess(answer["errors"]["table"]["rates"]["p95"], 0.005)
        self.assertGreater(answer["errors"]["plain_model"]["rates"]["p95"], 0.5)
        shown = self.object_of(0, "topology", "show", out, "--json")
        self.assertEqual((len(shown["links"]), len(shown["residuals"])), (10, 64))
        again = self.folder / "again.yaml"
        self.assertEqual(self.tutti("calibrate", "--from", MEASURED, "--out", again).returncode, 0)
        self.assertEqual(out.read_bytes(), again.read_bytes())

    def test_predictions_say_where_their_rates_come_from(self):
        batch = f"version: 1\nmachine: {ROOT / H200X4}\nstreams:\n- {{name: a, from: mem0, to: gpu0, size: 64 MB}}\n- {{name: b, from: gpu2, to: gpu1, size: 64 MB}}\n"
        answer = self.object_of(0, "predict", self.file(batch), "--json")
        self.assertEqual([stream["transfer"]["rates_from"] for stream in answer["streams"]], [["table"], ["graph"]])

    def test_check_holds_on_the_host_itself_and_not_on_another(self):
        self.assertIs(self.object_of(0, "calibrate", "--check", MEASURED, "--machine", H200X4, "--json")["holds"], True)
        answer = self.object_of(4, "calibrate", "--check", SECOND_HOST, "--machine", H200X4, "--json")
        self.assertIs(answer["holds"], False)
        self.assertLess(answer["moved"][0]["measured"], answer["moved"][0]["calibrated"])
        self.assertIn("does NOT hold", self.tutti("calibrate", "--check", SECOND_HOST, "--machine", H200X4).stdout)

    def test_plan_lists_what_to_measure(self):
        answer = self.object_of(0, "calibrate", "--plan", H200X4, "--json")
        self.assertLess(answer["total_ms"], 75_000)
        self.assertEqual(answer["combinations"][0], {"streams": [{"gpu": 0, "direction": "h2d"}]})
        self.assertIn({"streams": [{"from": "gpu0", "to": "gpu1"}]}, answer["ways"])

    def test_the_fit_goes_on_without_what_it_cannot_use(self):
        def left_out(change):
            document = self.measured(most_gpus=2)
            change(document)
            run = self.calibrate(document, "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
            return json.loads(run.stdout)["left_out"]

        rates = lambda document: document["steady_state"]
        twice = {"streams": self.measured()["steady_state"][0]["streams"], "gbps": [40]}
        for change, sentence in (
            (lambda d: rates(d).append(twice), "steady_state[13]: h2d 0 was measured 2 times, from 40.0 to 55.4 GB/s; measure it again"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, 120), "h2d 0 runs at 120.0 GB/s in h2d 0 1, more than its link carries alone (55.4)"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, "N/A"), 'steady_state[4]: h2d 0 has the rate "N/A"'),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, None), "steady_state[4]: h2d 0 has the rate null"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, 0), "steady_state[4]: h2d 0 has the rate 0"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, 1e300), "steady_state[4]: h2d 0 has the rate 1e+300"),
            (lambda d: rates(d)[4]["gbps"].__setitem__(0, 1e-9), "steady_state[4]: h2d 0 has the rate 1e-09"),
            (lambda d: d["batches_all_at_once"].append({"streams": [{"gpu": 0, "direction": "h2d", "bytes": "x", "finish_us": 1}]}), 'h2d 0 has \'bytes\' "x"'),
            (lambda d: d["batches_all_at_once"].append({"streams": [{"gpu": 0, "direction": "h2d", "bytes": 1e6, "finish_us": 1}]}), "faster than its link carries it alone"),
        ):
            with self.subTest(sentence=sentence):
                sentences = left_out(change)
                self.assertEqual(len(sentences), 1)
                self.assertIn(sentence, sentences[0])
        self.assertEqual(left_out(lambda d: rates(d)[4]["gbps"].__setitem__(0, "55.3")), [])  # a number in a string

    def test_mistakes_end_with_2(self):
        stream = '{"gpu": 0, "direction": "h2d"}'
        for document, sentence in (
            ("", "m.json: this file is empty"),
            ('{"steady_state": [\n{"gbps": [NaN]}]}', "m.json:2:11: this is no JSON; NaN"),
            ("[]", "the file is no JSON object"),
            ("{}", "there is no 'steady_state'"),
            ('{"steady_state": 3}', "steady_state: this is no list"),
            ('{"steady_state": []}', "there is no combination of streams that can be used"),
            (f'{{"steady_state": [{{"streams": [{stream}], "gbps": [55]}}]}}', "d2h 0 was never measured"),
            (f'{{"steady_state": [{{"streams": [{stream}], "gbps": [55, 55]}}]}}', "steady_state[0]: 'gbps' has one rate for each of the 1 streams"),
            (f'{{"steady_state": [{{"streams": [{stream}, {stream}], "gbps": [55, 55]}}]}}', "steady_state[0]: h2d 0 stands twice"),
            ('{"steady_state": [{"streams": [{"gpu": 8, "direction": "h2d"}], "gbps": [55]}]}', "'gpu' is 8; it is a position from 0 to 7"),
            ('{"steady_state": [{"streams": [{"gpu": 0, "direction": "up"}], "gbps": [55]}]}', "'direction' is \"up\"; it is h2d or d2h"),
            ('{"steady_state": [{"streams": [{"gpu": 0, "direction": "h2d"}]}]}', "steady_state[0]: there is no 'gbps'"),
        ):
            with self.subTest(sentence=sentence):
                self.refuses(self.calibrate(document), sentence)
                self.assertFalse((self.folder / "out.yaml").exists())
        two_gpus = ONE_GPU.replace("bandwidth: 8 GB/s", "bandwidth: 8 GB/s, back: 8 GB/s")
        self.refuses(self.calibrate(self.measured(), "--machine", self.file(two_gpus)), "gpu 3 was measured, and the machine 'm' has 1 GPUs")
        for words in ([], ["--from", MEASURED], ["--out", "x"], ["--check", MEASURED], ["--from", MEASURED, "--out", "/no/such/folder/x"],
                      ["--from", MEASURED, "--plan", H200X4], ["--from", "/no/such", "--out", "x"], ["--plan", "/no/such"], ["--check", "/no/such", "--machine", H200X4]):
            with self.subTest(words=words):
                self.refuses(self.tutti("calibrate", *words))
        for machine in (ONE_GPU, ONE_GPU.replace("mem0: {kind: memory}", "mem0: {kind: cpu}")):
            self.refuses(self.tutti("calibrate", "--check", MEASURED, "--machine", self.file(machine)), "name the machine that was measured")
            self.refuses(self.tutti("calibrate", "--plan", self.file(machine)))
        self.refuses(self.tutti("topology", "show", "/no/such"))
        self.refuses(self.tutti("topology"))


class Measure(Programs):
    """A machine that is measured, here the simulated one, and the file that describes it then."""

    MACHINE = "configs/machines/inspection-example.yaml"

    def calibrate(self, *words, out=None):
        return self.tutti("calibrate", "--machine", self.MACHINE, "--out", out or self.folder / "out.yaml", *words)

    def test_the_simulated_machine_finds_itself(self):
        out, measured, again = (self.folder / name for name in ("out.yaml", "measured.json", "again.yaml"))
        answer = self.object_of(0, "calibrate", "--machine", self.MACHINE, "--out", out, "--backend", "sim", "--copy", "64KiB",
                                "--rounds", 2, "--measured", measured, "--json")
        self.assertEqual(answer["left_out"], [])
        self.assertLess(answer["errors"]["graph"]["rates"]["worst"], 0.02)
        self.assertLess(answer["errors"]["graph"]["batch_lengths"]["worst"], 0.02)
        self.assertEqual(self.object_of(0, "topology", "show", out, "--json")["machine"], "inspection-example")
        latency = self.object_of(0, "predict", EXAMPLE, "--json")["latency_ms"]
        self.assertAlmostEqual(self.object_of(0, "predict", EXAMPLE, "--machine", out, "--json")["latency_ms"], latency, delta=0.02 * latency)
        # Two rounds over the same combinations, and batches with the medians of both.
        document = json.loads(measured.read_text(encoding="utf-8"))
        self.assertEqual(document["machine"], "the simulated machine inspection-example")
        self.assertEqual(len(document["steady_state"]), 2 * len(answer["residuals"]))
        self.assertEqual(len(document["batches_all_at_once"]), 40)
        # What was measured can be fitted again, and compared.
        self.object_of(0, "calibrate", "--machine", self.MACHINE, "--from", measured, "--out", again, "--json")
        self.assertEqual(again.read_text(encoding="utf-8"), out.read_text(encoding="utf-8"))
        self.assertIs(self.object_of(0, "calibrate", "--check", measured, "--machine", out, "--json")["holds"], True)

    def test_it_says_how_far_it_is(self):
        run = self.calibrate("--backend", "sim", "--copy", "4KiB", "--rounds", 2)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stderr, r"^gates and copy engines: [\d.]+ s\n\d+ combinations and 40 batches\nround 1 of at most 2\n"
                                     r"round 2 of at most 2: 19 medians in 20 are known within 0.00 %\nrates: [\d.]+ s\ncosts of commands: [\d.]+ s\nwrote [^\n]*out.yaml \(\d+ kB\)\n$")
        quick = self.calibrate("--backend", "sim", "--copy", "4KiB", "--quick", "--loaded")
        self.assertEqual(quick.returncode, 0, quick.stderr)
        self.assertIn("of at most 3", quick.stderr)
        self.assertIn("gates open late by: median 0.0 us", quick.stderr)
        self.assertIn("starts behind gates on a busy host", (self.folder / "out.yaml").read_text(encoding="utf-8"))

    def test_costs_of_the_file_are_found_again(self):
        costly = self.folder / "costly.yaml"
        text = (ROOT / self.MACHINE).read_text(encoding="utf-8")
        setup = "  setup: {batch: 7 us, gate: 2 us, transfer: 120 ns, kernel: 1.5 us}\n"
        costly.write_text(re.sub(r"  setup: .*\n", "", text) + setup, encoding="utf-8")
        out = self.folder / "out.yaml"
        run = self.tutti("calibrate", "--machine", costly, "--out", out, "--backend", "sim", "--copy", "64KiB", "--rounds", "1")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"a batch +[89]\.\d\d")  # batch and gate: 9 us
        self.assertRegex(run.stdout, r"a copy, up +0\.1[0-4]")
        self.assertRegex(run.stdout, r"a kernel +1\.[345]")

    def test_mistakes_are_told_before_anything_is_measured(self):
        out = self.folder / "out.yaml"
        for words, sentence in (
            (["--copy", "nonsense"], "--copy: 'nonsense' is no size of 4 KiB or more; write it like 128MiB"),
            (["--copy", "0"], "--copy: '0' is no size"),
            (["--rounds", "0"], "--rounds: "),
            (["--measured", "/no/such/folder/x"], "/no/such/folder/x: there is no folder 'no' in /"),
            (["--gate", "host_timed"], "--bind and --gate are for GPUs"),
        ):
            with self.subTest(words=words):
                self.refuses(self.calibrate("--backend", "sim", *words), sentence)
                self.assertEqual(list(self.folder.iterdir()), [])
        for place, why in (("/no/such/folder/x", "there is no folder 'no' in /"), (self.folder, "this is a folder")):
            self.refuses(self.calibrate("--backend", "sim", out=place), f"{place}: {why}")
        self.refuses(self.calibrate("--backend", "abacus"), "--backend: there is no 'abacus'")
        self.refuses(self.tutti("calibrate", "--machine", self.MACHINE, "--backend", "sim"), "give --machine and --out to measure this host")
        self.refuses(self.tutti("calibrate", "--machine", "/no/such", "--out", out, "--backend", "sim"), "/no/such: ")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_no_gpu_is_trouble(self):
        # Here there is no CUDA, or no driver; on a host with GPUs the machine file still has no bus ids.
        for words in ([], ["--backend", "cuda", "--gate", "memory_wait"]):
            run = self.calibrate(*words)
            self.refuses(run, code=run.returncode)
            self.assertIn(run.returncode, (2, 3))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_an_interrupt_writes_nothing(self):
        process = subprocess.Popen([str(self.built / "tutti/tutti"), "calibrate", "--machine", self.MACHINE, "--out", str(self.folder / "out.yaml"),
                                    "--backend", "sim", "--copy", "4MiB", "--rounds", "1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        process.stderr.readline()  # it has begun
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, ""), err)
        self.assertIn("interrupted; nothing was written", err)
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    sys.exit(main())
