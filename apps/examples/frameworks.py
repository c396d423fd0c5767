#!/usr/bin/env python3
"""Usage: frameworks.py [MACHINE.yaml [JOBS]]

Kernels of three frameworks in one task, a frame every 10 ms: CuPy corrects it, a layer of PyTorch weighs it, and Triton
cuts off what is negative. On the first GPU of MACHINE, which `tutti topology detect` writes; without a machine the same
work runs on a simulated one, by NumPy. Prints how many frames came back right.
"""
import os
import sys

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # others would wait busily between frames, and take the cores from the dispatcher
import numpy
import tutti

SIDE = 256
STATION = {"machine": {"name": "one-gpu", "vertices": {"mem0": {"kind": "memory"}, "gpu0": {"kind": "gpu"}},
                       "links": [{"from": "mem0", "to": "gpu0", "bandwidth": "12 GB/s", "back": "12 GB/s"}]}}
WEIGHTS = numpy.roll(numpy.eye(SIDE, dtype=numpy.float32), 1, axis=1) * 2  # each column becomes twice its left neighbour


def task_set():
    def stage(kernel, reads, writes, **copy):
        return {"batch": [{**copy, "kernel": {"name": kernel, "reads": [reads], "writes": [writes], "time": "50 us", "worst": "1 ms"}}]}

    places = {"frame": "mem0", "raw": "gpu0", "even": "gpu0", "weighed": "gpu0", "cut": "gpu0", "shown": "mem0"}
    return {"tasks": [{"name": "inspect", "period": "10 ms",
                       "buffers": {name: {"in": place, "size": f"{4 * SIDE * SIDE} B"} for name, place in places.items()},
                       "job": [stage("correct", "raw", "even", copy="frame", to="raw"), stage("weigh", "even", "weighed"),
                               stage("cut", "weighed", "cut"), {"batch": [{"copy": "cut", "to": "shown"}]}]}]}


def image(memory):
    return numpy.asarray(memory).view(numpy.float32).reshape(SIDE, SIDE)


def kernels_of_numpy():
    def correct(launch):
        image(launch.writes[0])[:] = image(launch.reads[0]) * numpy.float32(0.5) - 10

    def weigh(launch):
        numpy.matmul(image(launch.reads[0]), WEIGHTS, out=image(launch.writes[0]))

    def cut(launch):
        numpy.maximum(image(launch.reads[0]), 0, out=image(launch.writes[0]))

    return {"correct": correct, "weigh": weigh, "cut": cut}


def kernels_of_gpus():
    """What these enqueue is recorded once, and launched by each job: nothing of Python runs then."""
    import cupy
    import torch
    import triton
    import triton.language as tl

    scale = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * 0.5f - 10.0f", "correct")
    weights = torch.from_numpy(WEIGHTS).cuda()

    @triton.jit
    def cut_kernel(x, y, count, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.maximum(tl.load(x + at, mask=at < count), 0.0), mask=at < count)

    def tensor(memory):
        return torch.as_tensor(memory, device="cuda").view(torch.float32).reshape(SIDE, SIDE)

    def correct(launch, stream):
        with cupy.cuda.ExternalStream(stream):
            scale(*(cupy.asarray(memory).view(cupy.float32) for memory in (launch.reads[0], launch.writes[0])))

    def weigh(launch, stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            torch.mm(tensor(launch.reads[0]), weights, out=tensor(launch.writes[0]))

    def cut(launch, stream):
        with torch.cuda.stream(torch.cuda.ExternalStream(stream)):
            cut_kernel[(SIDE * SIDE // 1024,)](tensor(launch.reads[0]), tensor(launch.writes[0]), SIDE * SIDE, BLOCK=1024)

    # What frameworks load and allocate in their first calls can't be recorded.
    some = torch.zeros(SIDE, SIDE, device="cuda")
    scale(cupy.asarray(some), cupy.asarray(some))
    torch.mm(some, weights, out=torch.empty_like(some))
    cut_kernel[(SIDE * SIDE // 1024,)](some, some, SIDE * SIDE, BLOCK=1024)
    torch.cuda.synchronize()
    return {"correct": correct, "weigh": weigh, "cut": cut}


def frame_of(index):
    return numpy.random.default_rng(index).integers(0, 64, (SIDE, SIDE)).astype(numpy.float32)


def main(path=None, jobs=100):
    machine = tutti.Machine.load(path) if path else tutti.Machine.make(STATION)
    verdict = tutti.TaskSet.make(machine, task_set()).check()
    if not verdict:
        sys.exit(str(verdict))
    right = []

    def fill(job):
        image(job.buffer("frame"))[:] = frame_of(job.index)

    def look(job):
        right.append(numpy.array_equal(image(job.buffer("shown")), numpy.maximum((frame_of(job.index) * 0.5 - 10) @ WEIGHTS, 0)))

    where = {"backend": "cuda", "device_kernels": kernels_of_gpus()} if path else {"kernels": kernels_of_numpy()}
    record = verdict.run(jobs=int(jobs), programs={"inspect": tutti.Program(on_ready=fill, on_finished=look)}, **where)
    for fault in record.exceptions:
        raise fault
    print(f"{sum(right)} of {jobs} frames right, {record.missed} missed, {record.over_bound} over their bound, at most "
          f"{max(record.worst_responses.values()) / 1e6:.3f} of {max(verdict.worst_responses.values()) / 1e6:.3f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
