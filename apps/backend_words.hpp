#pragma once
#include <string>
#include <vector>

#include "apps/command_line.hpp"

namespace tutti {
struct BackendOptions;
}

namespace tutti::programs {

/// The options for backend and clock as typed on the command line, unchecked.
struct BackendWords {
  std::string backend = "sim";
  std::string clock;              ///< empty: the backend's own, virtual for sim and real for cuda
  std::vector<std::string> bind;  ///< GPU=BUSID
  std::string gate;               ///< empty: the machine's
  std::string waiting = "spin";
  std::string watchdog;      ///< "10x+2s"; empty: the default
  int priority = 0;          ///< 0: ordinary threads
  std::string cores;         ///< "2,3"; empty: the last free ones
  std::string pinned_limit;  ///< "4 GiB"; empty: none
  bool serialize = false;
  bool no_peer = false;  ///< plan for the machine without its peer access

  [[nodiscard]] bool simulated() const { return backend == "sim"; }
  /// What its times are.
  [[nodiscard]] std::string_view actual() const { return simulated() ? "simulated" : "measured"; }
  /// "virtual" or "real".
  [[nodiscard]] std::string clock_name() const { return !clock.empty() ? clock : simulated() ? "virtual" : "real"; }
};

/// Declares --backend, --clock, --bind, --gate, --wait, --watchdog, --pinned-limit, --priority, --cores and
/// --no-peer.
void add_backend_options(CommandLine& command, BackendWords& words);

/// Declares --serialize: for commands that run a program, and do not measure.
void add_serialize_option(CommandLine& command, BackendWords& words);

/// Declares --priority and --cores alone.
void add_real_time_options(CommandLine& command, BackendWords& words);

/// Reads the words. Call it before anything is loaded.
/// @return what is wrong: an unknown value, a --bind without '=', options that exclude each other; empty where nothing
///         is
[[nodiscard]] std::string read_backend_words(const BackendWords& words, tutti::BackendOptions& options);

}  // namespace tutti::programs
