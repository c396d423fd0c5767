#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/ids.hpp"
#include "sched/exploration/job_sequence.hpp"

namespace tutti {

/// Which jobs have finished: all before `first`, not `first`, and behind it those whose bit is set; bit 0 is `first`.
struct FinishedJobs {
  std::size_t first = 0;
  std::span<const std::uint64_t> bits;  ///< the last word is not 0

  /// The next job that has not finished, from `position` on.
  /// @pre  position >= first.
  [[nodiscard]] std::size_t next_pending(std::size_t position) const;
};

/// The machine becomes free at some time in [from, until], and can at each of them, with these jobs finished.
struct GraphState {
  HalfNs from = 0, until = 0;
  std::uint64_t hash = 0;  ///< of the finished jobs
  std::uint32_t first = 0;
  std::uint32_t words_at = 0, words = 0;  ///< in the level's store
  std::uint32_t next_symmetric = kNone;   ///< another interval with the same jobs finished
  std::uint32_t became = kNone;           ///< the state that took this one in
};

/// The states of a graph with equally many finished jobs: no two of equal jobs and touching intervals.
class StateLevel {
 public:
  void clear();
  [[nodiscard]] std::size_t size() const { return states_.size(); }
  /// Of the jobs that its states have finished.
  [[nodiscard]] std::size_t stored_words() const { return store_.size(); }
  /// @return  one that `became` another stands for nothing any more.
  [[nodiscard]] const GraphState& operator[](std::size_t index) const { return states_[index]; }
  [[nodiscard]] FinishedJobs finished(std::size_t index) const;
  [[nodiscard]] const std::vector<GraphState>& states() const { return states_; }

  /// The state before any job.
  void add_root();
  /// Adds what comes of a state of the level before when `position` is its next job.
  /// @return  the index of the new state; the state that it became may be another.
  std::size_t add(const GraphState& state, const FinishedJobs& finished, std::size_t position, HalfNs from,
                  HalfNs until);

 private:
  /// Puts the finished jobs of a new state behind the store.
  void store_finished(GraphState& state, const FinishedJobs& before, std::size_t position);
  [[nodiscard]] bool same_jobs(const GraphState& a, const GraphState& b) const;
  /// The first state of those with the same jobs; none where there is none.
  [[nodiscard]] std::uint32_t find(const GraphState& state) const;
  void index_state(std::uint32_t index);
  void grow_table();
  /// Takes in all states alike that a state's interval touches.
  void absorb(std::uint32_t head, std::uint32_t index);

  std::vector<GraphState> states_;
  std::vector<std::uint64_t> store_;
  std::vector<std::uint32_t> heads_;  ///< one state for each set of finished jobs
  std::vector<std::uint32_t> table_;  ///< of hashes; empty where a look at each head is quicker
};

}  // namespace tutti
