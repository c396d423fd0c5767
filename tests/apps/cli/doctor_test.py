#!/usr/bin/env python3
"""`tutti doctor`, on files of made-up hosts, and what holds on every host."""
import json
import sys

from programs import H200X4, Programs, main

# A host with a bit of everything: fine, at risk, and without a file.
FILES = {
    "dev/kmsg": "6,1,0,-;Linux\n3,2,9,-;NVRM: Xid (PCI:0000:06:00): 79, pid=7, GPU has fallen off the bus.\n",
    "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu tsc\n",
    "proc/irq/24/smp_affinity_list": "0-3\n",
    "proc/irq/25/smp_affinity_list": "0-1\n",
    "proc/loadavg": "0.50 0.40 0.30 1/345 6789\n",
    "proc/meminfo": "MemTotal: 65536 kB\nSwapTotal: 8192 kB\nSwapFree: 8000 kB\n",
    "proc/self/cgroup": "0::/\n",
    "proc/self/limits": "Max locked memory         8388608              8388608              bytes     \n"
                        "Max realtime priority     0                    0                    \n",
    "proc/self/status": "Name:\ttutti\nCapEff:\t0000000000000000\nCpus_allowed_list:\t0-3\n",
    "proc/sys/kernel/numa_balancing": "0\n",
    "proc/sys/kernel/sched_rt_runtime_us": "950000\n",
    "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Debian\n",
    "proc/cmdline": "quiet preempt=full\n",
    "sys/fs/cgroup/cpu.max": "max 100000\n",
    "sys/devices/system/cpu/isolated": "3\n",
    "sys/devices/system/cpu/cpufreq/boost": "1\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "sys/devices/system/node/node0/cpulist": "0-3\n",
    "sys/kernel/iommu_groups/0/type": "DMA-FQ\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
    **{f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor": "powersave\n" for core in range(4)},
    **{f"sys/devices/system/cpu/cpu{core}/cpuidle/state2/{name}": value + "\n" for core in range(4)
       for name, value in (("name", "C6"), ("latency", "133"), ("disable", "0"))},
    **{f"sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list": f"{core % 2},{core % 2 + 2}\n" for core in range(4)},
}


class Doctor(Programs):
    def host(self, files=None):
        root = self.folder / "host"
        for path, text in (FILES if files is None else files).items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        return root

    def test_whole_output(self):
        self.is_golden("doctor.txt", self.tutti("doctor", "--root", self.host()), code=1)

    def test_json_has_a_row_for_each_finding(self):
        answer = self.object_of(1, "doctor", "--root", self.host(), "--cores", 1, "--machine", H200X4, "--json")
        self.assertEqual((answer["schema_version"], answer["cores"], answer["self_test"]), (1, [1], None))
        states = [row["state"] for row in answer["findings"]]
        self.assertEqual([answer[key] for key in ("ok", "risks", "unread")], [states.count(key) for key in ("ok", "risk", "unread")])
        for row in answer["findings"]:
            self.assertEqual(list(row), ["subject", "check", "state", "value", "remedy"])
            self.assertEqual(row["remedy"] is None, row["state"] == "ok")
        found = {(row["subject"], row["check"]): row for row in answer["findings"]}
        self.assertEqual(found["host", "isolated cores"]["value"], "core 1 not isolated")
        self.assertEqual(found["machine", "calibration"]["state"], "unread")  # the shipped file has no date

    def test_a_host_without_risks_ends_with_0(self):
        root = self.host({"proc/loadavg": "0.00 0.00 0.00 1/1 1\n", "proc/self/status": "Cpus_allowed_list:\t0-3\n"})
        answer = self.object_of(0, "doctor", "--root", root, "--json")
        self.assertEqual((answer["risks"], answer["ok"]), (0, 1))

    def test_a_calibration_long_ago_is_a_risk(self):
        root = self.host({"proc/loadavg": "0.00 0.00 0.00 1/1 1\n", "proc/self/status": "Cpus_allowed_list:\t0-3\n"})
        machine = self.file("""version: 1
machine:
  name: station
  provenance: {date: "2001-02-03", host: "1 x GPU; driver for CUDA 12.0", fingerprint: "0", combinations: 1, batches: 1}
  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu, bus_id: "0000:06:00.0"}}
  links: [{from: mem0, to: gpu0, bandwidth: 10 GB/s}]
""")
        answer = self.object_of(1, "doctor", "--root", root, "--machine", machine, "--json")
        self.assertEqual([row["state"] for row in answer["findings"] if row["subject"] == "machine"], ["risk", "unread", "unread"])

    def test_a_folder_without_a_host_ends_with_3(self):
        self.refuses(self.tutti("doctor", "--root", self.folder), "describes a host; mount /proc and /sys there", code=3)

    def test_this_host_can_be_looked_at(self):
        run = self.tutti("doctor", "--backend", "sim", "--json")
        self.assertIn(run.returncode, (0, 1))
        answer = json.loads(run.stdout)
        self.assertEqual(run.returncode, 1 if answer["risks"] else 0)
        self.assertTrue(answer["cores"])
        self.assertEqual({row["subject"] for row in answer["findings"]}, {"host"})

    def test_gpus_that_are_asked_for_must_be_there(self):
        run = self.tutti("doctor", "--backend", "cuda")
        if run.returncode == 3:
            self.refuses(run, "; ", code=3)
        else:
            self.assertIn("PCIe link", run.stdout)

    def test_the_self_test_counts_its_instants(self):
        core = self.object_of_any("doctor", "--backend", "sim", "--json")["cores"][-1]
        for words, place in (([], None), (["--cores", core, "--priority", 7], core)):
            test = self.object_of_any("doctor", "--backend", "sim", "--self-test", "20ms", "--json", *words)["self_test"]
            self.assertEqual((test["period_ms"], test["limit_ms"], len(test["threads"])), (1, 0.1, 1))
            thread = test["threads"][0]
            self.assertEqual((thread["core"], thread["instants"]), (place, 20))
            late = [thread[key] for key in ("median_ms", "p99_ms", "p999_ms", "worst_ms")]
            self.assertEqual(late, sorted(late))
            self.assertEqual(test["worst_ms"], thread["worst_ms"])
        text = self.tutti("doctor", "--backend", "sim", "--self-test", "10ms").stdout
        self.assertIn("self-test: a thread slept to instants 1 ms apart; limit 100.0 us", text)

    def object_of_any(self, *words):
        run = self.tutti(*words)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        return json.loads(run.stdout)

    def test_a_run_may_begin_with_the_self_test(self):
        tasks = self.file("version: 1\ntasks: [{name: a, period: 10 ms, wcet: 1 ms}]\n")
        run = self.tutti("run", tasks, "--clock", "real", "--jobs", 2, "--self-test", "20ms", "--json")
        test = json.loads(run.stdout)["self_test"]
        self.assertEqual((test["limit_ms"], test["threads"][0]["instants"]), (None, 20))
        self.assertIn("\nself-test: ", self.tutti("run", tasks, "--clock", "real", "--jobs", 2, "--self-test", "10ms").stdout)
        self.assertIsNone(self.object_of(0, "run", tasks, "--json")["self_test"])

    def test_a_run_on_a_machine_has_its_guarantee_as_the_limit(self):
        machine = self.file("""version: 1
machine:
  name: station
  vertices: {mem0: {kind: memory}, gpu0: {kind: gpu}}
  links: [{from: mem0, to: gpu0, bandwidth: 10 GB/s}]
  setup: {gate: 1 ns, dispatch: {nominal: 1 ns, guaranteed: 2 ns}}
""", "machine.yaml")
        tasks = self.file("""version: 1
machine: machine.yaml
tasks: [{name: a, period: 20 ms, job: [{batch: [{from: mem0, to: gpu0, size: 1 MB}]}]}]
""")
        run = self.tutti("run", tasks, "--machine", machine, "--clock", "real", "--jobs", 1, "--self-test", "20ms", "--json")
        answer = json.loads(run.stdout)
        self.assertEqual(answer["self_test"]["limit_ms"], 0.000002)
        # No clock is read twice within 2 ns, so the guarantee is broken everywhere.
        self.assertTrue([note for note in answer["notes"] if "the machine file guarantees 0.0 us (gate, dispatch)" in note])

    def test_mistakes_end_with_2(self):
        for words, sentence in (
            (["--self-test", "5"], "--self-test: '5' has no unit"),
            (["--self-test", "1ms"], "--self-test: 1ms is no length for it; give 10 ms to"),
            (["--self-test", "2 days"], "--self-test: "),
            (["--sefl-test", "5s"], ""),
            (["--machine", "/no/such/file"], "/no/such/file"),
            (["--root", "/no/such/folder"], "--root: there is no folder /no/such/folder"),
            (["--root", "/", "--backend", "cuad"], "--backend: there is no 'cuad'; "),
            (["--root", self.folder, "--backend", "cuda"], "--root: GPUs are those of this host"),
            (["--root", self.folder, "--self-test", "1s"], ""),
            (["--cores", "100000"], "core 100000 is none that this program may use; name some of "),
            (["--cores", "1,"], "--cores: '1,' is no list of cores"),
            (["--priority", "99"], ""),
            (["more"], ""),
        ):
            with self.subTest(words=words):
                self.refuses(self.tutti("doctor", *words), sentence)
        tasks = self.file("version: 1\ntasks: [{name: a, period: 10 ms, wcet: 1 ms}]\n")
        self.refuses(self.tutti("run", tasks, "--self-test", "1s"), "--self-test is for real time; give --clock real")
        self.refuses(self.tutti("run", tasks, "--clock", "real", "--self-test", "x"), "--self-test: ")


if __name__ == "__main__":
    sys.exit(main())
