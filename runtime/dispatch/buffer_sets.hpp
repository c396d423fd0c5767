#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tutti::internal {

/// The sets of buffers of one task, and which job has which. Jobs take them in turn. Where other tasks read them there
/// are more: a job then takes one that nobody has and that is not the newest complete one, which readers take and hold.
///
/// Nothing allocates but the constructor.
class BufferSets {
 public:
  BufferSets() = default;
  /// @param alive  jobs of the task that can be alive, > 0
  /// @param sets   >= alive; where others read them, more by one and by the jobs of theirs that can be alive
  BufferSets(std::size_t alive, std::size_t sets);

  [[nodiscard]] std::size_t count() const { return holders_.size(); }
  /// The set that the next job takes, kept for it from now on. Nothing: none is free yet.
  [[nodiscard]] std::optional<std::size_t> next(std::uint64_t job);
  /// The set of a job that is released. @pre fewer jobs are alive than can be
  std::size_t take(std::uint64_t job);
  /// A job that is near its end will leave the newest output there, unless it fails.
  void expect(std::size_t set) { expected_ = set; }
  /// A job has left its output in its set, or none.
  void complete(std::size_t set, std::uint64_t job);
  void fail(std::size_t set);
  /// A job needs a set no more: its own, or one that it held.
  void give_back(std::size_t set);

  /// The newest complete set, held until it is given back. Before the first job is complete: one that no job has had.
  std::size_t hold_newest();
  /// The newest complete set as far as it is known now.
  [[nodiscard]] std::size_t expected_newest() const { return expected_.value_or(newest_); }

 private:
  [[nodiscard]] bool are_read() const { return count() > alive_; }
  [[nodiscard]] std::optional<std::size_t> find_free() const;

  std::size_t alive_ = 0;
  std::vector<std::uint32_t> holders_;  // [sets] where others read them
  std::size_t newest_ = 0;
  std::optional<std::uint64_t> newest_job_;
  std::optional<std::size_t> expected_, next_;
};

}  // namespace tutti::internal
