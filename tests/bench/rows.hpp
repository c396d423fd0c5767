#pragma once
// What the benchmarks have in common: rows that run interleaved, and their medians.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "model/base/error.hpp"

namespace tutti::internal::bench {

/// A value that must be there, or the end of the program.
template <class T>
T checked(Expected<T> made) {
  if (made) return *std::move(made);
  fmt::print(stderr, "{}\n", made.error().text());
  std::exit(1);
}

template <class Measure>
void add_row(const std::string& name, Measure measure) {
  constexpr double kSeconds = 0.01;  // of each repetition
  benchmark::RegisterBenchmark(name.c_str(), measure)->MinTime(kSeconds);
}

/// Prints nothing but keeps the medians.
class Medians : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs)
      if (run.run_type == Run::RT_Aggregate && run.aggregate_name == "median")
        us_[run.run_name.function_name] = run.GetAdjustedCPUTime() / 1e3;
  }
  [[nodiscard]] double us(const std::string& name) const {
    const auto found = us_.find(name);
    return found == us_.end() ? std::nan("") : found->second;
  }

 private:
  std::map<std::string, double> us_;
};

/// Options of ours come first, so that those of the command line win: many short runs of all rows in mixed order, so
/// that what disturbs the machine disturbs all alike.
inline void initialize(int argc, char** argv) {
  std::vector<std::string> options{argv[0], "--benchmark_repetitions=25",
                                   "--benchmark_enable_random_interleaving=true"};
  options.insert(options.end(), argv + 1, argv + argc);
  std::vector<char*> pointers;
  for (std::string& option : options) pointers.push_back(option.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) std::exit(2);
}

}  // namespace tutti::internal::bench
