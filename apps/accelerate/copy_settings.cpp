#include "apps/accelerate/copy_settings.hpp"

#include <charconv>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace tutti::internal::cuda {
namespace {

using Environment = char* (*)(const char*);

void not_understood(const char* name, const char* value, const char* right) {
  std::fprintf(stderr, "libtutti_copy: %s=%s is not understood, and left out; it is %s\n", name, value, right);
}

/// Reads a whole number from `least` to `most`.
template <class Number>
void read(Environment environment, const char* name, Number& into, std::uint64_t least, std::uint64_t most) {
  const char* const value = environment(name);
  if (value == nullptr || *value == '\0') return;
  const std::string_view text = value;
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault == std::errc{} && end == text.data() + text.size() && number >= least && number <= most) {
    into = static_cast<Number>(number);
    return;
  }
  char right[96];
  std::snprintf(right, sizeof right, "a whole number from %llu to %llu", static_cast<unsigned long long>(least),
                static_cast<unsigned long long>(most));
  not_understood(name, value, right);
}

void read(Environment environment, const char* name, CopyRoutine& into) {
  const char* const value = environment(name);
  if (value == nullptr || *value == '\0') return;
  for (const CopyBytes how : kCopyBytes) {
    if (to_string(how) != value) continue;
    into = routine_of(how);
    return;
  }
  not_understood(name, value, "'cached' or 'streaming'");
}

void read(Environment environment, const char* name, CopySettings::Mode& into) {
  const char* const value = environment(name);
  if (value == nullptr || *value == '\0') return;
  const std::string_view text = value;
  if (text == "on") return;
  if (text == "off")
    into = CopySettings::Mode::Off;
  else if (text == "stats")
    into = CopySettings::Mode::Stats;
  else
    not_understood(name, value, "'on', 'off' or 'stats'");
}

}  // namespace

CopySettings copy_settings(Environment environment) {
  constexpr std::uint64_t kMostThreads = 64, kLeastBuffer = 64 << 10, kMostBuffer = 64 << 20;
  constexpr std::uint64_t kAnySize = std::uint64_t{1} << 62;
  CopySettings settings;
  read(environment, "TUTTI_COPY", settings.mode);
  read(environment, "TUTTI_COPY_THREADS", settings.copier.threads, 1, kMostThreads);
  read(environment, "TUTTI_COPY_BUFFER", settings.copier.buffer, kLeastBuffer, kMostBuffer);
  read(environment, "TUTTI_COPY_UP", settings.copier.up);
  read(environment, "TUTTI_COPY_DOWN", settings.copier.down);
  read(environment, "TUTTI_COPY_UP_FROM", settings.up_from, 1, kAnySize);
  read(environment, "TUTTI_COPY_DOWN_FROM", settings.down_from, 1, kAnySize);
  read(environment, "TUTTI_COPY_AFTER", settings.after, 0, kAnySize);
  if (const char* report = environment("TUTTI_COPY_REPORT")) settings.report = report;
  return settings;
}

}  // namespace tutti::internal::cuda
