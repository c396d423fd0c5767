#!/usr/bin/env python3
"""What `meson install` puts where, in a folder that stands for the root: it works from there, whatever the prefix.

Arguments: the build folder, a `libtutti_cuda.so` of version 0.0.1, then patterns of case names.
"""
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD, OTHER_VERSION = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
WAFER = "configs/tasks/wafer-inspection.yaml"


@functools.cache
def option(name):
    options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text(encoding="utf-8"))
    return next(row["value"] for row in options if row["name"] == name)


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="tutti installed ")
        cls.addClassCleanup(folder.cleanup)
        destination = pathlib.Path(folder.name) / "destination"
        run = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", destination], capture_output=True, text=True)
        if run.returncode != 0:
            raise AssertionError(run.stdout + run.stderr)
        cls.elsewhere = pathlib.Path(folder.name) / "elsewhere"
        cls.elsewhere.mkdir()
        cls.prefix = destination / option("prefix").lstrip("/")
        cls.bin, cls.libraries, cls.data = (cls.prefix / option(name) for name in ("bindir", "libdir", "datadir"))

    def run_program(self, name, *words):
        environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
        return subprocess.run([self.bin / name, *words], cwd=self.elsewhere, env=environment, capture_output=True, text=True, timeout=120)

    def test_programs_run_from_there_with_the_files_that_they_name(self):
        configs = self.run_program("tutti", "configs", "--folder")
        self.assertEqual((configs.returncode, configs.stdout, configs.stderr), (0, f"{self.data}/tutti/configs\n", ""))
        check = self.run_program("tutti", "check", WAFER)
        self.assertEqual(check.returncode, 0, check.stderr)
        # Needs libtutti.so, and takes its task set by itself.
        inspection = self.run_program("wafer_inspection", "--size", "256", "--count", "1", "--clock", "virtual")
        self.assertEqual(inspection.returncode, 0, inspection.stderr)

    def test_every_file_of_a_help_page_is_there(self):
        pages, names = [()], set()
        while pages:
            words = pages.pop()
            text = self.run_program("tutti", *words, "--help").stdout
            pages += [(*words, word) for word in re.findall(r"^  ([a-z]+)", text.partition("Subcommands:\n")[2].partition("\n\n")[0], re.MULTILINE)]
            names.update(re.findall(r"configs/[\w./-]+\.yaml", text))
        self.assertIn(WAFER, names)
        for name in sorted(names):
            self.assertTrue((self.data / "tutti" / name).is_file(), name)

    def test_the_libraries_of_gpus_are_found_beside_the_library(self):
        beside = self.libraries / "libtutti_cuda.so"
        kept = beside.with_suffix(".kept")
        if beside.exists():
            beside.rename(kept)
            self.addCleanup(kept.rename, beside)
        self.addCleanup(beside.unlink)
        shutil.copy(OTHER_VERSION, beside)
        for run in (self.run_program("tutti", "topology", "detect"),  # has the library inside
                    self.run_program("wafer_inspection", "--machine", "configs/machines/h200x4.yaml", "--backend", "cuda", "--count", "1", "--size", "256")):
            self.assertEqual(run.returncode, 3, run.stderr)
            self.assertIn("libtutti_cuda.so belongs to tutti 0.0.1", run.stderr)

    def test_licence_manual_completions_and_examples(self):
        self.assertEqual((self.data / "doc/tutti/LICENSE").read_bytes(), (ROOT / "LICENSE").read_bytes())
        for program in ("tutti", "wafer_inspection"):
            self.assertTrue((self.data / "bash-completion/completions" / program).is_file())
        commands = re.findall(r"^  ([a-z]+)", self.run_program("tutti", "--help").stdout.partition("Subcommands:\n")[2].partition("\n\n")[0], re.MULTILINE)
        pages = {path.name for path in (self.prefix / option("mandir")).glob("man1/*")}
        if pages or option("manual") == "enabled":
            self.assertLessEqual({f"tutti-{command}.1" for command in commands} | {"tutti.1", "wafer_inspection.1"}, pages)
        examples = ROOT / "apps/examples"
        self.assertEqual(sorted(path.name for path in (self.data / "doc/tutti/examples").iterdir()),
                         sorted(path.name for path in examples.iterdir() if path.name != "meson.build"))

    def test_descriptions_lead_to_the_library(self):
        description = (self.libraries / "pkgconfig/tutti.pc").read_text(encoding="utf-8")
        self.assertIn(f"prefix={option('prefix')}\n", description)
        # nvcc takes no -Wl; the loader looks into /usr by itself.
        self.assertEqual("-Xlinker -rpath=${libdir}" in description, option("prefix") != "/usr")
        self.assertNotIn("-Wl,", description)
        config = self.libraries / "cmake/tutti/tuttiConfig.cmake"
        headers = re.search(r'"([./]+[^"]*)" ABSOLUTE BASE_DIR', config.read_text(encoding="utf-8"))[1]
        self.assertTrue((config.parent / headers / "tutti/tutti.hpp").is_file())
        self.assertTrue((config.parent / "../../libtutti.so").is_file())

    @unittest.skipUnless(shutil.which("cmake"), "there is no cmake")
    def test_cmake_takes_versions_of_one_minor_number(self):
        version = re.search(r'PACKAGE_VERSION "(\d+)\.(\d+)\.(\d+)"', (self.libraries / "cmake/tutti/tuttiConfigVersion.cmake").read_text(encoding="utf-8"))
        major, minor, patch = map(int, version.groups())
        for asked, taken in (("", True), (f"{major}.{minor}", True), (f"{major}.{minor}.{patch}", True), (f"{major}.{minor}.{patch + 1}", False), (f"{major}.{minor - 1}", False),
                             (f"{major}.{minor + 1}", False), (f"{major}.{minor - 1}...{major}.{minor + 1}", True), (f"{major}.{minor - 1}...<{major}.{minor}", False)):
            with self.subTest(asked=asked):
                project = self.elsewhere / "project"
                shutil.rmtree(project, ignore_errors=True)
                project.mkdir()
                (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.20)\nproject(versions NONE)\n"
                                                        f"find_package(tutti {asked})\nmessage(STATUS \"tutti is ${{tutti_FOUND}}\")\n", encoding="utf-8")
                run = subprocess.run(["cmake", "-S", project, "-B", project / "build", f"-Dtutti_DIR={self.libraries}/cmake/tutti"], capture_output=True, text=True)
                self.assertEqual("tutti is 1" in run.stdout, taken, run.stdout + run.stderr)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests/support"))
    import tap

    sys.exit(tap.main(sys.argv[3:]))
