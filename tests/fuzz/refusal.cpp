#include "tests/fuzz/refusal.hpp"

#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {

bool refused(const Error& error) {
  constexpr std::size_t kLongest = 4096;
  const std::string text = error.text();
  require(error.code == ErrorCode::InvalidInput, "a bad file is the user's to remedy: " + text);
  require(error.place.file == kFile && error.place.line > 0 && error.place.column > 0, "an error has a place: " + text);
  require(!error.message.empty() && error.message.find('\n') == std::string::npos, "an error is a sentence: " + text);
  require(error.message.size() < kLongest, "a sentence can be read: " + text);
  for (const Error& further : error.more) refused(further);
  return false;
}

}  // namespace tutti::internal::fuzz
