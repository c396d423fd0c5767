"""Tensors that libraries share at one address: those of DLPack 1, in capsules of Python."""
from __future__ import annotations

import ctypes

from ._interface import _c, _call

CUDA, READ_ONLY = 2, 1
_NAME, _USED = b"dltensor_versioned", b"used_dltensor_versioned"


class Tensor(ctypes.Structure):
    """DLManagedTensorVersioned; @source https://dmlc.github.io/dlpack/latest/c_api.html"""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager_ctx", _c), ("deleter", _c), ("flags", ctypes.c_uint64),
                ("data", _c), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("dtype", ctypes.c_uint32), ("shape", _c), ("strides", _c), ("byte_offset", ctypes.c_uint64)]


_DESTRUCTOR = ctypes.PYFUNCTYPE(None, _c)  # what is destroyed has no references, so it is an address


def _of_capsules(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)(("PyCapsule_" + name, ctypes.pythonapi))


_new = _of_capsules("New", ctypes.py_object, _c, ctypes.c_char_p, _DESTRUCTOR)
_is_valid, _pointer = _of_capsules("IsValid", ctypes.c_int, _c, ctypes.c_char_p), _of_capsules("GetPointer", _c, _c, ctypes.c_char_p)
_rename = _of_capsules("SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)


def give_back(address: int) -> None:
    """Calls the deleter of a tensor."""
    if deleter := Tensor.from_address(address).deleter:
        ctypes.CFUNCTYPE(None, _c)(deleter)(address)


@_DESTRUCTOR
def _destroy(capsule):
    if _is_valid(capsule, _NAME):  # nobody took it
        give_back(_pointer(capsule, _NAME))


def capsule_of(address: int):
    """A capsule that owns the tensor until a library takes it."""
    return _new(address, _NAME, _destroy)


def wrapped(runtime: int, place: bytes, capsule) -> int:
    """The handle of a buffer of the tensor in a capsule, which is the library's then."""
    if not _is_valid(id(capsule), _NAME):
        raise TypeError("this gives no tensor of DLPack 1; take a newer version of its library, or give an array")
    at = _call("buffer_wrap_tensor", runtime, place, _pointer(id(capsule), _NAME))
    _rename(capsule, _USED)
    return at
