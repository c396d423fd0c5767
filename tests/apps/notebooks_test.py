#!/usr/bin/env python3
"""The notebooks print and show what is checked in, and their pages are made of them; the example in Python runs. Arguments: the library, then patterns of case names."""
import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import runpy
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "runtime/api/python")]
sys.dont_write_bytecode = True
os.environ["TUTTI_LIBRARY"] = os.path.abspath(sys.argv[1])
import tap
import tutti

loader = importlib.machinery.SourceFileLoader("notebook", str(ROOT / "tools/notebook"))
notebook = importlib.util.module_from_spec(importlib.util.spec_from_loader("notebook", loader))
loader.exec_module(notebook)


def has_numpy():
    """Whether NumPy is there for this Python, or Debian's, where that is another one of the same version."""
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        return importlib.import_module("numpy") is not None
    except ImportError:
        return False
    finally:
        sys.path.pop()


class Notebooks(unittest.TestCase):
    maxDiff = None

    def holds(self, name):
        path = ROOT / f"apps/notebooks/{name}.ipynb"
        text = path.read_text(encoding="utf-8")
        self.assertEqual(notebook.written(notebook.run(json.loads(text), path.parent)), text, "run tools/notebook and read the difference")

    def test_schedulable(self):
        self.holds("schedulable")

    def test_my_trace(self):
        self.holds("my_trace")

    @unittest.skipUnless(has_numpy(), "there is no NumPy for this Python")
    def test_inspection(self):
        self.holds("inspection")

    def test_pages_are_made_of_them(self):
        paths = sorted((ROOT / "apps/notebooks").glob("*.ipynb"))
        self.assertLessEqual({path.stem for path in paths}, {name[5:] for name in dir(self)})
        for path in paths:
            self.assertEqual(notebook.page(json.loads(path.read_text(encoding="utf-8"))), path.with_suffix(".html").read_text(encoding="utf-8"), path.name)


class Learns(unittest.TestCase):
    def test_what_is_no_trace_is_refused_with_its_sentence(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(tutti.Error, "README.md.*no trace") as refused:
            tutti.learn(ROOT / "README.md", folder)
        self.assertEqual(refused.exception.kind, "input")

    def test_a_program_that_is_not_there_is_named(self):
        with mock.patch.dict(os.environ, {"PATH": "", "TUTTI_PROGRAM": ""}), self.assertRaisesRegex(tutti.Error, "the program 'tutti' is not there"):
            tutti.learn("trace.json", "learned")


class Measures(unittest.TestCase):
    # The simulated machine finds itself: 6 GB/s up to gpu0, whatever it was said to have.
    def test_a_machine_is_calibrated(self):
        with tempfile.TemporaryDirectory() as folder:
            found = tutti.calibrate(ROOT / "configs/machines/inspection-example.yaml", pathlib.Path(folder, "machine.yaml"), backend="sim",
                                    copy="4KiB", rounds=2)
        self.assertLess(found.report["errors"]["graph"]["rates"]["worst"], 0.02)
        batch = tutti.Batch.make(found.machine, {"streams": [{"from": "mem0", "to": "gpu0", "size": "6 MB"}]})
        self.assertAlmostEqual(batch.predict(), 1_000_000, delta=20_000)

    def test_what_cannot_be_measured_is_refused_with_its_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(tutti.Error, "paper"):
                tutti.calibrate(ROOT / "configs/machines/inspection-example.yaml", pathlib.Path(folder, "machine.yaml"), backend="paper")
            try:
                self.assertIsInstance(tutti.detect(pathlib.Path(folder, "detected.yaml")), tutti.Machine)
            except tutti.Error as fault:  # without GPUs
                self.assertEqual(fault.kind, "machine")


class Examples(unittest.TestCase):
    @unittest.skipUnless(has_numpy(), "there is no NumPy for this Python")
    def test_frameworks(self):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            runpy.run_path(str(ROOT / "apps/examples/frameworks.py"))["main"](jobs=20)
        self.assertRegex(said.getvalue(), r"^20 of 20 frames right, 0 missed, 0 over their bound, at most \d\.\d{3} of \d\.\d{3} ms\n$")


class Markdown(unittest.TestCase):
    def test_words_are_not_markup(self):
        self.assertEqual(notebook.of_markdown("# A & `b < c`\n\none\n**two** [three](four)\n\n- five\n- six"),
                         '<h1>A &amp; <code>b &lt; c</code></h1>\n<p>one\n<b>two</b> <a href="four">three</a></p>\n<ul><li>five</li><li>six</li></ul>')

    def test_outputs_are_in_their_order(self):
        outputs = notebook.outputs_of("print('a <')\nx = 3\nx", {})
        self.assertEqual("".join(map(notebook.of_output, outputs)), '<pre class="said">a &lt;\n</pre><pre class="said">3</pre>')
        self.assertEqual(notebook.outputs_of("x = 3", {}), [])


if __name__ == "__main__":
    sys.exit(tap.main(sys.argv[2:]))
