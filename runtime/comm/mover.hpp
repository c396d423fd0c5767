#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "model/base/error.hpp"
#include "runtime/comm/fabric.hpp"

namespace tutti::internal::comm {

enum class MoveState : std::uint8_t { UnderWay, Done, Failed };

/// What moves the bytes of the soft NIC. To add one, write these functions.
class Mover {
 public:
  virtual ~Mover() = default;
  /// Where the memory of a region is for this mover.
  /// @errors Machine: it cannot reach it
  [[nodiscard]] virtual Expected<std::byte*> memory_of(const Region& region) = 0;
  /// Begins to move bytes between the memories of two regions.
  /// @return a number for `look`
  [[nodiscard]] virtual std::uint64_t begin(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
  /// Whether bytes have arrived: whoever is told so by a word sees them. Never waits, and is called until it says so.
  [[nodiscard]] virtual MoveState look(std::uint64_t number) = 0;
};

/// Moves bytes with the caller's thread, within one process.
class HostMover final : public Mover {
 public:
  [[nodiscard]] Expected<std::byte*> memory_of(const Region& region) override {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(region.address));
  }
  [[nodiscard]] std::uint64_t begin(std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memmove(to, from, bytes);
    return 0;
  }
  [[nodiscard]] MoveState look(std::uint64_t) override { return MoveState::Done; }
};

/// Moves bytes with the caller's thread within a mapping of shared memory, where regions are distances from its start.
class SharedMemoryMover final : public Mover {
 public:
  /// @param mapping  of the process in which the NIC runs
  explicit SharedMemoryMover(std::span<std::byte> mapping) : mapping_(mapping) {}
  [[nodiscard]] Expected<std::byte*> memory_of(const Region& region) override {
    if (region.address <= mapping_.size() && region.bytes <= mapping_.size() - region.address)
      return mapping_.data() + region.address;
    return machine_error("a buffer lies outside the shared memory of its job");
  }
  [[nodiscard]] std::uint64_t begin(std::byte* to, const std::byte* from, std::size_t bytes) override {
    std::memmove(to, from, bytes);
    return 0;
  }
  [[nodiscard]] MoveState look(std::uint64_t) override { return MoveState::Done; }

 private:
  std::span<std::byte> mapping_;
};

}  // namespace tutti::internal::comm
