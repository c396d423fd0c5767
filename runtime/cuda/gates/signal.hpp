#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "model/base/expects.hpp"
#include "runtime/core/backend_options.hpp"
#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/base/kernels.hpp"
#include "runtime/cuda/memory/memory_pool.hpp"

namespace tutti::internal::cuda {

/// A signal of this kind counts runs or steps. Waiters compare with wrap-around.
using Count = std::uint32_t;
/// A signal of this kind is an instant of a GPU's timer, ns. 0 is none.
using TimerValue = std::uint64_t;

/// A word of memory that one side sets and others wait for, alone in its cache line. A view: a board owns the word.
///
/// One side at a time writes a signal, and the member that holds the signal says which: the host, a stream, or a
/// kernel. This class is the side of the GPUs. A stream sets a signal after its work so far can be seen everywhere, and
/// does not begin its next work before a signal that it waits for.
template <class Word>
class Signal {
 public:
  /// No signal.
  Signal() = default;
  /// @param word  of a board
  explicit Signal(Word* word) : word_(word) {}

  /// Its address for kernels and streams, on every GPU that reaches the memory; null: no signal.
  [[nodiscard]] Word* on_gpu() const { return word_; }

 protected:
  Word* word_ = nullptr;
};

/// A signal in pinned memory, which the host sets and sees as well.
template <class Word>
class HostSignal : public Signal<Word> {
 public:
  using Signal<Word>::Signal;

  /// Sets it, as a release: whoever sees the value sees what this thread wrote before.
  void set(Word value) const { std::atomic_ref(*this->word_).store(value, std::memory_order_release); }
  /// Looks at it, as an acquire: this thread then sees the work of the stream that set the value.
  [[nodiscard]] Word value() const { return std::atomic_ref(*this->word_).load(std::memory_order_acquire); }
};

/// Sole owner of signals, all 0 at first. Move-only; signals stay where they are when it moves.
/// @tparam Visible  what the board gives out: `HostSignal` where the host reaches the memory
template <template <class> class Visible>
class BasicSignalBoard {
 public:
  /// A board without signals.
  BasicSignalBoard() = default;
  /// @param memory  of `lines` cache lines
  BasicSignalBoard(PooledMemory memory, std::size_t lines)
      : memory_(std::move(memory)), next_(memory_.data()), left_(lines) {}

  /// The next signal. @pre one is left
  template <class Word>
  [[nodiscard]] Visible<Word> take() {
    return Visible<Word>(&take_lines<SignalLine<Word>>(1).front().word);
  }
  /// The next lines, one behind the other, for signals that a kernel uses together. @pre they are left
  /// @tparam Line  of the size of a cache line
  template <class Line>
  [[nodiscard]] std::span<Line> take_lines(std::size_t count) {
    static_assert(sizeof(Line) == kCacheLine && alignof(Line) == kCacheLine);
    TUTTI_EXPECTS(count <= left_, "a board has a line for each of its signals");
    left_ -= count;
    return {reinterpret_cast<Line*>(std::exchange(next_, next_ + count * kCacheLine)), count};
  }

 private:
  PooledMemory memory_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

/// Signals between the host and all GPUs. A kernel that polls one slows down all that runs on its GPU.
using SignalBoard = BasicSignalBoard<HostSignal>;
/// Signals in the memory of a GPU: its kernels poll them at no cost, and GPUs with access to it set them.
using DeviceSignalBoard = BasicSignalBoard<Signal>;

/// @errors Machine: the host has not so much pinned memory.
[[nodiscard]] Expected<SignalBoard> make_signal_board(std::size_t signals);
/// @param stream  of the GPU, in which nothing waits for a gate
/// @errors Machine: the GPU has not so much memory.
[[nodiscard]] Expected<DeviceSignalBoard> make_device_signal_board(int device, std::size_t signals,
                                                                   cudaStream_t stream);

// All of these enqueue, allocate nothing, and fail where the driver refuses (Machine).

/// Sets a signal when all work that the stream has so far is done.
[[nodiscard]] Expected<void> set_in_stream(const Driver& driver, cudaStream_t stream, Signal<Count> signal,
                                           Count value);

/// Holds a stream until a signal has reached a value, by a kernel that polls.
/// @param released  set to the GPU's timer at that instant, if it is a signal
[[nodiscard]] Expected<void> hold_by_kernel(cudaStream_t stream, Signal<Count> signal, Count value,
                                            Signal<TimerValue> released = {});

/// Holds a stream until a signal has reached a value, in the way of the gates. Does nothing where the host keeps time.
/// Uses a kernel that polls where GPUs keep time, since only gates have an instant.
[[nodiscard]] Expected<void> hold_stream(const Driver& driver, GateKind kind, cudaStream_t stream, Signal<Count> signal,
                                         Count value);

/// Whether a stream itself can write so many bytes to an address: one or two whole words.
[[nodiscard]] bool can_write_in_stream(const std::byte* to, std::size_t bytes);
/// Sets memory of the stream's GPU to bytes of the host, which the call itself reads, when all work that the stream has
/// so far is done. No kernel does it. @pre `can_write_in_stream`
[[nodiscard]] Expected<void> write_in_stream(const Driver& driver, cudaStream_t stream, std::byte* to,
                                             const std::byte* from, std::size_t bytes);

/// A signal and the value that it must reach.
struct Awaited {
  Signal<Count> signal;
  Count value = 0;
};

inline constexpr std::size_t kMostAwaited = 8;

/// Holds a stream until all signals have reached their values: the stream itself waits, in one operation.
/// @pre at most `kMostAwaited`
[[nodiscard]] Expected<void> hold_by_memory(const Driver& driver, cudaStream_t stream,
                                            std::span<const Awaited> signals);

}  // namespace tutti::internal::cuda
