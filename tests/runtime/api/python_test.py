#!/usr/bin/env python3
"""The Python module as a program uses it. Arguments: the library, then patterns of case names."""
import contextlib
import copy
import ctypes
import gc
import importlib
import importlib.util
import io
import json
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
import weakref

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/support"), str(ROOT / "runtime/api/python")]
sys.dont_write_bytecode = True
os.environ["TUTTI_LIBRARY"] = sys.argv[1] if __name__ == "__main__" else ""
import tap
import tutti
from tutti import _callbacks, _interface

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


def library(name):
    """A library of this Python, or None."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# Memory of this size that was given back is no longer mapped: to look at it ends the program.
LARGE = 12_000_000
KEEPERS = [lambda memory: memory.view(), lambda memory: memory.view()[LARGE // 2:].cast("I"), *([library("numpy").asarray] if library("numpy") else [])]


def large_memory():
    """Of the program. It takes weak references."""
    return (ctypes.c_uint8 * LARGE)()


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

    # 3 + 2 ms of work within 4.
    def test_a_refused_set_has_remedies_that_hold(self):
        text = {"tasks": [{"name": "a", "period": "10 ms", "wcet": "3 ms"}, {"name": "b", "period": "10 ms", "deadline": "4 ms", "wcet": "2 ms"}]}
        tasks = tutti.TaskSet.make(tutti.Machine.make(STATION), text)
        self.assertEqual(tasks.check().by_task["b"], tutti.TaskVerdict(2_000_000, 4_000_000, 5_000_000))
        deadline = next(remedy for remedy in tasks.remedies() if remedy.name == "deadline of 'b'")
        self.assertEqual((deadline.present, deadline.remedy), ("4 ms", "5 ms"))
        text["tasks"][1]["deadline"] = deadline.remedy
        remedied = tutti.TaskSet.make(tutti.Machine.make(STATION), text)
        self.assertEqual((bool(remedied.check()), remedied.remedies()), (True, []))
        with self.assertRaisesRegex(tutti.Error, "'bst'"):
            tasks.remedies("bst")

    def test_planners_are_compared(self):
        batch = tutti.Batch.make(tutti.Machine.make(STATION), {"streams": [{"from": "mem0", "to": "gpu0", "size": "12 kB"}]})
        self.assertEqual(batch.compare(), {name: 1000 for name in tutti.planners()})
        self.assertLessEqual({"best", "completion_aligned", "all_at_once"}, set(tutti.planners()))
        self.assertEqual({name: bool(verdict) for name, verdict in tutti.TaskSet.load(WAFER).compare().items()}, {name: True for name in tutti.planners()})

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

    def test_the_record_of_a_failed_job_says_why(self):
        record = self.verdict().run(jobs=1, kernels={"total": lambda launch: launch.reads[1]})
        self.assertIn("kernel 'total'", record.jobs[0].error)
        self.assertIsNone(self.verdict().run(jobs=1, kernels={"total": total}).jobs[0].error)

    # It stands before another.
    def test_a_buffer_without_bytes_has_its_place(self):
        seen = []
        task = TOTALS["tasks"][0]
        step = {"copy": "numbers", "to": "there", "kernel": {"name": "total", "time": "100 us", "reads": ["none", "there"], "writes": ["total"]}}
        task = task | {"buffers": task["buffers"] | {"none": {"in": "gpu0", "size": "0 B"}}, "job": [{"batch": [step]}]}
        verdict = tutti.TaskSet.make(tutti.Machine.make(STATION), {"tasks": [task]}).check()
        record = verdict.run(jobs=1, kernels={"total": lambda launch: seen.extend(len(memory.view()) for memory in launch.reads)})
        self.assertEqual((record.exceptions, seen), ([], [0, 120_000]))

    def test_two_slots_that_jobs_write_are_two(self):
        shown = bytearray(4)
        run = lambda slots: self.verdict(slots=2).run(jobs=2, kernels={"total": total}, programs={"sum": tutti.Program(memory={"shown": slots})})
        self.assertEqual(run([shown, bytearray(4)]).exceptions, [])
        with self.assertRaisesRegex(tutti.Error, "jobs write buffer 'shown' of task 'sum', and two of its slots have memory in common"):
            run([shown, shown])

    # The ring has one picture before the run, and never a newer one.
    def test_jobs_have_the_newest_slot_of_a_ring(self):
        slots, freed, seen = [bytearray(120_000) for _ in range(4)], [], []
        ring = tutti.Ring(slots, freed.append)
        slots[ring.begin()][:] = bytes([7]) * 120_000
        self.assertEqual((ring.is_free(0), ring.is_free(1), ring.begin(1)), (False, True, 1))
        ring.complete(0)
        self.assertEqual(freed, [3])
        with self.assertRaisesRegex(tutti.Error, "slot"):
            ring.complete(0)
        program = tutti.Program(rings={"numbers": ring}, on_finished=lambda job: seen.append((job.slot("numbers"), bytes(job.buffer("shown").view()))))
        record = self.verdict().run(jobs=2, kernels={"total": total}, programs={"sum": program})
        self.assertEqual(record.exceptions, [])
        self.assertEqual(seen, [(tutti.RingSlot(0, 1, new), (7 * 120_000).to_bytes(4, "little")) for new in (True, False)])
        for wrong in ([bytearray(1)] * 2, [bytearray(1), bytearray(2), bytearray(3)], []):
            with self.assertRaises((tutti.Error, ValueError)):
                tutti.Ring(wrong)

    # Every second of ten jobs fires that of the other task.
    def test_a_trigger_releases_jobs(self):
        trigger = tutti.Trigger()
        tasks = {"tasks": [{"name": "clock", "period": "10 ms", "job": [{"host": "1 ms"}]}, {"name": "frame", "period": "15 ms", "release": "external", "job": [{"host": "1 ms"}]}]}
        verdict = tutti.TaskSet.make(tutti.Machine.make(STATION), tasks).check()
        program = tutti.Program(on_finished=lambda job: trigger.fire() if job.index % 2 == 0 else None)
        record = verdict.run(until_ns=100_000_000, triggers={"frame": trigger}, programs={"clock": program})
        self.assertEqual([job.task for job in record.jobs].count("frame"), 5)
        with self.assertRaisesRegex(tutti.Error, "whose jobs the clock releases"):
            verdict.run(jobs=1, triggers={"clock": trigger})

    # 'b' comes after 30 ms, and 'c' would need more time than there is.
    def test_tasks_come_and_go(self):
        def task(name, wcet):
            return {"name": name, "period": "10 ms", "job": [{"host": wcet}]}

        tasks = tutti.TaskSet.make(tutti.Machine.make(STATION), {"tasks": [task("a", "3 ms"), task("b", "2 ms"), task("c", "9 ms")]})
        changes = tasks.changes()
        changes.post(30_000_000, comes="b")
        changes.post(50_000_000, comes="c")
        record = changes.run(["a"], until_ns=100_000_000)
        self.assertEqual([(change.comes, change.leaves, change.answer.name) for change in record.changes], [("b", None, "SCHEDULABLE"), ("c", None, "NOT_SCHEDULABLE")])
        self.assertEqual({job.task for job in record.jobs}, {"a", "b"})
        with self.assertRaisesRegex(tutti.Error, "'d'"):
            changes.post(comes="d")

    def test_a_run_is_stopped(self):
        stop = tutti.Stop()
        program = tutti.Program(on_host_step=lambda job, _: stop.request() if job.index == 3 else None)
        record = self.counting().run(jobs=1000, programs={"count": program}, stop=stop)
        self.assertTrue(record.interrupted)
        self.assertLess(len(record.jobs), 10)
        self.assertFalse(self.counting().run(jobs=3).interrupted)

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

    # It says so: another job may have written there.
    def test_a_view_that_is_kept_is_seen(self):
        kept = []
        for keep, faults in ((kept.append, 1), (lambda view: kept.append(bytes(view)), 0)):
            record = self.counting().run(jobs=2, programs={"count": tutti.Program(on_finished=lambda job, f=keep: f(job.buffer("sum").view().cast("I")))})
            self.assertEqual(len(record.exceptions), faults)
            kept.clear()

    def keeping(self, keep, program=None, **options):
        """Runs a set with large buffers. Returns the memory of its kernel that it keeps, and a copy made there."""
        kept, copies = [], []

        def kernel(launch):
            if not kept:
                kept.extend(keep(memory) for memory in launch.reads)
                copies.extend(bytes(memory) for memory in kept)

        task = TOTALS["tasks"][0]
        sizes = {name: buffer | {"size": f"{LARGE} B"} for name, buffer in task["buffers"].items() if name in ("numbers", "there")}
        tasks = {"tasks": [task | {"period": "20 ms", "buffers": task["buffers"] | sizes}]}
        record = tutti.TaskSet.make(tutti.Machine.make(STATION), tasks).check().run(
            jobs=2, kernels={"total": kernel}, programs={"sum": program} if program else {}, **options)
        self.assertRegex(str(record.exceptions), "something holds memory of the run")
        return kept, copies

    def test_memory_that_a_kernel_keeps_stays(self):
        for keep in KEEPERS:
            kept, copies = self.keeping(keep)
            gc.collect()
            self.assertEqual([bytes(memory) for memory in kept], copies)
            self.assertNotEqual(copies, [])

    # As long as the last of it, and no longer.
    def test_memory_of_the_program_that_a_callback_keeps_stays(self):
        for keep in KEEPERS:
            for given in (lambda memory: {"memory": {"numbers": [memory]}}, lambda memory: {"rings": {"numbers": tutti.Ring([memory, *([large_memory()] * 3)])}}):
                memory, kept = large_memory(), []
                is_there, program = weakref.ref(memory), given(memory)
                del memory
                self.keeping(keep, tutti.Program(on_finished=lambda job, keep=keep, kept=kept: kept.append(keep(job.buffer("numbers"))), **program))
                del program
                gc.collect()
                self.assertEqual(bytes(kept[0])[-1:], bytes(1))
                self.assertIsNotNone(is_there())
                kept.clear()
                gc.collect()
                self.assertIsNone(is_there())

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

    # Five million jobs would take minutes; the signal comes in the library, where nothing of Python runs.
    def test_an_interrupt_ends_a_run_soon(self):
        verdict, usual = self.counting(), signal.signal(signal.SIGINT, signal.default_int_handler)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        of_others = signal.set_wakeup_fd(writer)
        sender = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        sender.start()
        with self.assertRaises(KeyboardInterrupt):
            verdict.run(jobs=5_000_000)
        sender.join()
        self.assertEqual((signal.set_wakeup_fd(of_others), os.read(reader, 8)), (writer, bytes([signal.SIGINT])))
        signal.signal(signal.SIGINT, usual)
        os.close(reader)
        os.close(writer)

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
        self.assertFalse([thing for thing in gc.get_objects() if isinstance(thing, (tutti._Run, _callbacks._Kernels))])


class Batches(unittest.TestCase):
    BATCH = {"streams": [{"name": "up", "from": "mem0", "to": "gpu0", "size": "12 kB", "kernel": {"name": "total", "time": "100 us"}}]}

    def setUp(self):
        self.machine = tutti.Machine.make(STATION)
        self.batch = tutti.Batch.make(self.machine, self.BATCH)
        self.down = tutti.Batch.make(self.machine, {"streams": [{"from": "gpu0", "to": "mem0", "size": "4 B"}]})

    # 12 kB at 12 GB/s, then the kernel.
    def test_one_runs_on_scratch_buffers(self):
        seen = []
        result = self.batch.run(kernels={"total": lambda launch: seen.append(len(launch.reads[0].view()))})
        self.assertEqual((result.latency_ns, result.overruns, seen), (101_000, 0, [12_000]))

    def test_one_is_prepared_on_memory_of_the_program(self):
        runtime = tutti.Runtime.open(self.machine, kernels={"total": total})
        numbers, shown = bytearray([3]) * 12_000, bytearray(4)
        there, sum_ = runtime.allocate("gpu0", 12_000), runtime.allocate("gpu0", 4)
        up = runtime.prepare(self.batch, [tutti.Binding(source=runtime.wrap("mem0", numbers), destination=there, kernel_output=sum_)], in_flight=2)
        down = runtime.prepare(self.down, [tutti.Binding(source=sum_, destination=runtime.wrap("mem0", shown))])
        for value in (3, 5):
            numbers[:] = bytes([value]) * 12_000
            up.run()
            self.assertEqual((down.run().latency_ns > 0, int.from_bytes(shown, "little")), (True, 12_000 * value))
        first, second = up.start(), up.start()
        with self.assertRaisesRegex(tutti.Error, "in flight"):
            up.start()
        self.assertGreater(second.wait().finish_ns, first.wait().finish_ns)
        with self.assertRaises(tutti.Error):
            first.wait()
        with self.assertRaisesRegex(tutti.Error, "lies in a GPU"):
            there.view()
        with self.assertRaises(BufferError):
            numbers.clear()
        del runtime, up, down, first, second, there, sum_
        gc.collect()
        numbers.clear()

    def test_memory_of_a_runtime_is_there_while_something_has_it(self):
        runtime = tutti.Runtime.open(self.machine)
        buffer = runtime.allocate("mem0", 8)
        view = buffer.view()
        view[:] = bytes(range(8))
        address = buffer.__array_interface__["data"][0]
        del runtime, buffer
        gc.collect()
        self.assertEqual((bytes(view), ctypes.addressof(ctypes.c_uint8.from_buffer(view))), (bytes(range(8)), address))

    LARGE_BATCH = {"streams": [{"from": "mem0", "to": "gpu0", "size": f"{LARGE} B", "kernel": {"name": "keep", "time": "100 us"}}]}

    def test_memory_that_a_kernel_keeps_stays(self):
        def prepared(kernels):
            tutti.Runtime.open(self.machine, kernels=kernels).prepare(tutti.Batch.make(self.machine, self.LARGE_BATCH)).run()

        def by_itself(kernels):
            tutti.Batch.make(self.machine, self.LARGE_BATCH).run(kernels=kernels)

        for run in (prepared, by_itself):
            for keep in KEEPERS:
                kept = []
                run({"keep": lambda launch, keep=keep, kept=kept: kept.append(keep(launch.reads[0]))})
                gc.collect()
                self.assertEqual(bytes(kept[0]).count(0), len(bytes(kept[0])))

    # Two batches have it, one after the other.
    def test_memory_of_the_program_that_a_kernel_keeps_stays(self):
        for keep in KEEPERS:
            memory, kept = large_memory(), []
            is_there = weakref.ref(memory)
            runtime = tutti.Runtime.open(self.machine, kernels={"keep": lambda launch, keep=keep, kept=kept: kept.append(keep(launch.reads[0]))})
            batch = tutti.Batch.make(self.machine, self.LARGE_BATCH)
            bindings = [tutti.Binding(source=runtime.allocate("mem0", LARGE), destination=runtime.wrap("gpu0", memory))]
            del memory
            for _ in range(2):
                runtime.prepare(batch, bindings).run()
            del runtime, bindings
            gc.collect()
            self.assertEqual(bytes(kept[0]), bytes(kept[1]))
            del kept[0]
            gc.collect()
            self.assertIsNotNone(is_there())
            kept.clear()
            gc.collect()
            self.assertIsNone(is_there())

    # Nothing is kept, so nothing waits: the second batch has room.
    def test_memory_that_nobody_keeps_goes_with_its_batch(self):
        small = STATION["machine"]["vertices"] | {"gpu0": {"kind": "gpu", "memory": f"{LARGE} B"}}
        machine = tutti.Machine.make({"machine": STATION["machine"] | {"vertices": small}})
        runtime = tutti.Runtime.open(machine, kernels={"keep": lambda launch: launch.reads[0].view()})
        for _ in range(3):
            runtime.prepare(tutti.Batch.make(machine, self.LARGE_BATCH)).run()

    # A tensor that is lent holds its buffer; one that nobody took is given back, and so is one that is refused.
    def test_buffers_are_tensors_and_tensors_buffers(self):
        class Old:
            def __dlpack__(self, **_):
                return object()

        lender, taker = tutti.Runtime.open(self.machine), tutti.Runtime.open(self.machine)
        buffer = lender.allocate("mem0", 8)
        address = buffer.__array_interface__["data"][0]
        self.assertEqual((buffer.__dlpack_device__(), hasattr(buffer, "__cuda_array_interface__")), ((1, 0), False))
        tensor = taker.wrap("mem0", type("Tensor", (), {"__dlpack__": buffer.__dlpack__})())
        buffer.__dlpack__(max_version=(1, 0))
        buffer.view()[:] = bytes(range(8))
        with self.assertRaises(tutti.Error):
            taker.wrap("mem7", type("Tensor", (), {"__dlpack__": buffer.__dlpack__})())
        del lender, buffer
        gc.collect()
        self.assertEqual((tensor.__array_interface__["data"], bytes(tensor.view())), ((address, False), bytes(range(8))))
        for asked in ({}, {"max_version": (0, 8)}, {"max_version": (1, 0), "copy": True}, {"max_version": (1, 0), "dl_device": (2, 0)}):
            with self.assertRaises(BufferError):
                tensor.__dlpack__(**asked)
        with self.assertRaisesRegex(TypeError, "no tensor of DLPack 1"):
            taker.wrap("mem0", Old())

    @unittest.skipUnless(int(getattr(library("numpy"), "__version__", "0").split(".")[0]) >= 2, "there is no NumPy 2, whose arrays are tensors of DLPack 1, for this Python")
    def test_numpy_takes_tensors(self):
        buffer = tutti.Runtime.open(self.machine).allocate("mem0", 8)
        self.assertEqual(library("numpy").from_dlpack(buffer).ctypes.data, buffer.__array_interface__["data"][0])

    def test_what_a_kernel_raises_is_the_cause(self):
        def fails(launch):
            kept.append(launch.reads[0])
            raise ValueError("no sum")

        kept = []
        prepared = tutti.Runtime.open(self.machine, kernels={"total": fails}).prepare(self.batch)
        for _ in range(2):
            with self.assertRaises(tutti.Error) as raised:
                prepared.run()
            self.assertEqual((raised.exception.kind, str(raised.exception.__cause__)), ("kernel", "no sum"))
        with self.assertRaisesRegex(tutti.Error, "the kernel that this memory was lent to"):
            kept[0].view()

    def test_a_kernel_does_not_call_its_runtime(self):
        runtime = tutti.Runtime.open(self.machine, kernels={"total": lambda launch: prepared.run()})
        prepared = runtime.prepare(self.batch)
        with self.assertRaises(tutti.Error) as raised:
            prepared.run()
        self.assertRegex(str(raised.exception.__cause__), "runtime")

    def test_an_exit_in_a_kernel_is_raised(self):
        prepared = tutti.Runtime.open(self.machine, kernels={"total": lambda launch: sys.exit(7)}).prepare(self.batch)
        with self.assertRaises(SystemExit):
            prepared.run()

    def test_wrong_memory_is_refused(self):
        runtime = tutti.Runtime.open(self.machine)
        for error, memory in ((TypeError, bytes(8)), (TypeError, 5), (ValueError, type("Strided", (), {"__cuda_array_interface__": {"shape": (2,), "typestr": "<f4", "data": (4096, False), "strides": (8,)}})())):
            with self.assertRaises(error):
                runtime.wrap("mem0", memory)
        with self.assertRaisesRegex(tutti.Error, "mem7"):
            runtime.wrap("mem7", bytearray(8))
        with self.assertRaisesRegex(tutti.Error, "1 streams and 2 bindings"):
            runtime.prepare(self.down, [tutti.Binding()] * 2)
        with self.assertRaises(TypeError):
            runtime.prepare(self.down, [tutti.Binding(source=bytearray(4))])


class Results(unittest.TestCase):
    def verdict(self):
        return tutti.TaskSet.make(tutti.Machine.make(STATION), TOTALS).check()

    def test_they_are_dictionaries_that_json_takes(self):
        verdict = self.verdict()
        record = verdict.run(jobs=2, kernels={"total": total})
        found = json.loads(json.dumps(verdict.to_dict()))
        self.assertEqual((found["answer"], found["reasons"], [task["task"] for task in found["tasks"]]), ("schedulable", [], ["sum"]))
        self.assertEqual(found["tasks"][0]["worst_response_ns"], verdict.worst_responses["sum"])
        found = json.loads(json.dumps(record.to_dict()))
        self.assertEqual((len(found["jobs"]), found["missed"], found["interrupted"], found["bounds"]), (2, 0, False, verdict.worst_responses))
        self.assertEqual(found["jobs"][1]["response_ns"], record.jobs[1].response_ns)

    def test_they_are_tables(self):
        verdict = self.verdict()
        record = verdict.run(jobs=2, kernels={"total": total})
        self.assertRegex(verdict._repr_html_(), r"<b>schedulable</b>.*<td[^>]*>sum</td><td>0\.11\d</td><td>0\.11\d</td><td>10\.000</td>")
        self.assertRegex(record._repr_html_(), r"2 jobs, 0 missed.*<td[^>]*>sum</td><td>2</td><td>0\.11\d</td><td>0\.11\d</td>")

    def test_pandas_is_asked_for_where_it_is_missing(self):
        class NoPandas:
            def find_spec(self, name, *_):
                if name == "pandas":
                    raise ModuleNotFoundError(name)

        sys.meta_path.insert(0, blocker := NoPandas())
        kept = sys.modules.pop("pandas", None)
        try:
            with self.assertRaisesRegex(ImportError, "to_pandas needs pandas"):
                self.verdict().to_pandas()
        finally:
            sys.meta_path.remove(blocker)
            if kept:
                sys.modules["pandas"] = kept

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "there is no pandas for this Python")
    def test_they_are_frames(self):
        verdict = self.verdict()
        record = verdict.run(jobs=2, kernels={"total": total})
        self.assertEqual(list(verdict.to_pandas()["task"]), ["sum"])
        self.assertEqual(list(record.to_pandas()["response_ns"]), [job.response_ns for job in record.jobs])


@unittest.skipUnless("TUTTI_HOST_BACKEND" in os.environ, "this build has no CUDA")
class DeviceKernels(unittest.TestCase):
    """On host-executed CUDA: LD_LIBRARY_PATH begins with its backend."""

    def machine(self):
        gpu = {"kind": "gpu", "bus_id": "7e57:01:00.0"}
        return tutti.Machine.make({"machine": STATION["machine"] | {"vertices": STATION["machine"]["vertices"] | {"gpu0": gpu}}})

    def tasks(self):
        return tutti.TaskSet.make(self.machine(), TOTALS)

    def verdict(self):
        return self.tasks().check()

    # Measured times are never exactly the 100 us that are declared.
    def test_they_are_measured(self):
        measured = self.tasks().profile(repeats=3, device_kernels={"total": lambda launch, stream: None})
        self.assertNotEqual(measured.check().worst_responses, self.verdict().worst_responses)
        with self.assertRaisesRegex(tutti.Error, "kernels are measured on GPUs"):
            self.tasks().profile(backend="sim", kernels={"total": total})

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
            self.assertEqual((reads["shape"], writes["shape"], reads["stream"], writes["typestr"]), ((120_000,), (4,), None, "|u1"))
            self.assertNotIn(0, (stream, reads["data"][0], writes["data"][0]))

    # Up, down, and a view of the same memory by another library.
    def test_memory_of_a_gpu_is_that_of_other_libraries(self):
        class Array:
            def __init__(self, interface):
                self.__cuda_array_interface__ = interface

        machine = self.machine()
        runtime = tutti.Runtime.open(machine, backend="cuda")
        there, up, down = runtime.allocate("gpu0", 8), bytearray(range(8)), bytearray(8)
        interface = there.__cuda_array_interface__
        self.assertEqual((there.__dlpack_device__(), interface["shape"]), ((2, 0), (8,)))
        with self.assertRaisesRegex(tutti.Error, "lies in a GPU"):
            there.view()
        again = runtime.wrap("gpu0", Array(interface))
        self.assertEqual(again.__cuda_array_interface__["data"], interface["data"])
        for source, to, size, bound in (("mem0", "gpu0", 8, (runtime.wrap("mem0", up), there)), ("gpu0", "mem0", 8, (again, runtime.wrap("mem0", down)))):
            batch = tutti.Batch.make(machine, {"streams": [{"from": source, "to": to, "size": f"{size} B"}]})
            runtime.prepare(batch, [tutti.Binding(*bound)]).run()
        self.assertEqual(down, up)

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
        for name, struct in (("tutti_kernel_launch", _interface._Launch), ("tutti_job_record", _interface._JobRecord), ("tutti_slot", _interface._Slot),
                             ("tutti_task_verdict", _interface._TaskVerdict),
                             ("tutti_remedy", _interface._Remedy), ("tutti_task_ring", _interface._TaskRing), ("tutti_ring_slot", _interface._RingSlot),
                             ("tutti_task_trigger", _interface._TaskTrigger), ("tutti_change_record", _interface._ChangeRecord),
                             ("tutti_stream_binding", _interface._StreamBinding), ("tutti_batch_result", _interface._BatchResult),
                             ("tutti_task_program", _interface._Program), ("tutti_run_options", _interface._RunOptions), ("tutti_run_summary", _interface._Summary)):
            self.assertEqual([field[0] for field in struct._fields_], self.members(name), name)

    def test_functions_have_as_many_arguments(self):
        for name, (_, *arguments) in _interface._FUNCTIONS.items():
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
