#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "model/base/error.hpp"
#include "runtime/comm/fabric.hpp"

namespace tutti::internal::comm {

/// How one entry of a ring ended.
struct Ended {
  std::uint64_t number = 0;  ///< of the entry
  Outcome outcome = Outcome::Ok;
  std::uint64_t bytes = 0;
};

/// The side of a ring that enqueues and cleans up. One thread at a time.
///
/// An entry is written first, and the doorbell rung later: by `ring`, or by a stream that sets `rung(number)`. The
/// place of an entry is free again when its completion has been taken.
class RingWriter {
 public:
  /// @param name  for sentences: "send ring of rank 0 to rank 1"
  RingWriter(Ring& ring, std::string name) : ring_(&ring), name_(std::move(name)) {}

  /// Writes the next entry, and rings nothing.
  /// @return its number, counted from 0
  /// @errors InvalidInput: the ring is full
  [[nodiscard]] Expected<std::uint64_t> write(const WorkEntry& entry);
  /// Lets the NIC take entry `number` and those before it, now.
  void ring(std::uint64_t number) const;
  [[nodiscard]] WordValue rung(std::uint64_t number) const { return ring_->rung(number); }
  [[nodiscard]] WordValue ended(std::uint64_t number) const { return ring_->ended(number); }

  /// Takes the completion of the first entry that is not cleaned yet, if it has ended.
  [[nodiscard]] std::optional<Ended> clean();
  /// Entries written, and completions taken.
  [[nodiscard]] std::uint64_t written() const { return written_; }
  [[nodiscard]] std::uint64_t cleaned() const { return cleaned_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Ring* ring_;
  std::string name_;
  std::uint64_t written_ = 0, cleaned_ = 0;
};

}  // namespace tutti::internal::comm
