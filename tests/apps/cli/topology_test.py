#!/usr/bin/env python3
"""`tutti topology`."""
import json
import os
import random
import re
import sys
import unittest
from xml.etree import ElementTree

from programs import TESTS, Programs, main


SVG = "{http://www.w3.org/2000/svg}"


class Picture(Programs):
    def picture(self, *words):
        """The texts of a picture, which is the same file when it is drawn again."""
        drawing = self.folder / "m.svg"
        self.object_of(0, "topology", "show", *words, "--svg", drawing, "--json")
        first = drawing.read_bytes()
        self.object_of(0, "topology", "show", *words, "--svg", drawing, "--json")
        self.assertEqual(drawing.read_bytes(), first)
        self.assertLess(len(first), 20_000)
        self.assertNotRegex(first.decode(), "href|url\\(|@import")
        return [text.text for text in ElementTree.fromstring(first).iter(SVG + "text")]

    def test_a_picture_has_each_vertex_and_both_bandwidths_of_each_link(self):
        texts = self.picture("configs/machines/two-sockets.yaml")
        for name in ("two-sockets", "mem0", "mem1", "cpu0", "cpu1", "gpu0", "gpu1"):
            self.assertIn(name, texts)
        self.assertEqual([texts.count(label) for label in ("176 / 150", "48.6 / 50.4", "50 / 50")], [2, 2, 1])

    def test_shared_capacities_have_the_numbers_that_links_bear(self):
        texts = self.picture("configs/machines/h200x4.yaml")
        self.assertIn("[1] mem0-cpu0-both-ways: 206.9 GB/s for mem0 to cpu0 + 1.13 x cpu0 to mem0", texts)
        self.assertTrue([text for text in texts if text.endswith("[1 2 3 4 5]")])

    def test_a_batch_colours_the_links_that_it_fills(self):
        # 100 MB over links of 10 GB/s up take 10 ms; nothing goes down.
        self.file("version: 1\nmachine:\n  name: m\n  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}\n  links:\n"
                  "    - {from: mem0, to: gpu0, bandwidth: 10 GB/s, back: 8 GB/s}\n", "m.yaml")
        batch = self.file("version: 1\nstreams: [{from: mem0, to: gpu0, size: 100 MB}]\n", "b.yaml")
        self.assertIn("10 (100 %) / 8 (0 %)", self.picture(self.folder / "m.yaml", "--batch", batch))
        self.assertIn("#D55E00", (self.folder / "m.svg").read_text(encoding="utf-8"))

    def test_what_cannot_be_drawn_is_refused(self):
        self.refuses(self.tutti("topology", "show", "configs/machines/h200x4.yaml", "--svg", "/no/such/folder/m.svg"), "/no/such/folder/m.svg")
        self.refuses(self.tutti("topology", "show", "configs/machines/h200x4.yaml", "--batch", "configs/batches/inspection-example.yaml"), "--svg")
        self.refuses(self.tutti("topology", "show", "configs/machines/h200x4.yaml", "--svg", self.folder / "m.svg", "--batch", "configs/tasks/two-lines.yaml"), "task set")


MACHINE = """version: 1
machine:
  name: station
  vertices:
    mem0: {kind: memory}
    cpu0: {kind: cpu, cores: 4}
    gpu0: {kind: gpu, copy_engines: 1, memory: 24 GB, bus_id: "0000:06:00.0"}
    gpu1: {kind: gpu, copy_engines: 3}
    camera: {kind: device}
  links:
    - {from: mem0, to: cpu0, bandwidth: 40 GB/s, back: 40 GB/s}
    - {from: cpu0, to: gpu0, bandwidth: 24 GB/s, back: 24 GB/s}
    - {from: cpu0, to: gpu1, bandwidth: 24 GB/s, back: 24 GB/s}
    - {from: camera, to: cpu0, bandwidth: 5 GB/s}
  background: [{from: camera, to: mem0, bandwidth: {nominal: 1 GB/s, most: 2.5 GB/s}}]
  setup: {batch: 8.8 us, kernel: {nominal: 4 us, guaranteed: 9 us}}
  margin: {relative: 0.02, absolute: 30 us}
  gate: host_timed
  peer_access: none
"""


