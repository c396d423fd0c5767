#pragma once
#include <string>

#include <gtest/gtest.h>
#include <tutti/error.hpp>

namespace tutti::test {

/// The sentence of a refusal, which there must be.
template <class T>
std::string sentence_of(const Expected<T>& answer) {
  EXPECT_FALSE(answer.has_value());
  return answer ? "" : answer.error().message;
}

}  // namespace tutti::test
