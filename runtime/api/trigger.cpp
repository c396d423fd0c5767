#include "runtime/api/trigger.hpp"

#include "runtime/triggers/trigger_handle.hpp"
#include "runtime/triggers/trigger_word.hpp"

namespace tutti {

Trigger::Trigger() : state_(std::make_shared<internal::TriggerHandle>()) {}

bool Trigger::fire() const { return state_->fire(); }

bool Trigger::fire(std::chrono::steady_clock::time_point at) const { return state_->fire(at); }

Expected<SharedTrigger> SharedTrigger::open(std::string_view name) {
  return internal::TriggerWord::open(name).map([](internal::TriggerWord&& word) {
    return SharedTrigger(std::make_shared<const internal::TriggerWord>(std::move(word)));
  });
}

Expected<void> SharedTrigger::fire() const { return word_->fire(); }

}  // namespace tutti
