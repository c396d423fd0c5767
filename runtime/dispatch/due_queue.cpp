#include "runtime/dispatch/due_queue.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tutti::internal {

DueQueue::DueQueue(std::size_t tasks) : instants_(tasks, kNever), heap_(tasks), places_(tasks) {
  std::iota(heap_.begin(), heap_.end(), std::size_t{0});
  std::iota(places_.begin(), places_.end(), std::size_t{0});
}

void DueQueue::set(std::size_t task, Duration instant) {
  const Duration old = std::exchange(instants_[task], instant);
  if (instant < old) {
    rise(places_[task]);
  } else {
    sink(places_[task]);
  }
}

bool DueQueue::before(std::size_t a, std::size_t b) const {
  return instants_[a] != instants_[b] ? instants_[a] < instants_[b] : a < b;
}

void DueQueue::put(std::size_t place, std::size_t task) {
  heap_[place] = task;
  places_[task] = place;
}

void DueQueue::rise(std::size_t place) {
  const std::size_t task = heap_[place];
  for (; place > 0 && before(task, heap_[(place - 1) / 2]); place = (place - 1) / 2) put(place, heap_[(place - 1) / 2]);
  put(place, task);
}

void DueQueue::sink(std::size_t place) {
  const std::size_t task = heap_[place];
  for (;;) {
    std::size_t child = 2 * place + 1;
    if (child >= heap_.size()) break;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
    if (!before(heap_[child], task)) break;
    put(place, heap_[child]);
    place = child;
  }
  put(place, task);
}

}  // namespace tutti::internal
