#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/backend_words.hpp"
#include "apps/tutti/reports/doctor_report.hpp"
#include "model/machine/topology.hpp"

namespace tutti::internal {

/// Declares --self-test.
/// @param text  receives its value; empty: left out
void add_self_test_option(programs::CommandLine& command, std::string& text);

/// The length that --self-test asks for; nothing where it is left out.
/// @errors InvalidInput: no time, or one outside of `LatenessTest`'s.
[[nodiscard]] Expected<std::optional<Duration>> self_test_length(const std::string& text);

/// Checks --self-test of a run, before anything is loaded.
/// @errors InvalidInput: as `self_test_length`; a run on the virtual clock.
[[nodiscard]] Expected<void> check_self_test(const std::string& text, const programs::BackendWords& words);

/// The self-test at the start of a run, by a thread like its dispatcher, while its backends are there; nothing where
/// --self-test is left out.
/// @param role     of the run's dispatcher
/// @param machine  its guarantees are the limit
/// @pre `check_self_test` finds nothing wrong.
[[nodiscard]] std::optional<SelfTest> self_test_of_run(const std::string& text, const tutti::BackendOptions& options,
                                                       const ThreadRole& role, const Topology& machine);

/// Adds `lateness_note`, where there is one.
void add_lateness_note(const std::optional<SelfTest>& test, std::vector<std::string>& notes);

}  // namespace tutti::internal
