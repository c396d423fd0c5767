#include "apps/tutti/reports/doctor_report.hpp"

#include <chrono>

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

Finding named(Finding finding, std::string subject, std::string check) {
  finding.subject = std::move(subject);
  finding.check = std::move(check);
  return finding;
}

/// A test on core 3, late by 9 us at worst, and one on core 2, late by 40.
SelfTest two_cores() { return {{{3, 1000, 2us, 5us, 8us, 9us}, {2, 1000, 3us, 6us, 20us, 40us}}, 30us}; }

Diagnosis diagnosis() {
  Diagnosis found{{2, 3},
                  {named(Finding::ok("off"), "host", "boost"),
                   named(Finding::risk("powersave", "slow at first; set performance"), "host", "governor"),
                   named(Finding::unread("no display", "look at nvidia-smi"), "gpu0", "display")}};
  found.self_test = two_cores();
  return found;
}

TEST(DoctorReport, HasARowForEachFinding) {
  EXPECT_EQ(doctor_text(diagnosis()), R"(1 ok, 1 at risk, 1 unread; cores of the threads that keep the time: 2,3

state   of    check     value       remedy
ok      host  boost     off
risk    host  governor  powersave   slow at first; set performance
unread  gpu0  display   no display  look at nvidia-smi

self-test: a thread slept to instants 1 ms apart; limit 30.0 us

core  instants  late: median us  99 %  99.9 %  worst
3         1000              2.0   5.0     8.0    9.0
2         1000              3.0   6.0    20.0   40.0
)");
}

TEST(DoctorReport, JsonHasNullsForWhatIsNotThere) {
  Diagnosis found = diagnosis();
  const Json json = json_of(doctor_output(found));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["cores"], Json::parse("[2, 3]"));
  EXPECT_EQ((std::array{json["ok"], json["risks"], json["unread"]}), (std::array<Json, 3>{1, 1, 1}));
  EXPECT_EQ(json["findings"][0],
            Json::parse(R"({"subject": "host", "check": "boost", "state": "ok", "value": "off", "remedy": null})"));
  EXPECT_EQ(json["findings"][2]["state"], "unread");
  EXPECT_EQ(json["self_test"]["limit_ms"], 0.03);
  EXPECT_EQ(json["self_test"]["worst_ms"], 0.04);
  EXPECT_EQ(json["self_test"]["threads"][0]["core"], 3);
  EXPECT_EQ(json["self_test"]["threads"][1]["p999_ms"], 0.02);
  found.self_test.reset();
  found.cores.clear();
  EXPECT_TRUE(json_of(doctor_output(found))["self_test"].is_null());
  EXPECT_EQ(doctor_text(found).find("self-test"), std::string::npos);
  EXPECT_NE(doctor_text(found).find("keep the time: not known"), std::string::npos);
}

TEST(LatenessFinding, ComparesTheWorstWithTheLimit) {
  SelfTest test = two_cores();
  EXPECT_EQ(lateness_finding(test).state, FindingState::Risk);
  EXPECT_EQ(lateness_finding(test).value, "40.0 us late at worst, core 2, limit 30.0 us");
  test.limit = 40us;
  EXPECT_EQ(lateness_finding(test).state, FindingState::Ok);
  test.limit.reset();
  EXPECT_EQ(lateness_finding(test).value, "40.0 us late at worst, core 2");
  EXPECT_EQ(lateness_finding({{WakeLateness{}}, 1us}).state, FindingState::Unread);
}

// The larger one of gate and dispatch; a machine that declares neither guarantees nothing.
TEST(LatenessNote, SaysThatAGuaranteeIsInDanger) {
  MachineSpec machine{.name = "station"};
  EXPECT_EQ(guaranteed_lateness(machine), std::nullopt);
  machine.setup.gate = Cost(4us, 20us);
  machine.setup.dispatch = Cost(10us, 30us);
  EXPECT_EQ(guaranteed_lateness(machine), Duration{30us});
  EXPECT_EQ(lateness_note(two_cores()),
            "self-test: a thread like the dispatcher woke up 40.0 us late, and the machine file guarantees 30.0 us "
            "(gate, dispatch), so jobs may be over their bound; 'tutti doctor' looks for the cause");
  for (const std::optional<Duration>& limit : {std::optional<Duration>(40us), std::optional<Duration>()}) {
    SelfTest test = two_cores();
    test.limit = limit;
    EXPECT_EQ(lateness_note(test), "");
  }
}

}  // namespace
}  // namespace tutti::internal
