#include "runtime/core/held_memory.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "model/base/expects.hpp"
#include "runtime/core/buffer.hpp"

namespace tutti::internal {
namespace {

/// A buffer that ended, with what takes it back.
struct EndedBuffer {
  BufferView memory;
  std::shared_ptr<BufferSource> source;
};

/// All buffers of one source that ended, have no hold and are to be given back.
struct Released {
  std::shared_ptr<BufferSource> source;
  std::vector<BufferView> memory = {};
};

struct Holds {
  std::mutex mutex;
  std::multiset<const std::byte*, std::less<>> addresses;
  std::vector<EndedBuffer> held;
  std::vector<Released> released;

  /// Never destroyed: what is held when the program ends is not given back.
  static Holds& all() {
    static Holds& made = *new Holds;
    return made;
  }

  [[nodiscard]] bool is_held(const BufferView& memory) const {
    const auto first = addresses.lower_bound(memory.data);
    return first != addresses.end() && std::less<>()(*first, memory.data + memory.size.count);
  }

  /// Whether no backend and no buffer has the source any more, so that any thread may use it.
  [[nodiscard]] bool is_abandoned(const std::shared_ptr<BufferSource>& source) const {
    const auto here = std::ranges::count(held, source, &EndedBuffer::source);
    if (source.use_count() != here + 1) return false;
    std::shared_ptr<BufferSource>(source).reset();  // counts down, so what the last owner did to the source is seen
    return true;
  }

  void add_released(EndedBuffer ended) {
    for (Released& other : released)
      if (other.source == ended.source) return other.memory.push_back(ended.memory);
    released.push_back({std::move(ended.source), {ended.memory}});
  }

  /// Takes out what may be given back now.
  /// @param usable  source that this thread may use; null: none
  [[nodiscard]] std::vector<Released> take_released(const BufferSource* usable) {
    const auto waits = std::partition(released.begin(), released.end(), [&](const Released& one) {
      return one.source.get() != usable && !is_abandoned(one.source);
    });
    std::vector<Released> taken(std::make_move_iterator(waits), std::make_move_iterator(released.end()));
    released.erase(waits, released.end());
    return taken;
  }

  [[nodiscard]] std::size_t in_use() const { return addresses.size() + held.size() + released.size(); }
};

/// Changes the holds, then gives back what waits for nothing any more: without the mutex, since an owner of memory may
/// release holds of its own.
/// @param in_use  how many there are
/// @param usable  as `Holds::take_released`
/// @param change  (Holds&)
template <class Change>
void change_holds(std::atomic<std::size_t>& in_use, const BufferSource* usable, Change change) {
  Holds& holds = Holds::all();
  std::vector<Released> taken;
  {
    const std::lock_guard lock(holds.mutex);
    change(holds);
    taken = holds.take_released(usable);
    in_use.store(holds.in_use(), std::memory_order_release);
  }
  for (const Released& one : taken)
    for (const BufferView& memory : one.memory) one.source->give_back(memory);
}

}  // namespace

constinit std::atomic<std::size_t> HeldMemory::in_use_ = 0;

void HeldMemory::hold(const void* address) {
  Holds& holds = Holds::all();
  const std::lock_guard lock(holds.mutex);
  holds.addresses.insert(static_cast<const std::byte*>(address));
  in_use_.store(holds.in_use(), std::memory_order_release);
}

void HeldMemory::release(const void* address) noexcept {
  change_holds(in_use_, nullptr, [&](Holds& holds) {
    const auto found = holds.addresses.find(static_cast<const std::byte*>(address));
    TUTTI_EXPECTS(found != holds.addresses.end(), "an address is released as often as it is held");
    holds.addresses.erase(found);
    const auto free = std::partition(holds.held.begin(), holds.held.end(),
                                     [&](const EndedBuffer& ended) { return holds.is_held(ended.memory); });
    for (auto one = free; one != holds.held.end(); ++one) holds.add_released(std::move(*one));
    holds.held.erase(free, holds.held.end());
  });
}

void HeldMemory::give_back_abandoned() noexcept {
  if (is_used()) change_holds(in_use_, nullptr, [](Holds&) {});
}

void HeldMemory::give_back(const BufferView& memory, std::shared_ptr<BufferSource> source) noexcept {
  const BufferSource* const usable = source.get();
  change_holds(in_use_, usable, [&](Holds& holds) {
    if (holds.is_held(memory)) {
      holds.held.push_back({memory, std::move(source)});
    } else {
      holds.add_released({memory, std::move(source)});
    }
  });
}

}  // namespace tutti::internal
