#pragma once
#include "model/base/error.hpp"

namespace tutti::internal::fuzz {

/// Requires that the refusal of a text file is one for people: the user's to remedy, with file, line and column, a
/// sentence in one line.
/// @return  false: the file is not taken
bool refused(const Error& error);

}  // namespace tutti::internal::fuzz
