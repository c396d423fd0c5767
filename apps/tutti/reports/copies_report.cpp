#include "apps/tutti/reports/copies_report.hpp"

#include <array>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/base/units.hpp"

namespace tutti::internal {
namespace {

/// Copies of one direction, in one way.
struct Counts {
  std::uint64_t calls = 0, bytes = 0;
  double seconds = 0;

  void add(const nlohmann::json& process, const std::string& name) {
    const auto counts = process.find(name);
    if (counts == process.end() || !counts->is_object()) return;
    const auto whole = [&](const char* key) {  // whatever programs have written into the file
      const auto number = counts->find(key);
      return number != counts->end() && number->is_number_unsigned() ? number->get<std::uint64_t>() : 0;
    };
    calls += whole("calls");
    bytes += whole("bytes");
    if (const auto time = counts->find("seconds"); time != counts->end() && time->is_number())
      seconds += time->get<double>();
  }
  [[nodiscard]] double gb() const { return static_cast<double>(bytes) / 1e9; }
  [[nodiscard]] double rate() const { return gb() / seconds; }
};

/// Copies of one direction.
struct DirectionCounts {
  Counts fast, plain, sampled_fast, sampled_plain;

  void add(const nlohmann::json& process, const std::string& word) {
    fast.add(process, word);
    plain.add(process, "plain_" + word);
    sampled_fast.add(process, "sampled_" + word);
    sampled_plain.add(process, "sampled_plain_" + word);
  }
};

std::string line_of(std::string_view word, const DirectionCounts& counts) {
  std::string line;
  if (counts.fast.calls > 0)
    line +=
        fmt::format("; {} copies of {:.2f} GB in {:.3f} s", counts.fast.calls, counts.fast.gb(), counts.fast.seconds);
  if (counts.sampled_plain.calls > 0)
    line += fmt::format("; {:.1f} GB/s where cudaMemcpy does {:.1f}: {:.1f} times", counts.sampled_fast.rate(),
                        counts.sampled_plain.rate(), counts.sampled_fast.rate() / counts.sampled_plain.rate());
  if (counts.plain.calls > 0)
    line += fmt::format("; {} copies of {:.2f} GB by cudaMemcpy itself in {:.3f} s", counts.plain.calls,
                        counts.plain.gb(), counts.plain.seconds);
  return line.empty() ? line : fmt::format("{}: {}\n", word, line.substr(2));
}

}  // namespace

std::string measurement_text(const PageableMeasurement& found) {
  std::string text =
      fmt::format("{}, {} cores near it, host memory {:.0f} GB/s\n", found.gpu.data(), found.cores, found.memory.value);
  for (const CopyDirection direction : kCopyDirections) {
    const PageableDirection& one = found.of(direction);
    text += fmt::format(
        "{}: pinned {:.1f} GB/s, cudaMemcpy {:.1f}, one thread {:.1f}; by double queuing {:.1f} ({}), from {} on\n",
        to_string(direction), one.pinned.value, one.plain.value, one.thread.value, one.copied.value, to_string(one.how),
        to_string(one.from));
  }
  text +=
      fmt::format("{} threads and {} buffers of {}: {} fill the link, the memory feeds {}{}\n", found.choice.threads,
                  2 * found.choice.threads, to_string(found.buffer), found.choice.least, found.choice.most,
                  found.choice.fills_link ? "" : fmt::format("; {:.1f} GB/s are expected", found.choice.rate.value));
  return text;
}

std::string copies_text(const std::string& report) {
  DirectionCounts up, down;
  bool any = false;
  std::ifstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    const auto process = nlohmann::json::parse(line, nullptr, false);
    if (!process.is_object()) continue;
    any = true;
    up.add(process, "up");
    down.add(process, "down");
  }
  if (const std::string text = line_of("up", up) + line_of("down", down); !text.empty()) return text;
  return any ? "no copy of ordinary memory was large enough to gain\n"
             : "no copy was seen: the program makes none, takes no preloaded library, or ended without its exit "
               "handlers\n";
}

}  // namespace tutti::internal
