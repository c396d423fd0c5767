#!/usr/bin/env python3
"""Each tool of tools/ is able to fail: violations are planted in a temporary tree, and the tool must find them.

Writes TAP, so that every case is counted; an argument picks the cases whose names contain it.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent / "tools"


class Tree(unittest.TestCase):
    """A temporary tree, in a folder with a space in its name."""

    def setUp(self):
        self.above = tempfile.TemporaryDirectory(prefix="tutti tools ")
        self.addCleanup(self.above.cleanup)
        self.root = pathlib.Path(self.above.name) / "a tree"
        self.root.mkdir()

    def write(self, name, text, executable=False):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        if executable:
            path.chmod(0o755)

    def check(self, tool):
        run = subprocess.run([TOOLS / tool, "--root", self.root], capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def accepts(self, tool):
        code, output = self.check(tool)
        self.assertEqual(code, 0, output)

    def refuses(self, tool, *words):
        code, output = self.check(tool)
        self.assertEqual(code, 1, output)
        for word in words:
            self.assertIn(word, output)


class CheckLayers(Tree):
    def test_accepts_folders_to_the_left(self):
        self.write("apps/tutti/main.cpp", '#include <vector>\n#include "model/base/a.hpp"\n#include "runtime/core/b.hpp"\n')
        self.write("model/base/a_yaml.cpp", '#include "model/base/a.hpp"\n#include <yaml-cpp/yaml.h>\n')
        self.write("runtime/cuda/stream.hpp", "#include <cuda_runtime.h>\n")
        self.accepts("check-layers")

    def test_refuses_a_folder_to_the_right(self):
        self.write("model/base/a.hpp", '#pragma once\n#include "sched/task.hpp"\n')
        self.refuses("check-layers", "model/base/a.hpp:2: ", "sched/task.hpp")

    def test_refuses_every_wrong_direction(self):
        layers = ["model", "sched", "runtime", "apps", "tests"]
        for left in range(len(layers)):
            for right in range(left + 1, len(layers)):
                with self.subTest(f"{layers[left]} -> {layers[right]}"):
                    self.write(f"{layers[left]}/x.cpp", f'# include "{layers[right]}/y.hpp"\n')
                    self.refuses("check-layers", f"{layers[left]}/x.cpp:1: ")
            shutil.rmtree(self.root / layers[left], ignore_errors=True)

    def test_sub_folders_have_an_order_too(self):
        self.write("sched/analyses/a.cpp", '#include "sched/tasks/task.hpp"\n#include "sched/analyses/b.hpp"\n')
        self.write("apps/tutti/main.cpp", '#include "apps/tutti/commands/command.hpp"\n')
        self.accepts("check-layers")
        self.write("sched/tasks/a.cpp", '#include <vector>\n#include "sched/whatif/capacity.hpp"\n')
        self.refuses("check-layers", "sched/tasks/a.cpp:2: sched/tasks/ includes", "whatif")
        self.write("sched/tasks/a.cpp", "")
        self.write("apps/tutti/reports/a.cpp", '#include "apps/tutti/commands/command.hpp"\n')
        self.refuses("check-layers", "apps/tutti/reports/a.cpp:1: apps/tutti/reports/ includes")
        self.write("apps/tutti/reports/a.cpp", "")
        self.write("runtime/a.cpp", '#include "runtime/core/clock.hpp"\n')
        self.refuses("check-layers", "runtime/a.cpp:1: sources of runtime/ stand in one of")

    def test_what_everybody_has_knows_nothing_of_the_laboratory(self):
        self.write("apps/lab/commands/a.cpp", '#include "apps/tutti/commands/command.hpp"\n')
        self.accepts("check-layers")
        self.write("apps/tutti/commands/a.cpp", '#include "apps/lab/fits/measurement.hpp"\n')
        self.refuses("check-layers", "apps/tutti/commands/a.cpp:1: ", "laboratory")

    def test_examples_include_the_installed_headers_alone(self):
        self.write("apps/examples/a.cpp", "#include <tutti/tutti.hpp>\n")
        self.accepts("check-layers")
        self.write("apps/examples/a.cpp", '#include "runtime/api/tutti.hpp"\n')
        self.refuses("check-layers", "apps/examples/a.cpp:1: ", "<tutti/...>")

    def test_refuses_an_include_not_written_from_the_root(self):
        for line in ('"topology.hpp"', '"../sched/task.hpp"', '"model/../sched/task.hpp"', "<model/topology.hpp>"):
            with self.subTest(line):
                self.write("model/base/a.cpp", f"#include {line}\n")
                self.refuses("check-layers", "model/base/a.cpp:1: ")

    def test_refuses_cuda_outside_its_folder(self):
        self.write("runtime/executor.cpp", "#include <cuda_runtime_api.h>\n")
        self.refuses("check-layers", "runtime/executor.cpp:1: ", "runtime/cuda/")

    def test_refuses_hwloc_outside_its_folder(self):
        for header in ("hwloc.h", "hwloc/helper.h", "dlfcn.h"):
            with self.subTest(header):
                self.write("apps/tutti/topology.cpp", f"#include <{header}>\n")
                self.refuses("check-layers", "apps/tutti/topology.cpp:1: ", "runtime/cuda/")

    def test_refuses_yaml_cpp_outside_its_files(self):
        self.write("model/machine/topology.cpp", "#include <yaml-cpp/yaml.h>\n")
        self.refuses("check-layers", "model/machine/topology.cpp:1: ", "_yaml.cpp")

    def test_refuses_threads_and_files_in_pure_folders(self):
        for header in ("thread", "mutex", "fstream", "unistd.h", "nlohmann/json.hpp"):
            with self.subTest(header):
                self.write("sched/a.cpp", f"#include <{header}>\n")
                self.refuses("check-layers", "sched/a.cpp:1: ", header)

    def test_refuses_sources_outside_the_layers(self):
        self.write("extra/a.cpp", "#include <vector>\n")
        self.refuses("check-layers", "extra/a.cpp:1: ")


class CheckPackages(Tree):
    def packages(self, text):
        self.write("tools/packages", text)

    def test_accepts_what_the_packages_provide(self):
        self.packages("[build]\ng++  # compiler\nlibfmt-dev\n[bench]\nlibbenchmark-dev\n[simgrid]\nlibsimgrid-dev\n")
        self.write("model/base/a.cpp", "#include <vector>\n#include <fmt/format.h>\n#include <sys/mman.h>\n")
        self.write("tests/bench/a.cpp", "#include <benchmark/benchmark.h>\n")
        self.write("tests/support/a.cpp", "#include <simgrid/s4u.hpp>\n")
        self.accepts("check-packages")

    def test_refuses_a_header_of_no_known_package(self):
        self.packages("[build]\ng++\n")
        self.write("model/base/a.cpp", "#include <vector>\n#include <absl/strings/str_cat.h>\n")
        self.refuses("check-packages", "model/base/a.cpp:2: ", "absl/strings/str_cat.h")

    def test_refuses_a_known_package_that_is_not_listed(self):
        self.packages("[build]\ng++\n")
        self.write("model/base/a.cpp", "#include <fmt/format.h>\n")
        self.refuses("check-packages", "model/base/a.cpp:1: ", "libfmt-dev")

    def test_refuses_a_package_that_a_build_does_not_install(self):
        self.packages("[build]\ng++\n[bench]\nlibbenchmark-dev\n[simgrid]\nlibsimgrid-dev\n")
        self.write("tests/model/a.cpp", "#include <benchmark/benchmark.h>\n")
        self.refuses("check-packages", "tests/model/a.cpp:1: ")
        self.write("model/base/a.cpp", "#include <simgrid/s4u.hpp>\n")
        self.refuses("check-packages", "under tests/bench/\n", "under tests/\n")

    def test_cameras_are_opened_in_one_place(self):
        self.packages("[build]\ng++\n[camera]\nlibaravis-dev\n")
        self.write("apps/wafer_inspection/camera.cpp", "#include <arv.h>\n")
        self.accepts("check-packages")
        self.accepts("check-layers")
        self.write("apps/wafer_inspection/main.cpp", "#include <arv.h>\n")
        self.refuses("check-packages", "apps/wafer_inspection/main.cpp:1: ", "may stand only under apps/wafer_inspection/camera.cpp and tests/apps")
        self.refuses("check-layers", "apps/wafer_inspection/main.cpp:1: ", "cameras are opened by")

    def test_refuses_a_library_that_nobody_includes(self):
        self.packages("[build]\ng++\nlibfmt-dev\n")
        self.write("model/base/a.cpp", "#include <vector>\n")
        self.refuses("check-packages", "tools/packages", "libfmt-dev")

    def test_refuses_a_program_that_a_bare_machine_has_not(self):
        self.packages("[build]\npython3\n[package]\ncmake\n")
        self.write("meson.build", "find_program('python3')\nfind_program('scdoc', required: false)\nfind_program('x_test.py')\n")
        self.accepts("check-packages")
        for line in ("x = import('cmake')", "find_program('cmake')", "find_program('doxygen')"):
            with self.subTest(line):
                self.write("runtime/meson.build", f"# a\n{line}\n")
                self.refuses("check-packages", "runtime/meson.build:2: ", "is missing")

    @unittest.skipUnless(shutil.which("dpkg-query") and pathlib.Path("/usr/include/fmt").exists(), "no libfmt-dev")
    def test_refuses_a_header_that_the_installed_package_has_not(self):
        self.packages("[build]\ng++\nlibfmt-dev\n")
        self.write("model/base/a.cpp", "#include <fmt/no_such_header.h>\n")
        self.refuses("check-packages", "model/base/a.cpp:1: ", "is not in it")


class CheckFormat(Tree):
    def setUp(self):
        super().setUp()
        self.write(".clang-format", "BasedOnStyle: Google\n")
        if self.check("check-format")[0] == 3:
            self.skipTest("no clang-format")

    def test_accepts_formatted_sources(self):
        self.write("model/base/a.cpp", "int main() { return 0; }\n")
        self.accepts("check-format")

    def test_refuses_others(self):
        for suffix in ("cpp", "hpp", "cu", "cuh"):
            with self.subTest(suffix):
                self.write(f"model/base/{suffix}.{suffix}", "int a = 0;\nint  b{ };\n")
                self.refuses("check-format", f"model/base/{suffix}.{suffix}:2: ")

    def test_refuses_a_broken_style(self):
        self.write(".clang-format", "ColumnLimit: [\n")
        self.write("model/base/a.cpp", "int a = 0;\n")
        self.refuses("check-format")


@unittest.skipUnless(shutil.which("c++"), "no compiler")
class CheckSources(Tree):
    """Sources of a library that is built as one; the first includes what the others lean on."""

    def setUp(self):
        super().setUp()
        self.write("model/a.hpp", """
            #pragma once
            #include <vector>
            struct A {};
            enum class Color { Red };
            using List = std::vector<A>;
            inline constexpr int kMost = 3;
            [[nodiscard]] int size_of(const A& a);
            #define EXPECTS(x)
            """)
        self.write("model/first.cpp", '#include <sys/mman.h>\n#include <algorithm>\n#include <array>\n#include "model/a.hpp"\n')

    def test_accepts_sources_that_include_what_they_use(self):
        self.write("model/b.hpp", '#include "model/a.hpp"\n')
        self.write("model/b.cpp", """
            #include <array>
            #include "model/b.hpp"
            // std::max and A::b stand in a comment, "std::min" in a string.
            struct Size { int kMost = 0, size_of = 0; };
            std::vector<std::array<A, kMost>> list = {};
            const char* text = "std::min(a, b)";
            """)
        self.accepts("check-sources")

    def test_refuses_what_a_header_of_the_tree_declares(self):
        for use in ("A b;", "const A* b;", "auto b = Color::Red;", "List b;", "int b = kMost;", "int b() { return size_of({}); }", "void b() { EXPECTS(1); }",
                    "A::A() {}"):
            with self.subTest(use):
                self.write("model/b.cpp", use + "\n")
                self.refuses("check-sources", "model/b.cpp:1: ", "model/a.hpp")

    def test_refuses_what_a_header_of_the_system_declares(self):
        for use, header in (("std::vector<int> b;", "vector"), ("int b = std::clamp(1, 2, 3);", "algorithm"), ("void* b = mmap(0, 1, 0, 0, 0, 0);", "sys/mman.h"),
                            ("int b = PROT_READ;", "sys/mman.h")):
            with self.subTest(use):
                self.write("model/b.cpp", use + "\n")
                self.refuses("check-sources", "model/b.cpp:1: ", header)

    def test_refuses_a_header_that_newer_versions_declare_it_in_no_more(self):
        self.write("model/a.hpp", "#include <fmt/format.h>\n#include <fmt/ranges.h>\n")
        self.write("model/b.cpp", '#include <fmt/format.h>\nauto b = fmt::join(list, " ");\n')
        self.refuses("check-sources", "model/b.cpp:2: fmt::join", "fmt/ranges.h")
        self.write("model/b.cpp", '#include <fmt/ranges.h>\nauto b = fmt::join(list, " ");\n')
        self.accepts("check-sources")

    def test_a_forward_declaration_is_not_enough(self):
        self.write("model/b.cpp", "#include <utility>\nstd::array<int, 2> b;\n")
        self.refuses("check-sources", "model/b.cpp:2: std::array", "array")
        self.write("model/b.hpp", "struct A;\nint f(const A& a);\n")
        self.write("model/b.cpp", '#include "model/b.hpp"\nint f(const A& a) { return 0; }\n')
        self.accepts("check-sources")
        self.write("model/b.cpp", '#include "model/b.hpp"\nint f(const A& a) { return sizeof(A); }\n')
        self.refuses("check-sources", "model/b.cpp:2: A ", "model/a.hpp")

    def test_refuses_a_header_that_leans_on_those_before_it(self):
        self.write("model/b.hpp", "#pragma once\nstruct B { A a; };\n")
        self.write("model/b.cpp", '#include "model/a.hpp"\n#include "model/b.hpp"\n')
        self.refuses("check-sources", "model/b.hpp:2: A ")


class CheckPaths(Tree):
    def test_accepts_paths_from_the_root(self):
        self.write("README.md", "build/apps/tutti/tutti, ../home/x, https://example.org/home/x, /usr/bin/env\n")
        self.accepts("check-paths")

    def test_refuses_folders_of_one_machine(self):
        for folder in ("home", "root", "work", "Users"):
            with self.subTest(folder):
                self.write("a.md", f"fine\nsee '/{folder}/somebody/x'\n")
                self.refuses("check-paths", "a.md:2: ")

    def test_leaves_build_folders_alone(self):
        self.write("debug/meson-private/build.dat", "/" + "home/somebody\n")
        self.write("debug/build.ninja", "/" + "home/somebody\n")
        self.accepts("check-paths")

    @unittest.skipUnless(shutil.which("git"), "no git")
    def test_looks_at_what_git_does_not_ignore(self):
        subprocess.run(["git", "init", "-q", self.root], check=True)
        self.write(".gitignore", "/ignored/\n")
        self.write("ignored/a.md", "/" + "home/somebody\n")
        self.accepts("check-paths")
        self.write("untracked.md", "/" + "home/somebody\n")
        self.refuses("check-paths", "untracked.md:1: ")


class SetUp(Tree):
    """tools/start, test and bench against stand-ins for apt, dpkg, meson and ninja, which log their calls."""

    def setUp(self):
        super().setUp()
        shutil.copytree(TOOLS, self.root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        self.write("tools/packages", "[build]\none  # comment\ntwo | deux  # either\n\n[bench]\nthree\n[simgrid]\nfour\n[shells]\nno-such-shell\n")
        self.stand_in("dpkg-query", 'for p in $INSTALLED; do echo "$p installed"; done')
        self.stand_in("id", "echo $WHO")
        self.stand_in("apt-cache", 'for name in $HAS; do [ "$name" = "$2" ] && exit 0; done; exit 100')
        self.stand_in("apt-get", """
            [ "$1" = --assume-no ] && printf 'Need to get 12.3 MB/45 MB of archives.\\nAfter this operation, 67 MB of additional disk space will be used.\\n' && exit 1
            echo "apt-get[$DEBIAN_FRONTEND] $*" >>"$LOG"; exit ${APT_STATUS:-0}
            """)
        self.stand_in("meson", """
            echo "meson $*" >>"$LOG"
            if [ "$1" = setup ]; then while [ $# -gt 2 ]; do shift; done; mkdir -p "$1"; touch "$1/build.ninja"; fi
            """)
        self.stand_in("ninja", 'echo "ninja $*" >>"$LOG"')
        main_job = "build/apps/wafer_inspection/wafer_inspection"
        self.write(main_job, "#!/bin/sh\n[ \"$1\" = generate ] && exec mkdir \"$3\"\necho the report\nexit 1\n", executable=True)

    def stand_in(self, name, script):
        self.write(f"stand-ins/{name}", "#!/bin/sh\n" + textwrap.dedent(script) + "\n", executable=True)

    def run_tool(self, tool, *arguments, installed="one two three four", who="0", apt=0, has="one two"):
        log = self.root / "log"
        log.write_text("")
        environment = {"PATH": f"{self.root / 'stand-ins'}:{os.environ['PATH']}", "LOG": str(log),
                       "INSTALLED": installed, "WHO": who, "APT_STATUS": str(apt), "HAS": has}
        run = subprocess.run([self.root / "tools" / tool, *arguments],
                             capture_output=True, text=True, cwd="/", env=environment)
        return run, log.read_text()

    def test_leaves_apt_alone_when_nothing_is_missing(self):
        run, log = self.run_tool("start")
        self.assertNotIn("apt-get", log)
        self.assertEqual((run.stdout, run.returncode), ("the report\n", 1))

    def test_start_keeps_no_half_of_a_set_of_images(self):
        self.write("build/wafers-2048.part/wafer000.png", "cut off")
        self.run_tool("start")
        self.assertEqual(list((self.root / "build/wafers-2048").iterdir()), [])
        self.assertFalse((self.root / "build/wafers-2048.part").exists())

    def test_installs_what_is_missing_and_only_that(self):
        run, log = self.run_tool("start", installed="one")
        self.assertRegex(log, r"^apt-get\[noninteractive\] .*-y.* update\n"
                              r"apt-get\[noninteractive\] .*-y.* install --no-install-recommends two\n")
        self.assertIn("installing two: 12.3 MB to fetch, 67 MB on disk\n", run.stderr)
        self.assertIn("the report", run.stdout)

    def test_takes_of_two_names_the_one_that_the_release_has(self):
        self.assertNotIn("apt-get", self.run_tool("start", installed="one deux")[1])
        self.assertIn("recommends deux\n", self.run_tool("start", installed="one", has="deux")[1])
        self.assertIn("recommends two\n", self.run_tool("start", installed="one", has="")[1], "apt-get says that there is none")

    def test_names_what_it_leaves_out_and_installs_it_when_asked(self):
        run, log = self.run_tool("test")
        self.assertIn("left out: tests that need no-such-shell; tools/test --everything installs them\n", run.stderr)
        self.assertNotIn("apt-get", log)
        self.assertIn("recommends no-such-shell\n", self.run_tool("test", "--everything", has="no-such-shell")[1])

    def test_builds_in_a_folder_anywhere(self):
        elsewhere = pathlib.Path(self.above.name) / "else where"
        self.assertIn(f" {elsewhere} ", self.run_tool("test", "--folder", elsewhere)[1])
        self.assertIn(f" {self.root}/inside ", self.run_tool("test", "--folder", "inside")[1])

    def test_says_where_it_cannot_write(self):
        (self.root / "a file").write_text("")
        for tool in ("start", "test"):
            run, log = self.run_tool(tool, "--folder", "a file/below")
            self.assertEqual((run.returncode, log), (2, ""))
            self.assertRegex(run.stderr, r"^\w+: cannot write in .*a file/below; --folder /another/place builds elsewhere\n$")

    def test_says_which_value_is_missing_or_wrong(self):
        missing = "wants a value; see tools/{tool} --help"
        for tool, arguments, sentence in (("start", ["--folder"], missing), ("test", ["--suite"], missing), ("test", ["--but", ""], missing),
                                          ("fuzz", ["--seconds"], missing), ("fuzz", ["--seconds", "ten"], "takes a number of seconds"),
                                          ("package", ["--from"], missing), ("package", ["--from", "/nowhere"], "/nowhere is no build folder"),
                                          ("package", ["--form"], "takes a folder at most"), ("test-install", [], missing)):
            with self.subTest(tool=tool, arguments=arguments):
                run, log = self.run_tool(tool, *arguments)
                self.assertEqual((run.returncode, log), (2, ""), run.stderr)
                self.assertIn(sentence.format(tool=tool), run.stderr)
                self.assertEqual(run.stderr.count("\n"), 1, run.stderr)

    def test_without_root_names_the_packages_and_stops(self):
        run, log = self.run_tool("test", installed="", who="1000")
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("apt-get install --no-install-recommends one two\n", run.stderr)
        self.assertEqual(log, "")

    def test_stops_when_apt_fails(self):
        run, log = self.run_tool("start", installed="two", apt=100)
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("apt-get install --no-install-recommends one\n", run.stderr)
        self.assertNotIn("ninja", log)

    def test_bench_goes_on_without_the_optional_package(self):
        self.write("build-bench/tests/bench/planner", "#!/bin/sh\necho table $*\n", executable=True)
        self.write("tests/bench/trace_run.py", "")
        self.write("tests/bench/wafer_run.py", "import sys\nprint('runs of', *sys.argv[1:])\n")
        run, log = self.run_tool("bench", "--benchmark_filter=x", installed="one two three", who="1000")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("table --benchmark_filter=x\n", run.stdout)
        self.assertIn("runs of build-bench\n", run.stdout)
        self.assertIn("-Dbench=enabled", log)

    def test_bench_fails_without_a_benchmark(self):
        run, _ = self.run_tool("bench")
        self.assertEqual(run.returncode, 1)

    def test_configures_once_and_anew_for_other_options_or_another_place(self):
        self.assertIn("meson setup", self.run_tool("test")[1])
        self.assertNotIn("meson setup", self.run_tool("test")[1])
        self.assertIn("meson setup --reconfigure -Dtests=enabled -Dcuda=disabled", self.run_tool("test", "-Dcuda=disabled")[1])
        self.assertNotIn("meson setup", self.run_tool("test", "-Dcuda=disabled")[1])
        self.assertNotIn("meson setup", self.run_tool("start")[1])
        self.root = self.root.rename(self.root.with_name("moved"))
        self.assertRegex(self.run_tool("test")[1], r"meson setup (?!--reconfigure)")
        self.assertFalse((self.root / "build/apps").exists())

    def test_every_tool_has_a_help(self):
        for tool in sorted(TOOLS.iterdir()):
            if os.access(tool, os.X_OK) and tool.is_file():
                with self.subTest(tool.name):
                    run, log = self.run_tool(tool.name, "--help")
                    self.assertEqual((run.returncode, log), (0, ""), run.stderr)
                    self.assertGreater(len(run.stdout), 100)

    # What `meson test` leaves behind, and the last line that tools/test makes of it.

    def counted(self, log, cases=None, status=0):
        log = f"mkdir -p meson-logs; echo '{log}' >meson-logs/testlog.json" if log else ""
        cases = f"echo '<testsuites>{cases}</testsuites>' >unit.xml" if cases else ""
        self.stand_in("meson", f"""
            if [ "$1" = introspect ]; then
                echo '[{{"name": "unit", "protocol": "gtest"}}, {{"name": "program", "protocol": "exitcode"}}, {{"name": "tap", "protocol": "tap"}}]'
            fi
            if [ "$1" = test ]; then
                cd "{self.root}/build"
                {log}
                {cases}
                exit {status}
            fi
            """)
        self.write("build/build.ninja", "")
        run, _ = self.run_tool("test")
        return run.stdout.splitlines()[-1], run.returncode

    PASSED = '<testcase name="a" status="run" result="completed"/>'
    FAILED = '<testcase name="b" status="run" result="completed"><failure message="no"/></testcase>'
    SKIPPED = '<testcase name="c" status="run" result="skipped"><skipped message="no device"/></testcase>'
    DISABLED = '<testcase name="d" status="notrun" result="suppressed"/>'

    def test_counts_cases_not_programs(self):
        log = '{"name": "tutti / unit", "result": "OK"}\n{"name": "tutti:slow / program", "result": "OK"}'
        self.assertEqual(self.counted(log, self.PASSED * 5), ("6 passed, 0 failed", 0))
        newer = '{"name": "tutti:unit", "result": "OK"}\n{"name": "slow+gpu - tutti:program", "result": "OK"}'
        self.assertEqual(self.counted(newer, self.PASSED * 5), ("6 passed, 0 failed", 0))

    def test_counts_a_program_that_skips_all(self):
        log = '{"name": "unit", "result": "OK"}\n{"name": "tap", "result": "SKIP", "stdout": "1..0 # SKIP no node"}'
        self.assertEqual(self.counted(log, self.PASSED), ("1 passed, 0 failed, 1 skipped", 0))

    def test_counts_a_skip_as_no_pass(self):
        log = '{"name": "unit", "result": "OK"}\n{"name": "program", "result": "SKIP"}'
        cases = self.PASSED + self.SKIPPED + self.DISABLED
        self.assertEqual(self.counted(log, cases), ("1 passed, 0 failed, 3 skipped", 0))

    def test_counts_failed_cases(self):
        log = '{"name": "unit", "result": "FAIL"}\n{"name": "program", "result": "TIMEOUT"}'
        self.assertEqual(self.counted(log, self.PASSED + self.FAILED * 2, status=1), ("1 passed, 3 failed", 1))

    def test_counts_a_crash_and_a_leak_as_failed(self):
        log = '{"name": "unit", "result": "FAIL"}'
        self.assertEqual(self.counted(log, status=1), ("0 passed, 1 failed", 1))
        self.assertEqual(self.counted(log, self.PASSED, status=1), ("1 passed, 1 failed", 1))

    def test_fails_when_nothing_was_executed(self):
        self.assertEqual(self.counted(""), ("0 passed, 0 failed", 1))
        self.assertEqual(self.counted('{"name": "program", "result": "OK"}'), ("1 passed, 0 failed", 0))
        self.assertEqual(self.counted(""), ("0 passed, 0 failed", 1), "the last run's log was counted again")
        log = '{"name": "unit", "result": "OK"}'
        self.assertEqual(self.counted(log, self.SKIPPED), ("0 passed, 0 failed, 1 skipped", 1))


if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
    import tap

    sys.exit(tap.main(sys.argv[1:]))
