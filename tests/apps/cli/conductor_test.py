#!/usr/bin/env python3
"""What leads the jobs of a set: `--conductor` of `check`, `capacity` and `run`, `deadline_at` and `conductor` of a file."""
import json
import sys

from programs import TESTS, TOO_SLOW, Programs, main

LED = "tests/apps/cli/led.yaml"
MACHINE = TESTS / "apps/cli/led_machine.yaml"
BY_GPU = "led by: a GPU's conductor; bounds count to the end on the device\n"
BY_HOST = "led by: a thread of the host; bounds count until it has seen the end\n"
NO_COSTS = ("machine 'led' has no costs 'setup.conductor' and 'setup.conductor_job' of jobs that a GPU leads; run 'tutti calibrate', "
            "or write 'conductor: host'\n")


class Conductor(Programs):
    def of(self, answer):
        return answer.get("conductor"), answer["tasks"][0]["wcet_ms"]

    # A copy of 10 us. The host adds 230 us around it and 3.76 ms once a job: 4 ms. A GPU adds 10 and 50 us: 0.07 ms.
    def test_bounds_are_those_of_what_leads(self):
        for words in ([], ["--conductor", "auto"], ["--conductor", "gpu"]):
            self.assertEqual(self.of(self.object_of(0, "check", LED, "--json", *words)), ("gpu", 0.07))
            run = self.tutti("check", LED, *words)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertIn(BY_GPU, run.stdout)
        self.assertEqual(self.of(self.object_of(0, "check", LED, "--json", "--conductor", "host")), ("host", 4))
        run = self.tutti("check", LED, "--conductor", "host")
        self.assertIn(BY_HOST, run.stdout)
        self.assertEqual(run.stderr, "")

    # A run takes three of 900 places: 300 runs, one of which a waiting job has, of jobs every 10 ms.
    def test_the_host_may_be_away_for_as_long_as_queues_last(self):
        for command in (["check", LED], ["run", LED, "--jobs", 1000]):
            self.assertEqual(self.object_of(0, *command, "--json")["host_may_be_away_ms"], 100)
            self.assertIn("  the host may be away for 100 ms\n", self.tutti(*map(str, command)).stdout)
        self.assertNotIn("host_may_be_away_ms", self.object_of(0, "check", LED, "--json", "--conductor", "host"))
        for asked, answer in (("2990 ms", 0), ("3 s", 2)):
            path = self.file(self.led().replace("host_away: 100 ms", f"host_away: {asked}"))
            for command in (["check", path], ["run", path, "--jobs", "1000"]):
                run = self.tutti(*command)
                self.assertEqual(run.returncode, answer, run.stderr)
                if answer:
                    self.refuses(run, "the queues of batch 1 of task 'look' hold 2.99 s, less than the 3 s for which the host may be away; "
                                      "let it be away for less\n")

    def test_a_run_has_the_bounds_of_what_leads(self):
        for conductor, bound in (("gpu", 0.07), ("host", 4)):
            answer = self.object_of(0, "run", LED, "--jobs", 3, "--json", "--conductor", conductor)
            summary = answer["summary"][0]
            self.assertEqual((answer["conductor"], summary["bound_ms"], summary["over_bound"], summary["missed"]), (conductor, bound, 0, 0))
        self.assertIn(BY_GPU, self.tutti("run", LED, "--jobs", 3).stdout)

    # Queues are filled for 100 ms of jobs every 10 ms. A host that stands for 95 ms loses none; one that stands for 300 ms
    # those that had no armed run, and each is counted.
    def test_the_host_stands_and_jobs_go_on(self):
        for lasts, lost in (("95 ms", 0), ("300 ms", 20)):
            faults = self.file(f"version: 1\nfaults: [{{kind: host_stall, at: 201 ms, lasts: {lasts}}}]\n", "stall.yaml")
            for words in ([], ["--overlap", "on", "--conductor", "gpu"]):
                run = self.tutti("run", LED, "--jobs", "100", "--json", "--faults", faults, *words)
                answer = json.loads(run.stdout)
                summary = answer["summary"][0]
                self.assertEqual((summary["released"], summary["failed"], summary["over_bound"]), (100, lost, lost), run.stderr)
                self.assertEqual({job["cause"] for job in answer["jobs"] if job["verdict"] != "met"}, {"host"} if lost else set())

    # The host looks every 5 ms, pauses for 3.76, arms for 0.23 and is away for 100: 108.99 ms on top of 0.07. The
    # simulated one looks 5 ms after the first end at which it may have something to see.
    def test_the_end_is_seen_by_the_host_later(self):
        checked = self.object_of(0, "check", LED, "--json")["tasks"][0]
        self.assertEqual((checked["worst_response_ms"], checked["worst_response_at_host_ms"]), (0.07, 109.06))
        metrics = self.folder / "m.prom"
        answer = self.object_of(0, "run", LED, "--jobs", 10, "--json", "--metrics", metrics)
        summary = answer["summary"][0]
        self.assertEqual((summary["worst_response_at_device_ms"], summary["bound_at_device_ms"]), (summary["worst_response_ms"], 0.07))
        self.assertEqual(summary["bound_at_host_ms"], 109.06)
        seen = [job["seen_ms"] - job["release_ms"] for job in answer["jobs"]]
        self.assertAlmostEqual(summary["worst_response_at_host_ms"], max(seen))
        self.assertTrue(all(0 < late <= 5.07 for late in seen), seen)
        text = metrics.read_text(encoding="utf-8")
        self.assertIn('tutti_response_bound_at_host_seconds{task="look"} 0.10906\n', text)
        self.assertIn(f'tutti_worst_response_at_host_seconds{{task="look"}} {summary["worst_response_at_host_ms"] / 1e3:.9g}', text)
        for command in (["check", LED], ["run", LED, "--jobs", 10]):
            self.assertIn("  the host sees each end within 108.99 ms\n", self.tutti(*map(str, command)).stdout)
        self.assertIn("bound at host ms", self.tutti("run", LED, "--jobs", "10").stdout)
        for command in (["check", LED], ["run", LED, "--jobs", 10]):
            self.assertNotIn("at_host", self.tutti(*map(str, command), "--conductor", "host", "--json").stdout)

    def test_reports_of_journals_have_what_the_host_saw(self):
        journal = self.folder / "led.journal"
        self.assertEqual(self.tutti("run", LED, "--jobs", "10", "--journal", str(journal)).returncode, 0)
        report = self.object_of(0, "report", journal, "--jobs", 1, "--json")
        row, job = report["summary"][0], report["jobs"][0]
        self.assertEqual((row["bound_ms"], row["bound_at_host_ms"], row["overwritten"], job["overwritten"]), (0.07, 109.06, 0, False))
        self.assertEqual((row["reused_input"], job["reused_input"]), (0, False))
        self.assertTrue(0 < job["seen_ms"] - job["release_ms"] <= row["worst_response_at_host_ms"] <= 5.07, report)
        text = self.tutti("report", str(journal)).stdout
        self.assertRegex(text, "the host had each record of 'look' within .* of its arrival, 109.06 ms at most\n")
        self.assertEqual(self.tutti("run", LED, "--jobs", "10", "--conductor", "host", "--journal", str(journal) + "2").returncode, 0)
        self.assertNotIn("at_host", self.tutti("report", str(journal) + "2", "--json").stdout)
        page = self.folder / "led.html"
        self.assertEqual(self.tutti("view", str(journal), "--html", str(page)).returncode, 0)
        self.assertIn('"seen_ns":[', page.read_text(encoding="utf-8"))

    # One resource and one task: 5 visits of 10 us, 50 us once a region, and the copy of 10 us. A run takes three of 900
    # places, as above.
    def test_a_gpu_leads_jobs_that_overlap(self):
        words = ["--overlap", "on", "--conductor", "gpu"]
        answer = self.object_of(0, "check", LED, "--json", *words)
        self.assertEqual((self.of(answer), answer["host_may_be_away_ms"]), (("gpu", 0.11), 100))
        answer = self.object_of(0, "run", LED, "--jobs", 50, "--json", *words)
        summary = answer["summary"][0]
        self.assertEqual((answer["conductor"], summary["bound_ms"], summary["over_bound"], summary["missed"]), ("gpu", 0.11, 0, 0))
        self.assertEqual(answer["host_may_be_away_ms"], 100)
        self.assertIn(BY_GPU, self.tutti("run", LED, "--jobs", 3, *words).stdout)
        self.assertIn(BY_GPU, self.tutti("check", LED, "--overlap", "on").stdout)

    # Beside a kernel, gates of copies may wait for room, unless they have multiprocessors of their own, and then kernels
    # have the others.
    def test_gates_are_apart_from_kernels_that_overlap(self):
        kernels = self.led() + "- {name: more, period: 10 ms, job: [{batch: [{kernel: {on: gpu0, time: 20 us}}]}]}\n"
        machine = MACHINE.read_text(encoding="utf-8").rstrip() + "\n"
        apart = self.folder / "apart.yaml"
        apart.write_text(machine + "  conductor_sms: 8\n", encoding="utf-8")
        beside = "kernels have all multiprocessors of a GPU but 8, on which gates run; 'tutti profile' measures them so\n"
        for words, told in (([], False), (["--machine", apart], True)):
            run = self.tutti("check", self.file(kernels), "--overlap", "on", *map(str, words))
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(BY_GPU, run.stdout)
            self.assertEqual(beside in run.stdout, told, run.stdout)
        self.assertIn("gates on 8 multiprocessors of each GPU, kernels on the others\n", self.tutti("topology", "show", str(apart)).stdout)
        run = self.tutti("check", self.file(kernels), "--overlap", "off", "--machine", str(apart))
        self.assertNotIn(beside, run.stdout)

    # Where a conductor holds a job up for 20 ms a GPU promises 20.02 ms, and the host 4 ms, as elsewhere.
    def test_a_set_that_only_the_host_admits_is_led_by_it(self):
        slow = self.folder / "slow.yaml"
        slow.write_text(MACHINE.read_text(encoding="utf-8").replace("guaranteed: 50 us", "guaranteed: 20 ms"), encoding="utf-8")
        set_of = lambda deadline: self.file(self.led().replace("period: 10 ms", f"period: 100 ms, deadline: {deadline}").replace("host_away: 100 ms\n", ""))
        words = ["--machine", slow]
        because = "note: the host leads its jobs, in place of a GPU: a GPU's conductor does not guarantee the deadlines, and the host's does ("
        for deadline, by in (("20.02 ms", BY_GPU), ("20.019 ms", BY_HOST), ("4 ms", BY_HOST)):
            path = set_of(deadline)
            for command in (["check", path], ["run", path, "--jobs", 3]):
                run = self.tutti(*map(str, command + words))
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertIn(by, run.stdout)
                self.assertEqual(because in run.stderr, by == BY_HOST, run.stderr)
                self.assertEqual(self.object_of(0, *command, *words, "--json")["conductor"], "gpu" if by == BY_GPU else "host")
                asked = self.tutti(*map(str, command + words), "--conductor", "gpu")
                self.assertEqual(asked.returncode, 0 if by == BY_GPU else 1)
        refused = self.tutti("check", set_of("3.999 ms"), *map(str, words))
        self.assertEqual(refused.returncode, 1)
        self.assertIn("with 'conductor: host' no deadline is guaranteed either\n", refused.stdout)
        self.assertNotIn("in place of a GPU", refused.stderr)
        for conductor, least in ((["--conductor", "gpu"], "20.02 ms"), ([], "4 ms")):
            capacity = self.tutti("capacity", set_of("50 ms"), "--task", "look", "--of", "deadline", *map(str, words), *conductor)
            self.assertEqual(capacity.returncode, 0, capacity.stderr)
            self.assertIn(f" {least}", capacity.stdout)

    # The shortest period is the Wcet.
    # A bound of 70 us; but 300 armed runs, of which a waiting job has one, last for 100 ms at periods of 100 ms / 299.
    def test_capacity_is_that_of_what_leads(self):
        patient = self.file(self.led().replace("host_away: 100 ms\n", ""))
        for path, conductor, period in ((LED, "gpu", "334.45 us"), (patient, "gpu", "70 us"), (LED, "host", "4 ms")):
            run = self.tutti("capacity", path, "--task", "look", "--of", "period", "--conductor", conductor)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(f" {period}", run.stdout)
        for period, answer in (("334.449 us", 0), ("334.448 us", 2)):
            self.assertEqual(self.tutti("check", self.file(self.led().replace("period: 10 ms", f"period: {period}"))).returncode, answer)

    def test_nothing_is_said_where_deadlines_are_at_the_host(self):
        path = self.file(self.led().replace("deadline_at: device", "deadline_at: host"))
        self.assertEqual(self.of(self.object_of(0, "check", path, "--json")), (None, 4))
        for command in (["check", path], ["run", path, "--jobs", "3"]):
            run = self.tutti(*command)
            self.assertEqual((run.returncode, run.stderr), (0, ""))
            self.assertNotIn("led by", run.stdout)
        self.refuses(self.tutti("check", path, "--conductor", "gpu"),
                     "--conductor gpu: deadlines count until the host has seen the end of a job; with 'deadline_at: device' they count until "
                     "its last result is in its destination\n")

    def led(self):
        return (TESTS / "apps/cli/led.yaml").read_text(encoding="utf-8").replace("led_machine.yaml", str(MACHINE))

    def test_where_a_gpu_cannot_lead_the_host_does_and_a_note_says_why(self):
        lines = MACHINE.read_text(encoding="utf-8").splitlines(keepends=True)
        unmeasured = self.file("".join(line for line in lines if "conductor" not in line), "unmeasured.yaml")
        run = self.tutti("check", LED, "--machine", unmeasured)
        self.assertEqual((run.returncode, run.stderr.count("note: ")), (0, 1))
        self.assertIn(f"led.yaml:6:14: the host leads its jobs, in place of a GPU: {NO_COSTS}", run.stderr)
        self.assertIn(BY_HOST, run.stdout)
        for command in ("check", "run"):
            self.refuses(self.tutti(command, LED, "--machine", unmeasured, "--conductor", "gpu"), f"--conductor gpu: {NO_COSTS}")
        for key, word, reason in (
                ("preemption: between_batches\n", "", "what is armed on a GPU lets no job pass between two batches; leave 'preemption' out, or write 'conductor: host'"),
                ("", "jitter: 1 us", "task 'look' has release jitter, and a GPU releases jobs as they arrive; leave 'jitter' out, or write 'conductor: host'")):
            changed = self.led().replace("tasks:", key + "tasks:")
            if not key:
                changed = changed.replace("period: 10 ms", "period: 10 ms, " + word)
            path = self.file(changed)
            run = self.tutti("check", path)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(reason, run.stderr)
            self.refuses(self.tutti("check", path, "--conductor", "gpu"), f"--conductor gpu: {reason}\n")
            asking = self.file(changed.replace("tasks:", "conductor: gpu\ntasks:"), "asking.yaml")
            self.refuses(self.tutti("check", asking), reason)

    def test_a_late_consumer_needs_a_gpu_that_leads(self):
        path = self.file(self.led().replace("period: 10 ms", "period: 10 ms, late_consumer: overwrite"))
        self.assertEqual(self.object_of(0, "check", path, "--json")["conductor"], "gpu")
        self.assertEqual(self.object_of(0, "run", path, "--jobs", 3, "--json")["summary"][0]["overwritten"], 0)
        self.refuses(self.tutti("check", path, "--conductor", "host"), "only where a GPU leads do jobs run into buffers that their consumer still has")
        scenario = self.file("version: 1\njobs:\n- {task: look, arrival: 0, takes: 10 us}\n", "scenario.yaml")
        self.refuses(self.tutti("run", path, "--scenario", scenario), "leave 'late_consumer' out; with --scenario the host releases each job")
        self.refuses(self.tutti("check", self.file(self.led().replace("period: 10 ms", "period: 10 ms, late_consumer: wait"), "wait.yaml")),
                     "'wait' is no rule for late consumers; write one of drop, overwrite")

    def test_late_input_is_used_again_where_a_gpu_leads(self):
        path = self.file(self.led().replace("period: 10 ms", "period: 10 ms, late_input: reuse"))
        self.assertEqual(self.object_of(0, "run", path, "--jobs", 3, "--json")["summary"][0]["reused_input"], 0)
        self.refuses(self.tutti("check", path, "--conductor", "host"), "only where a GPU leads do jobs have the input of an earlier one")
        self.refuses(self.tutti("check", self.file(self.led().replace("period: 10 ms", "period: 10 ms, late_input: wait"), "wait.yaml")),
                     "'wait' is no rule for late input; write one of drop, reuse")

    def test_runs_of_jobs_that_the_host_chooses(self):
        scenario = self.file("version: 1\njobs:\n- {task: look, arrival: 0, takes: 10 us}\n", "scenario.yaml")
        changes = self.file("version: 1\nchanges:\n- {at: 20 ms, remove: look}\n", "changes.yaml")
        faults = self.file("version: 1\nfaults:\n- {kind: slow_transfers, times: 2}\n", "faults.yaml")
        for words, why in ((["--faults", faults, "--jobs", "3"], "of faults a GPU that leads meets 'host_stall' alone, and there is 'slow_transfers'; leave one of them out"),
                           (["--clock", "real", "--jobs", "3"], "the simulated machine leads runs on its virtual clock alone; leave '--clock real' out"),
                           (["--scenario", scenario], "with --scenario the host releases each job at its instant; leave one of them out"),
                           (["--changes", changes, "--for", "50ms"], "with --changes the host admits tasks that come and go; leave one of them out")):
            run = self.tutti("run", LED, *words)
            self.assertIn(f"the host leads its jobs, in place of a GPU: {why}\n", run.stderr)
            if "real" not in words or TOO_SLOW not in run.stderr:
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertIn(BY_HOST, run.stdout)
            self.refuses(self.tutti("run", LED, "--conductor", "gpu", *words), f"--conductor gpu: {why}\n")

    def test_words(self):
        self.refuses(self.tutti("check", LED, "--conductor", "gpus"), "--conductor: there is no 'gpus'; did you mean 'gpu'? give gpu, host or auto")
        self.refuses(self.tutti("check", self.file("version: 1\nconductor: cpu\ntasks:\n- {name: a, period: 1 ms, wcet: 0}\n")), "'cpu' is no conductor; did you mean 'gpu'? write one of gpu, host, auto")


if __name__ == "__main__":
    sys.exit(main())
