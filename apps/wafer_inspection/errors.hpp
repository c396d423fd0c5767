#pragma once
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include <tutti/error.hpp>

namespace wafer {

/// The error branch of an `Expected`, for bad input.
[[nodiscard]] inline tl::unexpected<tutti::Error> invalid_input(std::string message, tutti::Place place = {}) {
  return tl::unexpected(tutti::Error{tutti::ErrorCode::InvalidInput, std::move(message), std::move(place)});
}

/// The error branch of an `Expected`, for trouble with the host.
[[nodiscard]] inline tl::unexpected<tutti::Error> machine_error(std::string message) {
  return tl::unexpected(tutti::Error{tutti::ErrorCode::Machine, std::move(message)});
}

/// Prints a broken precondition with its place and ends the program.
[[noreturn]] inline void broken_precondition(const char* sentence, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: broken precondition: %s\n", file, line, sentence);
  std::abort();
}

}  // namespace wafer

/// A broken precondition is a bug of this program; it ends it, in every build.
#define WAFER_EXPECTS(condition, sentence) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : ::wafer::broken_precondition(sentence, __FILE__, __LINE__))
