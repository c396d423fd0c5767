#!/usr/bin/env python3
"""Files that the programs write: what is replaced, what is written in place, and what stays as it is."""
import os
import resource
import signal
import stat
import subprocess
import sys
import threading

from programs import EXAMPLE, ROOT, WAFER, Programs, main


class OutputFiles(Programs):
    # Devices are named by links, so that a program that replaces them cannot harm the host.

    def writers(self, path, **options):
        """One run of each program that writes to this path."""
        yield self.run_program("tutti/tutti", "predict", EXAMPLE, "--svg", path, **options)
        yield self.run_program("wafer_inspection/wafer_inspection", "--size", 256, "--count", 1, "--jobs", 1, "--csv", path, **options)

    def contents(self):
        """What the two runs write."""
        texts = []
        for run in self.writers(self.folder / "expected"):
            self.assertEqual(run.returncode, 0, run.stderr)
            texts.append((self.folder / "expected").read_text(encoding="utf-8"))
        (self.folder / "expected").unlink()
        return texts

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_a_file_keeps_its_mode_and_a_link_its_target(self):
        (self.folder / "below").mkdir()
        target, link = self.folder / "below/target", self.folder / "link"
        link.symlink_to("below/target")  # relative to the link's folder
        runs = self.writers(link)
        for text in self.contents():
            target.write_text("old", encoding="utf-8")
            target.chmod(0o600)
            before = target.stat().st_ino
            run = next(runs)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertTrue(link.is_symlink())
            self.assertEqual(target.read_text(encoding="utf-8"), text)
            self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o600)
            self.assertNotEqual(target.stat().st_ino, before)  # replaced as a whole
            self.assertEqual([path.name for path in (self.folder / "below").iterdir()], ["target"])
        self.assertEqual(self.names(), ["below", "link"])

    def test_a_link_to_nothing_is_followed(self):
        (self.folder / "link").symlink_to(self.folder / "target")
        for run in self.writers(self.folder / "link"):
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(self.names(), ["link", "target"])
            (self.folder / "target").unlink()
        (self.folder / "target").symlink_to("link")
        for run in self.writers(self.folder / "link"):
            self.refuses(run, "link: this cannot be written")

    # Before, the new file was X.new, written through whatever link stood there.
    def test_no_planted_link_is_followed(self):
        victim = self.folder / "victim"
        victim.write_text("keep", encoding="utf-8")
        (self.folder / "out.new").symlink_to(victim)
        for run in self.writers(self.folder / "out"):
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(victim.read_text(encoding="utf-8"), "keep")
        self.assertEqual(self.names(), ["out", "out.new", "victim"])

    # Which files there are is said in one place, whatever option names them: once each, unless --quiet is given.
    def test_each_file_is_named_once_with_its_size(self):
        journal, trace, svg, metrics = (self.folder / name for name in ("run.journal", "t.json", "r.svg", "m.txt"))
        commands = {
            ("run", WAFER, "--set", "image=1MB", "--jobs", 4, "--journal", journal, "--trace", trace, "--svg", svg, "--metrics", metrics): (journal, trace, svg, metrics),
            ("view", journal, "--html", self.folder / "p.html", "--trace", trace): (self.folder / "p.html", trace),
            ("predict", EXAMPLE, "--svg", svg): (svg,),
            ("compare", EXAMPLE, "--svg", svg): (svg,),
            ("capacity", WAFER, "--parameter", "image", "--svg", svg): (svg,),
            ("topology", "show", "configs/machines/h200x4.yaml", "--svg", svg): (svg,),
            ("verify", EXAMPLE, "--backend", "sim", "--out", self.folder / "v.json"): (self.folder / "v.json",),
            ("tasks", "expand", "configs/tasks/periodic-offsets.yaml", "--out", self.folder / "jobs.csv"): (self.folder / "jobs.csv",),
            ("tasks", "import", "tests/golden/import/camera.amxmi", "--out", self.folder / "set.yaml"): (self.folder / "set.yaml",),
            ("check", "configs/tasks/alarm-behind-image.yaml", "--counter-example", self.folder / "misses.yaml"): (self.folder / "misses.yaml",),
        }
        for words, files in commands.items():
            with self.subTest(words[0]):
                run = self.tutti(*words)
                self.assertIn(run.returncode, (0, 1), run.stderr)
                said = [line for line in run.stderr.splitlines() if line.startswith("wrote ")]
                self.assertEqual(sorted(line.rsplit(" (", 1)[0] for line in said), sorted(f"wrote {path}" for path in files))
                for line in said:
                    self.assertRegex(line, r" \(\d+(\.\d)? (B|kB|MB)\)$")
                self.assertNotIn("wrote", run.stdout)
                self.assertNotIn("wrote", self.tutti(*words, "--quiet").stderr)

    def test_a_device_is_written_in_place(self):
        link = self.folder / "null"
        link.symlink_to("/dev/null")
        for run in self.writers(link):
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(os.readlink(link), "/dev/null")
            self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_pipe_is_written_in_place(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        expected, runs = self.contents(), self.writers(pipe)
        for text in expected:
            got = []
            reader = threading.Thread(target=lambda out=got: out.append(pipe.read_text(encoding="utf-8")), daemon=True)
            reader.start()
            run = next(runs)
            reader.join()
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(got, [text])
            self.assertTrue(pipe.is_fifo())

    def test_standard_output_is_written_in_place(self):
        expected = self.contents()
        for place in ("/dev/stdout", "/dev/fd/1"):
            for text, run in zip(expected, self.writers(place)):
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertIn(text, run.stdout)
                self.assertGreater(len(run.stdout), len(text))  # and the report
        with open(self.folder / "out", "w+b") as out:
            run = self.run_program("tutti/tutti", "predict", EXAMPLE, "--svg", "/dev/stdout", stdout=out)
            self.assertEqual(run.returncode, 0, run.stderr)
            out.seek(0)  # of the file that was opened, which a rename would have put aside
            self.assertTrue(out.read().decode().startswith(expected[0]))

    def test_a_full_disk_is_an_error_and_keeps_the_old_file(self):
        (self.folder / "full").symlink_to("/dev/full")
        for run in self.writers(self.folder / "full"):
            self.assertEqual(run.returncode, 3, run.stderr)
            self.assertIn("full: cannot be written to its end (No space left on device)", run.stderr)
        self.file("old", "out")
        # A limit of 10 bytes a file stands for a disk with so much room.
        for run in self.writers(self.folder / "out", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))):
            self.assertEqual(run.returncode, 3, run.stderr)
            self.assertIn("out: cannot be written to its end (File too large)", run.stderr)
            self.assertEqual((self.folder / "out").read_text(encoding="utf-8"), "old")
        self.assertEqual(self.names(), ["full", "out"])

    # By its own name, a link, another path to it, or one that neither has made yet.
    def test_no_output_replaces_an_input_or_another_output(self):
        batch, link = self.folder / "batch.yaml", self.folder / "link"
        text = (ROOT / EXAMPLE).read_text(encoding="utf-8").replace("../machines", str(ROOT / "configs/machines"))
        batch.write_text(text, encoding="utf-8")
        link.symlink_to("batch.yaml")
        roundabout = self.folder / "." / ".." / self.folder.name
        for file, options in ((batch, ["--svg", batch]), (batch, ["--trace", link]), (link, ["--svg", roundabout / "batch.yaml"])):
            run = self.tutti("predict", file, *options)
            self.assertEqual(run.returncode, 2, options)
            self.assertIn(f"{options[0]} would replace a file that is read; name another one", run.stderr)
        run = self.tutti("predict", batch, "--svg", self.folder / "new", "--trace", roundabout / "new")
        self.assertEqual(run.returncode, 2)
        self.assertRegex(run.stderr, "--(svg and --trace|trace and --svg) write one file; name two")
        self.assertEqual(batch.read_text(encoding="utf-8"), text)
        self.assertEqual(self.names(), ["batch.yaml", "link"])
        self.assertEqual(self.tutti("predict", batch, "--svg", "/dev/null", "--trace", "/dev/null").returncode, 0)

    # The machine that a batch or a task set names, though no word of the command line does.
    def test_no_output_replaces_a_file_that_an_input_names(self):
        machines = {}
        for kind, example in (("batch", EXAMPLE), ("tasks", WAFER)):
            text = (ROOT / example).read_text(encoding="utf-8")
            named = next(line.split()[1] for line in text.splitlines() if line.startswith("machine:"))
            machine = self.folder / f"{kind}-machine.yaml"
            machines[machine] = ((ROOT / example).parent / named).read_text(encoding="utf-8")
            machine.write_text(machines[machine], encoding="utf-8")
            self.file(text.replace(f"machine: {named}", f"machine: {machine.name}"), f"{kind}.yaml")
        batch, tasks = self.folder / "batch-machine.yaml", self.folder / "tasks-machine.yaml"
        (self.folder / "link").symlink_to(batch.name)
        runs = [self.tutti("predict", self.folder / "batch.yaml", "--svg", batch), self.tutti("predict", self.folder / "batch.yaml", "--trace", self.folder / "link"),
                self.tutti("run", self.folder / "tasks.yaml", "--jobs", 1, "--svg", tasks), self.tutti("run", self.folder / "tasks.yaml", "--jobs", 1, "--journal", tasks),
                self.tutti("profile", self.folder / "tasks.yaml", "--out", tasks)]
        inspect = ("--size", 256, "--count", 1, "--jobs", 1, "--tasks", self.folder / "tasks.yaml")
        runs += [self.wafer(*inspect, "--csv", tasks), self.wafer(*inspect, "--map", self.folder / "tasks.yaml")]
        for run in runs:
            self.assertEqual(run.returncode, 2, run)
            self.assertIn("would replace a file that is read; name another one", run.stderr)
        run = self.wafer(*inspect, "--map", self.folder / "new", "--csv", self.folder / "new")
        self.assertRegex(run.stderr, "--(csv and --map|map and --csv) write one file; name two")
        self.wafer("generate", "--images", self.folder / "w", "--size", 256, "--count", 1)
        picture = self.folder / "w/wafer000.png"
        before = picture.read_bytes(), picture.with_suffix(".json").read_bytes()
        for output in (picture, picture.with_suffix(".json")):
            self.refuses(self.wafer("--images", picture, "--jobs", 1, "--csv", output), "--csv would replace a file that is read")
        self.refuses(self.wafer("--images", picture, "--jobs", 1, "--csv", self.folder / "m/wafer000.png", "--marked", self.folder / "m"), "--csv and --marked write one file")
        self.assertEqual((picture.read_bytes(), picture.with_suffix(".json").read_bytes()), before)
        for machine, text in machines.items():
            self.assertEqual(machine.read_text(encoding="utf-8"), text)
        self.assertEqual(self.names(), ["batch-machine.yaml", "batch.yaml", "link", "tasks-machine.yaml", "tasks.yaml", "w"])

    # It waits for whoever reads the pipe, and says so: results of hours may be at stake. A signal ends the wait.
    def test_a_pipe_that_nobody_reads_is_waited_for_in_words(self):
        expected, pipe = self.contents()[0], self.folder / "pipe"
        os.mkfifo(pipe)
        for read in (True, False):
            process = subprocess.Popen([str(self.built / "tutti/tutti"), "predict", EXAMPLE, "--svg", str(pipe)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.stderr.readline(), f"note: {pipe}: nobody reads this pipe; waiting for its reader\n")
            if read:
                self.assertEqual(pipe.read_text(encoding="utf-8"), expected)
            else:
                process.terminate()
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0 if read else -signal.SIGTERM)
        run = subprocess.Popen([str(self.built / "tutti/tutti"), "run", WAFER, "--set", "image=1MB", "--jobs", "1", "--trace", str(pipe)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for line in run.stderr:
            if "waiting for its reader" in line:
                run.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(timeout=60), 130)

    def test_generated_pictures_are_replaced_as_a_whole(self):
        words = ["wafer_inspection/wafer_inspection", "generate", "--images", self.folder / "wafers", "--size", 256, "--count", 1]
        self.assertEqual(self.run_program(*words).returncode, 0)
        files = sorted((self.folder / "wafers").iterdir())
        before = [file.read_bytes() for file in files]
        files[1].chmod(0o600)
        run = self.run_program(*words, "--seed", 2, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)))
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertIn("cannot be written to its end", run.stderr)
        self.assertEqual([file.read_bytes() for file in sorted((self.folder / "wafers").iterdir())], before)
        self.assertEqual(self.run_program(*words, "--seed", 2).returncode, 0)
        for file, old in zip(files, before):
            self.assertNotEqual(file.read_bytes(), old)
        self.assertEqual(stat.S_IMODE(files[1].stat().st_mode), 0o600)

    def test_a_folder_is_refused(self):
        for path in (self.folder, f"{self.folder}/", f"{self.folder}/no/such"):
            for run in self.writers(path):
                self.refuses(run, f"{path}: this is a folder; name a file in it" if os.path.isdir(path) else f"{path}: there is no folder 'no' in {self.folder}")
        self.assertEqual(self.names(), [])

    # Root may write to all files, so its programs are started without that right.
    def test_a_file_that_may_not_be_written_is_refused(self):
        if os.geteuid() == 0:
            self.under = ("setpriv", "--bounding-set=-dac_override")
        self.file("old", "out")
        (self.folder / "out").chmod(0o444)
        for run in self.writers(self.folder / "out"):
            self.refuses(run, "out: this cannot be written (Permission denied)")

    # verify measures before it writes; the check comes first and leaves nothing.
    def test_long_commands_check_their_outputs_first(self):
        words = ["verify", "--machine", "configs/machines/inspection-example.yaml", "--backend", "sim", "--random", "100000"]
        for option in ("--out", "--save-worst"):
            self.refuses(self.tutti(*words, option, self.folder), f"{self.folder}: this is a folder")
        self.refuses(self.tutti("capacity", WAFER, "--parameter", "imagee", "--svg", self.folder / "x"), "imagee")
        self.assertEqual(self.names(), [])


if __name__ == "__main__":
    sys.exit(main())
