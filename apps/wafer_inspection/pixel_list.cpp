#include "apps/wafer_inspection/pixel_list.hpp"

#include <algorithm>
#include <cstring>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

void list_pixels(std::span<const std::uint8_t> report, std::span<std::uint8_t> list, int bits) {
  WAFER_EXPECTS(list.size() >= PixelList::kWord, "a list has a number at least");
  const std::size_t step = static_cast<std::size_t>(bits) / 8, room = PixelList::room_in(list.size());
  std::uint64_t count = 0;
  for (std::size_t at = 0; at + step <= report.size(); at += step) {
    const unsigned low = report[at], high = step == 1 ? 0U : report[at + 1];
    const unsigned level = low | high << 8U;
    if (level == 0) continue;
    const std::uint64_t word = PixelList::word_of(at / step, static_cast<std::uint16_t>(level));
    if (count < room) std::memcpy(list.data() + (count + 1) * sizeof word, &word, sizeof word);
    ++count;
  }
  std::memcpy(list.data(), &count, sizeof count);
}

}  // namespace wafer
