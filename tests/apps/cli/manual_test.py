#!/usr/bin/env python3
"""The pages of the manual, which scdoc makes of the commands' own words."""
import re
import shutil
import subprocess
import sys
import unittest

from programs import ROOT, Programs, main


class Manual(Programs):
    def pages(self, *words):
        """All commands, by the words that lead to them."""
        yield words
        listed = self.tutti(*words, "--help").stdout.partition("Subcommands:\n")[2].partition("\n\n")[0]
        for word in re.findall(r"^  ([a-z]+)", listed, re.MULTILINE):
            yield from self.pages(*words, word)

    def test_the_build_makes_a_page_of_every_command(self):
        build = (ROOT / "apps/generated/meson.build").read_text(encoding="utf-8")
        listed = re.findall(r"'([a-z ]*)'", re.search(r"manual_pages = \[(.*?)\]", build, re.DOTALL)[1])
        self.assertEqual(sorted(listed), sorted(" ".join(words) for words in self.pages()))

    @unittest.skipUnless(shutil.which("scdoc"), "there is no scdoc")
    def test_every_page_renders(self):
        for words in self.pages():
            with self.subTest(words=words):
                source = self.tutti("manual", *words)
                self.assertEqual((source.returncode, source.stderr), (0, ""))
                page = self.checked(["scdoc"], source.stdout)
                self.assertIn(f'.TH "{"-".join(("tutti",) + words)}" "1"', page)
                if shutil.which("groff"):
                    text = re.sub("\x1b\\[[0-9]*m|.\b", "", self.checked(["groff", "-man", "-ww", "-Tascii", "-rLL=200n"], page))
                    text = text.replace("\n", " ").replace("- ", "-")
                    help_text = self.tutti(*words, "--help").stdout.partition("Example")[0]
                    for option in re.findall(r"(?<![\w'-])--[a-z-]+", help_text):
                        self.assertIn(option, text)

    @unittest.skipUnless(shutil.which("scdoc"), "there is no scdoc")
    def test_the_inspection_has_pages_too(self):
        source = self.wafer("manual")
        self.assertEqual((source.returncode, source.stderr), (0, ""))
        self.assertIn("*wafer_inspection* [_COMMAND_] [_OPTIONS_]\n", source.stdout)
        self.assertIn('.TH "wafer_inspection" "1"', self.checked(["scdoc"], source.stdout))
        self.assertIn('.TH "wafer_inspection-generate" "1"', self.checked(["scdoc"], self.wafer("manual", "generate").stdout))

    def checked(self, command, given):
        run = subprocess.run(command, input=given, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
        self.assertEqual((run.returncode, run.stderr), (0, ""), given)
        return run.stdout

    def test_a_page_has_what_its_help_has(self):
        page = self.tutti("manual", "predict").stdout
        self.assertTrue(page.startswith("tutti-predict(1)\n\n# NAME\n\ntutti-predict - how long a batch takes"))
        for part in ("*tutti predict* [_OPTIONS_] _FILE_", "*\\-\\-planner* _WORD_", "Default: best", "# COMMON OPTIONS",
                     "```\ntutti predict configs/batches/inspection-example.yaml --planner time_division\n"):
            self.assertIn(part, page)
        self.assertIn("*tutti\\-topology\\-show*(1)", self.tutti("manual", "topology").stdout)

    def test_an_unknown_command_is_refused(self):
        self.refuses(self.tutti("manual", "topology", "shwo"), "there is no command 'tutti topology shwo'; did you mean 'show'?")


if __name__ == "__main__":
    sys.exit(main())
