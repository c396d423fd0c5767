#!/usr/bin/env python3
"""`tutti check --jobs`, `tutti tasks expand`, and runs of strictly periodic tasks."""
import json
import sys

from programs import WAFER, Programs, main


class JobSets(Programs):
    HEADER = "Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority\n"
    # At full length all is in time; where b runs shorter, a starts before c is there again: c ends at 18 > 17 ms.
    PERIODIC = ("version: 1\npolicy: edf\narrivals: periodic\ntasks:\n- {name: a, period: 24 ms, wcet: 5 ms, offset: 4 ms, best_case: 5 ms}\n"
                "- {name: b, period: 24 ms, wcet: 3 ms, offset: 1 ms, best_case: BEST}\n- {name: c, period: 8 ms, wcet: 5 ms, offset: 1 ms, best_case: 5 ms}\n")

    def periodic(self, best):
        return self.file(self.PERIODIC.replace("BEST", best), f"{best}.yaml")

    def test_a_job_that_ends_early_makes_another_late(self):
        answer = self.object_of(0, "check", self.periodic("3 ms"), "--json")
        self.assertEqual((answer["verdict"], answer["arrivals"]), ("schedulable", "periodic"))
        self.assertEqual([task["worst_response_ms"] for task in answer["tasks"]], [15, 8, 7])
        exactness = {test["name"]: test["exactness"] for test in answer["tests"]}
        self.assertEqual((exactness["np_exploration"], exactness["np_edf_demand"]), ("exact", "sufficient"))
        answer = self.object_of(1, "check", self.periodic("2 ms"), "--json")
        self.assertEqual(answer["verdict"], "not_schedulable")
        self.assertIn("np_exploration: job 1 of 'c' arrives at 9 ms, is due at 17 ms and ends at ", answer["reasons"][0])
        runs = {test["name"]: test["late_run"] for test in answer["tests"]}
        self.assertEqual([name for name, run in runs.items() if run], ["np_exploration"])
        late = runs["np_exploration"][-1]
        self.assertEqual((late["task"], late["index"], late["arrival_ms"], late["ready_ms"], late["deadline_ms"]), ("c", 1, 9, 9, 17))
        self.assertGreater(late["finish_ms"], 17)
        self.assertAlmostEqual(late["finish_ms"] - late["start_ms"], 5)

    def test_what_expand_writes_check_reads_with_the_same_verdict(self):
        for best, code in ("3 ms", 0), ("2 ms", 1):
            jobs = self.folder / "jobs.csv"
            run = self.tutti("tasks", "expand", self.periodic(best), "--out", jobs)
            self.assertEqual((run.returncode, self.without_files(run.stderr)), (0, ""))
            self.assertTrue(jobs.read_text(encoding="utf-8").startswith(self.HEADER))
            answer = self.object_of(code, "check", "--jobs", jobs, "--json")
            self.assertEqual(answer["schedulable"], code == 0)
            self.assertEqual(self.tutti("tasks", "expand", self.periodic(best)).stdout, jobs.read_text(encoding="utf-8"))
            between = self.tutti("tasks", "expand", self.file("preemption: between_batches\n" + self.PERIODIC.replace("BEST", best), "b.yaml"))
            self.assertTrue(between.stderr.startswith("note: a job set knows no preemption"), between.stderr)
            self.assertEqual(between.stdout, jobs.read_text(encoding="utf-8"))
            if code == 0:
                self.assertEqual([task["worst_response_ns"] for task in answer["tasks"]], [15_000_000, 8_000_000, 7_000_000])
                self.assertEqual(len(answer["jobs"]), sum(task["jobs"] for task in answer["tasks"]))
            else:
                self.assertEqual((answer["late_run"][-1]["task"], answer["late_run"][-1]["job"]), (2, 1))
                self.assertGreater(answer["late_run"][-1]["finish_ns"], 17_000_000)

    # Job 0 arrives from 0 to 2 and takes 3 to 5: over from 3 (response 3) to 7. Job 1 arrives at 10 and takes 4.
    def test_responses_of_all_jobs_are_written_as_csv(self):
        jobs = self.file(self.HEADER + "1, 0, 0, 2, 3, 5, 20, 1\n2, 7, 10, 10, 4, 4, 20, 1\n", "jobs.csv")
        out = self.folder / "responses.csv"
        self.assertEqual(self.tutti("check", "--jobs", jobs, "--responses", out).returncode, 0)
        self.assertEqual(out.read_text(encoding="utf-8"), "Task ID, Job ID, BCCT, WCCT, BCRT, WCRT\n1, 0, 3, 7, 3, 7\n2, 7, 14, 14, 4, 4\n")
        late = self.file(self.HEADER + "1, 0, 0, 2, 3, 5, 6, 1\n", "late.csv")
        run = self.tutti("check", "--jobs", late, "--responses", self.folder / "none.csv")
        self.assertEqual(run.returncode, 1)
        self.assertIn("there are no responses to write", run.stderr)
        self.assertFalse((self.folder / "none.csv").exists())
        self.refuses(self.tutti("check", "--jobs", jobs, "--responses", self.folder / "no" / "where.csv"), "where.csv")
        self.refuses(self.tutti("check", WAFER, "--responses", out), "--jobs")

    # 30 jobs released from 0 to 50, of 1 to 3: 2^30 sets of finished jobs. The most urgent one waits for another that starts just before 50, and is
    # over before 50 + 3 + 3.
    def test_responses_are_bounds_where_there_are_too_many_schedules(self):
        rows = [f"{i}, 0, 0, 50, 1, 3, 500, {i}\n" for i in range(30)]
        jobs = self.file(self.HEADER + "".join(rows), "jobs.csv")
        out = self.folder / "responses.csv"
        run = self.tutti("check", "--jobs", jobs, "--responses", out, "--json")
        self.assertEqual((run.returncode, self.without_files(run.stderr)), (0, f"note: the responses in '{out}' are bounds; --exact looks at all schedules\n"))
        answer = json.loads(run.stdout)
        self.assertEqual((answer["verdict"], answer["exact"]), ("schedulable", False))
        self.assertEqual(answer["jobs"][0], {"task": 0, "job": 0, "best_response_ns": 1, "worst_response_ns": 56})
        few = self.file(self.HEADER + "".join(rows[:5]), "few.csv")
        self.assertTrue(self.object_of(0, "check", "--jobs", few, "--json")["exact"])
        self.assertEqual(self.object_of(0, "check", "--jobs", few, "--exact", "--json"), self.object_of(0, "check", "--jobs", few, "--json"))
        self.refuses(self.tutti("check", WAFER, "--exact"), "--jobs")

    def test_a_run_keeps_the_machine_for_the_best_case(self):
        # Jobs without steps end at once; held for 5, 3, 5 and 5 ms they start as worked out for full lengths.
        answer = self.object_of(0, "run", self.periodic("3 ms"), "--jobs", 5, "--json")
        starts = {(job["task"], job["index"]): job["start_ms"] for job in answer["jobs"]}
        self.assertEqual(starts, {("c", 0): 1, ("b", 0): 6, ("c", 1): 9, ("a", 0): 14, ("c", 2): 19})

    # Worked out in critical_window_test: under EDF c runs from 9 to 18 and makes a late, due at 20; else it waits until 13.
    def test_the_machine_waits_for_a_job_under_cw_edf(self):
        tasks = "tasks:\n- {name: a, period: 10 ms, wcet: 3 ms}\n- {name: b, period: 20 ms, wcet: 6 ms}\n- {name: c, period: 40 ms, wcet: 9 ms}\n"
        path = self.file("version: 1\narrivals: periodic\n" + tasks, "w.yaml")
        refused = self.object_of(1, "check", path, "--json")
        self.assertEqual({key: refused["mends"][0][key] for key in ("quantity", "from", "to")}, {"quantity": "policy", "from": "edf", "to": "cw_edf"})
        waits = self.object_of(0, "check", path, "--policy", "cw_edf", "--json")
        self.assertEqual([task["worst_response_ms"] for task in waits["tasks"]], [5, 11, 22])
        run = self.object_of(0, "run", path, "--policy", "cw_edf", "--json")
        starts = [(job["task"], job["start_ms"]) for job in sorted(run["jobs"], key=lambda job: job["start_ms"])]
        self.assertEqual(starts, [("a", 0), ("b", 3), ("a", 10), ("c", 13), ("a", 22), ("b", 25), ("a", 31)])
        self.refuses(self.tutti("check", self.file("version: 1\n" + tasks, "s.yaml"), "--policy", "cw_edf"), "arrivals: periodic")
        self.refuses(self.tutti("tasks", "expand", path, "--policy", "cw_edf"), "--policy edf")

    def test_a_number_of_jobs_is_kept(self):
        run = self.tutti("tasks", "expand", self.periodic("3 ms"), "--jobs", 3)
        self.assertEqual(run.stdout, self.HEADER + "1, 0, 1000000, 1000000, 3000000, 3000000, 25000000, 25000000\n"
                         "2, 0, 1000000, 1000000, 5000000, 5000000, 9000000, 9000000\n0, 0, 4000000, 4000000, 5000000, 5000000, 28000000, 28000000\n")

    def test_a_job_set_has_a_report(self):
        path = self.file(self.HEADER + "1, 1, 0, 0, 1, 2, 4, 4\n2, 1, 0, 1, 3, 3, 9, 9\n", "j.csv")
        run = self.tutti("check", "--jobs", path)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertTrue(run.stdout.startswith("schedulable: every deadline is guaranteed (2 jobs, non-preemptive, 3 states)\n"), run.stdout)
        self.assertIn("\n1        1                 1                  2         2\n", run.stdout)  # 1 to 2, due 4
        self.assertIn("\n2        1                 4                  5         4\n", run.stdout)  # behind it, due 9
        for option, value in ("--policy", "rm"), ("--planner", "all_at_once"), ("--set", "a=1"), ("--counter-example", "c.yaml"):
            refused = self.tutti("check", "--jobs", path, option, value)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(f"--jobs excludes {option}", refused.stderr)

    def test_mistakes_end_with_2(self):
        for text, sentence in (("", "j.csv:1:1: the file is empty"), (self.HEADER, "j.csv:1:1: there is no job, so there is nothing to guarantee"), (self.HEADER + "1, 1, 0, 0, 5, 3, 9, 9\n", "j.csv:2:16: the Cost max 3 is below"),
                               ("1, 2\n", "j.csv:1:1: '1' stands where"), (self.HEADER + "1, 1, 0, 0, 1, 99999999999999999999, 9, 9\n", "j.csv:2:16: ")):
            with self.subTest(text=text):
                self.refuses(self.tutti("check", "--jobs", self.file(text, "j.csv")), sentence)
        self.refuses(self.tutti("check", "--jobs", "/no/such/file"), "/no/such/file: there is no folder 'no' in /; name a job set that is there")
        self.refuses(self.tutti("check"), "there is nothing to check")
        self.refuses(self.tutti("check", WAFER, "--jobs", WAFER))
        self.refuses(self.tutti("tasks", "expand", WAFER), "its arrivals are sporadic")
        self.refuses(self.tutti("tasks", "expand", self.periodic("3 ms"), "--jobs", 0))
        self.refuses(self.tutti("tasks", "expand", self.periodic("4 ms")), "4 ms.yaml:6:65: the best case of 'b' is above its wcet")
        far = self.file("version: 1\narrivals: periodic\ntasks:\n- {name: a, period: 999983 ns, wcet: 1 ns}\n- {name: b, period: 1 s, wcet: 1 ns}\n- {name: c, period: 999979 s, wcet: 1 ns}\n")
        self.refuses(self.tutti("tasks", "expand", far), "hyperperiod", "--jobs")
        self.assertEqual(self.object_of(0, "check", far, "--json")["verdict"], "schedulable")  # sporadic arrivals would do


if __name__ == "__main__":
    sys.exit(main())
