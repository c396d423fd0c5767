#!/usr/bin/env python3
"""`tutti bench`."""
import json
import os
import re
import signal
import sys
import unittest

from programs import Programs, main


class BenchMethods(Programs):
    MACHINE = "configs/machines/inspection-example.yaml"
    PLANNERS = ["completion_aligned", "all_at_once", "bandwidth_allocation", "static_allocation", "time_division", "best", "gate_search"]

    def methods(self, *words):
        return self.tutti("bench", "methods", "--machine", self.MACHINE, "--backend", "sim", *words)

    def test_the_published_example_has_its_figures(self):
        # A thousandth of the published sizes: 44.8, 76.8 and 56.533 us; all at once 52.8 us. The
        # one batch is its whole application, so static allocation takes as long as allocation for the batch.
        answer = json.loads(self.methods("--size", "320kB", "--only", "example", "--json").stdout)
        self.assertEqual((answer["methods"], answer["holds"], answer["worst"]), (self.PLANNERS, True, "example"))
        rows = answer["workloads"][0]["methods"]
        for row, microseconds in zip(rows, (44.8, 52.8, 76.8, 76.8, 56.533)):
            self.assertAlmostEqual(1000 * row["median_ms"], microseconds, delta=0.005)
            self.assertEqual(len(row["runs_ms"]), 15)
        self.assertAlmostEqual(rows[1]["gain_percent"], 100 * (1 - 44.8 / 52.8), delta=0.02)

    def test_every_workload_has_a_row(self):
        run = self.methods("--size", "320kB", "--repeats", 1, "--tolerance", 40)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("note: memcpy_batch is left out: ", run.stderr)
        rows = [line.split()[0] for line in run.stdout.split("\n") if line]
        for name in ("example", "wafer", "domain", "random-1", "random-20"):
            self.assertEqual(rows.count(name), 2, run.stdout)
        self.assertIn("random: median of 20 ", run.stdout)
        self.assertRegex(run.stdout.split("\n")[-2], "^at worst, on .*, completion_aligned is .* (faster|slower) than ")

    def test_a_method_that_is_faster_ends_with_1(self):
        # On a machine whose rates do not vary aligned streams start as late as they can, and leave free what others could
        # have used before: 24.816 ms in place of 19.155.
        slower = ("--size", "64MiB", "--repeats", 1, "--only", "random-1", "--seed", 3)
        run = self.methods(*slower)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("completion_aligned is 29.6 % slower than all_at_once; --tolerance is 2 %", run.stderr)
        self.assertEqual(self.methods(*slower, "--tolerance", 30).returncode, 0)

    def test_mistakes_end_with_2(self):
        for words, sentence in ((["--size", "3 B"], "--size: 3 B is no size of an image; give one from 512 B to 1024 GiB"),
                                (["--size", "large"], "--size: 'large'"), (["--repeats", "0"], ""), (["--tolerance", "-1"], ""),
                                (["--only", "rando"], "--only: there is no workload 'rando'; did you mean 'random'?"),
                                (["--only", "random-21"], "--only: there is no workload 'random-21'"), (["--seed", "x"], "")):
            with self.subTest(words=words):
                self.refuses(self.methods(*words), sentence)
        self.refuses(self.tutti("bench"))
        self.refuses(self.tutti("bench", "methods"))
        self.refuses(self.tutti("bench", "methods", "--machine", "/no/such/file"))


