#!/usr/bin/env python3
"""`tutti compare`."""
import sys

from programs import EXAMPLE, WAFER, Programs, main


class Compare(Programs):
    def test_whole_outputs(self):
        self.is_golden("compare_batch.txt", self.tutti("compare", EXAMPLE))
        self.is_golden("compare_tasks.txt", self.tutti("compare", WAFER))

    def test_compare_has_every_planner(self):
        answer = self.object_of(0, "compare", EXAMPLE, "--json")
        latencies = {row["planner"]: row["latency_ms"] for row in answer["planners"]}
        self.assertEqual(list(latencies), ["completion_aligned", "all_at_once", "bandwidth_allocation", "time_division", "gate_search"])
        self.assertEqual(latencies["gate_search"], 44.8)
        self.assertEqual(latencies["bandwidth_allocation"], 76.8)


if __name__ == "__main__":
    sys.exit(main())
