#!/usr/bin/env python3
"""JSON Schemas: that configs/schemas/ has what `tutti schema` prints, that the readers and the schemas of files agree, that
configs/KEYS.md is made of them, and that what commands print with --json is what its schema says and nothing else.

UPDATE_GOLDEN=1 writes configs/schemas/ anew. `tutti schema` makes those of outputs of field tables. Of those in INFERRED,
which have no tables yet, they are made of the outputs below, and of those that tests/golden/outputs/ has of hosts with GPUs:
what every object of a place has is required, what none has is refused.
"""
import copy
import functools
import importlib
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from programs import EXAMPLE, H200X4, MEASURED, ONE_GPU, ROOT, SECOND_HOST, TESTS, TWO_LINES, WAFER, Programs, main

LED = "tests/apps/cli/led.yaml"
SCHEMAS = ROOT / "configs/schemas"
REFUSED, CHAIN, OFFSETS = "configs/tasks/alarm-behind-image.yaml", "configs/tasks/camera-inspect-gate.yaml", "configs/tasks/periodic-offsets.yaml"
LITTLE = ["--set", "image=1MB"]  # bytes are moved
# Names of schemas, the folder of their files, and the words of the command that reads one.
INPUTS = {
    "machine": ("machines", ["topology", "show"]),
    "batch": ("batches", ["predict"]),
    "task-set": ("tasks", ["compare", "--planner", "all_at_once"]),
    "exchange": ("control", ["advise"]),
    "changes": ("changes", ["run", "TASKS", *LITTLE, "--jobs", "1", "--changes"]),
    "scenario": ("scenarios", ["run", "TASKS", *LITTLE, "--scenario"]),
    "faults": ("faults", ["run", "TASKS", *LITTLE, "--jobs", "1", "--faults"]),
}
SMALL = ["--clock", "virtual", "--jobs", "4"]
# Printed on one H100 and on two, items of one form once; commands that print them need GPUs.
RECORDED = ROOT / "tests/golden/outputs"
# What prints each output: words with --json left out. {} is the test's folder; none: it is recorded alone.
OUTPUTS = {
    "advise": [["advise", f"configs/control/{name}.yaml"] for name in ("halo-2d", "bfs", "comd", "hpgmg")],
    "bench-copies": [],
    "bench-machine": [["bench", "machine", "--machine", H200X4, "--backend", "sim", "--runs", "5", "--copies", "2", "--staged", "1MiB"]],
    "bench-methods": [["bench", "methods", "--machine", H200X4, "--backend", "sim", "--repeats", "1", "--only", "random-7", "--size", "4MiB"]],
    "bench-pingpong": [],
    "bench-stencil": [],
    "bench-transfers": [["bench", "transfers", "--machine", H200X4, "--backend", "sim", "--samples", "3", "--from", "4KiB", "--to", "8KiB"]],
    "bench-wait": [],
    "calibrate": [],
    "calibrate-check": [["calibrate", "--check", SECOND_HOST, "--machine", H200X4], ["calibrate", "--check", MEASURED, "--machine", H200X4]],
    "calibrate-from": [["calibrate", "--from", MEASURED, "--out", "{}/m.yaml"]],
    "calibrate-plan": [["calibrate", "--plan", H200X4], ["calibrate", "--plan", "configs/machines/two-sockets.yaml"]],
    "capacity": [["capacity", WAFER, "--parameter", "image", "--points", "3"], ["capacity", REFUSED, "--task", "alarm", "--of", "deadline"]],
    "check": [["check", WAFER], ["check", WAFER, "--set", "image=600MB"], ["check", WAFER, "--set", "image=2GB"], ["check", REFUSED], ["check", CHAIN], ["check", TWO_LINES],
              ["check", OFFSETS], ["check", REFUSED, "--overlap", "on"], ["check", REFUSED, "--policy", "rm"], ["check", LED], ["check", LED, "--machine", "{}/unpaused.yaml"],
              ["check", "tests/apps/cli/cut.yaml"], ["check", "tests/apps/cli/cut_task.yaml"]],
    "check-jobs": [["check", "--jobs", "{}/jobs.csv"]],
    "compare-batch": [["compare", EXAMPLE], ["compare", "configs/batches/pageable.yaml"]],
    "compare-tasks": [["compare", WAFER], ["compare", REFUSED], ["compare", CHAIN], ["compare", TWO_LINES], ["compare", OFFSETS]],
    "configs": [["configs"]],
    "doctor": [["doctor", "--backend", "sim"], ["doctor", "--backend", "sim", "--self-test", "20ms"], ["doctor", "--backend", "sim", "--machine", H200X4]],
    "learn": [["learn", "{}/run.journal", "--out", "{}/learned"], ["learn", "{}/run.journal", "--out", "{}/learned", "--scale", "2"], ["learn", "{}/run.journal", "--out", "{}/learned", "--scale", "900000"]],
    "predict": [["predict", f"configs/batches/{name}.yaml"] for name in ("inspection-example", "pageable", "nehalem-h2d", "sandy-bridge-d2h")],
    "profile": [],
    "report": [["report", "{}/run.journal"], ["report", "{}/run.journal", "--jobs", "3"], ["report", "{}/led.journal", "--jobs", "3"]],
    "run": [["run", REFUSED, *LITTLE, "--overlap", "on", *SMALL], ["run", CHAIN, *SMALL, "--bound-by"], ["run", TWO_LINES, "--set", "left=1MB", "--set", "right=1MB", *SMALL], ["run", REFUSED, "--clock", "virtual", "--scenario", "{}/misses.yaml"],
            ["run", "{}/small.yaml", *SMALL, "--faults", "{}/faults.yaml"], ["run", "{}/small.yaml", *SMALL, "--faults", "{}/broken.yaml"],
            ["run", "{}/two.yaml", "--clock", "virtual", "--jobs", "8", "--faults", "{}/lost.yaml"], ["run", "{}/small.yaml", "--clock", "virtual", "--endless", "--faults", "{}/lost.yaml"], ["run", "{}/small.yaml", "--clock", "virtual", "--for", "300ms", "--changes", "{}/changes.yaml"],
            ["run", "{}/small.yaml", "--clock", "real", "--jobs", "2"], ["run", LED, "--jobs", "3"]],
    "tasks-expand": [["tasks", "expand", OFFSETS], ["tasks", "expand", OFFSETS, "--out", "{}/other.csv"]],
    "tasks-import": [["tasks", "import", "tests/golden/import/camera.amxmi"], ["tasks", "import", "tests/golden/import/camera.amxmi", "--out", "{}/t.yaml"]],
    "topology-detect": [],
    "topology-import": [["topology", "import", f"tests/golden/import/{name}"] for name in ("hwloc.xml", "nvbandwidth.json", "topologies/three-and-three.txt")] + [["topology", "import", "tests/golden/import/nccl.xml", "--out", "{}/m.yaml"]],
    "topology-show": [["topology", "show", f"configs/machines/{name}.yaml"] for name in ("h200x4", "two-sockets", "inspection-camera", "pageable")],
    "trigger": [["trigger", "tutti_schema_test", "--every", "1ms", "--times", "2"]],
    "verify": [["verify", "--machine", H200X4, "--backend", "sim", "--random", "2", "--repeats", "1"], ["verify", EXAMPLE, "--backend", "sim", "--repeats", "1"]],
}
# Outputs without field tables, and those of them in which a host or a run may lack things: then a value may have any of the
# plain types, or be null in place of an object.
LOOSE = {"advise", "bench-copies", "bench-pingpong", "bench-stencil", "bench-transfers", "bench-wait", "calibrate", "profile", "topology-detect"}
INFERRED = LOOSE | {"bench-machine", "calibrate-check", "calibrate-from", "calibrate-plan"}
SCALARS = ["boolean", "null", "number", "string"]

