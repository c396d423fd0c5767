#!/usr/bin/env python3
"""The first page and the pages of folders: every command as it stands there, every number of the first page, every link.
Commands for GPUs run to their refusal where there is none."""
import re
import shlex
import subprocess
import sys
import textwrap
import unittest

from programs import H200X4, ROOT, Programs, main


def code_in(line):
    """The exit code that a command's comment names."""
    return int((re.findall(r"exit code (\d)", line) or [0])[0])


def sections(text):
    """The sections of a page by the anchors of their headings."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"): body for heading, body in zip(parts[::2], parts[1::2])}


class Documents(Programs):
    """Runs commands in a folder that looks like a fresh clone."""

    def setUp(self):
        super().setUp()
        for name in ("configs", "tests"):
            (self.folder / name).symlink_to(ROOT / name)

    def run_line(self, line):
        program, *words = shlex.split(line, comments=True)
        path = "tutti/tutti" if program == "$t" else program.removeprefix("build/apps/")
        return subprocess.run([str(self.built / path), *words], capture_output=True, text=True, cwd=self.folder, timeout=120,
                              check=False)


class FirstPage(Documents):
    TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
    PICTURES = ("batches/inspection-example.svg", "tasks/alarm-behind-image.svg")

    def commands(self):
        """Indented lines that are commands, with the exit code that they name."""
        return [(line.strip(), code_in(line)) for line in self.TEXT.split("\n") if re.match(r"    (\$t|t=|build/|tools/)", line)]

    def paragraphs(self):
        """Paragraphs, rows and bullets of the text, without commands, their output, and footnotes."""
        lines = [line for line in self.TEXT.split("\n") if not line.startswith(("    ", "[")) or line.startswith("[`")]
        return [text for text in re.split(r"\n\n|\n(?=[-|] ?)", "\n".join(lines)) if text.strip()]

    def test_it_is_one_page(self):
        self.assertLessEqual(self.TEXT.count("\n"), 110)

    def test_its_commands_do_what_it_says(self):
        run = [(line, code) for line, code in self.commands() if line.startswith(("$t", "build/"))]
        self.assertGreater(len(run), 2)
        for line, code in run:
            with self.subTest(line):
                done = self.run_line(line)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertNotEqual(done.stdout, "")
        others = [shlex.split(line, comments=True) for line, _ in self.commands() if (line, _) not in run]
        self.assertEqual(others, [["tools/start"], ["tools/test"], ["t=build/apps/tutti/tutti"]])  # a bare root runs these

    # Eight of the 200 jobs: the last columns count all jobs, the others are the same for each.
    def test_the_report_is_that_of_the_main_job(self):
        wafers = self.folder / "wafers"
        made = self.wafer("generate", "--images", wafers)
        self.assertEqual(made.returncode, 0, made.stderr)
        printed = self.wafer("--images", wafers, "--jobs", 8)
        self.assertEqual(printed.returncode, 0, printed.stderr)
        shown = textwrap.dedent(re.search(r"    wafer inspection on (.*\n)+?(?=\n[^ ])", self.TEXT)[0]).strip().split("\n")
        lines = printed.stdout.strip().split("\n")
        self.assertEqual([*lines[:2], lines[3].split()], [*shown[:2], shown[3].split()])
        found, said = lines[4].split(), shown[4].split()
        self.assertEqual((found[1:7], found[9]), (said[1:7], said[9]))
        self.assertEqual([int(word) * 25 for word in (found[0], *found[7:9])], [int(word) for word in (said[0], *said[7:9])])

    def test_its_pictures_are_what_their_tool_draws(self):
        drawn = subprocess.run([ROOT / "tools/picture", self.built / "tutti/tutti", self.folder / "drawn"], capture_output=True, text=True, check=False)
        self.assertEqual(drawn.returncode, 0, drawn.stderr)
        for name in self.PICTURES:
            shipped = (ROOT / "configs" / name).read_text(encoding="utf-8")
            self.assertEqual(shipped, (self.folder / "drawn" / name).read_text(encoding="utf-8"), "tools/picture draws it anew")

    # A number with a unit is one that a command above prints, a shipped task set has or a picture shows, or one of the
    # section of RESULTS.md that its paragraph links; there, every number is.
    def test_every_number_is_one_that_a_command_or_a_table_shows(self):
        shown = "\n".join(self.run_line(line).stdout for line, _ in self.commands() if line.startswith("$t"))
        shown += "".join((ROOT / "configs" / name).read_text(encoding="utf-8") for name in self.PICTURES)
        shown += "".join((ROOT / f"configs/tasks/{name}.yaml").read_text(encoding="utf-8") for name in ("wafer-inspection", "alarm-behind-image"))
        results = (ROOT / "tests/bench/RESULTS.md").read_text(encoding="utf-8")
        measured = 0
        for text in self.paragraphs():
            linked = re.findall(r"RESULTS\.md#([\w-]+)", text)
            words = re.sub(r"\]\([^)]*\)|`[^`]*`|\[\d+\]", " ", text)
            source = shown + "".join(sections(results)[anchor] for anchor in linked)
            wanted = re.findall(r"(?<![\w.-])(\d+(?:\.\d+)?) ?(?:%|ms|us|GB|MB)(?!\w)", words)
            if linked:
                for date in re.findall(r"20\d\d-\d\d-\d\d", words):
                    self.assertIn(date, results)
                wanted += re.findall(r"(?<![\w.-])(\d+(?:\.\d+)?)(?![\w-])", re.sub(r"20\d\d-\d\d-\d\d", " ", words))
                measured += 1
            for number in wanted:
                self.assertRegex(source, rf"(?<![\d.]){re.escape(number)}(?![\d]|\.\d)", f"{number} in: {text}")
        self.assertGreater(measured, 1)

    def test_what_it_says_of_others_has_version_and_source(self):
        table = self.TEXT.split("\n## Beside what you use now\n")[1].split("\n## ")[0]
        notes = dict(re.findall(r"^\[(\d+)\] (.*)$", table, re.MULTILINE))
        self.assertEqual(set(re.findall(r"(?<!^)\[(\d+)\]", table, re.MULTILINE)), set(notes))
        for note in notes.values():
            self.assertRegex(note, r"\d.*https://\S+\.\S+")

    def test_the_shipped_counter_example_is_what_check_writes(self):
        tasks, written = "configs/tasks/alarm-behind-image.yaml", self.folder / "misses.yaml"
        self.assertEqual(self.tutti("check", tasks, "--counter-example", written).returncode, 1)
        shipped = (ROOT / "configs/scenarios/alarm-behind-image.yaml").read_text(encoding="utf-8")
        self.assertEqual(shipped.split("\n", 2)[2], written.read_text(encoding="utf-8"))  # two comments in front


class Commands(Documents):
    """Lists of commands in the pages of folders."""
    # Exit codes other than 0: another host than the one that was calibrated, a set that is refused, its run that misses.
    CODES = {"calibrate --check": 4, "alarm-behind-image": 1, "waters-2019": 1}

    def code_of(self, line):
        return next((code for words, code in self.CODES.items() if words in line), 0)

    def commands(self, page, begin, end):
        section = (ROOT / page).read_text(encoding="utf-8").split(f"\n{begin}")[1].split(f"\n{end}")[0]
        lines = [line.strip() for line in section.split("\n") if re.match(r"    (\$t|build/apps/\S+) ", line)]
        self.assertGreater(len(lines), 2)
        return lines

    def test_questions_have_answers(self):
        for heading in ("## Questions, and the commands that answer them", "## A machine from measured rates"):
            for line in self.commands("configs/README.md", heading, "## "):
                with self.subTest(line):
                    run = self.run_line(line)
                    self.assertEqual(run.returncode, self.code_of(line), run.stderr)
                    self.assertNotEqual(run.stdout + run.stderr, "")

    def test_what_is_for_gpus_runs_or_says_that_there_are_none(self):
        for name in ("detected.yaml", "machine.yaml"):
            (self.folder / name).write_text((ROOT / H200X4).read_text(encoding="utf-8"), encoding="utf-8")
        for line in self.commands("runtime/cuda/README.md", "**From a bare host to a run.**", "| file "):
            if line.startswith("$t run ") or "/wafer_inspection/" in line:
                line += " --jobs 10" if "--for" not in line else ""
            with self.subTest(line):
                run = self.run_line(line)
                self.assertIn(run.returncode, (0, 1) if "doctor" in line else (0, 3), run.stderr)
                if run.returncode == 3:
                    self.assertEqual(run.stderr.count("\n"), 1, run.stderr)


class PublishedFigures(Documents):
    # Rows of `bench methods` take minutes, since their bytes are moved; tests/apps/lab/benches/published_workloads_test.cpp has
    # the same sums.
    def test_what_is_called_reproduced_is_printed(self):
        text = (ROOT / "model/REFERENCES.md").read_text(encoding="utf-8").split("\n## Published figures\n")[1]
        rows = re.findall(r"^\| .+ \| .+ \| `tutti (.+)` \| (.+) \|$", text, re.MULTILINE)
        self.assertGreater(len(rows), 6)
        for command, printed in rows:
            if not command.startswith("bench methods "):
                with self.subTest(command):
                    self.assertIn(f": {printed}", self.tutti(*command.split()).stdout.split("\n")[0])


class Links(unittest.TestCase):
    def test_they_lead_to_files_and_headings(self):
        pages = [page for pattern in ("*.md", "[a-z]*/README.md", "[a-z]*/[a-z]*/README.md", "model/*.md", "tests/**/*.md", "tests/bench/*.md") for page in ROOT.glob(pattern)]
        pages = {page for page in pages if not page.relative_to(ROOT).parts[0].startswith("build")}
        self.assertGreater(len(pages), 20)
        for page in sorted(pages):
            for target in re.findall(r"\]\(([^)#\s]*(?:#[\w-]+)?)\)", page.read_text(encoding="utf-8")):
                if not target.startswith("https://"):
                    path, _, anchor = target.partition("#")
                    file = page.parent / path if path else page
                    self.assertTrue(file.exists(), f"{page}: {target}")
                    if anchor:
                        self.assertIn(anchor, sections(file.read_text(encoding="utf-8")), f"{page}: {target}")


class Tutorial(Documents):
    """Blocks of the tutorial: a file, named in its first line, or commands with lines of their output below each."""

    def blocks(self):
        text = (ROOT / "configs/README.md").read_text(encoding="utf-8")
        section = text.split("\n## From an empty file to a checked station\n")[1].split("\n## ")[0]
        return [textwrap.dedent(block) for block in re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)]

    def runs(self, line):
        """Runs a command of the tutorial. Returns the lines that it prints."""
        code = code_in(line)
        if line.startswith("$ "):
            run = subprocess.run(line[2:], shell=True, capture_output=True, text=True, cwd=self.folder, check=False)
        else:
            run = self.run_line(line)
        self.assertIn(run.returncode, (0, 3) if "without a GPU" in line else (code,), run.stdout + run.stderr)
        return [printed.strip() for printed in run.stdout.split("\n")]

    def test_every_step_does_what_the_text_says(self):
        files, commands = [], 0
        for block in self.blocks():
            name = re.match(r"# (\S+\.yaml): ", block)
            if name:
                files.append(name[1])
                # Without GPUs nothing is measured, and the guessed machine stands for the measured one.
                for written in [name[1]] + ["detected.yaml", "machine.yaml"] * (name[1] == "station.yaml"):
                    self.file(block, written)
                continue
            printed = []
            for line in block.splitlines():
                with self.subTest(line):
                    if line.startswith("$"):
                        printed = self.runs(line)
                        commands += 1
                    elif not line.startswith("t="):
                        self.assertIn(line.strip(), printed)
                        printed = printed[printed.index(line.strip()) + 1:]
        self.assertEqual(files, ["station.yaml", "batch.yaml", "tasks.yaml"])
        self.assertGreater(commands, 14)


class Glossary(unittest.TestCase):
    def test_its_sources_are_listed(self):
        keys = set(re.findall(r"^\| ([A-Z]\w+) \|", (ROOT / "model/REFERENCES.md").read_text(encoding="utf-8"), re.MULTILINE))
        self.assertIn("LL73", keys)
        rows = re.findall(r"^\| (.+) \| (.+) \| (.*)\|$", (ROOT / "model/GLOSSARY.md").read_text(encoding="utf-8"), re.MULTILINE)
        sources = {key for _, _, cell in rows for key in cell.strip().split(", ") if key and key not in ("source", "---")}
        self.assertIn("LL73", sources)
        self.assertLessEqual(sources, keys)


if __name__ == "__main__":
    sys.exit(main())