class Show(Programs):
    # All that a guarantee counts on beside the rates stands in the text.
    def test_it_has_what_a_guarantee_counts_on(self):
        run = self.tutti("topology", "show", self.file(MACHINE))
        self.assertEqual(run.returncode, 0, run.stderr)
        for pattern in (r"gpu0 +1  both directions +24 GB  0000:06:00\.0", r"gpu1 +3  one direction each, and copies between GPUs +-  -",
                        r"cpu0: host work on 4 cores", r"camera -> cpu0 -> mem0 +1\.00 +2\.50", r"a batch +8\.80 +8\.80",
                        r"a kernel +4\.00 +9\.00", r"\d+ further costs are 0", r"margin: 2 % and 30 us", r"gate: host_timed",
                        r"peer access: none", r"staged copies: chunks of 8 MiB"):
            self.assertRegex(run.stdout, pattern)

    def test_what_a_machine_does_not_have_is_said(self):
        run = self.tutti("topology", "show", "configs/machines/h200x4.yaml")
        for pattern in ("background: none", r"margin: 0 % and 0 ns", "gate: polling_kernel", "peer access: GPUs of the same PCIe domain"):
            self.assertRegex(run.stdout, pattern)


class Detect(Programs):
    """These hold on every host: with GPUs, and without any, where there is one sentence and exit code 3."""

    def detect(self, *words):
        run = self.tutti("topology", "detect", *words)
        if run.returncode == 3:
            self.refuses(run, code=3)
            self.assertRegex(run.stderr, "; ")
            return None
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def test_gpus_have_ids(self):
        answer, text = self.detect("--json"), self.detect()
        if answer is None:
            self.assertIsNone(text)
            return
        for gpu in json.loads(answer)["gpus"]:
            self.assertRegex(gpu["bus_id"], "^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-9a-f]$")
            self.assertRegex(gpu["uuid"], "^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
            self.assertIn(gpu["uuid"], text)

    def test_the_file_that_it_writes_is_a_machine(self):
        out = self.folder / "out.yaml"
        answer = self.detect("--out", out, "--name", "this-host", "--json")
        self.assertEqual(out.exists(), answer is not None)
        if answer is not None:
            self.assertEqual(json.loads(answer)["out"], str(out))
            self.assertEqual(self.object_of(0, "topology", "show", out, "--json")["machine"], "this-host")

    @unittest.skipUnless("TUTTI_FAKE_DRIVER" in os.environ, "this build has no CUDA")
    def test_a_driver_that_does_not_work_is_told_apart(self):
        for version, status, sentence in (
            (0, 0, "there is no GPU driver on this host; install"),
            (11000, 0, "the GPU driver serves CUDA 11.0 at most, and this program is built with CUDA "),
            (99000, 100, "the GPU driver finds no GPU; "),
            (99000, 803, "the GPU driver does not start (cudaErrorSystemDriverMismatch: "),
        ):
            with self.subTest(sentence=sentence):
                environment = {**os.environ, "LD_LIBRARY_PATH": os.environ["TUTTI_FAKE_DRIVER"],
                               "FAKE_CUDA_VERSION": str(version), "FAKE_CUDA_INIT": str(status)}
                self.refuses(self.run_program("tutti/tutti", "topology", "detect", env=environment), sentence, code=3)

    def test_a_file_that_cannot_be_written_is_refused(self):
        run = self.tutti("topology", "detect", "--out", "/no/such/folder/x")
        self.refuses(run, code=run.returncode)
        self.assertIn(run.returncode, (2, 3))

    def test_mistakes_end_with_2(self):
        self.refuses(self.tutti("topology", "detect", "--name", "a b"), "--name: 'a b' is no name")
        self.refuses(self.tutti("topology", "detect", "machine.yaml"))
        self.refuses(self.tutti("topology", "detect", "--out"))


class Show(Programs):
    MACHINE = "configs/machines/inspection-camera.yaml"

    # Into memory: 40 without 2.4 + 1 usually, and 36 without 3 + 4 at most.
    def test_background_load_is_listed_with_what_it_leaves(self):
        answer = self.object_of(0, "topology", "show", self.MACHINE, "--json")
        self.assertEqual(answer["devices"], ["camera0", "disk0"])
        self.assertEqual(answer["background"][0], {"from": "camera0", "to": "mem0", "nominal_gbps": 2.4, "most_gbps": 3,
                                                   "route": ["camera0", "switch0", "cpu0", "mem0"]})
        self.assertEqual(answer["background"][2]["route"], ["mem0", "cpu0", "mem0"])
        into_memory = next(link for link in answer["links"] if (link["from"], link["to"]) == ("cpu0", "mem0"))
        self.assertEqual((into_memory["nominal_gbps"], into_memory["guaranteed_gbps"]), (40, 36))
        self.assertAlmostEqual(into_memory["nominal_left_gbps"], 36.6)
        self.assertAlmostEqual(into_memory["guaranteed_left_gbps"], 29)
        text = self.tutti("topology", "show", self.MACHINE).stdout
        self.assertRegex(text, r"\ncpu0 -> mem0 +- +40.00 +36.00 +36.60 +29.00\n")
        self.assertIn("\ndevices: camera0, disk0\n", text)
        self.assertRegex(text, r"\ncamera0 -> switch0 -> cpu0 -> mem0 +2.40 +3.00\n")
        self.assertNotIn("left", self.tutti("topology", "show", "configs/machines/h200x4.yaml").stdout)


class Import(Programs):
    """Files of other tools, written by hand in their formats."""
    FILES = {"hwloc.xml": "hwloc", "nccl.xml": "NCCL", "nvidia-smi.txt": "nvidia-smi topo -m", "nvbandwidth.json": "nvbandwidth"}

    def path(self, name):
        return TESTS / "golden/import" / name

    def imported(self, text, *words, name="given"):
        return self.tutti("topology", "import", self.file(text, name), *words)

    def links(self, name, *words):
        out = self.folder / "m.yaml"
        self.assertEqual(self.tutti("topology", "import", self.path(name), "--out", out, *words).returncode, 0)
        machine = self.object_of(0, "topology", "show", out, "--json")
        return {(link["from"], link["to"]): link["nominal_gbps"] for link in machine["links"]}

    def test_each_source_gives_a_machine(self):
        for name, source in self.FILES.items():
            with self.subTest(name=name):
                self.is_golden(f"import/{name}.yaml", self.tutti("topology", "import", self.path(name)))
                out = self.folder / "m.yaml"
                answer = self.object_of(0, "topology", "import", self.path(name), "--out", out, "--name", "station", "--json")
                self.assertEqual((answer["source"], answer["machine"], answer["measured"], answer["out"]), (source, "station", name == "nvbandwidth.json", str(out)))
                self.assertEqual(self.object_of(0, "topology", "show", out, "--json")["machine"], "station")

    # 16 lanes of 3.938 GB/s are 63.02 GB/s, 85 % of which are 53.56; a switch above two GPUs is a hub, and one GPU has none.
    def test_hwloc_has_bridges_and_nodes(self):
        links = self.links("hwloc.xml")
        self.assertEqual((links["cpu0", "hub0"], links["hub0", "gpu0"], links["hub0", "gpu1"], links["cpu1", "gpu2"]), (53.56, 53.56, 53.56, 26.78))

    # 18 NVLinks of 20 GB/s each, to NVSwitches; or 4 and 4 between two GPUs.
    def test_nccl_has_nvlinks(self):
        links = self.links("nccl.xml")
        self.assertEqual((links["gpu0", "nvlink0"], links["nvlink0", "gpu1"], links["cpu1", "gpu1"]), (360, 360, 53.56))
        nvlink = '<nvlink target="{}" count="4" tclass="0x030200"/></gpu>'
        first, second = re.sub(r" *<nvlink.*\n", "", self.path("nccl.xml").read_text(encoding="utf-8")).split('<gpu dev="1"')
        direct = first.replace("</gpu>", nvlink.format("0000:86:00.0")) + '<gpu dev="1"' + second.replace("</gpu>", nvlink.format("0000:06:00.0"))
        self.assertIn("{from: gpu0, to: gpu1, bandwidth: 80 GB/s, back: 80 GB/s}", self.imported(direct).stdout)
        dangling = self.imported(direct.replace('target="0000:06:00.0"', 'target="0000:ff:00.0"'))
        self.assertIn("unknown: what 0000:ff:00.0 is, to which NVLinks lead", dangling.stderr)
        self.assertNotIn("to: gpu1, bandwidth: 80 GB/s", dangling.stdout)

    # The first end has 2 links and the second none or 4, or 150 GB/s and 50: the smaller number, and a note. An object that is
    # not there is no GPU.
    def test_links_whose_ends_differ_are_noted(self):
        def nccl(*counts, second="0000:0b:00.0"):
            gpus = [f'<pci busid="{bus}" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"><gpu dev="{gpu}" sm="70" rank="{gpu}">'
                    + (f'<nvlink target="{target}" count="{count}" tclass="0x030200"/>' if count else "") + "</gpu></pci>\n"
                    for gpu, (bus, target, count) in enumerate(zip(("0000:0a:00.0", second), (second, "0000:0a:00.0"), counts))]
            return f'<system version="1">\n<cpu numaid="0">\n{gpus[0]}{gpus[1]}</cpu></system>\n'

        def hwloc(objects, there, back):
            devices = "".join(f'<object type="PCIDev" gp_index="{2 * i}" pci_busid="0000:0{i}:00.0" pci_type="0302 [10de:1db1]" '
                              f'pci_link_speed="15.753846"><object type="OSDev" gp_index="{2 * i + 1}" name="nvml{i - 2}"/></object>' for i in (2, 3))
            return (f'<topology version="2.0"><object type="Machine" cpuset="0x3" nodeset="0x1" gp_index="1"><object type="Bridge" gp_index="3" '
                    f'bridge_type="0-1" bridge_pci="0000:[00-0f]">{devices}</object></object>\n<distances2hetero nbobjs="2" kind="25" '
                    f'name="NVLinkBandwidth"><indexes>{objects}</indexes><u64values>1000000 {there} {back} 1000000</u64values></distances2hetero></topology>\n')
        for text, rate, note in (
            (nccl(2, 2), 40, None),
            (nccl(2, 0), None, "the number of NVLinks between gpu0 and gpu1 (2 and 0), which is another one at each end; assumed: the smaller one"),
            (nccl(2, 4), 40, "between gpu0 and gpu1 (2 and 4), "),
            (nccl(4, 2), 40, "between gpu0 and gpu1 (4 and 2), "),
            (hwloc("OSDev:5 OSDev:7", 150000, 150000), 120, None),
            (hwloc("OSDev:5 OSDev:7", 150000, 50000), 40, "between gpu0 and gpu1 (6 and 2), "),
            (hwloc("OSDev:5 OSDev:7", 50000, 150000), 40, "between gpu0 and gpu1 (2 and 6), "),
            (hwloc("OSDev:5 OSDev:77", 150000, 150000), None, "what OSDev:77 in line 2 is, to which NVLinks lead: no object of this file; assumed: no link"),
        ):
            with self.subTest(text=text):
                run = self.imported(text)
                self.assertEqual(run.returncode, 0, run.stderr)
                link = re.search(r"from: gpu0, to: gpu1, bandwidth: (\d+) GB/s, back: (\d+) GB/s", run.stdout)
                self.assertEqual(link and tuple(map(float, link.groups())), rate and (rate, rate))
                self.assertIn(note, run.stderr) if note else self.assertNotIn("NVLink", run.stderr)
        self.refuses(self.imported(nccl(0, 0, second="0000:0a:00.0")), "given:4:1: a second <pci> with a GPU has the bus id 0000:0a:00.0")

    # PIX: one switch above both. Without a word about links they are of --pcie: 4.0 x8 has 15.75 GB/s, 85 % are 13.39.
    def test_the_matrix_has_words_for_distances(self):
        links = self.links("nvidia-smi.txt", "--pcie", "4x8")
        self.assertEqual((links["cpu0", "hub0"], links["hub0", "gpu0"], links["cpu1", "gpu2"], links["gpu0", "gpu2"]), (13.39, 13.39, 13.39, 80))
        self.assertNotIn(("cpu1", "hub1"), links)  # PHB: below one host bridge, which no measurement tells from the cpu
        text = self.path("nvidia-smi.txt").read_text(encoding="utf-8")
        self.assertEqual(self.imported(text.replace("\t", "   ")).stdout, self.imported(text).stdout)
        self.assertEqual(self.imported(text.replace("\n", "\r\n")).stdout, self.imported(text).stdout)

    def test_measured_rates_are_kept(self):
        links = self.links("nvbandwidth.json")
        self.assertEqual((links["cpu0", "gpu0"], links["gpu0", "cpu0"], links["cpu0", "gpu1"]), (55.31, 55.12, 55.28))
        # Reads: GPU 0 reads GPU 1 at 394.15.
        self.assertEqual((links["gpu1", "nvlink0"], links["gpu0", "nvlink0"]), (394.15, 393.88))

    # 25 and 26 GB/s alone, 12 each where both go at once: 24 together. At 25 and 26 at once nothing is shared.
    def test_both_directions_at_once_are_read(self):
        def host(up, down):
            rates = {"host_to_device": 25, "device_to_host": 26, "host_to_device_bidirectional": up, "device_to_host_bidirectional": down}
            return json.dumps({"nvbandwidth": {"testcases": [
                {"name": f"{name}_memcpy_ce", "status": "Passed", "bandwidth_matrix": [[str(rate), str(rate)]]} for name, rate in rates.items()]}})

        text = self.imported(host(12, 12)).stdout
        for gpu in ("gpu0", "gpu1"):
            self.assertIn(f"{{name: {gpu}-both-ways, capacity: 24 GB/s, members: [{{from: cpu0, to: {gpu}}}, {{from: {gpu}, to: cpu0}}]}}", text)
        self.assertNotIn("both-ways", self.imported(host(25, 26)).stdout)

    def test_mistakes_have_their_place(self):
        hwloc, nccl, matrix, rates = (self.path(name).read_text(encoding="utf-8") for name in self.FILES)
        for text, sentence in (
            ("", "given:1:1: the file is empty"),
            ("hello\n", "given:1:1: this is neither XML of hwloc or NCCL, nor JSON of nvbandwidth"),
            (hwloc[:1500], ": this is no whole XML: "),
            (nccl.replace("</system>", ""), ": this is no whole XML: "),
            ("<html></html>", "given:1:1: this is neither XML of hwloc"),
            ("<?xml version='1.0'?><html></html>", "given:1:1: 'html' is the root of neither"),
            (hwloc.replace("10de:", "1a03:").replace("cuda0", "card0"), "there is no GPU in this file"),
            (hwloc.replace('pci_busid="0000:06:00.0"', 'pci_busid="six"'), "given:10:1: 'six' is no bus id of"),
            (nccl.replace('numaid="1"', 'numaid="one"'), "given:17:1: 'one' is no numaid of"),
            (nccl.replace('count="5"', 'count="-5"'), "'-5' is no count of"),
            (nccl.replace("gpu", "gpv").replace("0x0302", "0x0b40"), "there is no GPU in this file"),
            (matrix.replace("GPU1\tPIX", "GPU1\tN/A"), "given:3:6: 'N/A' is no connection of two devices"),
            (matrix.replace("GPU1\tPIX", "GPU1\tPIXX"), "did you mean 'PIX'?"),
            (matrix.replace("GPU1\tPIX", "GPU1\t X "), "'X' does not belong here"),
            (matrix.replace("GPU1\tPIX", "GPU7\tPIX"), "the row of GPU7 stands where that of GPU1 belongs"),
            (matrix[:150], "cut off"),
            (matrix.replace("NV4", "NVx"), "'NVx' is no connection"),
            (rates[:400], ": this is no whole JSON"),
            ('{"a": 1}', "nvbandwidth.testcases: there is no list of test cases"),
            (rates.replace('"394.15"', '"none"'), "testcases[2].bandwidth_matrix[0][1]: \"none\" is no rate of these GPUs"),
            (rates.replace('"55.28"', "-1"), "testcases[0].bandwidth_matrix[0][1]: -1 is no rate"),
            (rates.replace('[["55.12", "55.09"]]', "null"), "testcases[1].bandwidth_matrix: 'device_to_host_memcpy_ce' has no matrix (status Passed)"),
            (rates.replace('["393.88", "N/A"]', '["393.88"]'), "a row is a list, as long as the others"),
            (rates.replace("device_to_host_memcpy_ce", "other"), "must both be there"),
            ('<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><topology>&z;</topology>', "given:1:1: this XML declares entities"),
            (hwloc.replace("hwloc2.dtd\">", "hwloc2.dtd\" [<!ENTITY big 'x'>]>"), "given:1:1: this XML declares entities"),
            ("<topology>" + "<object>" * 200 + "</object>" * 200 + "</topology>", "nested deeper than any host"),
            ("[" * 100000, "neither XML"), ("{" * 100000, "nested deeper than any measurement"),
        ):
            with self.subTest(sentence=sentence):
                self.refuses(self.imported(text), "given", sentence)
        self.refuses(self.tutti("topology", "import", "/no/such/file"), "/no/such/file: there is no folder 'no' in /")
        self.refuses(self.tutti("topology", "import", self.folder), "this is a folder")
        self.refuses(self.tutti("topology", "import", self.path("hwloc.xml"), "--pcie", "9x3"), "--pcie: '9x3' is no PCIe link")
        self.refuses(self.tutti("topology", "import", self.path("hwloc.xml"), "--name", "a b"), "--name: 'a b' is no name")

    # Hosts of the field, their matrices and dumps written by hand. Counted by hand: what is below each cpu, in brackets what shares
    # a switch, @ the rate of a link that is no PCIe of an assumed width; NVLinks with their rates; what may share a link to the host,
    # and for a guarantee does; how many things are unknown.
    MESH = "0-1:20 0-2:20 0-3:40 0-4:40 1-2:40 1-3:20 1-5:40 2-3:40 2-6:20 3-7:20 4-5:20 4-6:20 4-7:40 5-6:40 5-7:20 6-7:40"
    HOSTS = {
        "dgx1-p100.txt": ("cpu0[[0 1] [2 3]] cpu1[[4 5] [6 7]]; 0-1:20 0-2:20 0-3:20 0-4:20 1-2:20 1-3:20 1-5:20 2-3:20 2-6:20 3-7:20 4-5:20 4-6:20 4-7:20 5-6:20 5-7:20 6-7:20;", 1),
        "dgx1-v100.txt": (f"cpu0[[0 1] [2 3]] cpu1[[4 5] [6 7]]; {MESH};", 1),
        "cube-mesh-in-a-vm.txt": (f"cpu0[0 1 2 3] cpu1[4 5 6 7]; {MESH}; maybe 0 1 2 3, maybe 4 5 6 7", 2),
        "sixteen-at-a-switch.txt": ("cpu0[0 1 2 3 4 5 6 7] cpu1[8 9 10 11 12 13 14 15]; switch of 16:120; maybe 0 1 2 3 4 5 6 7, maybe 8 9 10 11 12 13 14 15", 2),
        "eight-in-pairs-at-a-switch.txt": ("cpu1[[2 3]] cpu3[[0 1]] cpu5[[6 7]] cpu7[[4 5]]; switch of 8:240;", 0),
        "eight-with-a-card-each.txt": ("cpu0[0 1 2 3] cpu1[4 5 6 7]; switch of 8:360;", 0),
        "four-direct-one-socket.txt": ("cpu0[3] cpu1[2] cpu2[1] cpu3[0]; 0-1:80 0-2:80 0-3:80 1-2:80 1-3:80 2-3:80;", 0),
        "three-and-three.txt": ("cpu0[0 1 2] cpu1[3 4 5]; 0-1:40 0-2:40 1-2:40 3-4:40 3-5:40 4-5:40; maybe 0 1 2, maybe 3 4 5", 3),
        "bridged-pair.txt": ("cpu0[0 1]; 0-1:80; maybe 0 1", 1),
        "pairs-below-a-bridge.txt": ("cpu0[[0 1] [2 3]]; ;", 0),
        "two-roots-of-four.txt": ("cpu0[[0 1 2 3]] cpu1[[4 5 6 7]]; ;", 0),
        "one-root-of-eight.txt": ("cpu0[[[0 1 2 3] [4 5 6 7]]]; ;", 0),
        "double-cards-soc.txt": ("cpu0[[0 1] [2 3]] cpu1[[4 5] [6 7]]; ;", 1),
        "two-of-a-node.txt": ("cpu0[0 1]; ;", 0),
        "virtual-machine.txt": ("cpu0[0 1 2 3]; ;", 0),
        "single.txt": ("cpu0[0]; ;", 0),
        "both-near-both.txt": ("cpu0[0] cpu1[1]; ;", 1),
        "nodes-by-four.txt": ("cpu0[0 1] cpu4[2 3]; ;", 1),
        "blanks-and-returns.txt": ("cpu0[[0 1]] cpu1[[2 3]]; ;", 0),
        "quoted-from-a-terminal.txt": ("cpu0[0] cpu1[1]; ;", 0),
        "glued-heading.txt": ("cpu0[0] cpu1[1]; ;", 0),
        "four-of-a-rack.txt": ("cpu0[0 1] cpu1[2 3]; switch of 4:360; maybe 0 1, maybe 2 3", 3),
        "eight-links-to-a-switch.txt": ("cpu0[[0 1] [2 3]] cpu1[[4 5] [6 7]]; switch of 8:160;", 0),
        "nothing-but-links.txt": ("cpu0[0 1 2 3]; switch of 4:240; maybe 0 1 2 3", 2),
        "cloud-by-class.xml": ("cpu0[[0 1]] cpu1[[2 3]] cpu2[[4 5]] cpu3[[6 7]]; ;", 1),
        "half-a-mesh.xml": ("cpu0[[0 1]] cpu1[[2 3]]; 0-1:20 0-2:40 1-3:40 2-3:20;", 0),
        "at-a-switch.xml": ("cpu0[0 1 2 3]; switch of 4:240;", 0),
        "power9.xml": ("cpu0[0@60 1@60] cpu8[2@60 3@60]; 0-1:60 2-3:60;", 0),
        "grace-hopper.xml": ("cpu0[0@360]; ;", 0),
        "some-of-a-mesh.xml": ("cpu0[0 1]; 0-1:20;", 1),
        "station.xml": ("cpu0[0 1] cpu1[2 3]; 0-1:20 0-2:40 0-3:20 1-2:20 1-3:40 2-3:20;", 0),
        "no-distances.xml": ("cpu0[0 1] cpu1[2 3]; ;", 0),
        "switch-in-hwloc.xml": ("cpu0[0 1]; switch of 2:120;", 0),
        "power-in-hwloc.xml": ("cpu0[0@60 1@60]; 0-1:60;", 0),
        "four-that-contend.json": ("cpu0[0@25 1@25 2@25 3@25]; ; h2d of 0 1 2 3:50", 1),
        "mesh-by-rates.json": ("cpu0[0@12 1@12 2@12 3@12]; 0-1:22 0-2:45 1-3:45 2-3:22; maybe 0 1 2 3", 2),
        "one-waived.json": ("cpu0[0@55.2]; ;", 0),
        "times-in-front.txt": ("cpu0[0 1]; ;", 0),
        "markdown-table.txt": ("cpu0[0] cpu1[1]; ;", 0),
        "access-in-front.txt": ("cpu0[0 1]; ;", 0),
        "details-of-an-issue.txt": ("cpu0[0 1]; ;", 0),
        "sys-within-a-node.txt": ("cpu0[0 1] cpu1[2 3]; ;", 1),
        "part-of-a-switch.txt": ("cpu0[0 1 2]; 0-1:120 0-2:120 1-2:120; nvlinks 0:120 of 240, nvlinks 1:120 of 240, nvlinks 2:120 of 240", 1),
        "no-affinity.txt": ("cpu0[0 1] cpu1[2 3]; switch of 4:360;", 1),
        "lost-cells.txt": ("cpu0[0 1]; ;", 1),
        "two-ranks-a-gpu.xml": ("cpu0[0 1]; ;", 1),
        "devices-reversed.xml": ("cpu0[1] cpu1[0]; 0-1:80;", 0),
        "bridge-without-a-link.xml": ("cpu0[[0 1]]; ;", 2),
        "behind-a-fence.xml": ("cpu0[0 1]; 0-1:80;", 0),
        "memory-of-gpus.xml": ("cpu0[0] cpu1[1]; ;", 0),
        "without-bridges.xml": ("cpu0[0 1]; ; maybe 0 1", 1),
        "without-nvml.xml": ("cpu0[0 1] cpu1[2 3]; ;", 2),
        "some-without-access.json": ("cpu0[0@25 1@25 2@25]; ; maybe 0 1 2", 2),
    }
    REFUSED = {
        "refused-two-hosts.txt": "refused-two-hosts.txt:13:1: a second matrix begins here; give a file of one host",
        "refused-two-hosts.xml": "refused-two-hosts.xml:5:1: a second host begins here; give a file of one host",
        "refused-two-machines.xml": "a second machine begins here; give a file of one host",
        "refused-contradiction.txt": "refused-contradiction.txt:3:6: GPU0 and GPU1 are 'PIX' here and 'SYS' in the other row",
        "refused-wrapped.txt": "refused-wrapped.txt:1:1: the heading goes on in the next line; give the matrix with a line a row",
        "refused-wide-letters.txt": "refused-wide-letters.txt:1:1: this is UTF-16, as PowerShell writes it; save it as UTF-8",
        "refused-another-vendor.xml": "refused-another-vendor.xml:3:1: these are GPUs of AMD; give a file of a host with GPUs of NVIDIA",
        "refused-distances.xml": "the bandwidths of NVLinks are 3 numbers for 2 objects; write the file again",
    }

    def summary(self, path):
        machine = self.object_of(0, "topology", "show", path, "--json")
        links = [(link["from"], link["to"], link) for link in machine["links"]]

        def number(name):
            return name.removeprefix("gpu")

        def below(vertex, above=""):
            for start, end, link in links:
                if start == vertex and end.startswith("hub") and end != above:
                    yield f"[{' '.join(below(end, vertex))}]"
                elif start == vertex and end.startswith("gpu"):
                    yield number(end) + ("" if link["theoretical_gbps"] else f"@{link['nominal_gbps']:g}")

        def members(shared):
            gpus = set()
            for member in shared["members"]:
                end = member["to"] if member["from"].startswith("cpu") else member["from"]
                gpus |= {number(link_end) for start, link_end, _ in links if start == end and link_end.startswith("gpu")} if end.startswith("hub") else {number(end)}
            return " ".join(sorted(gpus, key=int))

        cpus = " ".join(f"{name}[{' '.join(below(name))}]" for name in sorted({start for start, _, _ in links if start.startswith("cpu")}, key=lambda name: int(name[3:])))
        nvlinks = [f"{number(start)}-{number(end)}:{link['nominal_gbps']:g}" for start, end, link in links if start.startswith("gpu") and end.startswith("gpu") and int(number(start)) < int(number(end))]
        switched = [link["nominal_gbps"] for start, end, link in links if start.startswith("gpu") and end.startswith("nvlink")]
        nvlinks += [f"switch of {len(switched)}:{switched[0]:g}"] if switched else []
        shares = [f"nvlinks {number(one['name'].split('-')[1])}:{one['guaranteed_gbps']:g} of {one['nominal_gbps']:g}" if one["name"].startswith("nvlinks-") else f"maybe {members(one)}" if one["guaranteed_gbps"] < one["nominal_gbps"] else f"{one['name'][-3:]} of {members(one)}:{one['nominal_gbps']:g}" for one in machine["shared"]]
        return f"{cpus}; {' '.join(nvlinks)}; {', '.join(dict.fromkeys(shares))}".strip()

    def test_hosts_of_the_field_are_read_right(self):
        folder, out = self.path("topologies"), self.folder / "m.yaml"
        self.assertEqual({path.name for path in folder.iterdir()}, {*self.HOSTS, *self.REFUSED})
        for name, (expected, unknown) in self.HOSTS.items():
            with self.subTest(name=name):
                answer = self.object_of(0, "topology", "import", folder / name, "--out", out, "--json")
                self.assertEqual((self.summary(out), len(answer["unknown"])), (expected, unknown), answer["unknown"])
                self.assertTrue(out.read_text(encoding="utf-8").startswith("# Unknown: " * (unknown > 0)))
        for name, sentence in self.REFUSED.items():
            with self.subTest(name=name):
                self.refuses(self.tutti("topology", "import", folder / name), sentence)

    def test_damaged_files_end_with_a_sentence(self):
        draw = random.Random(7)
        for name in self.FILES:
            whole = self.path(name).read_bytes()
            for trial in range(60):
                damaged = bytearray(whole)
                for _ in range(draw.randint(1, 4)):
                    at = draw.randrange(len(damaged))
                    damaged[at : at + draw.choice((0, 1, 20))] = bytes(draw.randrange(256) for _ in range(draw.choice((1, 1, 3))))
                if trial % 3 == 0:
                    damaged = damaged[: draw.randrange(len(damaged))]
                path = self.folder / "damaged"
                path.write_bytes(damaged)
                run = self.run_program("tutti/tutti", "topology", "import", path, errors="replace")
                self.assertIn(run.returncode, (0, 2), f"{name} {trial}: {run.stderr}")
                said = [line for line in run.stderr.splitlines() if not line.startswith("note: unknown: ")]
                self.assertEqual(len(said), 1 if run.returncode else 0, run.stderr)


if __name__ == "__main__":
    sys.exit(main())
