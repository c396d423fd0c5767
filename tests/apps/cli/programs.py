"""The programs as a user and as a script meet them: exit codes, whole outputs, JSON, and what they say to bad input.

Each test file takes the folder of the built programs, then patterns of case names. UPDATE_GOLDEN=1 writes tests/golden
anew.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent.parent
ROOT = TESTS.parent
MEASURED = "tests/golden/h200x4-measured.json"
SECOND_HOST = "tests/golden/h200x4-second-host.json"
H200X4 = "configs/machines/h200x4.yaml"
EXAMPLE = "configs/batches/inspection-example.yaml"
WAFER = "configs/tasks/wafer-inspection.yaml"
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TWO_LINES = "configs/tasks/two-lines.yaml"
TOO_SLOW = "the host is too slow to play this machine in real time"
ONE_GPU = (TESTS / "apps/cli/one_gpu.yaml").read_text(encoding="utf-8")


def preloaded(library, **variables):
    """An environment in which programs load a library first. LD_PRELOAD takes no blanks, LD_LIBRARY_PATH does."""
    folder, name = os.path.split(library)
    paths = ":".join(filter(None, (folder, os.environ.get("LD_LIBRARY_PATH"))))
    return dict(os.environ, LD_PRELOAD=name, LD_LIBRARY_PATH=paths, **variables)


class Programs(unittest.TestCase):
    built = pathlib.Path()
    under = ()  # the words of a program that starts the others

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tutti cli ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, text, name="f.yaml"):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run_program(self, program, *words, **options):
        command = [*self.under, str(self.built / program), *map(str, words)]
        options = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run(command, text=True, timeout=120, check=False, **options)

    def start(self, program, *words, ignored=(), **options):
        """Starts a program and waits until it runs: it watches for interrupts from then on."""
        def set_signals():
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)

        process = subprocess.Popen([str(self.built / program), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, preexec_fn=set_signals, **options)
        self.addCleanup(lambda: (process.kill(), process.communicate()))
        status = pathlib.Path(f"/proc/{process.pid}/status")
        for _ in range(600):
            caught = next(line.split()[1] for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("SigCgt"))
            if int(caught, 16) >> (signal.SIGINT - 1) & 1 or process.poll() is not None:
                break
            time.sleep(0.1)
        time.sleep(0.2)
        return process

    def tutti(self, *words):
        return self.run_program("tutti/tutti", *words)

    def wafer(self, *words):
        return self.run_program("wafer_inspection/wafer_inspection", *words)

    def object_of(self, code, *words):
        run = self.tutti(*words)
        self.assertEqual(run.returncode, code, run.stderr)
        return json.loads(run.stdout)

    def refuses(self, run, *words, code=2):
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    @staticmethod
    def without_files(text):
        """Without the lines that name the files written, which have paths of their own."""
        return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("wrote "))

    def is_golden(self, name, run, code=0):
        self.assertEqual(run.returncode, code, run.stderr)
        path = TESTS / "golden" / name
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(run.stdout, encoding="utf-8")
        self.assertEqual(run.stdout, path.read_text(encoding="utf-8"))


def main():
    """Runs the tests of the file that is the main program."""
    sys.path.insert(0, str(TESTS / "support"))
    import tap

    Programs.built = pathlib.Path(sys.argv[1]).resolve()
    for number in INTERRUPTS:  # one that nohup or a shell has ignored would be ignored by every program
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    return tap.main(sys.argv[2:])
