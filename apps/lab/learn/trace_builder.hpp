#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "apps/lab/learn/recorded_trace.hpp"
#include "model/base/error.hpp"

namespace tutti::internal {

/// Most copies and kernels of a trace: beyond it, the rest is left out, and a note says so.
inline constexpr std::size_t kMostOperations = 4'000'000;

/// A kernel's name without what it may say of its author: its last word before arguments and templates, at most 40
/// letters, digits and '_'.
[[nodiscard]] std::string short_kernel_name(std::string_view name);

/// One copy or kernel as a trace has it, with numbers of its own for processes, GPUs and streams.
struct TraceEntry {
  RecordedKind kind = RecordedKind::Kernel;
  std::int64_t start = 0, end = 0, bytes = 0;  ///< not checked yet
  std::int64_t process = 0, gpu = 0, to_gpu = 0, stream = 0;
  std::uint32_t name = 0;
  bool pageable = false;
};

/// Collects what readers find, and leaves out what cannot be.
class TraceBuilder {
 public:
  void add(const TraceEntry& entry);
  /// The number of a kernel's name.
  [[nodiscard]] std::uint32_t name(std::string_view text);
  /// Adds a sentence about what the reader leaves out.
  void note(std::string sentence) { trace_.notes.push_back(std::move(sentence)); }
  /// Notes that the file ends early.
  void note_damage(std::string sentence) {
    note(std::move(sentence));
    trace_.damaged = true;
  }
  /// @param source  the format, in words
  /// @param path    of the file, for the error
  /// @errors InvalidInput: there is no copy and no kernel, or more than 64 GPUs or 1000 processes.
  [[nodiscard]] Expected<RecordedTrace> finish(std::string source, const std::string& path) &&;

 private:
  void drop_rare_pageable();

  RecordedTrace trace_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::map<std::int64_t, std::uint16_t> gpus_;       // by the trace's number
  std::map<std::int64_t, std::uint16_t> processes_;  // in the order in which they were met
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> streams_;
  std::size_t backwards_ = 0, without_bytes_ = 0, too_many_ = 0;
};

}  // namespace tutti::internal
