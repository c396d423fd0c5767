#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/tutti/formats/record_json.hpp"
#include "runtime/doctor/finding.hpp"

/// The output of `doctor`, and the self-test of `run`.
namespace tutti::internal {

template <>
struct Words<FindingState> {
  static constexpr std::array values{FindingState::Ok, FindingState::Risk, FindingState::Unread};
};

struct WakeOutput {
  std::optional<int> core = {};
  std::size_t instants = 0;
  Duration median{}, p99{}, p999{}, worst{};
};
template <>
struct Record<WakeOutput> {
  static constexpr std::tuple fields{
      Field{"core", &WakeOutput::core}.means("core that the thread was kept on; null: wherever the system put it"),
      Field{"instants", &WakeOutput::instants}.means("instants to which it slept"),
      Field{"median_ms", &WakeOutput::median}.means("how late it woke in the median"),
      Field{"p99_ms", &WakeOutput::p99}.means("the same at 99 %"),
      Field{"p999_ms", &WakeOutput::p999}.means("the same at 99.9 %"),
      Field{"worst_ms", &WakeOutput::worst}.means("the same at worst")};
};

struct SelfTestOutput {
  Duration period{};
  std::optional<Duration> limit = {}, worst = {};
  std::vector<WakeOutput> threads = {};
};
template <>
struct Record<SelfTestOutput> {
  static constexpr std::tuple fields{
      Field{"period_ms", &SelfTestOutput::period}.means("time between two instants"),
      Field{"limit_ms", &SelfTestOutput::limit}.means(
          "lateness that the machine file guarantees; null: it guarantees none"),
      Field{"worst_ms", &SelfTestOutput::worst}.means("largest lateness of any thread; null: no instant was reached"),
      Field{"threads", &SelfTestOutput::threads}.means("threads in the role of a dispatcher")};
};

struct FindingOutput {
  std::string subject, check;
  FindingState state = FindingState::Ok;
  std::string value = {};
  std::optional<std::string> remedy = {};
};
template <>
struct Record<FindingOutput> {
  static constexpr std::tuple fields{
      Field{"subject", &FindingOutput::subject}.means("what was looked at, like 'host' or a GPU"),
      Field{"check", &FindingOutput::check}.means("name of the check"),
      Field{"state", &FindingOutput::state}.means("whether timing is in danger"),
      Field{"value", &FindingOutput::value}.means("what was read, as text; of an unread one, what is missing"),
      Field{"remedy", &FindingOutput::remedy}.means("what would be right, in a sentence; null: nothing is wrong")};
};

struct DoctorOutput {
  SchemaVersion schema_version = {};
  std::vector<int> cores = {};
  std::size_t ok = 0, risks = 0, unread = 0;
  std::vector<FindingOutput> findings = {};
  std::optional<SelfTestOutput> self_test = {};
  std::vector<std::string> notes = {};
};
template <>
struct Record<DoctorOutput> {
  static constexpr std::tuple fields{
      Field{"schema_version", &DoctorOutput::schema_version}.means("version of these keys"),
      Field{"cores", &DoctorOutput::cores}.means("cores of the threads that keep the time; empty: not known"),
      Field{"ok", &DoctorOutput::ok}.means("number of findings without danger"),
      Field{"risks", &DoctorOutput::risks}.means("number of findings that endanger timing"),
      Field{"unread", &DoctorOutput::unread}.means("number of findings that the host does not tell"),
      Field{"findings", &DoctorOutput::findings}.means("what was found, one row a check and subject"),
      Field{"self_test", &DoctorOutput::self_test}.means("how late threads wake; null: not asked for"),
      Field{"notes", &DoctorOutput::notes}.means("requests that the host refused, a sentence each")};
};

}  // namespace tutti::internal
