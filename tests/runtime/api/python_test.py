#!/usr/bin/env python3
"""The Python module as a program uses it. Arguments: the library, then patterns of case names."""
import contextlib
import copy
import ctypes
import gc
import io
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "runtime/api/python")]
sys.dont_write_bytecode = True
os.environ["TUTTI_LIBRARY"] = sys.argv[1] if __name__ == "__main__" else ""
import tap
import tutti

WAFER = ROOT / "configs/tasks/wafer-inspection.yaml"
# 12 GB/s up, and nothing else costs time.
STATION = {"machine": {"name": "station", "vertices": {"mem0": {"kind": "memory"}, "gpu0": {"kind": "gpu"}},
                       "links": [{"from": "mem0", "to": "gpu0", "bandwidth": "12 GB/s", "back": "12 GB/s"}]}}
# 120 kB up take 10 us, a kernel 100 us, 4 bytes back less than a ns: 111 us with what is rounded.
TOTALS = {"tasks": [{"name": "sum", "period": "10 ms", "buffers": {
    "numbers": {"in": "mem0", "size": "120 kB"}, "there": {"in": "gpu0", "size": "120 kB"},
    "total": {"in": "gpu0", "size": "4 B"}, "shown": {"in": "mem0", "size": "4 B"}},
    "job": [{"batch": [{"copy": "numbers", "to": "there", "kernel": {"name": "total", "time": "100 us", "reads": ["there"], "writes": ["total"]}}]},
            {"batch": [{"copy": "total", "to": "shown"}]}]}]}


def total(launch):
    launch.writes[0].view()[:] = sum(launch.reads[0].view()).to_bytes(4, "little")


