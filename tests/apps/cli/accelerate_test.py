#!/usr/bin/env python3
"""`tutti accelerate`, and libtutti_copy.so in programs that know nothing of it, on a host without GPUs."""
import os
import platform
import signal
import struct
import subprocess
import sys

from programs import Programs, main, preloaded


class Accelerate(Programs):
    def accelerate(self, *program):
        return self.tutti("accelerate", "--", *program)

    def setUp(self):
        super().setUp()
        if not os.environ.get("TUTTI_COPY_LIBRARY"):
            self.skipTest("built without CUDA")

    def test_the_program_runs_where_nothing_can_be_measured(self):
        run = self.accelerate("sh", "-c", "echo out; echo $TUTTI_COPY; exit 7")
        self.assertEqual((run.returncode, run.stdout), (7, "out\noff\n"))
        self.assertRegex(run.stderr, r"^tutti accelerate: .*; copies go on as they are\n$")

    def test_options_behind_the_dashes_are_the_programs(self):
        run = self.accelerate("echo", "--gpu", "x", "--json", "-h")
        self.assertEqual((run.returncode, run.stdout), (0, "--gpu x --json -h\n"))

    def test_a_signal_is_passed_on_as_shells_do(self):
        self.assertEqual(self.accelerate("sh", "-c", "kill -9 $$").returncode, 128 + signal.SIGKILL)

    # The program says what it had; where it does not end by it, neither does the command.
    def test_signals_are_handed_on_to_the_program(self):
        for sent in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            name = sent.name.removeprefix("SIG")
            words = [self.built / "tutti/tutti", "accelerate", "--", "sh", "-c",
                     f"trap 'echo had {name}; exit 5' {name}; echo ready; while :; do sleep 0.05; done"]
            run = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.assertEqual(run.stdout.readline(), "ready\n")
            run.send_signal(sent)
            self.assertEqual((run.communicate(timeout=60)[0], run.returncode), (f"had {name}\n", 5))

    def test_a_killed_command_leaves_no_program_running(self):
        run = subprocess.Popen([self.built / "tutti/tutti", "accelerate", "--", "sh", "-c", "echo ready; exec sleep 600"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.assertEqual(run.stdout.readline(), "ready\n")
        run.kill()
        self.assertEqual(run.communicate(timeout=60)[0], "")  # the last of both closes the pipe

    def test_a_program_that_is_not_there_is_named(self):
        run = self.accelerate("/no/such/program")
        self.assertEqual(run.returncode, 127)
        self.assertIn("tutti accelerate: /no/such/program: No such file or directory\n", run.stderr)
        self.assertEqual(self.accelerate(self.file("no program")).returncode, 126)

    # A program that calls the system by itself: exit(7). Its header, one part, its instructions.
    def test_a_static_program_is_named_and_runs(self):
        codes = {"x86_64": (62, "bf07000000b83c0000000f05"), "aarch64": (183, "e0008052a80b8052010000d4")}
        if platform.machine() not in codes:
            self.skipTest("no instructions for this processor")
        machine, code = codes[platform.machine()]
        begin, size = 0x400000, 64 + 56 + len(code) // 2
        file = self.folder / "static"
        file.write_bytes(b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, begin + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0) +
                         struct.pack("<IIQQQQQQ", 1, 5, 0, begin, begin, size, size, 4096) + bytes.fromhex(code))
        file.chmod(0o755)
        run = self.accelerate(file)
        self.assertEqual((run.returncode, run.stdout), (7, ""))
        self.assertIn(f"tutti accelerate: {file} is linked statically as a whole, and takes no library by LD_PRELOAD; ", run.stderr)
        self.assertNotIn("linked statically", self.accelerate("true").stderr)

    def test_mistakes_end_with_2(self):
        self.refuses(self.tutti("accelerate"), "program")
        for words in (["--threads", "0"], ["--threads", "65"], ["--gpu", "-1"], ["--gpu", "x"]):
            with self.subTest(words=words):
                self.refuses(self.tutti("accelerate", *words, "--", "true"))

    def test_nothing_happens_to_programs_without_cuda(self):
        environment = preloaded(os.environ["TUTTI_COPY_LIBRARY"], TUTTI_COPY_REPORT=str(self.folder / "report"))
        asks = "import ctypes; print('driver' if hasattr(ctypes.CDLL('libm.so.6'), 'cuMemcpyHtoD_v2') else 'hello')"
        for program in (["echo", "hello"], ["sh", "-c", "echo hello | cat"], [sys.executable, "-c", "print('hello')"], [sys.executable, "-c", asks]):
            with self.subTest(program=program):
                run = subprocess.run(program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
                self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "hello\n", ""))
        self.assertFalse((self.folder / "report").exists())


if __name__ == "__main__":
    sys.exit(main())
