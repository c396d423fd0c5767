#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/pageable/copy_bytes.hpp"
#include "runtime/pageable/dma.hpp"
#include "runtime/pageable/double_queue.hpp"
#include "runtime/pageable/pauses.hpp"
#include "runtime/pageable/pieces.hpp"

namespace tutti::internal {

/// Threads and routines of a `Copier`.
struct CopierOptions {
  unsigned threads = 8;                                 ///< that copy between ordinary memory and buffers; > 0
  std::size_t buffer = std::size_t{4} << 20;            ///< bytes of each buffer; > 0
  CopyRoutine up = routine_of(CopyBytes::Cached);       ///< into buffers
  CopyRoutine down = routine_of(CopyBytes::Streaming);  ///< out of them
  std::vector<int> cores = {};                          ///< that the threads may use; empty: all of the program's
};

/// How a copy ended.
enum class CopyEnd : std::uint8_t {
  Done,    ///< the host's memory may be used again. Downwards all of it is written; upwards the engine may still be
           ///< reading buffers
  Busy,    ///< nothing was done: another copy is under way, or its buffers are still with the engine
  Failed,  ///< the device refused a piece; some of the bytes may be copied, and no piece is under way any more
};

/// Copies between ordinary memory and a device by double queuing: threads copy between the memory and pinned buffers,
/// while the calling thread feeds the engine, with as many moves in flight as there are buffers.
///
/// One device has one copier, with its threads and buffers; the threads sleep where no copy is under way. Threads: any;
/// a copy that finds another one under way is told so.
///
/// @source [MDQ19] section 4: N threads, 2 N buffers, and one thread that feeds the engine
class Copier {
 public:
  /// @param buffers  pinned, of `options.buffer` bytes each; at least 2. They outlive the copier, and the engine.
  /// @return a copier with fewer threads where the system starts no more; null where it starts none
  [[nodiscard]] static std::unique_ptr<Copier> make(const CopierOptions& options, std::vector<std::byte*> buffers);
  Copier(const Copier&) = delete;  // its threads know it by its address
  Copier& operator=(const Copier&) = delete;
  /// @pre no copy is under way
  ~Copier();

  /// Copies between `host` and the device. Ordinary copies are quicker below some hundred KiB.
  /// @param bytes  0: nothing is done
  [[nodiscard]] CopyEnd copy(CopyDirection direction, std::byte* host, std::size_t bytes, Dma& dma);

  /// How long threads with work stood in the last copy: the most by which the host has made it longer.
  [[nodiscard]] Duration paused() const { return pauses_.total(); }

  /// Waits until the engine has none of the buffers any more.
  void finish(Dma& dma);

 private:
  using Held = DoubleQueue::Held;
  /// A move that the engine has.
  struct Move {
    Held held;
    std::uint64_t copy;  ///< its number
  };
  /// A copy that the threads work on.
  struct Work {
    CopyDirection direction = CopyDirection::Up;
    std::byte* host = nullptr;
    Pieces pieces{1, 1, 1};
  };

  Copier(const CopierOptions& options, std::vector<std::byte*> buffers);
  void start_threads(unsigned count);
  void serve();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::optional<Held> take();
  void move(const Held& held, bool hurried, Pauses::Watch& watch) const;

  void reap(Dma& dma);
  void feed(Dma& dma);
  void pass_on(const Move& moved);
  void fail();
  [[nodiscard]] bool has_ended();
  /// Where piece `n` in the order of the queue lies.
  [[nodiscard]] Pieces::Range range(std::size_t piece) const {
    return work_.direction == CopyDirection::Up ? work_.pieces[piece] : work_.pieces[work_.pieces.count() - 1 - piece];
  }

  CopierOptions options_;
  std::vector<std::byte*> buffers_;
  std::mutex copying_;          // held by the thread whose copy is under way
  std::deque<Move> in_flight_;  // oldest first; of that thread alone, as the next
  std::uint64_t copies_ = 0;
  Pauses pauses_;

  std::mutex mutex_;  // of all below
  std::condition_variable work_came_;
  DoubleQueue queue_;
  Work work_;  // changes only where no thread holds a piece
  unsigned sleeping_ = 0;
  bool closing_ = false;
  std::atomic<std::uint64_t> news_{0};  // changes with the queue

  std::vector<std::thread> threads_;
};

}  // namespace tutti::internal
