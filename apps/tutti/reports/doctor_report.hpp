#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/reports/doctor_output.hpp"
#include "runtime/doctor/finding.hpp"
#include "runtime/host/lateness.hpp"

namespace tutti::internal {

/// A self-test that ran, beside what it may show.
struct SelfTest {
  std::vector<WakeLateness> threads;
  std::optional<Duration> limit = {};  ///< of the worst lateness; absent: nothing limits it
};

/// What `doctor` found.
struct Diagnosis {
  std::vector<int> cores;  ///< of the threads that keep the time
  Findings findings;
  std::optional<SelfTest> self_test = {};
  std::vector<std::string> notes = {};  ///< requests of the self-test that the host refused

  [[nodiscard]] std::size_t count(FindingState state) const;
};

/// The largest lateness that a machine's file guarantees of gates and of dispatching; nothing where it guarantees none.
[[nodiscard]] std::optional<Duration> guaranteed_lateness(const MachineSpec& machine);

/// The worst lateness of a self-test beside its limit; the subject is "host".
[[nodiscard]] Finding lateness_finding(const SelfTest& test);
/// A sentence where the worst lateness of a run's self-test is above what the machine file guarantees; else empty.
[[nodiscard]] std::string lateness_note(const SelfTest& test);

/// A row for each thread of a self-test, with quantiles.
[[nodiscard]] std::string self_test_text(const SelfTest& test);
[[nodiscard]] std::optional<SelfTestOutput> self_test_output(const std::optional<SelfTest>& test);

/// The report of `doctor`: a row for each finding.
[[nodiscard]] std::string doctor_text(const Diagnosis& diagnosis);
[[nodiscard]] DoctorOutput doctor_output(const Diagnosis& diagnosis);

}  // namespace tutti::internal
