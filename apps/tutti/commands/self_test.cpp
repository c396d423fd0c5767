#include "apps/tutti/commands/self_test.hpp"

#include <fmt/format.h>

#include "apps/interrupt.hpp"

namespace tutti::internal {

void add_self_test_option(programs::CommandLine& command, std::string& text) {
  command.add("--self-test", &text,
              "for this time, like 5s, a thread like the dispatcher sleeps to instants 1 ms apart; the report has how "
              "late it woke up");
}

Expected<std::optional<Duration>> self_test_length(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const auto length = parse_duration(text);
  if (!length) return invalid_input("--self-test: " + length.error().message);
  if (*length < LatenessTest::kShortest || *length > LatenessTest::kLongest)
    return invalid_input(fmt::format("--self-test: {} is no length for it; give {} to {}", text,
                                     to_string(LatenessTest::kShortest), to_string(LatenessTest::kLongest)));
  return *length;
}

Expected<void> check_self_test(const std::string& text, const programs::BackendWords& words) {
  const auto length = self_test_length(text);
  if (!length) return tl::unexpected(length.error());
  if (*length && words.clock_name() == "virtual")
    return invalid_input("--self-test is for real time; give --clock real with it, or leave it out");
  return {};
}

std::optional<SelfTest> self_test_of_run(const std::string& text, const tutti::BackendOptions& options,
                                         const ThreadRole& role, const Topology& machine) {
  const auto length = self_test_length(text);
  if (!length.value()) return std::nullopt;
  const LatenessTest test{
      .length = **length, .role = role, .waiting = options.waiting, .interrupted = &programs::watch_for_interrupt()};
  return SelfTest{test_lateness(test), guaranteed_lateness(machine.spec())};
}

void add_lateness_note(const std::optional<SelfTest>& test, std::vector<std::string>& notes) {
  if (std::string note = test ? lateness_note(*test) : ""; !note.empty()) notes.push_back(std::move(note));
}

}  // namespace tutti::internal
