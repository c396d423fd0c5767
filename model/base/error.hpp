#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "model/base/export.hpp"

namespace tutti {

/// Where in a user's file something stands; line and column count from 1, line 0 means "no place known".
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

/// Cause of an error; it decides the exit code of a program.
enum class ErrorCode : std::uint8_t {
  InvalidInput,  ///< a file, an argument or a value that the user can remedy: exit code 2
  Machine,       ///< the machine, the driver or the host failed: exit code 3
  Kernel,        ///< a user's kernel failed; its batch is lost and the next one runs: exit code 3
};

/// An expected failure. A value, never thrown across an interface: functions return `Expected<T>`.
///
/// `message` is one sentence in two halves: what is wrong; what would be right.
struct Error {
  ErrorCode code = ErrorCode::InvalidInput;
  std::string message;
  Place place = {};
  std::string field = {};        ///< path of the field at fault in a spec, such as `links[3].bandwidth`; empty: none
  std::vector<Error> more = {};  ///< further faults of the same input

  /// `file:line:column: message`, or `field: message` where no place is known, or the message alone; a line for each
  /// of the first 20 faults.
  [[nodiscard]] TUTTI_API std::string text() const;

  friend bool operator==(const Error&, const Error&) = default;
};

template <class T>
using Expected = tl::expected<T, Error>;

}  // namespace tutti

namespace tutti::internal {

/// The error branch of an `Expected`, for bad input.
[[nodiscard]] inline tl::unexpected<Error> invalid_input(std::string message, Place place = {}) {
  return tl::unexpected(Error{ErrorCode::InvalidInput, std::move(message), std::move(place)});
}

/// The error branch of an `Expected`, for trouble with the machine or the host.
[[nodiscard]] inline tl::unexpected<Error> machine_error(std::string message) {
  return tl::unexpected(Error{ErrorCode::Machine, std::move(message), {}});
}

}  // namespace tutti::internal
