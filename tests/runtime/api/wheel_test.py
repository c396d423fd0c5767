#!/usr/bin/env python3
"""The wheel of a build folder: what is in it, and a program in an environment that has nothing else. Arguments: the folder, then patterns of case names."""
import base64
import csv
import hashlib
import importlib.util
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/support"))
sys.dont_write_bytecode = True
import tap

# From the import to a verdict, as the module's documentation has it.
PROGRAM = """import tutti
tasks = tutti.TaskSet.load("configs/tasks/wafer-inspection.yaml")
verdict = tasks.check()
print(verdict)
print(tasks.capacity(parameter="image"), tutti.__file__)
"""


@unittest.skipUnless(shutil.which("patchelf") and importlib.util.find_spec("ensurepip"), "there is no patchelf or no ensurepip; tools/packages lists both under [python]")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.folder = pathlib.Path(place.name)
        made = subprocess.run([ROOT / "tools/package", "--wheel", "--from", sys.argv[1], cls.folder / "out"], capture_output=True, text=True, check=False)
        cls.wheel = pathlib.Path(made.stdout.strip() or made.stderr)

    def test_its_record_is_true(self):
        name, version, *tag = self.wheel.stem.split("-")
        self.assertLess(self.wheel.stat().st_size, 10_000_000)
        with zipfile.ZipFile(self.wheel) as archive:
            about = f"{name}-{version}.dist-info"
            record = list(csv.reader(io.StringIO(archive.read(f"{about}/RECORD").decode())))
            self.assertEqual([row[0] for row in record], archive.namelist())
            for path, checksum, size in record[:-1]:
                data = archive.read(path)
                self.assertEqual((checksum, int(size)), ("sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("="), len(data)))
            self.assertIn(f"Tag: {'-'.join(tag)}\n", archive.read(f"{about}/WHEEL").decode())
            self.assertIn(f"\nVersion: {version}\n", archive.read(f"{about}/METADATA").decode())
            names = set(archive.namelist())
        self.assertLessEqual({"tutti/__init__.py", "tutti/py.typed", f"tutti/libtutti.so.{version.rpartition('.')[0]}", f"{about}/licenses/LICENSE"}, names)

    def test_it_is_made_the_same_again(self):
        again = subprocess.run([ROOT / "tools/package", "--wheel", "--from", sys.argv[1], self.folder / "again"], capture_output=True, text=True, check=True)
        self.assertEqual(pathlib.Path(again.stdout.strip()).read_bytes(), self.wheel.read_bytes())

    # Without the variables that would lead to another library, and without a network.
    def test_a_program_finds_all_that_it_needs(self):
        place = self.folder / "environment"
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        subprocess.run([sys.executable, "-m", "venv", place], check=True, env=environment)
        python = place / "bin/python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-compile", "--disable-pip-version-check", self.wheel], check=True, env=environment)
        said = subprocess.run([python, "-c", PROGRAM], cwd=ROOT, check=True, capture_output=True, text=True, env=environment).stdout.splitlines()
        self.assertEqual(said[0], "schedulable")
        self.assertRegex(said[1], r"^  inspect: at most \d+\.\d{3} ms$")
        self.assertGreater(int(said[2].split()[0]), 160_000_000)
        self.assertTrue(said[2].split()[1].startswith(str(place)))


if __name__ == "__main__":
    sys.exit(tap.main(sys.argv[2:]))
