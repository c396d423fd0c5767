#include "apps/wafer_inspection/pixel_list.hpp"

#include <algorithm>
#include <cstring>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {
namespace {

template <class Pixel>
std::uint64_t classify_pixels(const Pixel* report, const Pixel* part, std::size_t pixels, int die_rows,
                              const Shift* shifts, std::span<std::uint8_t> list, const DieComparison& dies) {
  const std::size_t room = PixelList::room_in(list.size());
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < pixels; ++at) {
    if (report[at] == 0) continue;
    if (count < room) {
      const std::uint64_t word = PixelList::word_of(at, report[at], class_of(part, at, die_rows, dies, shifts));
      std::memcpy(list.data() + (count + 1) * sizeof word, &word, sizeof word);
    }
    ++count;
  }
  return count;
}

}  // namespace

void classify(std::span<const std::uint8_t> report, std::span<const std::uint8_t> part, std::span<const Shift> shifts,
              std::span<std::uint8_t> list, const DieComparison& comparison) {
  WAFER_EXPECTS(list.size() >= PixelList::kWord, "a list has a number at least");
  WAFER_EXPECTS(report.size() == part.size(), "a report has the size of its part");
  const int die_rows = static_cast<int>(part.size() / comparison.die_row_bytes());
  const Shift* const moved = shifts.empty() ? nullptr : shifts.data();
  const auto list_in = [&]<class Pixel>(Pixel) {
    return classify_pixels(reinterpret_cast<const Pixel*>(report.data()), reinterpret_cast<const Pixel*>(part.data()),
                           part.size() / sizeof(Pixel), die_rows, moved, list, comparison);
  };
  const std::uint64_t count = comparison.bits == 8 ? list_in(std::uint8_t{}) : list_in(std::uint16_t{});
  std::memcpy(list.data(), &count, sizeof count);
}

}  // namespace wafer
