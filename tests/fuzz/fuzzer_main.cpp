// The functions that libFuzzer calls. `--target=NAME` picks the target, `--list` prints all, a line each: the name,
// then its seeds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

const Target* chosen = nullptr;

[[noreturn]] void list_targets() {
  for (const Target& target : targets()) {
    std::printf("%.*s", static_cast<int>(target.name.size()), target.name.data());
    for (const std::string_view seeds : target.seeds)
      std::printf(" %.*s", static_cast<int>(seeds.size()), seeds.data());
    std::printf("\n");
  }
  std::exit(0);
}

[[noreturn]] void refuse_usage() {
  std::fputs("name a target with --target=NAME; --list prints all\n", stderr);
  std::exit(2);
}

void run(std::string_view bytes) {
  try {
    chosen->takes(bytes);
  } catch (const Broken& broken) {
    std::fprintf(stderr, "broken promise: %s\n", broken.sentence.c_str());
    std::abort();
  }
}

}  // namespace
}  // namespace tutti::internal::fuzz

using namespace tutti::internal::fuzz;

extern "C" int LLVMFuzzerInitialize(int* count, char*** words) {
  constexpr std::string_view kOption = "--target=";
  for (int i = 1; i < *count; ++i) {
    const std::string_view word = (*words)[i];
    if (word == "--list") list_targets();
    if (!word.starts_with(kOption)) continue;
    const auto found = std::ranges::find(targets(), word.substr(kOption.size()), &Target::name);
    if (found != targets().end()) chosen = &*found;
  }
  if (chosen == nullptr) refuse_usage();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
