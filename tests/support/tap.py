"""Runs the unittest cases of a module and writes TAP, so that Meson counts every case."""
import sys
import unittest


class Tap(unittest.TestResult):
    """One TAP line a case; a case with a failed subTest is printed once, as failed."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def stopTest(self, test):
        super().stopTest(test)
        self.count += 1
        name = f"{type(test).__name__}.{test._testMethodName}"
        complaints = [text for case, text in self.failures + self.errors if getattr(case, "test_case", case) is test]
        reasons = [reason for case, reason in self.skipped if case is test]
        for text in complaints:
            print(text, file=sys.stderr)
        skip = f" # SKIP {reasons[0]}" if reasons else ""
        print(f"{'not ok' if complaints else 'ok'} {self.count} - {name}{skip}", flush=True)


def main(patterns):
    """Runs the cases whose names contain one of the patterns; all, if there is none. Returns the exit code."""
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{pattern}*" for pattern in patterns] or None
    cases = loader.loadTestsFromModule(sys.modules["__main__"])
    print(f"1..{cases.countTestCases()}")
    result = cases.run(Tap())
    return 0 if result.wasSuccessful() else 1
