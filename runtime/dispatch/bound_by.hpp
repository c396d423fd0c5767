#pragma once
#include <cstdint>
#include <optional>

#include "model/base/quantities.hpp"

namespace tutti::internal {

/// Where the time of jobs went. The rest of `length` is neither the host's nor the machine's: other jobs had what the
/// job needed.
struct JobLoad {
  Duration length{};  ///< from when a job had its input to come until its finish, without what it lent to others
  Duration host{};    ///< of that, work of the job was due and nothing of it was in a queue of the machine: its program
                      ///< filled its input, the dispatcher was late, host steps, dispatching, gates that opened late
  Duration machine{};  ///< of that, the host had nothing to do for the job but wait for its batches

  JobLoad& operator+=(const JobLoad& other) {
    length += other.length;
    host += other.host;
    machine += other.machine;
    return *this;
  }
  friend bool operator==(const JobLoad&, const JobLoad&) = default;
};

/// The processor that most of a task's time went to.
enum class Processor : std::uint8_t { Cpu, Gpu };

/// Which of two processors bounds a task, and what overlapping the two could gain.
struct BoundBy {
  double cpu_share = 0, gpu_share = 0;  ///< of the time of its jobs, each >= 0, together at most 1
  std::optional<Processor> processor;   ///< the one with the larger share; absent: neither
  double amdahl_ceiling = 1;            ///< speed-up that overlapping them cannot exceed
};

/// The largest speed-up by N = 2 processors, one CPU and one GPU: N / (N (1 - r_p) + r_p), by Amdahl's law.
/// @param parallel  r_p, the share of the time that could be divided among both, 0 to 1
/// @source [HB] chapter 6
[[nodiscard]] double amdahl_ceiling(double parallel);

/// While the host works the machine has nothing of the job, and the other way round. As much of the one as there is of
/// the other could run beside it: of shares c and g the time 2 min(c, g) becomes half of that, so r_p = 2 min(c, g).
/// Where all time is of the two, the ceiling is 1 / max(c, g).
/// @pre no time is below 0, and host and machine are no longer than the length.
/// @source [HB] chapter 6
[[nodiscard]] BoundBy bound_by(const JobLoad& load);

}  // namespace tutti::internal