SMALL_TASKS = """version: 1
machine: {machine}
tasks:
- {{name: a, period: 100 ms, job: [{{batch: [{{from: mem0, to: gpu0, size: 1 MB, kernel: {{time: 1 ms, on: gpu0}}}}]}}]}}
- {{name: b, period: 50 ms, job: [{{batch: [{{from: gpu0, to: mem0, size: 1 MB}}]}}]}}
"""


def library(name):
    """A library of this Python, or of Debian's where that is another one of the same version; None where there is none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        sys.path.append("/usr/lib/python3/dist-packages")
        try:
            return importlib.import_module(name)
        except ImportError:
            return None
        finally:
            sys.path.pop()


jsonschema, yaml = library("jsonschema"), library("yaml")
can_validate = unittest.skipUnless(jsonschema and yaml, "there is no jsonschema or no yaml for this Python")


def document(path):
    """A YAML file as an editor sees it: 1.2, where `on` is a word and a date is a text."""
    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {}

    for tag, pattern, first in (("bool", r"^(true|false)$", "tf"), ("int", r"^-?[0-9]+$", "-0123456789"), ("float", r"^-?[0-9]*\.[0-9]+(e-?[0-9]+)?$", "-.0123456789"), ("null", r"^(null|~|)$", ["n", "~", ""])):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))
    return yaml.load(pathlib.Path(path).read_text(encoding="utf-8"), Loader)


def inferred(values, key="", loose=False):
    """The schema of all these values."""
    objects, arrays = [one for one in values if isinstance(one, dict)], [one for one in values if isinstance(one, list)]
    types = sorted({"null" if one is None else "boolean" if isinstance(one, bool) else "number" if isinstance(one, (int, float)) else "string" for one in values if not isinstance(one, (dict, list))})
    if types and loose and key != "schema_version":
        types = SCALARS
    if objects and loose and key and not types:
        types = ["null"]
    schema = {"type": types + ["object"] * bool(objects) + ["array"] * bool(arrays)}
    if len(schema["type"]) == 1:
        schema["type"] = schema["type"][0]
    if objects:
        keys = list(dict.fromkeys(name for one in objects for name in one))
        schema["properties"] = {name: inferred([one[name] for one in objects if name in one], name, loose) for name in keys}
        schema["additionalProperties"] = False
        schema["required"] = [name for name in keys if all(name in one for one in objects)]
    items = [item for one in arrays for item in one]
    if items:
        schema["items"] = inferred(items, loose=loose)
    return schema


class Schema(Programs):
    def setUp(self):
        super().setUp()
        machine = "{name: m, vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}, links: [{from: mem0, to: gpu0, bandwidth: 10 GB/s, back: 10 GB/s}]}"
        self.file(f"version: 1\nmachine: {machine}\n", "small-machine.yaml")
        led = (TESTS / "apps/cli/led_machine.yaml").read_text(encoding="utf-8")
        self.file("".join(line for line in led.splitlines(keepends=True) if " job:" not in line), "unpaused.yaml")
        self.file(SMALL_TASKS.format(machine="small-machine.yaml"), "small.yaml")
        self.file("version: 1\nfaults:\n- {kind: slow_kernels, task: a, times: 3}\n- {kind: slow_link, route: [mem0, gpu0], rate: 0.5}\n", "faults.yaml")
        self.file("version: 1\nfaults:\n- {kind: failing_kernel, task: a, jobs: [0, 0]}\n- {kind: hung_kernel, task: a, jobs: [1, 1]}\n", "broken.yaml")
        self.file("version: 1\nfaults:\n- {kind: lost_gpu, gpu: gpu0, at: 20 ms}\n", "lost.yaml")
        two = machine.replace("gpu0: {kind: gpu}", "gpu0: {kind: gpu}, gpu1: {kind: gpu}").replace("links: [", "links: [{from: mem0, to: gpu1, bandwidth: 10 GB/s, back: 10 GB/s}, ")
        self.file(f"version: 1\nmachine: {two}\n", "two-machine.yaml")
        self.file(SMALL_TASKS.format(machine="two-machine.yaml").replace("[{from: gpu0, to: mem0", "[{from: gpu1, to: mem0"), "two.yaml")
        self.file("version: 1\nstart: [a]\nchanges:\n- {at: 100 ms, add: b}\n- {at: 200 ms, remove: a}\n", "changes.yaml")
        self.assertEqual(self.tutti("tasks", "expand", OFFSETS, "--out", self.folder / "jobs.csv").returncode, 0)
        self.assertEqual(self.tutti("check", REFUSED, "--counter-example", self.folder / "misses.yaml").returncode, 1)

    def words(self, words):
        return [word.replace("{}", str(self.folder)) for word in words]

    PRINTED = {}  # by name, since two tests look at it

    def outputs(self, name):
        """All that the commands of this name print."""
        if name not in self.PRINTED:
            self.PRINTED[name] = self.print_outputs(name)
        return self.PRINTED[name]

    def print_outputs(self, name):
        if name == "learn":
            self.assertEqual(self.tutti("run", self.folder / "small.yaml", "--clock", "virtual", "--jobs", "12", "--journal", self.folder / "run.journal").returncode, 0)
        if name == "report":
            self.assertIn(self.tutti("run", self.folder / "small.yaml", *SMALL, "--faults", self.folder / "faults.yaml", "--journal", self.folder / "run.journal").returncode, (0, 1, 3))
            self.assertEqual(self.tutti("run", LED, "--jobs", "9", "--journal", self.folder / "led.journal").returncode, 0)
        printed = []
        for words in OUTPUTS[name]:
            run = self.tutti(*self.words(words), "--json")
            self.assertIn(run.returncode, (0, 1, 3, 4), f"{words}: {run.stderr}")
            self.assertNotEqual(run.stdout, "", f"{words}: {run.stderr}")
            printed.append(json.loads(run.stdout))
        recorded = RECORDED / f"{name}.json"
        return printed + (json.loads(recorded.read_text(encoding="utf-8")) if recorded.exists() else [])

    def schema(self, name):
        run = self.tutti("schema", name)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout

    def test_the_files_are_what_the_command_prints(self):
        for name in [*INPUTS, *(f"output-{name}" for name in OUTPUTS if name not in INFERRED)]:
            with self.subTest(name=name):
                path = SCHEMAS / f"{name}.json"
                if os.environ.get("UPDATE_GOLDEN"):
                    path.write_text(self.schema(name), encoding="utf-8")
                self.assertEqual(self.schema(name), path.read_text(encoding="utf-8"))
        listed = self.tutti("schema").stdout.split()
        self.assertEqual(listed, list(INPUTS) + [f"output-{name}" for name in OUTPUTS])
        self.assertEqual({path.stem for path in SCHEMAS.glob("*.json")}, set(listed))
        for name in INFERRED:
            self.assertEqual(self.schema(f"output-{name}"), (SCHEMAS / f"output-{name}.json").read_text(encoding="utf-8"))

    # Keys and types of configs/KEYS.md are those of the schemas, and each key has a meaning.
    def test_the_reference_of_keys_is_made_of_the_schemas(self):
        def check(root):
            return subprocess.run([root / "tools/keys", "--check"], capture_output=True, text=True, check=False)

        run = check(ROOT)
        self.assertEqual((run.returncode, run.stderr), (0, ""), run.stdout)
        for name in ("tools/keys", "configs/KEYS.md", *(f"configs/schemas/{name}.json" for name in INPUTS)):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.folder / name)
        schema = self.folder / "configs/schemas/batch.json"
        schema.write_text(schema.read_text(encoding="utf-8").replace('"pitch"', '"stride"'), encoding="utf-8")
        run = check(self.folder)
        self.assertEqual((run.returncode, run.stderr), (1, ""))
        self.assertIn("; run tools/keys\n", run.stdout)
        self.assertIn("'stride' of `streams[]` has no meaning", run.stdout)

    @can_validate
    def test_every_schema_is_one(self):
        for path in SCHEMAS.glob("*.json"):
            with self.subTest(path=path):
                jsonschema.Draft7Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))

    @can_validate
    def test_shipped_files_are_what_their_schema_says(self):
        for name, (folder, _) in INPUTS.items():
            validator = jsonschema.Draft7Validator(json.loads(self.schema(name)))
            for path in (ROOT / "configs" / folder).glob("*.yaml"):
                with self.subTest(path=path):
                    self.assertEqual([error.message for error in validator.iter_errors(document(path))], [])
                    self.assertEqual(path.read_text(encoding="utf-8").splitlines()[0], f"# yaml-language-server: $schema=../schemas/{name}.json")
        for path in (ROOT / "apps/examples").glob("*.yaml"):
            with self.subTest(path=path):
                first = path.read_text(encoding="utf-8").splitlines()[0]
                name = re.fullmatch(r"# yaml-language-server: \$schema=\.\./\.\./configs/schemas/([a-z-]+)\.json", first)
                self.assertIsNotNone(name, first)
                self.assertEqual(list(jsonschema.Draft7Validator(json.loads(self.schema(name[1]))).iter_errors(document(path))), [])

    # The reader and the schema must agree on each file with one key more, one key less, or a value of another form.
    @can_validate
    def test_readers_and_schemas_agree_on_broken_files(self):
        for name, (folder, words) in INPUTS.items():
            validator = jsonschema.Draft7Validator(json.loads(self.schema(name)))
            path = min((ROOT / "configs" / folder).glob("*.yaml"), key=lambda path: path.stat().st_size)
            tasks = "configs/tasks/wafer-inspection.yaml" if name == "changes" else REFUSED if name == "scenario" else WAFER
            whole = document(path)
            if isinstance(whole.get("machine"), str):
                whole["machine"] = str((path.parent / whole["machine"]).resolve())
            for what, broken in self.broken(whole):
                run = self.tutti(*[tasks if word == "TASKS" else word for word in words], self.file(json.dumps(broken), "broken.yaml"))
                # Which keys a stream needs depends on others: that is no matter of the table.
                structural = "is missing in a stream" not in run.stderr and re.search(r"unknown key|is missing in|no YAML|has no unit|is no .*; write one of|is a list|is a map|single value|not a number|unknown unit|is not possible here|is no name", run.stderr)
                with self.subTest(name=name, what=what, said=run.stderr):
                    self.assertNotEqual(run.returncode, 139)
                    if structural:
                        self.assertEqual(run.returncode, 2)
                        self.assertFalse(validator.is_valid(broken), f"{name} {what}: {run.stderr}")
                    elif run.returncode != 2:
                        self.assertEqual([error.message for error in validator.iter_errors(broken)], [], f"{name} {what}: {run.stderr}")

    def broken(self, whole):
        """The document with one change, at every place."""
        def places(node, path=()):
            yield path
            for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
                yield from places(value, path + (key,))

        def at(path):
            changed = copy.deepcopy(whole)
            node = changed
            for key in path[:-1]:
                node = node[key]
            return changed, node

        for path in places(whole):
            changed = copy.deepcopy(whole)
            here = functools.reduce(lambda node, key: node[key], path, changed)
            if isinstance(here, dict):
                here["frobnicate"] = "1"
                yield (*path, "more"), changed
            if not path:
                continue
            for what, value in (("less", None), ("word", "no such % word"), ("list", [["x"]]), ("map", {"frobnicate": 1})):
                changed, above = at(path)
                if what != "less":
                    above[path[-1]] = value
                else:
                    del above[path[-1]]
                yield (*path, what), changed

    @can_validate
    def test_outputs_are_what_their_schema_says(self):
        for name in OUTPUTS:
            with self.subTest(name=name):
                outputs, path = self.outputs(name), SCHEMAS / f"output-{name}.json"
                if os.environ.get("UPDATE_GOLDEN") and name in INFERRED:
                    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "title": f"what {name} prints with --json", **inferred(outputs, loose=name in LOOSE)}
                    path.write_text(json.dumps(schema, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
                validator = jsonschema.Draft7Validator(json.loads(path.read_text(encoding="utf-8")))
                for words, output in itertools.zip_longest(OUTPUTS[name], outputs, fillvalue="recorded"):
                    self.assertEqual([f"{list(error.path)}: {error.message[:200]}" for error in validator.iter_errors(output)], [], words)
                    self.assertFalse(validator.is_valid({**output, "a_new_key": 1}))

    # A key that none has, a key less, a value of another type, and null where the table does not say what null means.
    @can_validate
    def test_schemas_of_tables_refuse_what_is_planted(self):
        for name in OUTPUTS:
            if name in INFERRED:
                continue
            schema = json.loads(self.schema(f"output-{name}"))
            for described in self.described(schema):
                self.assertEqual("null" in described["type"], "null:" in described["description"], described["description"])
            planted = set()  # places, without the positions in lists
            for output in map(self.shortened, self.outputs(name)):
                self.assertTrue(jsonschema.Draft7Validator(schema).is_valid(output))
                for place, value, known in self.planted(output, schema):
                    if place not in planted:
                        self.assertFalse(jsonschema.Draft7Validator(known).is_valid(value), f"{name}: {place}")
                    planted.add(place)
            self.assertGreater(len(planted), 8, name)

    def described(self, schema):
        """The schemas of all keys."""
        for key in schema.get("properties", {}).values():
            yield key
            yield from self.described(key)
        for inside in ("items", "additionalProperties"):
            if isinstance(schema.get(inside), dict):
                yield from self.described(schema[inside])

    def shortened(self, value):
        """An output with the first two items of each list."""
        if isinstance(value, dict):
            return {key: self.shortened(inside) for key, inside in value.items()}
        return [self.shortened(item) for item in value[:2]] if isinstance(value, list) else value

    def planted(self, output, schema):
        """Names of places, and something wrong that could stand there, with the schema of what stands there."""
        def places(value, schema, name=""):
            yield name, value, schema
            if isinstance(value, dict):
                for key, inside in value.items():
                    known = schema.get("properties", {}).get(key)
                    yield from places(inside, known or schema["additionalProperties"], f"{name}.{key if known else '*'}")
            for item in value if isinstance(value, list) else ():
                yield from places(item, schema["items"], f"{name}[]")

        for name, value, known in places(output, schema):
            if isinstance(value, dict):
                if known.get("additionalProperties") is False:
                    yield f"{name} + key", {**value, "a_new_key": 1}, known
                for key in known.get("required", []):
                    yield f"{name} - {key}", {each: inside for each, inside in value.items() if each != key}, known
            other = {str: 1, bool: "true", int: "1", float: "1.0", dict: [], list: {}, type(None): [[]]}[type(value)]
            if {"number", "string"} <= {*known["type"]}:  # a share or a word
                other = []
            yield f"{name} type", other, known
            if value is not None and "null:" not in known.get("description", ""):
                yield f"{name} null", None, known

    # Commands that need GPUs, on those that are executed on the host: a recorded output that is out of date is found.
    @can_validate
    @unittest.skipUnless("TUTTI_HOST_BACKEND" in os.environ, "this build has no CUDA")
    def test_outputs_of_commands_that_need_gpus(self):
        environment = {**os.environ, "LD_LIBRARY_PATH": os.environ["TUTTI_HOST_BACKEND"]}
        machine = self.folder / "detected.yaml"
        for name, words in (("topology-detect", ["topology", "detect"]), ("topology-detect", ["topology", "detect", "--out", machine]),
                            ("bench-copies", ["bench", "copies", "--machine", machine, "--for", "100ms"]),
                            ("bench-pingpong", ["bench", "pingpong", "--machine", machine, "--rounds", 3, "--samples", 2, "--to", "4B"])):
            with self.subTest(words=words):
                run = self.run_program("tutti/tutti", *words, "--json", env=environment)
                self.assertNotEqual(run.stdout, "", run.stderr)
                validator = jsonschema.Draft7Validator(json.loads(self.schema(f"output-{name}")))
                self.assertEqual([f"{list(error.path)}: {error.message[:200]}" for error in validator.iter_errors(json.loads(run.stdout))], [])

    def test_an_unknown_schema_is_guessed(self):
        self.refuses(self.tutti("schema", "machin"), "there is no schema 'machin'; did you mean 'machine'?")


if __name__ == "__main__":
    sys.exit(main())
