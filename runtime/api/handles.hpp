#pragma once
#include <string>
#include <string_view>
#include <utility>

#include "model/base/error.hpp"
#include "model/planners/planner.hpp"

namespace tutti::internal {

/// The one door between public handles and their state.
struct Handles {
  template <class Handle>
  [[nodiscard]] static auto& state(Handle& handle) {
    return handle.state_;
  }
  template <class Handle>
  [[nodiscard]] static std::size_t place(const Handle& handle) {
    return handle.place_;
  }
  template <class Handle>
  [[nodiscard]] static auto& memory(Handle& handle) {
    return handle.memory_;
  }
  template <class Handle>
  [[nodiscard]] static auto& slots(Handle& handle) {
    return handle.slots_;
  }
  /// Lets a user's job see who has its buffers.
  template <class Handle>
  static void watch(Handle& handle, std::uint64_t* taken, std::uint64_t whole_until) {
    handle.taken_ = taken;
    handle.whole_until_ = whole_until;
  }
  template <class Handle, class... Parts>
  [[nodiscard]] static Handle make(Parts&&... parts) {
    return Handle(std::forward<Parts>(parts)...);
  }
};

/// The error of a function that was called with an empty handle.
/// @param what  "machine"
[[nodiscard]] tl::unexpected<Error> empty_handle(std::string_view what);

/// @param name  empty: `otherwise`, or the default where that is null
/// @errors InvalidInput: there is no planner of that name.
[[nodiscard]] Expected<const Planner*> planner_of(std::string_view name, const Planner* otherwise = nullptr);

}  // namespace tutti::internal
