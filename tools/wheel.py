#!/usr/bin/env python3
"""Writes the wheel of the Python module from a build folder; tools/package --wheel calls it.

The package has the module, the library, the CUDA library where it is built, and the libraries that these need and that
manylinux hosts need not have; each finds the others beside it. The CUDA runtime is left to the host. A wheel is a zip
with three text files, so it is written by `zipfile`: a build backend would add a package and decide nothing.
Exit code: 1 where a library or its licence is missing.
"""
import argparse
import base64
import hashlib
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Libraries of the host: those that PEP 600 lets a manylinux wheel use, and for GPUs libudev and the CUDA runtime.
OF_HOST = re.compile(r"(ld-linux[\w-]*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z|udev|cudart))\.so\.\d+")
# The folder of the library, then those of the CUDA runtime: as packages of PyPI and as NVIDIA's installer place it.
RUN_PATH = "$ORIGIN:$ORIGIN/../nvidia/cu13/lib:$ORIGIN/../nvidia/cuda_runtime/lib:/usr/local/cuda/lib64"


def run(*words):
    return subprocess.run([*map(str, words)], check=True, capture_output=True, text=True).stdout


def needed(library):
    """Names of the libraries that this one needs and a host may not have, with their files."""
    found = dict(re.findall(r"(\S+) => (/\S+)", run("ldd", library)))
    names = [name for name in re.findall(r"NEEDED +(\S+)", run("objdump", "-p", library)) if not OF_HOST.fullmatch(name)]
    if missing := [name for name in names if name not in found]:
        sys.exit(f"wheel: {library} needs {missing[0]}, which the loader does not find; install it")
    return {name: pathlib.Path(found[name]) for name in names}


def with_needed(libraries):
    """Names and files of these libraries and all that they need."""
    closure, left = {}, dict(libraries)
    while left:
        name, file = left.popitem()
        closure[name] = file
        left |= {more: path for more, path in needed(file).items() if more not in closure}
    return dict(sorted(closure.items()))


def licence_of(library):
    """Name of the Debian package that a library came with, and the licence there."""
    for path in (library, library.resolve()):
        owner = subprocess.run(["dpkg-query", "-S", path], check=False, capture_output=True, text=True).stdout.split(":")[0]
        file = pathlib.Path("/usr/share/doc", owner, "copyright")
        if owner and file.exists():
            return owner, file.read_bytes()
    sys.exit(f"wheel: no Debian package is known for {library}, so its licence is not either; build where it is one of Debian")


def portable(library, folder):
    """The library without symbols of debuggers, and with its neighbours on its run path."""
    copy = folder / "library.so"
    shutil.copyfile(library, copy)
    run("strip", "--strip-unneeded", "--remove-section=.comment", copy)
    run("patchelf", "--set-rpath", RUN_PATH, copy)
    return copy.read_bytes()


def metadata(version):
    return f"""Metadata-Version: 2.1
Name: tutti
Version: {version}
Summary: Batches of CPU-GPU transfers and kernels with guaranteed deadlines
License: Apache-2.0
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Typing :: Typed
Requires-Python: >=3.11

tutti runs batches of CPU-GPU transfers and kernels on a host with several GPUs, says how long a batch takes before it runs,
and admits periodic tasks only when every deadline is guaranteed. `help(tutti)` describes the module.
"""


def contents(build, tag, version):
    """{path in the wheel: bytes}"""
    module, about = ROOT / "runtime/api/python/tutti", f"tutti-{version}.dist-info"
    own = {f"libtutti.so.{version.rpartition('.')[0]}": build / f"runtime/api/libtutti.so.{version}"}
    if (cuda := build / "runtime/cuda/libtutti_cuda.so").exists():
        own["libtutti_cuda.so"] = cuda
    files = {f"tutti/{file.name}": file.read_bytes() for file in sorted(module.iterdir()) if file.suffix in (".py", ".typed")}
    files[f"{about}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        for name, library in with_needed(own).items():
            files[f"tutti/{name}"] = portable(library, pathlib.Path(folder))
            if name not in own:
                owner, licence = licence_of(library)
                files[f"{about}/licenses/{owner}"] = licence
    files[f"{about}/METADATA"] = metadata(version).encode()
    files[f"{about}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tutti\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
    lines = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}\n" for path, data in files.items()]
    files[f"{about}/RECORD"] = "".join([*lines, f"{about}/RECORD,,\n"]).encode()
    return files


def main(build, folder):
    version = json.loads((build / "meson-info/intro-projectinfo.json").read_text(encoding="utf-8"))["version"]
    libc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    tag = f"py3-none-manylinux_{libc}_{platform.machine()}"  # of the host: its C and C++ libraries are the oldest that will do
    wheel = folder / f"tutti-{version}-{tag}.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, data in contents(build, tag, version).items():
            entry = zipfile.ZipInfo(path)  # of 1980: a build that is made again is the same
            entry.external_attr, entry.compress_type = 0o100644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    print(wheel)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder in which the library is built")
    parser.add_argument("folder", type=pathlib.Path, help="folder that gets the wheel")
    places = parser.parse_args()
    try:
        main(places.build.resolve(), places.folder.resolve())
    except (OSError, subprocess.CalledProcessError) as fault:
        sys.exit(f"wheel: {fault}\n{getattr(fault, 'stderr', '')}")
