#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::internal::test {

/// What NVTX was called with, in order.
struct ToolCall {
  enum class Kind { Begin, End, NameThread, NameStream } kind;
  std::string domain, category, name;
  std::uint64_t range = 0;    ///< of Begin and End
  std::uint64_t payload = 0;  ///< of Begin
};

/// All calls so far. Only the program that NVTX has loaded this library into has any.
std::vector<ToolCall> tool_calls();

}  // namespace tutti::internal::test
