#!/usr/bin/env python3
"""`tutti run --metrics` and `--metrics-listen`: text for Prometheus."""
import concurrent.futures
import contextlib
import http.client
import os
import pathlib
import re
import signal
import socket
import sys
import time

from programs import ONE_GPU, Programs, main

TWO_TASKS = "version: 1\ntasks:\n- {name: a, period: 10 ms, wcet: 2 ms}\n- {name: b, period: 30 ms, deadline: 20 ms, wcet: 3 ms}\n"
QUICK = "version: 1\ntasks: [{name: often, period: 5 ms, wcet: 1 ms}]\n"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def names_in(text):
    """The text without its values: which samples it has, in which order."""
    return [line if line.startswith("#") else line.rpartition(" ")[0] for line in text.splitlines()]


class Metrics(Programs):
    def values_in(self, text):
        """{(metric, task, further label or None): value}; every line is a comment or a sample of a metric with a type."""
        values, types = {}, {}
        for line in text.splitlines():
            if line.startswith("# TYPE"):
                types[line.split()[2]] = line.split()[3]
            elif not line.startswith("#"):
                sample = re.fullmatch(r'(\w+)\{task="(\w+)"(?:,(\w+)="([^"]+)")?\} (\S+)', line)
                self.assertIsNotNone(sample, line)
                self.assertIn(re.sub("_(bucket|sum|count)$", "", sample[1]), types)
                values[sample[1], sample[2], sample[4]] = float(sample[5])
        return values

    def test_metrics_are_what_the_report_says(self):
        path = self.file(TWO_TASKS)
        file = self.folder / "m.prom"
        summary = {task["task"]: task for task in self.object_of(0, "run", path, "--jobs", 40, "--json", "--metrics", file)["summary"]}
        values = self.values_in(file.read_text(encoding="utf-8"))
        for name, task in summary.items():
            self.assertEqual(values["tutti_jobs_total", name, "met"], task["completed"])
            self.assertEqual(values["tutti_response_seconds_count", name, None], task["completed"])
            self.assertAlmostEqual(values["tutti_worst_response_seconds", name, None], task["worst_response_ms"] / 1e3)
            self.assertAlmostEqual(values["tutti_response_bound_seconds", name, None], task["bound_ms"] / 1e3)
            buckets = [value for (metric, of, _), value in values.items() if metric == "tutti_response_seconds_bucket" and of == name]
            self.assertEqual((buckets, buckets[-1]), (sorted(buckets), task["completed"]))
            self.assertNotIn(("tutti_model_error_ratio", name, None), values)  # a Wcet is no plan
        # Jobs of a take 2 ms, or 5 behind one of b.
        self.assertEqual(values["tutti_response_seconds_bucket", "a", "0.001"], 0)
        self.assertEqual(values["tutti_response_seconds_bucket", "a", "0.005"], summary["a"]["completed"])
        self.refuses(self.tutti("run", path, "--metrics", self.folder / "nowhere/m.prom"), "nowhere")

    # 8 MB at 8 GB/s take 1 ms. At a quarter of the rate from 20 to 30 ms the jobs of 20 and 25 take 4 ms, an error of 3;
    # of 8 jobs the mean is 6 / 8.
    def test_model_errors_are_those_of_slow_copies(self):
        path = self.file("version: 1\nmachine: m.yaml\ntasks: [{name: a, period: 5 ms, job: [{batch: [{from: mem0, to: gpu0, size: 8 MB}]}]}]\n")
        self.file(ONE_GPU, "m.yaml")
        faults = self.file("version: 1\nfaults: [{kind: slow_link, route: [mem0, gpu0], rate: 0.25, from: 20 ms, until: 30 ms}]\n", "faults.yaml")
        file = self.folder / "m.prom"
        for words, code, mean, worst in (((), 0, 0, 0), (("--faults", faults), 3, 0.75, 3)):
            run = self.tutti("run", path, "--jobs", 8, "--metrics", file, *words)
            self.assertEqual(run.returncode, code, run.stderr)
            values = self.values_in(file.read_text(encoding="utf-8"))
            self.assertAlmostEqual(values["tutti_model_error_ratio", "a", None], mean, places=5)
            self.assertAlmostEqual(values["tutti_worst_model_error_ratio", "a", None], worst, places=5)