class BenchTransfers(Programs):
    PAGEABLE = "configs/machines/pageable.yaml"
    TWO_SOCKETS = "configs/machines/two-sockets.yaml"

    def transfers(self, *words, machine=PAGEABLE):
        return self.tutti("bench", "transfers", "--machine", machine, "--backend", "sim", *words)

    def object_on(self, machine, *words):
        run = self.transfers(*words, "--json", machine=machine)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def test_the_virtual_clock_repeats_itself(self):
        words = ("--from", "4 KiB", "--to", "4 MiB", "--svg", self.folder / "t.svg")
        run = self.transfers(*words)
        self.is_golden("bench_transfers.txt", run)
        first = (self.folder / "t.svg").read_bytes()
        self.assertIn(b"up: idle, virtual clock", first)
        self.assertEqual(self.transfers(*words).stdout, run.stdout)
        self.assertEqual((self.folder / "t.svg").read_bytes(), first)

    # 9 us and 1 MiB at 55 GB/s; 150 us and 1 MiB at 49 GB/s up, at 50 GB/s down. The machine file has no costs of further
    # methods, which then take what the engine takes; 1 MiB is no argument of a kernel.
    def test_a_copy_takes_what_the_machine_says(self):
        answer = self.object_on(self.PAGEABLE, "--from", "1 MiB", "--to", "1 MiB", "--only", "copies")
        expected = {("engine", "up"): 28.065, ("engine", "down"): 28.065, ("pageable", "up"): 171.400, ("pageable", "down"): 170.972}
        for method in ("batch", "sm", "mapped", "automatic"):
            for direction in ("up", "down"):
                expected[method, direction] = expected["engine", direction]
        self.assertEqual({(row["method"], row["direction"]) for row in answer["copies"] if row["count"]}, set(expected))
        for row in answer["copies"]:
            self.assertEqual((row["load"], row["scheduling"], row["bytes"], row["count"]), ("none", "virtual", 1 << 20, 3))
            for key in ("average_us", "median_us", "p99_us", "p999_us", "worst_us"):
                self.assertAlmostEqual(row[key], expected[row["method"], row["direction"]], delta=0.01)
        self.assertEqual((answer["pairs"], answer["bus"], answer["factors"], answer["date"], answer["host"]), ([], [], [], None, None))

    # Up 2 x 48.6 and down 2 x 50.4, far ones down at the 50 of the link between the sockets; that link has 50 in each
    # direction, which a copy up of one GPU and one down of the other share.
    def test_the_bus_report_has_near_and_far_memory(self):
        answer = self.object_on(self.TWO_SOCKETS, "--only", "bus")
        rows = {(row["memory"], *row["gpus"]): row for row in answer["bus"]}
        self.assertEqual(len(rows), 8)
        for key, up, down, both in ((("mem0", "gpu0"), 48.6, 50.4, 99.0), (("mem0", "gpu1"), 48.6, 50.0, 98.6),
                                    (("nearest", "gpu0", "gpu1"), 97.2, 100.8, 198.0), (("farthest", "gpu0", "gpu1"), 97.2, 100.0, 100.0)):
            for name, rate in (("up_gbps", up), ("down_gbps", down), ("both_gbps", both)):
                self.assertAlmostEqual(rows[key][name], rate, delta=0.01)
        self.assertAlmostEqual(rows["farthest", "gpu0", "gpu1"]["both_percent"], 100 * 100 / (98.6 + 98.6), delta=0.02)
        self.assertEqual(answer["bus_copy_bytes"], 64 << 20)

    # Two copies by one engine follow each other, a copy up and one down run side by side.
    def test_pairs_show_what_shares_an_engine(self):
        answer = self.object_on(self.TWO_SOCKETS, "--from", "1 MiB", "--to", "1 MiB", "--only", "pairs")
        times = {(row["first"]["direction"], row["second"]["direction"]): row["average_us"] for row in answer["pairs"]}
        self.assertAlmostEqual(times["up", "up"], 8.8 + 2 * 1048.576 / 48.6, delta=0.01)
        self.assertAlmostEqual(times["up", "down"], 8.8 + 1048.576 / 48.6, delta=0.01)

    def test_load_in_real_time_is_reported_with_its_factors(self):
        answer = self.object_on(self.PAGEABLE, "--clock", "real", "--from", "4 KiB", "--to", "4 KiB", "--samples", 12, "--load", "hackbench", "--load", "cpu",
                                "--own-load", "--only", "copies")
        loads = [(condition["load"], condition["load_by"] is None) for condition in answer["conditions"]]
        self.assertEqual(loads[:3], [("none", True), ("hackbench", False), ("cpu", False)])
        self.assertEqual(answer["conditions"][-1]["scheduling"], "SCHED_OTHER")
        lines = len({(row["method"], row["direction"]) for row in answer["copies"]})
        self.assertEqual(lines, 13)
        self.assertEqual(len(answer["copies"]), lines * len(loads))
        self.assertEqual(len(answer["factors"]), lines * (len(loads) - 1))
        for row in answer["copies"]:
            self.assertIn(row["count"], (10, 11, 12))  # fewer than 12 where they take long
            self.assertLessEqual(row["median_us"], row["p99_us"])
        self.assertRegex(answer["date"], "^20[0-9-]{8}$")
        self.assertIn(" core", answer["host"])

    # A pause of 100 us before each copy, 13 lines, 1500 samples: 1.95 s at least, in 30 steps.
    def test_a_terminal_shows_how_much_is_left(self):
        for quiet in ((), ("--quiet",)):
            terminal, inside = os.openpty()
            answer = self.run_program("tutti/tutti", "bench", "transfers", "--machine", self.PAGEABLE, "--backend", "sim", "--clock", "real", "--from", "4 KiB", "--to", "4 KiB",
                                      "--samples", 1500, "--load", "none", "--only", "copies", "--json", *quiet, stderr=inside)
            os.close(inside)
            self.assertTrue(json.loads(answer.stdout)["copies"])
            try:
                said = os.read(terminal, 1 << 16).decode()
            except OSError:  # nothing was written
                said = ""
            os.close(terminal)
            self.assertEqual(re.search(r"copies \[#+\.*\] +\d+ %, \d+ s left", said) is not None, not quiet, said)

    def test_mistakes_end_with_2(self):
        for words, sentence in (
            (["--from", "0 B"], "--from: '0 B' is no size of a copy; write one from 1 B to 4 GiB, like 64KiB"),
            (["--to", "8 GiB"], "--to: '8 GiB' is no size"), (["--from", "large"], "--from: 'large'"),
            (["--from", "1 MiB", "--to", "4 KiB"], "--from: 1 MiB is above --to, 4 KiB; give the smaller size first"),
            (["--load", "cpus"], "--load: there is no load 'cpus'; did you mean 'cpu'?"),
            (["--load", "cpu"], "--load disturbs threads in real time; give --clock real with it"),
            (["--only", "bus", "--svg", "x.svg"], "--svg draws the copies"), (["--only", "busses"], "--only: there is no part 'busses'"),
            (["--svg", "/no/such/folder/x.svg"], "/no/such/folder/x.svg"), (["--samples", "0"], ""), (["--priority", "99"], "")):
            with self.subTest(words=words):
                self.refuses(self.transfers(*words), sentence)
        self.refuses(self.tutti("bench", "transfers"))
        no_gpu = self.file("version: 1\nmachine: {name: m, vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}}, links: [{from: mem0, to: cpu0, bandwidth: 1 GB/s}]}\n")
        self.refuses(self.transfers(machine=no_gpu), "machine 'm' has no GPU, so nothing is copied to one; give a machine file with a GPU")


