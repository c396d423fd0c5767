#!/usr/bin/env python3
"""Runs a program under mpirun, one of whose ranks is killed, and looks at how the others end.

Usage: mpi_death_test.py MPIRUN PROGRAM
"""
import re
import subprocess
import sys

mpirun, program = sys.argv[1:]
# Without recovery mpirun ends the others itself, before they can.
run = subprocess.run([mpirun, "--enable-recovery", "--oversubscribe", "--allow-run-as-root", "--mca", "btl", "self,vader",
                      "-n", "3", "sh", "-c", f'"{program}"; echo "rank $OMPI_COMM_WORLD_RANK has code $?"'],
                     capture_output=True, text=True, timeout=120)
# The first that sees it tells the other.
expected = [f"rank {rank} ends: (rank {2 - rank} gave up: )?rank 1 has died" for rank in (0, 2)]
expected += [f"rank {rank} has code 3" for rank in (0, 2)]
missing = [text for text in expected if not re.search(text, run.stdout)]
if missing:
    print("missing:", *missing, "the output:", run.stdout, run.stderr, sep="\n")
sys.exit(1 if missing else 0)
