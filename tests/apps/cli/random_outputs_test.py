#!/usr/bin/env python3
"""What commands print with --json of random inputs: refused, empty, without machines, with chains, with overlap, kernels without
copies. Each output is what its closed schema says, and bad input is a sentence with exit code 2.

TUTTI_DRAWS=300 draws that many inputs in place of 40; TUTTI_SEED=7 draws others.
"""
import collections
import json
import os
import pathlib
import random
import sys
import unittest

import random_inputs
from programs import Programs, main
from schema_test import can_validate, jsonschema

DRAWS, SEED = int(os.environ.get("TUTTI_DRAWS", "40")), int(os.environ.get("TUTTI_SEED", "1"))


class RandomOutputs(Programs):
    def setUp(self):
        super().setUp()
        self.validators = {}
        self.seen = collections.Counter()

    def validator(self, output):
        if output not in self.validators:
            self.validators[output] = jsonschema.Draft7Validator(json.loads(self.tutti("schema", f"output-{output}").stdout))
        return self.validators[output]

    def ask(self, output, *words):
        """What a command prints, checked; None where it refuses its input."""
        run = self.tutti(*words, "--json")
        self.assertIn(run.returncode, (0, 1, 2, 3), (words, run.stderr))
        self.seen[f"{output} {run.returncode}"] += 1
        if run.returncode == 2 or not run.stdout:
            self.assertEqual(run.stdout, "", words)
            self.assertNotEqual(run.stderr, "", words)
            return None
        printed = json.loads(run.stdout)
        self.assertEqual([f"{list(error.path)}: {error.message[:200]}" for error in self.validator(output).iter_errors(printed)], [], words)
        self.seen[output] += 1
        return printed

    def put(self, name, document):
        return self.file(random_inputs.text(document), name)

    def of_batch(self, rng, spec):
        batch = self.put("batch.yaml", random_inputs.batch(rng, spec))
        self.ask("predict", "predict", batch)
        self.ask("compare-batch", "compare", batch)
        self.ask("topology-show", "topology", "show", str(self.folder / "machine.yaml"))

    def of_tasks(self, rng, spec):
        whole = random_inputs.task_set(rng, spec)
        tasks, names = self.put("tasks.yaml", whole), [task["name"] for task in whole["tasks"]]
        answer = self.ask("check", "check", tasks, "--counter-example", str(self.folder / "misses.yaml"))
        if answer is None:
            return
        self.count(answer, whole)
        self.ask("compare-tasks", "compare", tasks, "--planner", "completion_aligned", "--planner", "time_division")
        if spec is not None and rng.random() < 0.5:
            self.ask("capacity", "capacity", tasks, "--parameter", "image", "--planner", "all_at_once")
        else:
            self.ask("capacity", "capacity", tasks, "--task", rng.choice(names), "--of", rng.choice(["period", "deadline", "wcet"]), "--planner", "all_at_once")
        self.of_run(rng, tasks, names, answer)
        if self.ask("tasks-expand", "tasks", "expand", tasks, "--jobs", "12"):
            self.tutti("tasks", "expand", tasks, "--jobs", "12", "--out", self.folder / "jobs.csv")
            self.ask("check-jobs", "check", "--jobs", str(self.folder / "jobs.csv"))

    def of_run(self, rng, tasks, names, answer):
        journal = str(self.folder / "run.journal")
        pathlib.Path(journal).unlink(missing_ok=True)
        more = ["--bound-by"] if rng.random() < 0.3 else []
        if rng.random() < 0.3:
            more += ["--faults", self.put("faults.yaml", random_inputs.faults(rng, names))]
        if answer["counter_example"]:
            self.ask("run", "run", tasks, "--clock", "virtual", "--scenario", str(self.folder / "misses.yaml"), "--overlap", answer["overlap"])
        if answer["schedulable"]:
            self.ask("run", "run", tasks, "--clock", "virtual", "--jobs", str(rng.randint(1, 12)), "--journal", journal, *more)
        if pathlib.Path(journal).exists():
            self.ask("report", "report", journal, *(["--jobs", "3"] if rng.random() < 0.5 else []))

    def count(self, answer, whole):
        """What was drawn: a draw that no longer has one of these proves little."""
        kernels = [stream for task in whole["tasks"] for step in task.get("job", []) for stream in step.get("batch", []) if "from" not in stream]
        for what, there in (("refused", answer["verdict"] == "not_schedulable"), ("unknown", answer["verdict"] == "unknown"), ("schedulable", answer["schedulable"]), ("without a machine", "machine" not in whole),
                            ("chains of a refused set", answer["chains"] and not answer["schedulable"]), ("overlap", answer["overlap"] == "on"), ("refused overlap", answer["overlap"] == "on" and answer["verdict"] == "not_schedulable"),
                            ("kernels without copies", kernels), ("partitions", "partitions" in answer), ("remedies", answer["mends"]), ("counter-examples", answer["counter_example"])):
            self.seen[what] += bool(there)

    @can_validate
    def test_every_output_of_a_random_input_is_what_its_schema_says(self):
        for draw in range(DRAWS):
            with self.subTest(draw=draw, seed=SEED):
                rng = random.Random(f"{SEED} {draw}")
                spec = random_inputs.machine(rng)
                self.put("machine.yaml", {"version": 1, "machine": spec})
                self.of_batch(rng, spec)
                self.of_tasks(rng, spec if rng.random() < 0.8 else None)
        for what in ("refused", "schedulable", "without a machine", "chains of a refused set", "overlap", "kernels without copies", "remedies", "counter-examples",
                     "predict", "compare-batch", "topology-show", "check", "compare-tasks", "capacity", "run", "report", "tasks-expand", "check-jobs"):
            self.assertGreater(self.seen[what], 0, f"no draw has {what}: {dict(self.seen)}")
        if os.environ.get("TUTTI_SHOW_DRAWS"):
            print(dict(sorted(self.seen.items())), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