class BenchCopies(Programs):
    MACHINE = "configs/machines/h200x4.yaml"

    def test_flows_and_rates_that_mean_nothing_are_refused(self):
        for words, sentence in (
                (["--flow", "mem0"], "--flow: 'mem0' are not two vertices of the machine; write them like 'mem0->gpu0'"),
                (["--flow", "mem0->gpu9"], "--flow: 'mem0->gpu9' are not two vertices of the machine"),
                (["--flow", "gpu0->gpu1"], "--flow: 'gpu0->gpu1' is no copy between a memory and a GPU, or in memory"),
                (["--rate", "fast"], "--rate: give a rate, like 10GB/s"), (["--rate", "0 GB/s"], "--rate: give a rate")):
            run = self.tutti("bench", "copies", "--machine", self.MACHINE, *words)
            self.assertEqual((run.returncode, run.stdout), (2, ""), words)
            self.assertIn(sentence, run.stderr)


class BenchWait(Programs):
    def test_mistakes_end_with_2(self):
        for words, sentence in ((["--gpu", "cpu0"], "--gpu: 'cpu0' is no GPU of the machine"),
                                (["--step", "0"], "--step: give the distance of two sleeps"), (["--step", "5us"], "--step: "),
                                (["--most", "long"], "--most: give the longest sleep"), (["--streams", "33"], ""), (["--repetitions", "0"], ""),
                                ([], "the sim backend has no driver to compare with")):
            with self.subTest(words=words):
                self.refuses(self.tutti("bench", "wait", "--machine", "configs/machines/h200x4.yaml", "--backend", "sim", *words), sentence)


class BenchPingPong(Programs):
    NO_GPU = "machine: {name: m, vertices: {mem0: {kind: memory}, cpu0: {kind: cpu}}, links: [{from: mem0, to: cpu0, bandwidth: 1 GB/s}]}"

    def pingpong(self, *words, machine="configs/machines/h200x4.yaml"):
        return self.tutti("bench", "pingpong", "--machine", machine, "--backend", "sim", *words)

    def test_mistakes_end_with_2(self):
        for words, sentence in ((["--gpu", "gpu9"], "--gpu: 'gpu9' is no GPU of the machine; it has gpu0, gpu1, gpu2, gpu3"),
                                (["--gpu", "gpu0", "cpu0"], "--gpu: 'cpu0' is no GPU of the machine; it has gpu0"),
                                (["--gpu", "gpu0", "gpu1", "gpu2"], "--gpu: 3 GPUs are named; give two, or one for both ranks"),
                                (["--from", "0 B"], "--from: '0 B' is no size of a message; write one from 1 B to 1 MiB, like 64KiB"),
                                (["--to", "2 MiB"], "--to: '2 MiB' is no size"), (["--from", "large"], "--from: 'large'"),
                                (["--from", "64 B", "--to", "4 B"], "--from: 64 B is above --to, 4 B; give the smaller size first"),
                                (["--kernel", "2ms"], "--kernel: '2ms' is no length of a kernel; write one from 0us to 1 ms, like 5us"),
                                (["--kernel", "long"], "--kernel: 'long'"), (["--rounds", "0"], "--rounds"), (["--rounds", "1000001"], "--rounds"),
                                (["--samples", "0"], "--samples"), ([], "the sim backend has no driver to compare with"),
                                (["--gpu", "gpu3"], "the sim backend has no driver to compare with")):
            with self.subTest(words=words):
                self.refuses(self.pingpong(*words), sentence)
        self.refuses(self.pingpong(machine=self.file("version: 1\n" + self.NO_GPU)), "this machine has no GPU that could pass a message on")
        self.refuses(self.tutti("bench", "pingpong"), "--machine")


