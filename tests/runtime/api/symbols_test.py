#!/usr/bin/env python3
"""The shared library shows tutti:: and tutti_ alone. Arguments: the library, then patterns of case names."""
import pathlib
import re
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import tap


class Symbols(unittest.TestCase):
    library = ""

    def shown(self):
        lines = subprocess.run(["nm", "-D", "-C", "--defined-only", self.library], capture_output=True, text=True, check=True).stdout
        return [line.split(" ", 2)[2] for line in lines.splitlines()]

    def test_nothing_but_the_interface_is_shown(self):
        allowed = re.compile(r"(typeinfo for |typeinfo name for |vtable for )?tutti::(?!internal::)|tutti_")
        self.assertEqual([name for name in self.shown() if not allowed.match(name)], [])

    def test_both_interfaces_are_there(self):
        names = " ".join(self.shown())
        for name in ("tutti::predictBatchLatency(", "tutti::Error::text", "tutti_predict_batch_latency"):
            self.assertIn(name, names)


if __name__ == "__main__":
    Symbols.library = sys.argv[1]
    sys.exit(tap.main(sys.argv[2:]))
