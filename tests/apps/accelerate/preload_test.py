#!/usr/bin/env python3
"""Programs with libtutti_copy.so preloaded behave as without it, on GPUs of the host. Arguments: the program `driver_calls`,
libtutti_copy.so, the driver of the host's GPUs, then patterns of case names."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import tap

SEEDS = (1, 2)

# As Numba does: the driver's library and its functions by their names.
BY_CTYPES = """
import ctypes
SIZE = 300 * 1024
driver = ctypes.CDLL("libcuda.so.1")
context, memory, here = ctypes.c_void_p(), ctypes.c_uint64(), bytearray(i * i % 251 for i in range(SIZE))
back = bytearray(SIZE)
first = lambda data: ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(data)))
print(driver.cuInit(0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1), driver.cuCtxSetCurrent(context))
print(driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(SIZE)))
print(driver.cuMemcpyHtoD_v2(memory, first(here), ctypes.c_size_t(SIZE)))
print(driver.cuMemcpyDtoH_v2(first(back), memory, ctypes.c_size_t(SIZE)), back == here)
print(driver.cuMemcpyHtoDAsync_v2(memory, first(back), ctypes.c_size_t(SIZE + 1), None))
print(driver.cuMemcpyDtoH_v2(None, memory, ctypes.c_size_t(SIZE)), driver.cuMemFree_v2(memory))
"""


class Preload(unittest.TestCase):
    program = library = driver = ""

    def output_of(self, words, folder, accelerated):
        """(what a program prints, the calls that went through buffers)"""
        report = pathlib.Path(folder) / "report"
        report.unlink(missing_ok=True)
        sizes = dict(AFTER=0, UP_FROM=65536, DOWN_FROM=65536, THREADS=3, BUFFER=65536, REPORT=report)
        variables = {f"TUTTI_COPY_{name}": str(value) for name, value in sizes.items()}
        paths = ":".join(filter(None, (os.path.dirname(self.driver), os.environ.get("LD_LIBRARY_PATH"))))
        preloaded = {"LD_PRELOAD": self.library} if accelerated else {}
        run = subprocess.run(words, env=os.environ | variables | preloaded | {"LD_LIBRARY_PATH": paths},
                             capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        counts = json.loads(report.read_text()) if report.exists() else None
        return run.stdout, counts and counts["up"]["calls"] + counts["down"]["calls"]

    def both(self, words, folder):
        plain, none = self.output_of(words, folder, False)
        fast, calls = self.output_of(words, folder, True)
        self.assertEqual(plain, fast)
        self.assertIsNone(none)
        return plain, calls

    # 200 calls: the status of each, and all memory behind it.
    def test_200_calls_end_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            for route in ("linked", "looked_up", "asked", "asked_per_thread"):
                calls = 0
                for seed in SEEDS:
                    with self.subTest(route=route, seed=seed):
                        printed, accelerated = self.both([self.program, route, str(seed)], folder)
                        self.assertEqual(len(printed.splitlines()), 200)
                        calls += accelerated
                self.assertGreater(calls, 10, route)

    def test_python_copies_by_ctypes(self):
        with tempfile.TemporaryDirectory() as folder:
            printed, accelerated = self.both([sys.executable, "-c", BY_CTYPES], folder)
        self.assertEqual(printed, "0 0 0\n0\n0\n0 True\n1\n1 0\n")
        self.assertEqual(accelerated, 2)


if __name__ == "__main__":
    Preload.program, Preload.library, Preload.driver = sys.argv[1:4]
    sys.exit(tap.main(sys.argv[4:]))
