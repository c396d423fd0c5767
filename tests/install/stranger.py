"""A program of somebody else: two tasks and a kernel of its own, checked and run."""
import sys

import tutti

launches = []
verdict = tutti.TaskSet.load(sys.argv[1]).check()
record = verdict.run(jobs=12, kernels={"threshold": lambda launch: launches.append(launch.reads[0].size)})
print(f"{len(record.jobs)} jobs, {len(launches)} launches")
