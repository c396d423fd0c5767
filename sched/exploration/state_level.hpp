#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/base/ids.hpp"
#include "sched/exploration/job_sequence.hpp"

namespace tutti::internal {

/// Set of finished jobs: all before `first`, not `first`, and after it those with their bit set; bit 0 is `first`.
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
  std::uint32_t became = kNone;           ///< the state into which this one was merged
};

/// The states of a graph with equally many finished jobs: no two have equal finished jobs and touching intervals.
class StateLevel {
 public:
  void clear();
  [[nodiscard]] std::size_t size() const { return states_.size(); }
  /// Number of words that hold the finished jobs of its states.
  [[nodiscard]] std::size_t stored_words() const { return store_.size(); }
  /// @return  a state that `became` another is no longer valid.
  [[nodiscard]] const GraphState& operator[](std::size_t index) const { return states_[index]; }
  [[nodiscard]] FinishedJobs finished(std::size_t index) const;
  [[nodiscard]] const std::vector<GraphState>& states() const { return states_; }

  /// The state before any job.
  void add_root();
  /// Adds the successor of a state of the previous level with `position` as its next job.
  /// @return  the index of the new state, or of the state into which it was merged.
  std::size_t add(const GraphState& state, const FinishedJobs& finished, std::size_t position, HalfNs from,
                  HalfNs until);
  /// Adds the successor of a state with all of these jobs finished as well.
  /// @param positions  in ascending order, none of them finished before
  std::size_t add(const GraphState& state, const FinishedJobs& finished, std::span<const std::uint32_t> positions,
                  HalfNs from, HalfNs until);

 private:
  /// Puts these bits behind the store, without the first `shift` of them.
  void store_shifted(std::span<const std::uint64_t> bits, std::size_t shift);
  /// Puts the finished jobs of a new state behind the store.
  void store_finished(GraphState& state, const FinishedJobs& before, std::size_t position);
  void store_finished(GraphState& state, const FinishedJobs& before, std::span<const std::uint32_t> positions);
  /// Adds a state whose finished jobs are the last in the store, or merges it.
  std::size_t add_stored(GraphState& next);
  [[nodiscard]] bool same_jobs(const GraphState& a, const GraphState& b) const;
  /// The first state with equal finished jobs; `kNone` where there is none.
  [[nodiscard]] std::uint32_t find(const GraphState& state) const;
  void index_state(std::uint32_t index);
  void grow_table();
  /// Merges into a state all states with equal finished jobs and an interval that touches its own.
  void absorb(std::uint32_t head, std::uint32_t index);

  std::vector<GraphState> states_;
  std::vector<std::uint64_t> store_;
  std::vector<std::uint32_t> heads_;  ///< one state for each set of finished jobs
  std::vector<std::uint32_t> table_;  ///< hash table of the heads; empty where a linear search is quicker
};

}  // namespace tutti::internal
