#!/usr/bin/env python3
"""Tensors of PyTorch and buffers of the library are one memory. Skipped without PyTorch or a GPU. Arguments: the shared
library, then patterns of case names."""
import ctypes
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import tap

try:
    import torch
except ImportError:
    torch = None

COUNT = 1 << 20  # of elements


class Binding(ctypes.Structure):
    """tutti_stream_binding"""
    _fields_ = [(name, ctypes.c_void_p) for name in ("source", "destination", "kernel_input", "kernel_output", "parameters")]
    _fields_ += [("parameters_size", ctypes.c_size_t)]


class PyTorch(unittest.TestCase):
    library = ""

    def setUp(self):
        if torch is None or not torch.cuda.is_available():
            self.skipTest("there is no PyTorch, or it finds no GPU")
        self.tutti = ctypes.CDLL(self.library)
        for name in ("machine_parse", "batch_parse", "runtime_open", "buffer_wrap_tensor", "buffer_lend_tensor", "prepare"):
            getattr(self.tutti, f"tutti_{name}").restype = ctypes.c_void_p
        self.tutti.tutti_last_error.restype = ctypes.c_char_p
        gpu = torch.cuda.get_device_properties(0)
        bus = f"{gpu.pci_domain_id:04x}:{gpu.pci_bus_id:02x}:{gpu.pci_device_id:02x}.0"
        self.machine = self.made(self.tutti.tutti_machine_parse(
            f"{{version: 1, machine: {{name: m, vertices: {{mem0: {{kind: memory}}, gpu0: {{kind: gpu, bus_id: \"{bus}\"}}}}, "
            "links: [{from: mem0, to: gpu0, bandwidth: 12 GB/s, back: 12 GB/s}]}}".encode()))
        self.runtime = self.made(self.tutti.tutti_runtime_open(ctypes.c_void_p(self.machine), None, 1, None))

    def made(self, handle):
        self.assertTrue(handle, self.tutti.tutti_last_error())
        return handle

    def wrapped(self, place, capsule):
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        managed = ctypes.c_void_p(address(capsule, b"dltensor_versioned"))
        return self.tutti.tutti_buffer_wrap_tensor(ctypes.c_void_p(self.runtime), place, managed)

    def wrap(self, place, tensor):
        capsule = tensor.__dlpack__(max_version=(1, 0))
        buffer = self.made(self.wrapped(place, capsule))
        rename = ctypes.pythonapi.PyCapsule_SetName
        rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
        rename(capsule, b"used_dltensor_versioned")  # it is the runtime's
        return buffer

    def lent(self, buffer):
        managed = self.made(self.tutti.tutti_buffer_lend_tensor(ctypes.c_void_p(self.runtime), ctypes.c_void_p(buffer)))
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return torch.from_dlpack(make(managed, b"dltensor_versioned", None))

    def copy(self, source, destination, ends):
        batch = self.made(self.tutti.tutti_batch_parse(
            ctypes.c_void_p(self.machine), f"{{version: 1, streams: [{{{ends}, size: {4 * COUNT} B}}]}}".encode()))
        binding = Binding(source, destination)
        prepared = self.made(self.tutti.tutti_prepare(
            ctypes.c_void_p(self.runtime), ctypes.c_void_p(batch), ctypes.byref(binding), ctypes.c_size_t(1), 1))
        self.assertEqual(self.tutti.tutti_batch_op(ctypes.c_void_p(prepared), None), 0, self.tutti.tutti_last_error())
        self.tutti.tutti_prepared_batch_free(ctypes.c_void_p(prepared))
        self.tutti.tutti_batch_free(ctypes.c_void_p(batch))

    def test_a_batch_copies_from_tensor_to_tensor(self):
        there = torch.zeros(COUNT, dtype=torch.int32, device="cuda")
        here = torch.arange(COUNT, dtype=torch.int32)
        torch.cuda.synchronize()
        on_gpu, on_host = self.wrap(b"gpu0", there), self.wrap(b"mem0", here)
        self.copy(on_host, on_gpu, "from: mem0, to: gpu0")
        self.assertTrue(torch.equal(there.cpu(), here))
        there += 1
        torch.cuda.synchronize()
        self.copy(on_gpu, on_host, "from: gpu0, to: mem0")
        self.assertTrue(torch.equal(here, torch.arange(1, COUNT + 1, dtype=torch.int32)))

    def test_both_sides_have_the_same_address(self):
        for place, device in ((b"gpu0", "cuda"), (b"mem0", "cpu")):
            with self.subTest(device):
                tensor = torch.zeros(COUNT, dtype=torch.int32, device=device)
                back = self.lent(self.wrap(place, tensor))
                self.assertEqual((back.data_ptr(), back.nbytes, back.device.type), (tensor.data_ptr(), tensor.nbytes, device))

    def test_a_tensor_with_gaps_is_refused(self):
        capsule = torch.zeros(COUNT, 2, device="cuda")[:, 0].__dlpack__(max_version=(1, 0))
        self.assertFalse(self.wrapped(b"gpu0", capsule))
        self.assertIn(b"follow each other", self.tutti.tutti_last_error())


if __name__ == "__main__":
    PyTorch.library = sys.argv[1]
    sys.exit(tap.main(sys.argv[2:]))
