#!/usr/bin/env python3
"""`tutti verify`."""
import json
import sys

from programs import Programs, main


class Verify(Programs):
    """Predicted beside measured, here on the simulated machine, which does what is planned."""

    MACHINE = "configs/machines/inspection-example.yaml"

    def test_the_simulated_machine_is_as_predicted(self):
        out, worst = self.folder / "out.json", self.folder / "worst.yaml"
        words = ["verify", "--machine", self.MACHINE, "--backend", "sim", "--random", "24", "--largest", "256KiB", "--repeats", "1"]
        answer = self.object_of(0, *words, "--seed", "7", "--json", "--out", out, "--save-worst", worst)
        self.assertEqual(answer["above_latest"], 0)
        self.assertEqual(answer["seed"], 7)
        peers = answer["groups"]["peers"]["runs"]  # 5 of each such batch: two wake links
        self.assertEqual(answer["groups"]["all"]["runs"], 3 * 24 + peers // 5 * 2)
        self.assertEqual(answer["groups"]["all"]["length_errors"]["worst"], 0)
        for group in ("both ways", "kernels", "staged", "in a row"):
            self.assertIn(group, answer["groups"])
        self.assertEqual(json.loads(out.read_text(encoding="utf-8"))["above_latest"], 0)
        self.object_of(0, "predict", worst, "--json")
        by_clock = ["verify", "--machine", self.MACHINE, "--backend", "sim", "--random", "1", "--repeats", "1", "--seed", "clock", "--json"]
        self.assertNotEqual(self.object_of(0, *by_clock)["seed"], self.object_of(0, *by_clock)["seed"])
        self.assertIn("above latest", self.tutti(*words, "--loaded").stdout)

    def test_mistakes_end_with_2(self):
        for words in (["--random", "3"], ["--machine", self.MACHINE], ["--machine", self.MACHINE, "--random", "3", "--seed", "noon"],
                      ["--machine", self.MACHINE, "--random", "3", "--largest", "1"]):
            with self.subTest(words=words):
                self.refuses(self.tutti("verify", "--backend", "sim", *words))


if __name__ == "__main__":
    sys.exit(main())
