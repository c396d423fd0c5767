#!/usr/bin/env python3
"""`tutti tasks import`: models of other tools as task sets."""
import random
import sys

from programs import H200X4, TESTS, Programs, main

CAMERA = TESTS / "golden/import/camera.amxmi"


class Import(Programs):
    def imported(self, text, *words):
        return self.tutti("tasks", "import", self.file(text, "given"), *words)

    def test_a_model_is_a_task_set(self):
        run = self.tutti("tasks", "import", CAMERA)
        self.is_golden("import/camera.amxmi.yaml", run)
        said = [line.removeprefix("note: ") for line in run.stderr.splitlines()]
        self.assertEqual([f"# {line}." for line in said], [line for line in run.stdout.splitlines() if line.startswith("# ")][2:])
        self.assertEqual(self.tutti("tasks", "import", CAMERA, "--quiet").stderr, "")

    # The machine's GPU is gpu0 of four; its memory mem0. The path is that from the folder of the task set.
    def test_the_set_is_checked_on_a_machine(self):
        out = self.folder / "set.yaml"
        answer = self.object_of(0, "tasks", "import", CAMERA, "--machine", H200X4, "--out", out, "--json")
        self.assertEqual([answer[key] for key in ("source", "tasks", "cores", "gpus", "out")], ["AMALTHEA", 2, 3, 1, str(out)])
        verdict = self.object_of(0, "check", out, "--json")
        self.assertEqual([(task["name"], task["period_ms"], task["deadline_ms"]) for task in verdict["tasks"]], [("Control", 5, 5), ("Inspect_an_image", 20, 15)])
        self.assertEqual(self.tutti("run", out, "--jobs", 20).returncode, 0)

    # 3 ms and 250 us on cores and 4 ms on the GPU are more than 7 ms, whatever the copies take.
    def test_the_verdict_is_that_of_the_ticks(self):
        text = CAMERA.read_text(encoding="utf-8").replace('value="15" unit="ms"', 'value="7" unit="ms"')
        out = self.folder / "set.yaml"
        self.assertEqual(self.imported(text, "--machine", H200X4, "--out", out).returncode, 0)
        self.assertIn("its deadline is 7 ms", self.tutti("check", out).stdout)

    def test_mistakes_have_their_place(self):
        text = CAMERA.read_text(encoding="utf-8")
        for given, sentence in (
            ("", "given:1:1: the file is empty; give an AMALTHEA model (.amxmi)"),
            ("version: 1\n", "given:1:1: this is no whole XML: "),
            (text[:3000], ": this is no whole XML: "),
            ((TESTS / "golden/import/hwloc.xml").read_text(encoding="utf-8"), "given:3:1: 'topology' is the root of no AMALTHEA model"),
            (text.replace("tasks", "task"), "given:2:1: there is no task in this model"),
            (text.replace('runnable="Steer?', 'runnable="Ster?'), "given:6:1: there is no runnable 'Ster' in this model; add it, or correct the name"),
            (text.replace('data="Defects_host?', 'data="Defects?'), "there is no label 'Defects' in this model"),
            (text.replace('upperBound="4000000"', 'upperBound="-1"'), "'-1' is no upperBound of <value>; it is a whole number from 0 to"),
            (text.replace('value="16" unit="kiB"', 'value="16000000" unit="GB"'), "'16000000 GB' is no size; write a size from 0 to 1 TB"),
            (text.replace('<defaultValue value="1000" unit="MHz"/>', ""), "frequency domain 'slow' has no <defaultValue>; add it"),
            (text.replace("<am:Amalthea", "<!DOCTYPE a [<!ENTITY x 'y'>]><am:Amalthea"), "given:1:1: this XML declares entities"),
            (text.replace("<structures", "<structures xsi:type='x'>" * 100 + "<structures", 1).replace("</hwModel>", "</structures>" * 100 + "</hwModel>"), "nested deeper than any hardware"),
        ):
            with self.subTest(sentence=sentence):
                self.refuses(self.imported(given), "given", sentence)
        self.refuses(self.tutti("tasks", "import", "/no/such/file"), "/no/such/file: there is no folder 'no' in /")
        self.refuses(self.tutti("tasks", "import", CAMERA, "--machine", "configs/tasks/two-lines.yaml"), "is a task set, not a machine file")

    def test_damaged_models_end_in_a_sentence(self):
        draw, whole = random.Random(7), CAMERA.read_bytes()
        for trial in range(100):
            damaged = bytearray(whole)
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(len(damaged))
                damaged[at : at + draw.choice((0, 1, 20))] = bytes(draw.randrange(256) for _ in range(draw.choice((1, 1, 3))))
            if trial % 3 == 0:
                damaged = damaged[: draw.randrange(len(damaged))]
            path = self.folder / "damaged"
            path.write_bytes(damaged)
            run = self.run_program("tutti/tutti", "tasks", "import", path, "--quiet", errors="replace")
            self.assertIn(run.returncode, (0, 2), f"{trial}: {run.stderr}")
            self.assertEqual(run.stderr.count("\n"), 1 if run.returncode else 0, run.stderr)

    # The model's own figures: the detection is due after 66 ms and has a kernel of 116 ms, four kernels share one GPU.
    def test_the_shipped_challenge_is_refused_for_its_deadlines(self):
        verdict = self.object_of(1, "check", "configs/tasks/waters-2019.yaml", "--json")
        self.assertEqual(verdict["verdict"], "not_schedulable")
        wcets = {task["name"]: task["wcet_ms"] for task in verdict["tasks"]}
        self.assertEqual(len(wcets), 10)
        self.assertAlmostEqual(wcets["Planner"], 26483822 / 2e6, places=3)
        self.assertGreater(wcets["PRE_Detection_gpu_POST"], 174e6 / 1.5e6)


if __name__ == "__main__":
    sys.exit(main())
