#!/usr/bin/env python3
"""`tutti view`: the document in the page, what may be read, what is refused. tests/viewer looks at the page in a browser."""
import json
import random
import sys

from programs import EXAMPLE, WAFER, Programs, main
from report_test import HEAD, job, jobs, number, record, text, numbers

MARK = 'id="tutti-data">'


class View(Programs):
    def setUp(self):
        super().setUp()
        self.journal = self.folder / "run.journal"
        self.html = self.folder / "page.html"

    def run_it(self, *more):
        run = self.tutti("run", WAFER, "--set", "image=1MB", "--jobs", "12", "--journal", self.journal, *more)
        self.assertEqual(run.returncode, 0, run.stderr)

    def document(self, path, *more, code=0):
        run = self.tutti("view", path, "--html", self.html, *more)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertEqual(run.stdout, "")
        page = self.html.read_text(encoding="utf-8")
        begin = page.index(MARK) + len(MARK)
        return json.loads(page[begin:page.index("</script>", begin)]), run.stderr

    def test_of_a_journal(self):
        self.run_it()
        answer, said = self.document(self.journal)
        self.assertRegex(said, r"^wrote \S.*page\.html \(\d+ kB\)\n$")
        self.assertEqual((answer["notes"], answer["format"], answer["simulated"]), ([], "tutti view", 1))
        self.assertEqual((answer["tasks"]["name"], answer["tasks"]["jobs"], answer["tasks"]["misses"]), (["inspect"], [12], [0]))
        self.assertEqual(answer["jobs"]["index"], list(range(12)))
        # 4 GPUs, a copy, a kernel and a copy back each, measured and predicted.
        self.assertEqual((len(answer["slices"]["lane"]), sum(answer["slices"]["measured"])), (12 * 4 * 3 * 2, 12 * 4 * 3))
        self.assertEqual(sorted(set(answer["lanes"]["engine"])), ["down", "kernels", "up"])
        self.assertEqual(answer["jobs"]["predicted_ns"], [finish - start for start, finish in zip(answer["jobs"]["start_ns"], answer["jobs"]["finish_ns"])])
        names = answer["machine"]["vertices"]["name"]
        links = answer["machine"]["links"]
        self.assertEqual([names[links["to"][link]] for link in answer["routes"][0]], ["cpu0", "gpu0"])

    def test_of_a_trace_it_is_that_of_the_journal(self):
        trace = self.folder / "t.json.gz"
        self.run_it("--trace", trace)
        of_journal, of_trace = self.document(self.journal)[0], self.document(trace)[0]
        self.assertEqual(of_trace["jobs"], of_journal["jobs"])
        self.assertEqual(of_trace["tasks"], of_journal["tasks"])
        self.assertEqual(of_trace["machine"], of_journal["machine"])

        def slices(answer):
            table, lanes = answer["slices"], answer["lanes"]
            rows = zip(*(table[key] for key in ("lane", "name", "measured", "start_ns", "length_ns", "job", "bytes", "route")))
            return sorted((lanes["device"][lane], lanes["engine"][lane], table["names"][name], measured, start, length, job, byte or 0, answer["routes"][route] if route is not None else [])
                          for lane, name, measured, start, length, job, byte, route in rows)

        for mine, other in zip(slices(of_trace), slices(of_journal)):
            self.assertEqual(mine[:4] + mine[6:], other[:4] + other[6:])
            self.assertLessEqual(abs(mine[4] - other[4]) + abs(mine[5] - other[5]), 4)  # neighbours do not overlap in a trace
        # The trace of the journal is that of the run.
        again = self.folder / "again.json"
        self.assertEqual(self.tutti("view", self.journal, "--trace", again).returncode, 0)
        self.assertEqual(self.document(again)[0]["jobs"], of_journal["jobs"])

    def test_of_a_prediction(self):
        answer, _ = self.document(self.file(self.tutti("predict", EXAMPLE, "--json").stdout, "p.json"))
        self.assertEqual((set(answer["slices"]["measured"]), answer["jobs"]["index"]), ({0}, []))
        self.assertEqual(max(start + length for start, length in zip(answer["slices"]["start_ns"], answer["slices"]["length_ns"])), 44_800_000)
        self.assertIn(["latest finish", "44.800000 ms"], answer["about"])

    # Format 1 has no lanes: a task stands for the device.
    def test_of_a_journal_of_format_1(self):
        self.journal.write_bytes(HEAD + jobs(0, job(0, streams=((0, 2, 5000, 700),))) + record(5, number(0) + number(1) + number(0) + number(0) + numbers([1])))
        answer, _ = self.document(self.journal)
        self.assertEqual((answer["lanes"]["device"], answer["lanes"]["engine"]), (["inspect"], ["batch 1 stream 3"]))
        self.assertEqual((answer["slices"]["start_ns"], answer["slices"]["length_ns"]), ([5000], [700]))

    def test_the_last_jobs_and_the_misses_before_them(self):
        self.journal.write_bytes(HEAD + jobs(0, *[job(i, 1 if i == 3 else 0) for i in range(50)]) + record(5, number(0) + number(50) + number(0) + number(0) + numbers([50])))
        answer, _ = self.document(self.journal, "--jobs", 4)
        self.assertEqual((answer["jobs"]["index"], answer["tasks"]["jobs"], answer["tasks"]["misses"]), ([3, 46, 47, 48, 49], [50, 0], [1, 0]))
        self.assertIn("5 of 50 jobs are shown", answer["notes"][0])

    # The kernel of job 3 takes 5 ms longer: it is over its bound and meets its deadline, and the last jobs are others.
    def test_jobs_over_their_bound_are_counted_and_kept(self):
        faults = self.file("version: 1\nfaults:\n  - {kind: slow_kernels, task: inspect, times: 1, by: 5 ms, jobs: [3, 3]}\n")
        run = self.tutti("run", WAFER, "--set", "image=1MB", "--jobs", "12", "--faults", faults, "--journal", self.journal)
        self.assertEqual(run.returncode, 3, run.stderr)
        for path in (self.journal, self.folder / "t.json"):
            answer, _ = self.document(path, "--jobs", 4, *(["--trace", self.folder / "t.json"] if path == self.journal else []))
            self.assertEqual((answer["tasks"]["misses"], answer["tasks"]["over_bound"]), ([0], [1]))
            self.assertEqual((answer["jobs"]["index"], answer["simulated"]), ([3, 8, 9, 10, 11], 1))
            self.assertGreater(answer["jobs"]["over_by_ns"][0], 0)
            self.assertEqual(answer["jobs"]["causes"][answer["jobs"]["cause"][0]], "kernel")
        events = json.loads((self.folder / "t.json").read_text(encoding="utf-8"))["traceEvents"]
        self.assertEqual([event["name"] for event in events if event.get("cat") == "over_bound"], ["inspect 3 over bound"])

    # A replayed counter-example: the alarm waits for the image before it.
    def test_the_waiting_of_a_replayed_counter_example(self):
        misses, trace = self.folder / "misses.yaml", self.folder / "t.json"
        tasks = "configs/tasks/alarm-behind-image.yaml"
        self.assertEqual(self.tutti("check", tasks, "--counter-example", misses).returncode, 1)
        self.assertEqual(self.tutti("run", tasks, "--scenario", misses, "--journal", self.journal, "--trace", trace).returncode, 1)
        answer, _ = self.document(self.journal)
        jobs = answer["jobs"]
        missed = [j for j, verdict in enumerate(jobs["verdict"]) if jobs["verdicts"][verdict] == "missed"]
        self.assertTrue(missed)
        for j in missed:
            self.assertGreater(jobs["start_ns"][j], jobs["arrival_ns"][j])
        waits = [event for event in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"] if event.get("cat") == "waiting"]
        self.assertEqual(len(waits), sum(start > arrival for start, arrival in zip(jobs["start_ns"], jobs["arrival_ns"])))
        for wait in waits:
            self.assertRegex(wait["name"], r"^\w+ \d+ waits$")

    def test_names_end_no_page(self):
        self.journal.write_bytes(HEAD + record(2, number(2) + text("</script><!--") + number(0) * 4) + jobs(0, job(0, which=2)))
        answer, _ = self.document(self.journal, code=2)
        self.assertEqual(answer["tasks"]["name"][2], "</script><!--")

    def test_what_is_cut_off_is_shown_and_named(self):
        trace = self.folder / "t.json"
        self.run_it("--trace", trace)
        whole = self.journal.read_bytes()
        cut = self.folder / "cut"
        for length in (1, 50, len(whole) // 2, len(whole) - 3, len(whole) - 20):
            cut.write_bytes(whole[:length])
            answer, said = self.document(cut, code=2)
            self.assertRegex(said, r"cut: (cut off at|it ends at) byte \d+")
            self.assertEqual(len(answer["notes"]), 1)
        cut.write_bytes(whole[:100] + b"\0" + whole[101:])
        self.assertIn("from byte ", self.document(cut, code=2)[1])
        data = trace.read_bytes()
        cut.write_bytes(data[:len(data) * 2 // 3])
        answer, said = self.document(cut, code=2)
        self.assertRegex(said, r"cut: line \d+, column \d+: the trace is cut off here")
        self.assertGreater(len(answer["jobs"]["index"]), 0)

    # The first run is shown; tasks of the second, which has more of them, are none of the first.
    def test_of_journals_in_a_row_the_first_is_shown(self):
        self.run_it()
        first = self.journal.read_bytes()
        self.journal.write_bytes(first + HEAD + record(2, number(40) + text("late") + number(0) * 4) + jobs(0, job(0, which=40)))
        answer, said = self.document(self.journal, code=2)
        self.assertIn("several journals in a row: the first run is shown, and 1 jobs of others are not", said)
        self.assertNotIn("late", answer["tasks"]["name"])

    # Records with right checksums and wrong contents, in any order; traces with wrong letters.
    def test_any_damage_ends_with_an_answer(self):
        trace, damaged = self.folder / "t.json", self.folder / "damaged"
        self.run_it("--trace", trace)
        whole, text_of_trace, draw = self.journal.read_bytes(), trace.read_bytes()[:20_000], random.Random(1)
        starts = [0]
        while starts[-1] < len(whole):
            starts.append(starts[-1] + 12 + int.from_bytes(whole[starts[-1] + 10:starts[-1] + 12], "little"))
        for _ in range(60):
            records = [bytearray(whole[begin:end]) for begin, end in zip(starts, starts[1:])]
            one = draw.choice(records)
            one[draw.randrange(12, len(one))] = draw.choice((0, 1, 127, 128, 255))
            if draw.random() < 0.3:
                draw.shuffle(records)
            letters = bytearray(text_of_trace)
            letters[draw.randrange(len(letters))] = draw.choice(b'0123456789"{}[],:-e')
            for data in (b"".join(record(each[8], bytes(each[12:])) for each in records), bytes(letters)):
                damaged.write_bytes(data)
                again = self.folder / "again.json"
                run = self.tutti("view", damaged, "--html", self.html, "--trace", again)
                self.assertIn(run.returncode, (0, 2), run.stderr)
                if run.returncode == 0:
                    json.loads(again.read_text(encoding="utf-8"), parse_constant=self.fail)

    def test_what_cannot_be_shown_is_refused(self):
        trace = self.folder / "t.json"
        self.assertEqual(self.tutti("predict", EXAMPLE, "--trace", trace).returncode, 0)
        newer = record(1, number(3) + number(0) * 2 + b"".join(map(text, ("9.9", "m", "edf", "sim", "virtual"))) + numbers([0]))
        self.journal.write_bytes(newer)
        prediction = json.loads(self.tutti("predict", EXAMPLE, "--json").stdout)
        without = {key: value for key, value in prediction.items() if key != "plan"}
        broken = json.loads(json.dumps(prediction))
        broken["plan"]["streams"][0]["route"] = ["mem0", "nowhere"]
        cases = (
            (self.file("", "empty"), "this file is empty"),
            (self.folder, "this is a folder"),
            ("/no/such/file", "there is no folder 'no' in /"),
            (self.journal, "this journal has format 3, and this program reads 2; use that of tutti 9.9"),
            (self.file('{"traceEvents": [{"ph": "X"}]}', "a"), "a trace of another program"),
            (self.file('[{"ph": "X"}]', "b"), "as traces of other programs are"),
            (self.file(trace.read_text(encoding="utf-8").replace('"schema_version":1', '"schema_version":2', 1), "c"), "schema_version 2"),
            (self.file(self.tutti("check", WAFER, "--json").stdout, "d"), "neither a trace nor that of 'predict'"),
            (self.file(json.dumps(without), "e"), "write it with this tutti"),
            (self.file(json.dumps(broken), "f"), "'vertices' is not as"),
            (self.file(json.dumps(dict(prediction, schema_version=2)), "g"), "schema_version 2"),
            (self.file(json.dumps(prediction)[:300], "h"), "h:1:301: this is neither a journal nor whole JSON"),
            (self.file('{"a":' * 100_000, "i"), "nested deeper"),
            (WAFER, "wafer-inspection.yaml:1:1: this is neither a journal nor JSON"),
        )
        for path, words in cases:
            with self.subTest(words):
                self.refuses(self.tutti("view", path, "--html", self.html), words)
                self.assertFalse(self.html.exists())

    def test_outputs_that_cannot_be(self):
        self.run_it()
        whole = self.journal.read_bytes()
        link = self.folder / "link"
        link.symlink_to(self.journal)
        for output in (self.journal, link):
            self.refuses(self.tutti("view", self.journal, "--html", output), "this is the file to show")
        self.assertEqual(self.journal.read_bytes(), whole)
        self.refuses(self.tutti("view", self.journal), "nothing to write")
        self.refuses(self.tutti("view", self.journal, "--html", self.folder), "this is a folder; name a file in it")
        self.refuses(self.tutti("view", self.journal, "--html", "/dev/full"), "cannot be written to its end", code=3)


if __name__ == "__main__":
    sys.exit(main())