@unittest.skipUnless("TUTTI_HOST_BACKEND" in os.environ, "this build has no CUDA")
class BenchPingPongOnGpusOfTheHost(Programs):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "LD_LIBRARY_PATH": os.environ["TUTTI_HOST_BACKEND"]}
        self.machine = self.folder / "machine.yaml"
        found = self.run_program("tutti/tutti", "topology", "detect", "--out", self.machine, env=self.environment)
        self.assertEqual(found.returncode, 0, found.stderr)

    def pingpong(self, *words):
        run = self.run_program("tutti/tutti", "bench", "pingpong", "--machine", self.machine, "--rounds", 3, "--samples", 2, *words, env=self.environment)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def test_every_size_and_mode_has_a_row(self):
        text = self.pingpong("--to", "16 B")
        rows = [re.split("  +", line)[:3] for line in text.split("\n")[1:17]]
        self.assertEqual(rows, [[size, kernel, mode] for kernel in ("none", "5 us") for size in ("4 B", "16 B") for mode in ("host", "stream", "by hand", "kernel")])
        self.assertIn("round trips between gpu0 and gpu1: 2 runs of each mode in turn, each the mean of 3 round trips; ", text)

    def test_the_json_has_every_case(self):
        answer = json.loads(self.pingpong("--gpu", "gpu3", "gpu1", "--from", "3 B", "--to", "64 KiB", "--json"))
        self.assertEqual((answer["schema_version"], answer["gpus"], answer["rounds"], answer["samples"]), (1, ["gpu3", "gpu1"], 3, 2))
        self.assertEqual([(case["kernel_us"], case["bytes"]) for case in answer["cases"]], [(kernel, 3 * 4**i) for kernel in (0, 5) for i in range(8)])
        for case in answer["cases"]:
            self.assertEqual([row["mode"] for row in case["modes"]], ["host", "stream", "by_hand", "kernel"])
            self.assertEqual([row["mode"] for row in case["modes"] if "ratio_to_by_hand" in row], ["stream"])
            for row in case["modes"]:
                self.assertEqual(row["count"], 2)
                self.assertLessEqual(row["median_us"], row["worst_us"])
        self.assertEqual(answer["worst_ratio_to_by_hand"], max(case["modes"][1]["ratio_to_by_hand"] for case in answer["cases"]))
        self.assertRegex(answer["host"], ", GPU of the host, driver ")

    def test_both_ranks_may_have_one_gpu(self):
        self.assertEqual(json.loads(self.pingpong("--gpu", "gpu2", "--to", "4 B", "--kernel", "0us", "--json"))["gpus"], ["gpu2", "gpu2"])

    def test_an_interrupt_ends_it_with_130(self):
        process = self.start("tutti/tutti", "bench", "pingpong", "--machine", self.machine, env=self.environment)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, ""))
        self.assertIn("interrupted; there is nothing to report yet", err)


class BenchStencil(Programs):
    def test_mistakes_end_with_2(self):
        for words, sentence in ((["--gpus", "9"], "--gpus: '9' is not possible; give 1 to 4"), (["--gpus", "0"], "--gpus: '0' is not possible"),
                                (["--boxes", "1"], "--boxes: '1' is not possible; give 2 to 512"), (["--squares", "large"], "--squares: 'large' is not possible"),
                                (["--boxes", "none", "--squares", "none"], "both are none"), (["--iterations", "0"], ""), (["--samples", "0"], ""),
                                (["--exchange", "halo.yaml"], "--exchange: the file holds one case, and 27 are asked for"),
                                (["--boxes", "64", "--squares", "none", "--gpus", "2", "--exchange", "/no/such/folder/file"], "/no/such/folder"),
                                ([], "the sim backend has no driver to compare with")):
            with self.subTest(words=words):
                self.refuses(self.tutti("bench", "stencil", "--machine", "configs/machines/h200x4.yaml", "--backend", "sim", *words), sentence)


if __name__ == "__main__":
    sys.exit(main())
