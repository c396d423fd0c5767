// All rows together: a quiet host, hosts of garbage. What each row finds is in the tests of its source.
#include "runtime/doctor/host_checks.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/fake_host.hpp"

namespace tutti::internal {
namespace {

std::size_t count(const Findings& findings, FindingState state) {
  return static_cast<std::size_t>(std::ranges::count(findings, state, &Finding::state));
}

/// What holds of every finding, whatever the files contain.
void expect_whole(const Findings& findings, const std::string& what) {
  ASSERT_EQ(findings.size(), host_checks().size());
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.subject, "host");
    EXPECT_FALSE(finding.check.empty());
    EXPECT_FALSE(finding.value.empty()) << finding.check << ": " << what;
    EXPECT_EQ(finding.remedy.empty(), finding.state == FindingState::Ok) << finding.check << ": " << what;
    EXPECT_EQ(printable(finding.value), finding.value) << finding.check << ": " << what;
  }
}

TEST(HostChecks, FindNothingWrongWithAQuietHost) {
  const test::QuietHost host;
  for (const Finding& finding : look_at_host(host.question()))
    EXPECT_EQ(finding.state, FindingState::Ok) << finding.check << ": " << finding.value << "; " << finding.remedy;
}

TEST(HostChecks, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const HostCheck& check : host_checks()) names.insert(check.name);
  EXPECT_EQ(names.size(), host_checks().size());
}

TEST(HostChecks, ReadNothingWhereThereIsNothing) {
  const test::FakeHost host;
  const auto question = host_question(host.files(), {}, {}, [] {});
  ASSERT_TRUE(question.has_value());
  EXPECT_TRUE(question->cores.empty() && question->own.empty());
  const Findings findings = look_at_host(*question);
  expect_whole(findings, "empty folder");
  EXPECT_EQ(count(findings, FindingState::Unread), findings.size());
}

// Every file of the quiet host in turn holds what it never should: no row fails, and rows that do not read it stay ok.
TEST(HostChecks, TakeAnyContents) {
  const test::QuietHost host;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(host.root()))
    if (entry.is_regular_file()) paths.push_back(entry.path().lexically_relative(host.root()).string());
  ASSERT_GT(paths.size(), 60U);
  const std::vector<std::string> contents{"",
                                          "\n",
                                          std::string(3, '\0'),
                                          "\xff\xfe garbage [ ( : , -",
                                          "-9223372036854775808",
                                          "99999999999999999999999999",
                                          "0-99999999999",
                                          std::string(100'000, '['),
                                          std::string(50'000, '1') + " " + std::string(50'000, '\n')};
  for (const std::string& path : paths) {
    const std::string before = *host.files().bytes(path);
    for (const std::string& text : contents) {
      host.write(path, text);
      const std::string what = path + " holds " + printable(text.substr(0, 40));
      auto question = host_question(host.files(), {}, {"0000:06:00.0"}, [] {});
      ASSERT_TRUE(question.has_value()) << what;
      question->processor_times = {text, before};
      expect_whole(look_at_host(*question), what);
    }
    host.write(path, before);
  }
}

}  // namespace
}  // namespace tutti::internal