class Promises(unittest.TestCase):
    # 12 kB at 12 GB/s.
    def test_a_batch_is_predicted(self):
        machine = tutti.Machine.make(STATION)
        batch = tutti.Batch.make(machine, {"streams": [{"from": "mem0", "to": "gpu0", "size": "12 kB"}]})
        self.assertEqual((batch.predict(), batch.predict_latest(), batch.predict("all_at_once")), (1000, 1000, 1000))
        again = tutti.Batch.make(batch.machine, "version: 1\nstreams: [{from: gpu0, to: mem0, size: 24 kB}]\n")
        self.assertEqual(again.predict(), 2000)

    def test_a_set_is_admitted_and_has_a_limit(self):
        tasks = tutti.TaskSet.load(WAFER)
        verdict = tasks.check()
        self.assertTrue(verdict)
        self.assertEqual((tasks.names, len(tasks), verdict.answer.name, verdict.reasons), (["inspect"], 1, "SCHEDULABLE", []))
        self.assertLess(verdict.worst_responses["inspect"], 60_000_000)
        self.assertRegex(repr(verdict), r"^schedulable\n  inspect: at most \d+\.\d{3} ms$")
        self.assertGreater(tasks.capacity(parameter="image"), 160_000_000)
        self.assertLess(tasks.capacity(period="inspect"), 25_000_000)
        with self.assertRaisesRegex(TypeError, "give one of"):
            tasks.capacity()

    # 3 + 2 ms of work in an interval of 4.
    def test_a_set_that_does_not_hold_says_why_and_is_not_run(self):
        station = tutti.Machine.make(STATION)
        verdict = tutti.TaskSet.make(station, {"tasks": [{"name": "a", "period": "10 ms", "wcet": "3 ms"}, {"name": "b", "period": "10 ms", "deadline": "4 ms", "wcet": "2 ms"}]}).check()
        self.assertFalse(verdict)
        self.assertIn("task 'b' can miss its deadline", verdict.reasons[0])
        self.assertEqual(verdict.worst_responses["b"], 5_000_000)
        with self.assertRaisesRegex(tutti.Error, "are not guaranteed"):
            verdict.run()

    def test_mistakes_have_their_place(self):
        with self.assertRaises(tutti.Error) as raised:
            tutti.Batch.make(tutti.Machine.make(STATION), "version: 1\nstreams:\n  - {from: mem0, to: gpu7, size: 1 kB}\n")
        fault = raised.exception
        self.assertEqual((fault.kind, fault.line, fault.column), ("input", 3, 22), str(fault))
        with self.assertRaisesRegex(tutti.Error, "there.yaml"):
            tutti.Machine.load("/not/there.yaml")
        with self.assertRaisesRegex(tutti.Error, "'bst'"):
            tutti.TaskSet.load(WAFER).check("bst")

    def test_a_handle_comes_from_the_library_and_stays_one(self):
        machine = tutti.Machine.make(STATION)
        for made in (lambda: tutti.Machine(str(WAFER)), lambda: tutti.TaskSet(TOTALS), lambda: tutti.Job(5), tutti.Verdict):
            with self.assertRaisesRegex(TypeError, "comes from a function of this module"):
                made()
        for other in (tutti.TaskSet.make(machine, TOTALS), None, 5):
            with self.assertRaisesRegex(TypeError, "a Machine is expected here, not"):
                tutti.Batch.make(other, {"streams": []})
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaisesRegex(TypeError, "neither copied nor pickled"):
                copied(machine)
        machine.__del__()  # and once more when it goes

    def test_text_is_read_to_its_end(self):
        tasks = tutti.TaskSet.load(WAFER)
        for wrong in ("best\0", "best\udcff"):
            for call in (tasks.check, tutti.TaskSet.make(tutti.Machine.make(STATION), TOTALS).check, lambda name: tasks.capacity(parameter=name)):
                with self.assertRaises(ValueError):
                    call(wrong)
        with self.assertRaisesRegex(ValueError, "0 character"):
            tutti.TaskSet.load(f"{WAFER}\0.txt")
        with self.assertRaisesRegex(ValueError, "0 character"):
            tutti.Machine.make("version: 1\n\0")
        for wrong in (5, b"best", ["best"]):
            with self.assertRaisesRegex(TypeError, "text is expected here, not"):
                tasks.check(wrong)
        with self.assertRaisesRegex(ValueError, "JSON"):
            tutti.TaskSet.make(tutti.Machine.make(STATION), {"tasks": [TOTALS["tasks"][0] | {"name": float("nan")}]})
        with self.assertRaisesRegex(tutti.Error, "'\U0001f600' is no name"):
            tutti.TaskSet.make(tutti.Machine.make(STATION), {"tasks": [TOTALS["tasks"][0] | {"name": "\U0001f600"}]})

    def test_a_sentence_may_have_bytes_that_are_no_text(self):
        with self.assertRaisesRegex(tutti.Error, r"/not/\\xff\.yaml"):
            tutti.Machine.load(b"/not/\xff.yaml")

    def test_another_library_is_refused(self):
        program = [sys.executable, "-B", "-c", "import tutti"]
        environment = os.environ | {"TUTTI_LIBRARY": "libc.so.6", "PYTHONPATH": str(ROOT / "runtime/api/python")}
        said = subprocess.run(program, env=environment, capture_output=True, text=True, check=False).stderr
        self.assertIn("ImportError: libc.so.6 is no library of tutti", said)


