// Traces: what a lane cannot do at once stands in further threads, and loads of links add up.
#include "apps/tutti/formats/trace_writer.hpp"

#include <cstdio>
#include <memory>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tutti::internal {
namespace {

using TraceJson = nlohmann::json;

/// The events of a trace with one lane and one link of 10 GB/s, which these copies of 1000 bytes cross.
TraceJson events_of(const std::vector<std::pair<int, int>>& copies) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  TextStream text(file.get(), false);
  TraceWriter writer(text);
  RecordingHead head{.title = "copies", .measured = true};
  head.vertices = {{"mem0", "memory"}, {"gpu0", "gpu"}};
  head.links = {{0, 1, 10}};
  writer.begin(head);
  writer.add_lane({"gpu0", "up"});
  writer.add_name("copy");
  writer.add_route({0});
  for (const auto& [start, end] : copies)
    writer.slice({.measured = true, .route = 0, .start = Duration{start}, .end = Duration{end}, .bytes = Bytes{1000}});
  writer.end({});
  std::rewind(file.get());
  return TraceJson::parse(file.get()).at("traceEvents");
}

/// Thread, start and length in ns of each slice, threads counted from 0.
std::vector<std::tuple<int, int, int>> slices_of(const TraceJson& events) {
  std::vector<std::tuple<int, int, int>> slices;
  const auto ns = [](const TraceJson& us) { return static_cast<int>(us.get<double>() * 1000 + 0.5); };
  for (const TraceJson& event : events)
    if (event.at("ph") == "X")
      slices.emplace_back(event.at("tid").get<int>() - 1, ns(event.at("ts")), ns(event.at("dur")));
  return slices;
}

// The third begins 1 ns before the second ends, which is rounding: it begins 1 ns later. The fourth does not.
TEST(TraceWriter, PutsWhatOverlapsIntoAFurtherThread) {
  const TraceJson events = events_of({{0, 100}, {100, 200}, {199, 300}, {250, 400}, {400, 500}});
  EXPECT_EQ(slices_of(events), (std::vector<std::tuple<int, int, int>>{
                                   {0, 0, 100}, {0, 100, 100}, {0, 200, 100}, {1, 250, 150}, {0, 400, 100}}));
  std::vector<std::string> names;
  for (const TraceJson& event : events)
    if (event.at("name") == "thread_name") names.push_back(event.at("args").at("name"));
  EXPECT_EQ(names, (std::vector<std::string>{"up", "up 2"}));
}

// Jobs come in the order of their ends.
TEST(TraceWriter, PutsSlicesInTheOrderOfTheirStarts) {
  EXPECT_EQ(slices_of(events_of({{300, 400}, {0, 100}})),
            (std::vector<std::tuple<int, int, int>>{{0, 0, 100}, {0, 300, 100}}));
}

// 1000 bytes in 200 ns are 5 GB/s, half of the link; in 400 ns a quarter. Both are active from 100 to 200 ns.
TEST(TraceWriter, AddsUpTheLoadsOfALink) {
  std::vector<std::pair<double, double>> loads;
  for (const TraceJson& event : events_of({{0, 200}, {100, 500}}))
    if (event.at("ph") == "C") loads.emplace_back(event.at("ts"), event.at("args").at("used"));
  EXPECT_EQ(loads, (std::vector<std::pair<double, double>>{{0, 50}, {0.1, 75}, {0.2, 25}, {0.5, 0}}));
}

}  // namespace
}  // namespace tutti::internal
