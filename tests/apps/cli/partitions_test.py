#!/usr/bin/env python3
"""Partitions, in `tutti check` and `tutti run`."""
import signal
import sys

from programs import ROOT, TWO_LINES, WAFER, Programs, main


class Partitions(Programs):
    """Two sockets that share nothing: one task on the left, two on the right."""
    NAMES = [["left"], ["right", "right-dark-field"]]

    def test_check_says_which_tasks_run_independently(self):
        self.is_golden("check_partitions.txt", self.tutti("check", TWO_LINES))
        answer = self.object_of(0, "check", TWO_LINES, "--json")
        self.assertEqual(answer["partitions"], self.NAMES)
        self.assertGreater(sum(task["wcet_ms"] / task["period_ms"] for task in answer["tasks"]), 1)
        self.assertLess(answer["utilization"], 1)
        about = {(test["name"], test["partition"]) for test in answer["tests"]}
        self.assertLessEqual({("device_memory", None), ("utilization", 0), ("utilization", 1)}, about)

    def test_one_partition_is_not_mentioned(self):
        answer = self.object_of(0, "check", WAFER, "--json")
        self.assertNotIn("partitions", answer)
        self.assertNotIn("partition", answer["tests"][0])
        self.assertNotIn("partition", self.tutti("check", WAFER).stdout)

    def test_a_refusal_is_about_one_of_them(self):
        scenario = self.folder / "late.yaml"
        words = (TWO_LINES, "--set", "right=90MB", "--overlap", "off")
        answer = self.object_of(1, "check", *words, "--json", "--counter-example", scenario)
        self.assertTrue(all(reason.startswith("partition 1: ") for reason in answer["reasons"]), answer["reasons"])
        responses = {task["name"]: task["worst_response_ms"] for task in answer["tasks"]}
        self.assertEqual(responses["left"], self.object_of(0, "check", TWO_LINES, "--json")["tasks"][0]["worst_response_ms"])
        self.assertIsNone(responses["right"])
        self.assertEqual(answer["mends"][0]["quantity"], "overlap")
        self.assertTrue(answer["mends"][1:])
        self.assertTrue(all(remedy["task"] in self.NAMES[1] or remedy["name"] == "right" for remedy in answer["mends"][1:]), answer["mends"])
        self.assertNotIn("left", scenario.read_text(encoding="utf-8"))
        replayed = self.object_of(1, "run", *words, "--scenario", scenario, "--json")
        missed = [(job["task"], job["index"]) for job in replayed["jobs"] if job["missed"]]
        miss = answer["counter_example"]["misses"]
        self.assertEqual(missed, [(miss["task"], miss["index"])])

    def test_they_run_at_the_same_time(self):
        answer = self.object_of(0, "run", TWO_LINES, "--set", "left=1280kB", "--set", "right=640kB", "--jobs", 12, "--json")
        self.assertEqual([(job["task"], job["start_ms"]) for job in answer["jobs"] if job["index"] == 0 and job["task"] != "right-dark-field"],
                         [("right", 0), ("left", 0)])
        self.assertEqual(len(answer["jobs"]), 12)
        ends = [job["finish_ms"] for job in answer["jobs"]]
        self.assertEqual(ends, sorted(ends))
        text = self.tutti("run", TWO_LINES, "--set", "left=1280kB", "--set", "right=640kB", "--jobs", 12).stdout
        self.assertTrue(text.startswith("12 jobs on the sim backend, virtual clock, non-preemptive edf in 2 partitions; times are predicted\n"), text)

    def test_an_interrupt_ends_all(self):
        words = ["run", TWO_LINES, "--set", "left=1280kB", "--set", "right=640kB", "--clock", "real", "--for", "300s"]
        run = self.start("tutti/tutti", *words)
        run.send_signal(signal.SIGINT)
        out, err = run.communicate()
        self.assertIn(run.returncode, (3, 130), err)  # a busy host is too slow at times
        self.assertIn("in 2 partitions", out)

    def test_a_job_set_is_of_one_partition(self):
        text = (ROOT / TWO_LINES).read_text(encoding="utf-8").replace("policy: edf", "policy: edf\narrivals: periodic")
        path = self.file(text.replace("../machines", str(ROOT / "configs/machines")))
        self.refuses(self.tutti("tasks", "expand", path, "--quiet"), "falls into 2 partitions", "give --partition 0 to 1")
        self.refuses(self.tutti("tasks", "expand", path, "--partition", 2, "--quiet"), "give --partition 0 to 1")
        left = self.tutti("tasks", "expand", path, "--partition", 0, "--jobs", 3).stdout.splitlines()
        right = self.tutti("tasks", "expand", path, "--partition", 1, "--jobs", 30).stdout.splitlines()
        self.assertEqual({line.split(",")[0] for line in left[1:]}, {"0"})
        self.assertEqual({line.split(",")[0] for line in right[1:]}, {"0", "1"})
        one = self.file("version: 1\narrivals: periodic\ntasks: [{name: a, period: 4 ms, wcet: 1 ms}]\n", "one.yaml")
        self.refuses(self.tutti("tasks", "expand", one, "--partition", 1), "--partition", "leave it out")
        self.assertEqual(self.tutti("tasks", "expand", one, "--partition", 0).stdout, self.tutti("tasks", "expand", one).stdout)


if __name__ == "__main__":
    sys.exit(main())