class Runs(unittest.TestCase):
    def verdict(self, slots=1):
        task = TOTALS["tasks"][0]
        numbers = task["buffers"]["numbers"] | ({"slots": slots} if slots > 1 else {})
        tasks = {"tasks": [task | {"buffers": task["buffers"] | {"numbers": numbers}}]}
        return tutti.TaskSet.make(tutti.Machine.make(STATION), tasks).check()

    # Job n has 120,000 bytes of n: 120,000 n in all.
    def test_kernels_and_programs_are_python(self):
        shown = []

        def fill(job):
            view = job.buffer("numbers").view()
            view[:] = bytes([job.index]) * len(view)

        program = tutti.Program(on_ready=fill, on_finished=lambda job: shown.append(int.from_bytes(job.buffer("shown").view(), "little")))
        record = self.verdict().run(jobs=20, kernels={"total": total}, programs={"sum": program})
        self.assertEqual(record.exceptions, [])
        self.assertEqual(shown, [120_000 * n for n in range(20)])
        self.assertEqual((len(record.jobs), record.missed, record.failed, record.over_bound), (20, 0, 0, 0))
        self.assertEqual([(job.task, job.index, job.arrival_ns, job.deadline_ns) for job in record.jobs[:2]], [("sum", 0, 0, 10_000_000), ("sum", 1, 10_000_000, 20_000_000)])
        self.assertEqual(record.worst_responses, {"sum": record.jobs[0].response_ns})
        self.assertAlmostEqual(record.jobs[0].response_ns, 110_001, delta=2)
        self.assertEqual(repr(record), "20 jobs, 0 missed, 0 failed, 0 over their bound")

    # Results are read where they lie, and cannot be written.
    def test_memory_is_that_of_the_run(self):
        frames = [bytearray([n]) * 120_000 for n in (3, 7)]
        totals, addresses = [], []

        def read(job):
            totals.append(int.from_bytes(job.buffer("shown").view(), "little"))
            addresses.append(job.buffer("numbers").__array_interface__["data"])
            with self.assertRaises(TypeError):
                job.buffer("shown").view()[0] = 1

        record = self.verdict(slots=2).run(jobs=4, kernels={"total": total}, programs={"sum": tutti.Program(on_finished=read, memory={"numbers": frames})})
        self.assertEqual(record.exceptions, [])
        self.assertEqual(totals, [360_000, 840_000, 360_000, 840_000])
        places = [ctypes.addressof(ctypes.c_uint8.from_buffer(frame)) for frame in frames]
        self.assertEqual(addresses, [(place, True) for place in places * 2])

    def test_a_kernel_that_raises_fails_its_job_alone(self):
        count = iter(range(100))
        failed = []

        def breaks(launch):
            if next(count) == 2:
                raise ValueError("no sum")
            total(launch)

        record = self.verdict().run(jobs=6, kernels={"total": breaks}, programs={"sum": tutti.Program(on_failed=failed.append)})
        self.assertEqual([str(fault) for fault in record.exceptions], ["no sum"])
        self.assertEqual([job.verdict for job in record.jobs].count("failed"), 1)
        self.assertEqual((record.failed, [job.index for job in failed]), (1, [2]))

    def test_a_callback_that_raises_ends_nothing(self):
        def raises(job):
            raise KeyError(job.index)

        record = self.verdict().run(jobs=3, kernels={"total": total}, programs={"sum": tutti.Program(on_finished=raises)})
        self.assertEqual([fault.args for fault in record.exceptions], [(0,), (1,), (2,)])
        self.assertEqual([job.verdict for job in record.jobs], ["met"] * 3)

    def counting(self):
        """A host step of 1 ms that adds to a kept buffer of the host."""
        tasks = {"tasks": [{"name": "count", "period": "10 ms", "buffers": {"sum": {"in": "mem0", "size": "4 B", "keep": True}},
                            "job": [{"host": {"name": "add", "time": "1 ms", "reads": ["sum"], "writes": ["sum"]}}]}]}
        return tutti.TaskSet.make(tutti.Machine.make(STATION), tasks).check()

    # on_start makes it 5.
    def test_host_steps_and_kept_buffers(self):
        steps, seen = [], []

        def start(buffer):
            buffer("sum").view()[0] = 5

        def add(job, position):
            steps.append((job.step, position))
            job.buffer("sum").view()[0] += 1

        program = tutti.Program(on_start=start, on_host_step=add, on_finished=lambda job: seen.append(job.buffer("sum").view()[0]))
        record = self.counting().run(jobs=3, programs={"count": program})
        self.assertEqual((record.exceptions, steps, seen), ([], [("add", 0)] * 3, [6, 7, 8]))

    def test_mistakes_of_a_run(self):
        with self.assertRaisesRegex(tutti.Error, "no backend 'gpu'"):
            self.verdict().run(backend="gpu")
        with self.assertRaisesRegex(tutti.Error, "sums"):
            self.verdict().run(jobs=1, kernels={"total": total}, programs={"sums": tutti.Program()})
        faults = self.verdict().run(jobs=1, kernels={"total": total}, programs={"sum": tutti.Program(on_ready=lambda job: job.buffer("there"))}).exceptions
        self.assertRegex(str(faults[0]), "no buffer 'there' in a memory of the host")
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(tutti.Error, "no journal can be written"):
            self.verdict().run(jobs=1, kernels={"total": total}, journal=pathlib.Path(folder, "not", "there"))

    def test_arguments_of_another_kind_are_refused(self):
        verdict = self.verdict()
        for name, number in (("jobs", -1), ("jobs", 1 << 64), ("until_ns", -1), ("until_ns", 1 << 63), ("seed", -1), ("seed", 1 << 64)):
            with self.assertRaisesRegex(ValueError, f"{name} is a whole number from 0"):
                verdict.run(kernels={"total": total}, **{name: number})
        for wrong in ({"jobs": 1.5}, {"until_ns": None}, {"journal": 5}, {"kernels": None}, {"kernels": {5: total}}, {"kernels": {"total": None}}, {"device_kernels": {"total": 5}},
                      {"programs": []}, {"programs": {"sum": total}}, {"programs": {5: tutti.Program()}}, {"programs": {"sum": tutti.Program(on_ready=5)}}):
            with self.assertRaises(TypeError, msg=wrong):
                verdict.run(**{"jobs": 1, "kernels": {"total": total}} | wrong)
        for wrong in ({"kernels": {"total\0": total}}, {"programs": {"sum\0": tutti.Program()}}, {"journal": "there\0"}):
            with self.assertRaises(ValueError, msg=wrong):
                verdict.run(**{"jobs": 1, "kernels": {"total": total}} | wrong)

    def test_any_writable_memory_of_the_host_is_taken(self):
        def run(slots):
            memory = {"numbers": slots}
            return self.verdict().run(jobs=2, kernels={"total": total}, programs={"sum": tutti.Program(memory=memory)})

        pixels = (ctypes.c_uint16.__ctype_be__ * 300 * 200)()
        self.assertEqual(run([pixels]).exceptions, [])
        for error, slots in ((tutti.Error, [bytearray(10)]), (tutti.Error, [bytearray()]), (ValueError, []), (TypeError, None), (TypeError, bytearray(120_000)), (TypeError, [bytes(120_000)]),
                             (TypeError, [memoryview(bytearray(240_000))[::2]]), (TypeError, [(ctypes.py_object * 20_000)()])):
            with self.assertRaises(error):
                run(slots)

    # It can neither be freed while the run goes on, nor is it held behind that.
    def test_memory_stays_while_it_is_used(self):
        memory = bytearray(120_000)
        record = self.verdict().run(jobs=1, kernels={"total": lambda launch: memory.clear()}, programs={"sum": tutti.Program(memory={"numbers": [memory]})})
        self.assertIsInstance(record.exceptions[0], BufferError)
        record = None
        gc.collect()
        memory.clear()

    def test_what_is_lent_is_taken_back(self):
        kept = []
        program = tutti.Program(on_start=kept.append, on_host_step=lambda job, _: kept.append(job), on_finished=lambda job: kept.extend([job, job.buffer("sum")]))
        record = self.counting().run(jobs=1, programs={"count": program})
        start, at_step, at_end, memory = kept
        for used in (lambda: start("sum"), lambda: at_step.step, lambda: at_step.buffer("sum"), lambda: at_end.overwritten):
            with self.assertRaisesRegex(tutti.Error, "a callback that is over"):
                used()
        self.assertEqual((at_step.task, at_end.index), ("count", 0))
        for used in (memory.view, lambda: memory.__array_interface__):
            with self.assertRaisesRegex(tutti.Error, "the run is over"):
                used()
        with self.assertRaisesRegex(TypeError, "keep its bytes"):
            pickle.dumps(memory)
        self.assertRegex(str(record.exceptions), "something holds memory of the run")

    # It says so, since looking into the view would end the program.
    def test_a_view_that_is_kept_is_seen(self):
        kept = []
        for keep, faults in ((kept.append, 1), (lambda view: kept.append(bytes(view)), 0)):
            record = self.counting().run(jobs=2, programs={"count": tutti.Program(on_finished=lambda job, f=keep: f(job.buffer("sum").view().cast("I")))})
            self.assertEqual(len(record.exceptions), faults)
            kept.clear()

    # A job that no function has had is none that was met.
    def test_an_exception_may_be_odd(self):
        class Odd(Exception):
            def with_traceback(self, _):
                raise RuntimeError

        def odd(*_):
            raise Odd

        record = self.verdict().run(jobs=2, kernels={"total": odd}, programs={"sum": tutti.Program(on_ready=odd)})
        self.assertEqual((record.failed, [type(fault) for fault in record.exceptions], repr(record)[-14:]), (2, [Odd] * 4, ", 4 exceptions"))

    def test_an_exit_is_raised_behind_the_run(self):
        for exit_ in (SystemExit, KeyboardInterrupt):
            for name in ("on_ready", "on_finished", "on_host_step", "on_start"):
                calls = []

                def ends(*_):
                    calls.append(1)  # pylint: disable=cell-var-from-loop
                    raise exit_  # pylint: disable=cell-var-from-loop

                with self.assertRaises(exit_):
                    self.counting().run(jobs=3, programs={"count": tutti.Program(**{name: ends})})
                self.assertEqual(len(calls), 1, name)

    # The signal comes in the library, in the module or in the kernel; the last kernels wait for it.
    def test_an_interrupt_is_raised_behind_the_run(self):
        verdict = self.verdict()
        usual = signal.signal(signal.SIGINT, signal.default_int_handler)
        for _ in range(5):
            started, sent, launches = threading.Event(), threading.Event(), []

            def interrupt(started=started, sent=sent):
                started.wait()
                time.sleep(0.002)
                os.kill(os.getpid(), signal.SIGINT)
                sent.set()

            def kernel(_, started=started, sent=sent, launches=launches):
                started.set()
                launches.append(1)
                if len(launches) > 990:
                    sent.wait()

            sender = threading.Thread(target=interrupt)
            sender.start()
            with self.assertRaises(KeyboardInterrupt):
                verdict.run(jobs=1000, kernels={"total": kernel})
            sender.join()
            self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        signal.signal(signal.SIGINT, usual)

    def test_a_kernel_may_run_a_set(self):
        verdict, inner = self.verdict(), []
        record = verdict.run(jobs=2, kernels={"total": lambda launch: inner.append(verdict.run(jobs=3, kernels={"total": total}))})
        self.assertEqual((record.exceptions, [len(one.jobs) for one in inner]), ([], [3, 3]))

    def test_threads_run_one_verdict(self):
        verdict, records = self.verdict(), []
        threads = [threading.Thread(target=lambda: records.append(verdict.run(jobs=5, kernels={"total": total}))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([(len(record.jobs), record.failed, record.exceptions) for record in records], [(5, 0, [])] * 4)

    def test_nothing_is_left_behind(self):
        def raises(_):
            raise ValueError

        for _ in range(50):
            self.verdict().run(jobs=1, kernels={"total": total})
            self.verdict().run(jobs=1, kernels={"total": raises})
            for wrong in ({}, {"backend": "gpu"}, {"kernels": {"total": 5}}, {"programs": {"sum": 5}}):
                with self.assertRaises((tutti.Error, TypeError)):
                    self.verdict().run(**wrong)
        gc.collect()
        self.assertFalse([thing for thing in gc.get_objects() if isinstance(thing, (tutti._Run, tutti._Kernels))])


@unittest.skipUnless("TUTTI_HOST_BACKEND" in os.environ, "this build has no CUDA")
class DeviceKernels(unittest.TestCase):
    """On host-executed CUDA: LD_LIBRARY_PATH begins with its backend."""

    def verdict(self):
        gpu = {"kind": "gpu", "bus_id": "7e57:01:00.0"}
        station = STATION["machine"] | {"vertices": STATION["machine"]["vertices"] | {"gpu0": gpu}}
        return tutti.TaskSet.make(tutti.Machine.make({"machine": station}), TOTALS).check()

    # Recorded for each buffer set of the task, whose memory and stream the function gets; first once on memory of its own.
    def test_they_are_recorded_with_memory_and_stream(self):
        launches = []

        def total_on_gpu(launch, stream):
            launches.append((launch, stream))

        record = self.verdict().run(jobs=5, backend="cuda", device_kernels={"total": total_on_gpu})
        self.assertEqual((record.exceptions, len(record.jobs)), ([], 5))  # a busy host drops jobs
        self.assertLess(len(launches), 5)
        for launch, stream in launches:
            reads, writes = launch.reads[0].__cuda_array_interface__, launch.writes[0].__cuda_array_interface__
            self.assertEqual((reads["shape"], writes["shape"], reads["stream"], writes["typestr"]), ((120_000,), (4,), stream, "|u1"))
            self.assertNotIn(0, (stream, reads["data"][0], writes["data"][0]))

    def test_one_that_raises_ends_the_run_with_its_cause(self):
        def breaks(launch, stream):
            raise ValueError("no kernel")

        with self.assertRaisesRegex(tutti.Error, "kernel 'total' of stream 'stream0' failed") as raised:
            self.verdict().run(jobs=1, backend="cuda", device_kernels={"total": breaks})
        self.assertEqual(str(raised.exception.__cause__), "no kernel")

    def test_an_exit_in_one_is_raised_behind_the_run(self):
        with self.assertRaises(SystemExit):
            self.verdict().run(jobs=1, backend="cuda", device_kernels={"total": lambda launch, stream: sys.exit()})


class Readme(unittest.TestCase):
    def test_its_program_prints_what_it_says(self):
        text = (ROOT / "runtime/api/README.md").read_text(encoding="utf-8")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(re.search(r"```python\n(.*?)```", text, re.S)[1], {})  # pylint: disable=exec-used
        lines = said.getvalue().splitlines()
        self.assertRegex("\n".join(lines[:2]), r"^schedulable\n  sum: at most 0\.\d{3} ms$")
        self.assertEqual(lines[2:], [str(1_000_000 * n) for n in range(10)] + ["10 jobs, 0 missed, 0 failed, 0 over their bound"])


class Interface(unittest.TestCase):
    """The structs and functions are those of the header."""

    HEADER = re.sub(r"/\*.*?\*/", "", (ROOT / "runtime/api/tutti.h").read_text(encoding="utf-8"), flags=re.S)

    def members(self, name):
        body = re.search(r"typedef struct %s \{(.*?)\} %s;" % (name, name), self.HEADER, re.S)[1]
        return [re.search(r"\(\*(\w+)\)|(\w+)$", line.strip()).group(1) or re.search(r"(\w+)$", line.strip())[1] for line in body.split(";") if line.strip()]

    def test_structs(self):
        for name, struct in (("tutti_kernel_launch", tutti._Launch), ("tutti_job_record", tutti._JobRecord), ("tutti_slot", tutti._Slot),
                             ("tutti_task_program", tutti._Program), ("tutti_run_options", tutti._RunOptions), ("tutti_run_summary", tutti._Summary)):
            self.assertEqual([field[0] for field in struct._fields_], self.members(name), name)

    def test_functions_have_as_many_arguments(self):
        for name, (_, *arguments) in tutti._FUNCTIONS.items():
            found = re.search(r"\btutti_%s\(((?:[^()]|\([^()]*\))*)\);" % name, self.HEADER)
            self.assertIsNotNone(found, name)
            words = found[1].strip()
            self.assertEqual(len(arguments), 0 if words == "void" else len(re.sub(r"\([^()]*\)", "", words).split(",")), name)

    def test_what_is_public_is_documented(self):
        self.assertEqual(tutti.version().count("."), 2)
        for name in tutti.__all__:
            self.assertTrue(getattr(tutti, name).__doc__, name)


if __name__ == "__main__":
    sys.exit(tap.main(sys.argv[2:]))
