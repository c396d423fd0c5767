#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/host/host_facts.hpp"

namespace tutti::internal {

/// Memory that a GPU does not use any more because it had errors.
struct RetiredMemory {
  unsigned places = 0;      ///< pages, or rows with a spare in their place
  bool is_pending = false;  ///< more is taken out at the next reset
  bool has_failed = false;  ///< there was no spare

  friend bool operator==(const RetiredMemory&, const RetiredMemory&) = default;
};

/// How a GPU is doing, as far as the driver says. Absent: it does not.
struct GpuCondition {
  std::string name = {};                         ///< "gpu0"
  std::string bus_id = {};                       ///< as in `DeviceFacts`
  std::optional<PcieLink> link_under_load = {};  ///< the best that was seen while copies ran
  std::string no_load = {};                      ///< the reason why no copies ran; empty where they did
  std::optional<PcieLink> link_at_best = {};     ///< as in `DeviceFacts`
  /// What held its clocks down while copies ran: bits of NVML's `nvmlClocksThrottleReason...`.
  std::optional<std::uint64_t> clock_limits = {};
  std::optional<bool> stays_loaded = {};        ///< persistence mode: the driver keeps its state between programs
  std::optional<bool> corrects_memory = {};     ///< ECC is on
  std::optional<std::uint64_t> corrected = {};  ///< errors of memory since the driver was loaded
  std::optional<std::uint64_t> uncorrected = {};
  std::optional<RetiredMemory> retired = {};
  std::optional<int> compute_mode = {};  ///< NVML's: 0 any program, 1 and 3 one, 2 none
  std::optional<bool> is_divided = {};   ///< MIG is on
  std::optional<bool> has_display = {};
  std::optional<std::size_t> other_programs = {};  ///< processes that compute on it, this one aside
  /// Other GPUs of the host, and how many of them it can read and write.
  std::optional<std::size_t> others = {};
  std::size_t reached = 0;
  std::optional<bool> limits_kernels = {};  ///< the driver ends kernels that take seconds
  int gate_sms = 0;                         ///< as in `DeviceFacts`
  bool other_run = false;                   ///< another run of this project uses it
};

}  // namespace tutti::internal
