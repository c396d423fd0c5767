#pragma once
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "apps/lab/measuring/load_threads.hpp"

namespace tutti::internal {

/// A program with all processes that it starts, while it lives. They end with this process too, however that ends.
class LoadProgram {
 public:
  /// Starts a program that is found in PATH, with its output thrown away.
  /// @param words  its name and its arguments
  /// @return  null where there is no such program, or it does not start
  [[nodiscard]] static std::unique_ptr<LoadProgram> start(const std::vector<std::string>& words);
  LoadProgram(const LoadProgram&) = delete;  // it is ended once
  LoadProgram& operator=(const LoadProgram&) = delete;
  /// Ends it: SIGTERM, and SIGKILL where that is not enough.
  ~LoadProgram();

  /// Whether it has not ended by itself.
  [[nodiscard]] bool running() const;
  [[nodiscard]] pid_t process() const { return process_; }

 private:
  explicit LoadProgram(pid_t process) : process_(process) {}

  pid_t process_;
};

/// A load on the cores that the calling thread may use, while it lives: by stress-ng or hackbench, else by threads of
/// this program.
class Load {
 public:
  /// Returns when the load is there.
  /// @param programs  whether other programs may be the load
  explicit Load(LoadKind kind, bool programs = true);

  /// "stress-ng", "hackbench", "8 threads"; empty where there is no load.
  [[nodiscard]] const std::string& by() const { return by_; }

 private:
  std::string by_;
  std::unique_ptr<LoadProgram> program_;
  std::unique_ptr<LoadThreads> threads_;
};

}  // namespace tutti::internal
