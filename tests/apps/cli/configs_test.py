#!/usr/bin/env python3
"""The files that come with the programs: where they are, and that their names hold in every folder."""
import json
import os
import sys
import unittest

from programs import ROOT, WAFER, Programs, main


class Configs(Programs):
    def elsewhere(self, program, *words):
        return self.run_program(program, *words, cwd=self.folder)

    def test_a_misspelt_name_is_guessed_from_every_folder(self):
        run = self.run_program("tutti/tutti", "check", "configs/tasks/wafer-inspectoin.yaml", cwd=self.folder)
        self.refuses(run, "nor in ", "did you mean 'configs/tasks/wafer-inspection.yaml'?")

    def test_every_file_is_listed_with_its_first_sentence(self):
        found = self.object_of(0, "configs", "--json")
        self.assertEqual([row["name"] for row in found["files"]], sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("configs/*/*.yaml")))
        self.assertEqual(os.path.realpath(found["folder"]), str(ROOT / "configs"))
        about = {row["name"]: row["about"] for row in found["files"]}
        self.assertEqual(about["configs/batches/pageable.yaml"], "An image from ordinary memory, and a result back to it.")
        for name, sentence in about.items():
            self.assertRegex(sentence, r"^[^#].{20,}$", name)
        text = self.tutti("configs").stdout
        self.assertTrue(text.startswith(found["folder"] + "\n\nfile "), text)
        self.assertEqual([line.split()[0] for line in text.splitlines()[3:]], [row["name"] for row in found["files"]])

    def test_the_folder_alone_is_for_scripts(self):
        run = self.elsewhere("tutti/tutti", "configs", "--folder")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertEqual(os.path.realpath(run.stdout.rstrip("\n")), str(ROOT / "configs"))
        self.refuses(self.tutti("configs", "--folder", "--json"), "--folder")

    def test_their_names_hold_in_every_folder(self):
        for words in (["check", WAFER], ["topology", "show", "configs/machines/h200x4.yaml"], ["advise", "configs/control/bfs.yaml"],
                      ["predict", "configs/batches/pageable.yaml", "--machine", "configs/machines/pageable.yaml"]):
            with self.subTest(words=words):
                run = self.elsewhere("tutti/tutti", *words)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(run.stdout, self.tutti(*words).stdout)
        run = self.elsewhere("wafer_inspection/wafer_inspection", "--size", "256", "--count", "1", "--clock", "virtual", "--machine", "configs/machines/inspection-example.yaml")
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_a_file_of_the_current_folder_is_taken_first(self):
        (self.folder / "configs/tasks").mkdir(parents=True)
        (self.folder / WAFER).write_text("version: 1\ntasks:\n  - {name: mine, period: 10 ms, wcet: 1 ms}\n", encoding="utf-8")
        run = self.elsewhere("tutti/tutti", "check", WAFER, "--json")
        self.assertEqual([task["name"] for task in json.loads(run.stdout)["tasks"]], ["mine"])

    def test_other_names_are_not_looked_for(self):
        for name in ("configs/tasks/none.yaml", "tasks/wafer-inspection.yaml", "configs"):
            self.refuses(self.elsewhere("tutti/tutti", "check", name), name)


if __name__ == "__main__":
    sys.exit(main())
