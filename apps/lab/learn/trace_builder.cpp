#include "apps/lab/learn/trace_builder.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

#include <fmt/format.h>

namespace tutti::internal {
namespace {

constexpr std::size_t kMostTraceGpus = 64, kMostProcesses = 1000, kMostNames = 100'000, kLongestKernelName = 40;
/// Times and sizes beyond these are damage: 146 years, and the 9 PB that a size may have.
constexpr std::int64_t kLatest = std::int64_t{1} << 62, kLargest = std::int64_t{1} << 53;

/// Copies of ordinary memory that are less than this share of all bytes need no memory of their own.
constexpr double kRare = 0.01;

template <class Key, class Number>
Number number_in(std::map<Key, Number>& numbers, const Key& key) {
  return numbers.emplace(key, static_cast<Number>(numbers.size())).first->second;
}

/// The position before the arguments or templates of a kernel's signature.
std::size_t end_of_word(std::string_view name) {
  const std::size_t end = name.find_first_of("<(");
  return end == std::string_view::npos ? name.size() : end;
}

/// Gives GPUs numbers in the order of those that the trace has.
void number_gpus(RecordedTrace& trace, std::map<std::int64_t, std::uint16_t>& gpus) {
  std::vector<std::uint16_t> place(gpus.size());
  std::uint16_t next = 0;
  for (const auto& [id, met] : gpus) place[met] = next++;
  for (RecordedOperation& operation : trace.operations) {
    operation.gpu = place[operation.gpu];
    operation.to_gpu = place[operation.to_gpu];
  }
  trace.gpus = gpus.size();
}

}  // namespace

std::string short_kernel_name(std::string_view name) {
  const std::string_view anonymous = "(anonymous namespace)";
  std::string text(name);
  for (std::size_t at; (at = text.find(anonymous)) != std::string::npos;) text.erase(at, anonymous.size());
  std::string_view word = std::string_view(text).substr(0, end_of_word(text));
  while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
  if (const std::size_t last = word.find_last_of(" :/\\"); last != std::string_view::npos) word = word.substr(last + 1);
  std::string shortened;
  for (const char c : word.substr(0, kLongestKernelName))
    shortened += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return shortened.empty() ? "kernel" : shortened;
}

void TraceBuilder::add(const TraceEntry& entry) {
  if (entry.end < entry.start || entry.start < -kLatest || entry.end > kLatest) {
    ++backwards_;
    return;
  }
  if (entry.bytes < 0 || entry.bytes > kLargest || (is_copy(entry.kind) && entry.bytes == 0)) {
    ++without_bytes_;
    return;
  }
  if (trace_.operations.size() == kMostOperations) {
    ++too_many_;
    return;
  }
  RecordedOperation operation;
  operation.start = entry.start;
  operation.end = entry.end;
  operation.kind = entry.kind;
  operation.bytes = entry.bytes;
  operation.name = entry.kind == RecordedKind::Kernel ? entry.name : 0;
  operation.process = number_in(processes_, entry.process);
  operation.gpu = number_in(gpus_, entry.gpu);
  operation.to_gpu = entry.kind == RecordedKind::Peer ? number_in(gpus_, entry.to_gpu) : operation.gpu;
  operation.stream = number_in(streams_, std::pair(entry.process, entry.stream));
  operation.pageable = entry.pageable && (entry.kind == RecordedKind::Up || entry.kind == RecordedKind::Down);
  trace_.operations.push_back(operation);
}

std::uint32_t TraceBuilder::name(std::string_view text) {
  std::string shortened = short_kernel_name(text);
  if (const auto known = names_.find(shortened); known != names_.end()) return known->second;
  if (trace_.kernel_names.size() == kMostNames) return 0;
  const auto number = static_cast<std::uint32_t>(trace_.kernel_names.size());
  trace_.kernel_names.push_back(shortened);
  names_.emplace(std::move(shortened), number);
  return number;
}

void TraceBuilder::drop_rare_pageable() {
  double pageable = 0, all = 0;
  std::size_t count = 0;
  for (const RecordedOperation& operation : trace_.operations) {
    if (!is_copy(operation.kind)) continue;
    all += static_cast<double>(operation.bytes);
    if (operation.pageable) pageable += static_cast<double>(operation.bytes), ++count;
  }
  if (count == 0 || pageable >= kRare * all) return;
  for (RecordedOperation& operation : trace_.operations) operation.pageable = false;
  note(fmt::format("{} copies of ordinary memory, {:.3g} % of the bytes, are taken as copies of pinned memory", count,
                   100 * pageable / all));
}

Expected<RecordedTrace> TraceBuilder::finish(std::string source, const std::string& path) && {
  if (trace_.operations.empty())
    return invalid_input(
        fmt::format("this file, {}, has no copy and no kernel of a GPU{}; record the program with CUDA activities, as "
                    "'nsys profile --trace=cuda' and PyTorch's ProfilerActivity.CUDA do",
                    source, backwards_ + without_bytes_ > 0 ? " whose times and bytes make sense" : ""),
        {path, 0, 0});
  if (gpus_.size() > kMostTraceGpus)
    return invalid_input(
        fmt::format("this file, {}, names {} GPUs, and {} at most are learned; export the trace of one host", source,
                    gpus_.size(), kMostTraceGpus),
        {path, 0, 0});
  if (processes_.size() > kMostProcesses)
    return invalid_input(fmt::format("this file, {}, names {} processes, and {} at most are learned; record fewer",
                                     source, processes_.size(), kMostProcesses),
                         {path, 0, 0});
  number_gpus(trace_, gpus_);
  trace_.processes = processes_.size();
  drop_rare_pageable();
  trace_.source = std::move(source);
  if (backwards_ > 0)
    note(fmt::format("{} entries end before they start, or have no possible time; they are left out", backwards_));
  if (without_bytes_ > 0) note(fmt::format("{} copies have no possible size; they are left out", without_bytes_));
  if (too_many_ > 0)
    note(fmt::format("{} copies and kernels behind the first {} are left out; record a shorter time", too_many_,
                     kMostOperations));
  std::ranges::stable_sort(trace_.operations, {}, [](const RecordedOperation& operation) {
    return std::pair(operation.start, operation.end);
  });
  return std::move(trace_);
}

}  // namespace tutti::internal
