#pragma once

namespace tutti::internal::detail {

/// Prints the broken precondition with its place and ends the program.
[[noreturn]] void broken_precondition(const char* condition, const char* sentence, const char* file, int line);

}  // namespace tutti::internal::detail

/// A broken precondition is our bug, not the user's: it ends the program, in every build.
#define TUTTI_EXPECTS(condition, sentence) \
  (static_cast<bool>(condition)            \
       ? static_cast<void>(0)              \
       : ::tutti::internal::detail::broken_precondition(#condition, (sentence), __FILE__, __LINE__))