class Endpoint(Programs):
    values_in = Metrics.values_in

    @contextlib.contextmanager
    def running(self, *words):
        """A run in real time that serves metrics: (process, port). It is interrupted at the end."""
        process = self.start("tutti/tutti", "run", self.file(QUICK), "--clock", "real", "--for", "60s", "--metrics-listen", *words)
        note = process.stderr.readline()
        self.assertRegex(note, r"^note: metrics are at http://(\S+):(\d+)/metrics$")
        yield process, int(re.search(r":(\d+)/metrics", note)[1])
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)

    def ask(self, port, path="/metrics", method="GET", host="127.0.0.1", **more):
        """(status, type, text) of an answer, and the whole of it."""
        connection = http.client.HTTPConnection(host, port, timeout=60)
        with contextlib.closing(connection):
            connection.request(method, path, **more)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type"), answer.read().decode(), answer

    def jobs(self, port):
        return self.values_in(self.ask(port)[2])["tutti_jobs_total", "often", "met"]

    def until_it_grows(self, port, before):
        for _ in range(600):
            if (now := self.jobs(port)) > before:
                return now
            time.sleep(0.05)
        self.fail(f"metrics stand at {before}")

    def test_answers(self):
        file = self.folder / "m.prom"
        with self.running("0", "--metrics", file) as (_, port):
            self.until_it_grows(port, self.until_it_grows(port, 0))
            status, kind, text, _ = self.ask(port)
            self.assertEqual((status, kind), (200, PROMETHEUS))
            status, kind, body, whole = self.ask(port, method="HEAD")
            self.assertEqual((status, kind, body), (200, PROMETHEUS, ""))
            self.assertGreater(int(whole.getheader("Content-Length")), 1000)
            status, _, body, _ = self.ask(port, "/")
            self.assertEqual((status, body.count("\n")), (200, 1))
            self.assertIn("/metrics", body)
            for path in ("/metrics/", "/metric", "/../etc/passwd", "//"):
                self.assertEqual(self.ask(port, path)[0], 404, path)
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
                status, _, _, whole = self.ask(port, method=method)
                self.assertEqual((status, whole.getheader("Allow")), (405, "GET, HEAD"), method)
            self.assertEqual(self.ask(port, method="POST", body=b"x" * 3000)[0], 405)
            self.assertEqual(self.ask(port, "/metrics?name=tutti_jobs_total")[2].count("# TYPE"), text.count("# TYPE"))
        self.assertEqual(names_in(text), names_in(file.read_text(encoding="utf-8")))
        with self.assertRaises(ConnectionRefusedError):
            self.ask(port)

    def test_clients_do_not_disturb_each_other(self):
        with self.running("0") as (process, port), contextlib.ExitStack() as open_ones:
            def connect(said):
                client = open_ones.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                client.sendall(said)
                return client

            # Some are silent, one stops in its request, one keeps its connection and never reads, one says too much.
            for said in (b"", b"", b"GET /metr", b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 20, b"GET / HTTP/1.1\r\nContent-Length: 9\r\n\r\n123456789"):
                connect(said)
            too_long = connect(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 100_000)
            with contextlib.suppress(ConnectionError):
                self.assertRegex(too_long.recv(100), rb"^(HTTP/1.1 4\d\d .*\r\n|$)")
            with concurrent.futures.ThreadPoolExecutor(50) as clients:
                answers = list(clients.map(lambda _: self.ask(port)[0], range(50)))
            self.assertEqual(answers, [200] * 50)
            # More clients than are let in: the others come in when the silent ones are cut off.
            for _ in range(20):
                connect(b"")
            self.assertEqual(self.ask(port)[0], 200)
            for _ in range(20):
                connect(b"")
            self.assertIsNone(process.poll())
        with self.assertRaises(ConnectionRefusedError):  # in spite of clients that were still there
            self.ask(port)

    def test_its_thread_is_an_ordinary_one(self):
        # Neither the priority of the program, where that is allowed, nor the core of the dispatcher, where there is one, is its own.
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            self.addCleanup(os.sched_setscheduler, 0, os.SCHED_OTHER, os.sched_param(0))
        except PermissionError:
            pass
        with self.running("0", "--priority", "50") as (process, _):
            threads = {int(each.name): each for each in pathlib.Path(f"/proc/{process.pid}/task").iterdir()}
            serving = [number for number, each in threads.items() if (each / "comm").read_text().startswith(("metrics", "MHD"))]
            self.assertEqual(len(serving), 1)
            self.assertEqual(os.sched_getscheduler(serving[0]), os.SCHED_OTHER)
            self.assertEqual(os.sched_getaffinity(serving[0]), os.sched_getaffinity(0))

    def test_addresses(self):
        with self.running("127.0.0.1:0") as (_, port):
            self.assertEqual(self.ask(port)[0], 200)
            busy = self.tutti("run", self.file(QUICK), "--metrics-listen", port)
            self.refuses(busy, f"--metrics-listen: 127.0.0.1:{port} is in use", "another port")
        if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6") and "00000000000000000000000000000001" in pathlib.Path("/proc/net/if_inet6").read_text():
            with self.running("[::1]:0") as (_, port):
                self.assertEqual(self.ask(port, host="::1")[0], 200)

    def test_what_is_no_address_is_refused_before_the_run(self):
        path = self.file(QUICK)
        for word, said in (("here", "is no [ADDRESS:]PORT"), ("127.0.0.1", "is no [ADDRESS:]PORT"), (":9464", "is no [ADDRESS:]PORT"),
                           ("94x", "is no [ADDRESS:]PORT"), ("-1", "is no [ADDRESS:]PORT"), ("::1:9464", "is no [ADDRESS:]PORT"), ("[127.0.0.1]:9464", "is no [ADDRESS:]PORT"),
                           ("65536", "there is no port 65536"), ("99999999999999999999", "there is no port 9"), ("localhost:9464", "'localhost' is no IP address"),
                           ("127.0.0.256:1", "is no IP address"), ("192.0.2.7:9464", "192.0.2.7:9464 is no address of this host")):
            with self.subTest(word=word):
                self.refuses(self.tutti("run", path, f"--metrics-listen={word}"), "--metrics-listen: ", said)


if __name__ == "__main__":
    sys.exit(main())
