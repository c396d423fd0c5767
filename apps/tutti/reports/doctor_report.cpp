#include "apps/tutti/reports/doctor_report.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "apps/table.hpp"
#include "runtime/doctor/host_files.hpp"

namespace tutti::internal {
namespace {

std::string tenths_of_us(Duration time) { return fmt::format("{:.1f}", as_ns(time) / 1e3); }

std::string core_text(const WakeLateness& thread) { return thread.core ? fmt::to_string(*thread.core) : "any"; }

/// The thread that was latest. @pre there is one
const WakeLateness& latest(const SelfTest& test) {
  return *std::ranges::max_element(test.threads, {}, &WakeLateness::worst);
}

FindingOutput finding_output(const Finding& finding) {
  return {finding.subject, finding.check, finding.state, finding.value, text_if_any(finding.remedy)};
}

}  // namespace

std::size_t Diagnosis::count(FindingState state) const {
  return static_cast<std::size_t>(std::ranges::count(findings, state, &Finding::state));
}

std::optional<Duration> guaranteed_lateness(const MachineSpec& machine) {
  const Duration most = std::max(machine.setup.gate.guaranteed, machine.setup.dispatch.guaranteed);
  return most > Duration{0} ? std::optional(most) : std::nullopt;
}

Finding lateness_finding(const SelfTest& test) {
  const auto worst = worst_of(test.threads);
  Finding finding = Finding::unread("no instant was reached", "let the self-test run to its end");
  if (worst) {
    const auto core = latest(test).core;
    finding = Finding::risk_if(
        test.limit && *worst > *test.limit,
        fmt::format("{} us late at worst{}{}", tenths_of_us(*worst), core ? fmt::format(", core {}", *core) : "",
                    test.limit ? fmt::format(", limit {} us", tenths_of_us(*test.limit)) : ""),
        "a thread like the dispatcher woke up late; begin with the risks above, and test with --priority");
  }
  finding.subject = "host";
  finding.check = "self-test";
  return finding;
}

std::string lateness_note(const SelfTest& test) {
  const auto worst = worst_of(test.threads);
  if (!worst || !test.limit || *worst <= *test.limit) return "";
  return fmt::format(
      "self-test: a thread like the dispatcher woke up {} us late, and the machine file guarantees {} us (gate, "
      "dispatch), so jobs may be over their bound; 'tutti doctor' looks for the cause",
      tenths_of_us(*worst), tenths_of_us(*test.limit));
}

std::string self_test_text(const SelfTest& test) {
  programs::Table table({"core", "instants", "late: median us", "99 %", "99.9 %", "worst"});
  for (const WakeLateness& thread : test.threads)
    table.add({core_text(thread), fmt::to_string(thread.instants), tenths_of_us(thread.median),
               tenths_of_us(thread.p99), tenths_of_us(thread.p999), tenths_of_us(thread.worst)});
  return fmt::format("self-test: a thread slept to instants {} apart{}\n\n{}", to_string(LatenessTest::kPeriod),
                     test.limit ? fmt::format("; limit {} us", tenths_of_us(*test.limit)) : "", table.text());
}

std::optional<SelfTestOutput> self_test_output(const std::optional<SelfTest>& test) {
  if (!test) return std::nullopt;
  SelfTestOutput output{LatenessTest::kPeriod, test->limit, worst_of(test->threads)};
  for (const WakeLateness& thread : test->threads)
    output.threads.push_back({thread.core, thread.instants, thread.median, thread.p99, thread.p999, thread.worst});
  return output;
}

std::string doctor_text(const Diagnosis& diagnosis) {
  programs::Table table({"state", "of", "check", "value", "remedy"});
  for (const std::size_t column : {1U, 2U, 3U, 4U}) table.align_left(column);
  for (const Finding& finding : diagnosis.findings)
    table.add({std::string(to_string(finding.state)), finding.subject, finding.check, finding.value, finding.remedy});
  return fmt::format("{} ok, {} at risk, {} unread; cores of the threads that keep the time: {}\n\n{}{}",
                     diagnosis.count(FindingState::Ok), diagnosis.count(FindingState::Risk),
                     diagnosis.count(FindingState::Unread),
                     diagnosis.cores.empty() ? "not known" : list_of_cores(diagnosis.cores), table.text(),
                     diagnosis.self_test ? "\n" + self_test_text(*diagnosis.self_test) : "");
}

DoctorOutput doctor_output(const Diagnosis& diagnosis) {
  DoctorOutput output;
  output.cores = diagnosis.cores;
  output.ok = diagnosis.count(FindingState::Ok);
  output.risks = diagnosis.count(FindingState::Risk);
  output.unread = diagnosis.count(FindingState::Unread);
  for (const Finding& finding : diagnosis.findings) output.findings.push_back(finding_output(finding));
  output.self_test = self_test_output(diagnosis.self_test);
  output.notes = diagnosis.notes;
  return output;
}

}  // namespace tutti::internal
