#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti {

/// One end of a copy: a memory or a GPU, by its position among the machine's.
struct WayEnd {
  bool gpu = false;
  std::uint32_t position = 0;

  friend auto operator<=>(const WayEnd&, const WayEnd&) = default;
};

/// A copy from one end to the other, as measurements name it: between a memory and a GPU, or from GPU to GPU.
struct Way {
  WayEnd from, to;

  friend auto operator<=>(const Way&, const Way&) = default;
};

/// Copies that are active together, each way at most once.
using WaySet = std::vector<Way>;

/// "memory1", "gpu0".
[[nodiscard]] std::string to_string(const WayEnd& end);
/// "memory1 -> gpu0, gpu0 -> gpu1".
[[nodiscard]] std::string ways_text(const WaySet& ways);

}  // namespace tutti
