#!/usr/bin/env python3
"""Each script is read by its shell, which is asked for completions. Without a shell its tests are skipped."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import unittest

from programs import ROOT, Programs, main

PLANNERS = ["best", "completion_aligned", "all_at_once", "bandwidth_allocation", "static_allocation", "time_division", "gate_search"]


def with_shell(name):
    return unittest.skipUnless(shutil.which(name), f"there is no {name}")


class Completion(Programs):
    def script(self, shell):
        run = self.tutti("completion", shell)
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return self.file(run.stdout, f"completion.{shell}")

    def in_shell(self, *command, **variables):
        run = subprocess.run(command, text=True, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60, env={**os.environ, **variables})
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        return run.stdout.splitlines()

    def bash(self, *words):
        script = 'source "$1"; shift; COMP_WORDS=(tutti "$@"); COMP_CWORD=$#; _tutti; printf "%s\\n" "${COMPREPLY[@]}"'
        return self.in_shell("bash", "--norc", "-c", script, "bash", self.script("bash"), *words)

    def fish(self, words):
        lines = self.in_shell("fish", "--no-config", "-c", f"source {re.escape(self.script('fish'))}; complete -C {words!r}", HOME=str(self.folder))
        return [line.partition("\t")[0] for line in lines]

    @with_shell("bash")
    def test_bash(self):
        self.assertEqual(self.bash("topo"), ["topology"])
        self.assertEqual(set(self.bash("topology", "")) & {"show", "detect", "predict"}, {"show", "detect"})
        self.assertEqual(self.bash("predict", "--planner", ""), PLANNERS)
        self.assertEqual(self.bash("predict", "--planner", "=", "time"), ["time_division"])
        self.assertEqual(self.bash("predict", "--planner", "="), PLANNERS)
        self.assertEqual(self.bash("predict", "--pl"), ["--planner"])
        self.assertEqual(self.bash("predict", "configs/ma"), ["configs/machines"])
        self.assertEqual(self.bash("check", "x", "--machine", "configs/ma"), ["configs/machines"])
        self.assertEqual(self.bash("--color", "always", "tasks", "exp"), ["expand"])  # an option in front
        self.assertEqual(self.bash("check", "--set", ""), [""])  # a value that nobody can list
        self.assertEqual(self.bash("completion", ""), ["bash", "zsh", "fish"])
        self.assertEqual(self.bash("-"), ["-h", "--help", "--version", "-q", "--quiet", "--color", "-v", "--verbose"])

    @with_shell("bash")
    def test_bash_completes_the_inspection(self):
        script = self.file(self.wafer("completion", "bash").stdout, "wafer.bash")
        for words, completed in ((["gen"], ["generate"]), (["--backend", ""], ["sim", "cuda"]), (["--mark"], ["--marked"])):
            lines = self.in_shell("bash", "--norc", "-c", 'source "$1"; shift; COMP_WORDS=(wafer_inspection "$@"); COMP_CWORD=$#; _wafer_inspection; printf "%s\n" "${COMPREPLY[@]}"',
                                  "bash", script, *words)
            self.assertEqual(lines, completed)

    @with_shell("bash")
    def test_bash_completes_what_a_user_types(self):
        self.assertEqual(self.typed(["bash", "--norc", "-i"], f"source {re.escape(self.script('bash'))}", "tutti predict --planner comp\t"), "tutti predict --planner completion_aligned")
        self.assertEqual(self.typed(["bash", "--norc", "-i"], f"source {re.escape(self.script('bash'))}", "tutti check configs/tasks/two-l\t"), "tutti check configs/tasks/two-lines.yaml")

    @with_shell("fish")
    def test_fish(self):
        self.assertEqual(self.fish("tutti topo"), ["topology"])
        self.assertEqual(set(self.fish("tutti topology ")) & {"show", "detect", "predict"}, {"show", "detect"})
        self.assertEqual(sorted(self.fish("tutti predict --planner ")), sorted(PLANNERS))
        self.assertEqual(self.fish("tutti predict --pl"), ["--planner"])
        self.assertEqual(self.fish("tutti predict configs/ma"), ["configs/machines/"])
        self.assertEqual(self.fish("tutti check x --machine configs/ma"), ["configs/machines/"])
        self.assertEqual(self.fish("tutti topology configs/ma"), [])  # a command is wanted, no file
        self.assertEqual(sorted(self.fish("tutti completion ")), ["bash", "fish", "zsh"])

    @with_shell("zsh")
    def test_zsh(self):
        setup = f"autoload -Uz compinit; compinit -u -D; source {re.escape(self.script('zsh'))}"
        for typed, completed in (
            ("tutti topo\t", "tutti topology"),
            ("tutti topology sh\t", "tutti topology show"),
            ("tutti predict --planner comp\t", "tutti predict --planner completion_aligned"),
            ("tutti predict --planner=comp\t", "tutti predict --planner=completion_aligned"),
            ("tutti predict --pl\t", "tutti predict --planner"),
            ("tutti check configs/tasks/two-l\t", "tutti check configs/tasks/two-lines.yaml"),
            ("tutti tasks expand --machine configs/machines/sandy\t", "tutti tasks expand --machine configs/machines/sandy-bridge-k10.yaml"),
            ("tutti completion f\t", "tutti completion fish"),
            ("tutti -q --color alw\t", "tutti -q --color always"),
        ):
            with self.subTest(typed=typed):
                self.assertEqual(self.typed(["zsh", "-f", "-i"], setup, typed).rstrip("="), completed)

    def typed(self, shell, setup, keys):
        """The words of a command line after these keys: `tutti` is a function that writes them into a file."""
        words = self.folder / "words"
        words.unlink(missing_ok=True)
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(ROOT)
            os.execvpe(shell[0], shell, {**os.environ, "TERM": "dumb", "PS1": "ready> ", "HOME": str(self.folder)})
        self.addCleanup(os.close, terminal)

        def read_until(*signs):
            shown = b""
            while not any(sign in shown for sign in signs):
                if select.select([terminal], [], [], 0.1)[0]:
                    try:
                        shown += os.read(terminal, 1 << 16)
                    except OSError:
                        break
            return shown

        os.write(terminal, f"{setup}; tutti() {{ echo tutti \"$@\" > {re.escape(str(words))}; }}; echo set-\"\"up\n".encode())
        read_until(b"set-up")
        os.write(terminal, keys.encode() + b"\necho do\"\"ne; exit\n")
        read_until(b"done\r")
        os.waitpid(process, 0)
        return words.read_text(encoding="utf-8").strip() if words.exists() else ""

    def test_another_shell_is_refused(self):
        self.refuses(self.tutti("completion", "tcsh"), "there is no script for 'tcsh'; give one of bash, zsh, fish")

    def test_all_options_of_all_commands_are_there(self):
        for shell in ("bash", "zsh", "fish"):
            text = self.tutti("completion", shell).stdout
            for words in (["run"], ["bench", "transfers"], ["tasks", "expand"]):
                for option in re.findall(r"(?<![\w-])--([a-z-]+)", self.tutti(*words, "--help").stdout.partition("\nExample")[0]):
                    self.assertIn(f"-l {option}" if shell == "fish" else f"--{option}", text)


if __name__ == "__main__":
    sys.exit(main())
