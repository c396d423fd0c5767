#include "apps/wafer_inspection/inspection_kernel.hpp"

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tutti/kernel.hpp>

#include "apps/wafer_inspection/pixel_list.hpp"

namespace wafer {
namespace {

using Pixels = std::vector<std::uint8_t>;

tutti::KernelLaunch launch(const Pixels& part, Pixels& report, const std::vector<std::byte>& parameters) {
  return {std::as_bytes(std::span(part)), std::as_writable_bytes(std::span(report)), parameters, {}};
}

/// What the kernel makes of a part: a report of the given size, filled with 77 beforehand.
Pixels report_of(const Pixels& part, std::size_t size, const std::vector<std::byte>& parameters) {
  Pixels report(size, 77);
  compare_on_host(launch(part, report, parameters));
  return report;
}

std::vector<std::byte> parameters(int width, int die_height, std::size_t part_bytes) {
  return to_bytes({{width, die_height, 10}, part_bytes});
}

// Three die rows of 2 x 1 pixels and a threshold of 10: 90 against 20 and 20 is 70 off, 60 above the threshold.
const Pixels kPart{20, 20, 20, 90, 20, 20};
const Pixels kReport{0, 0, 0, 60, 0, 0};

TEST(InspectionKernel, ComparesThePartByItsParameters) { EXPECT_EQ(report_of(kPart, 6, parameters(2, 1, 6)), kReport); }

// Buffers have the declared size, of which the part may take less: the rest of the report stays as it is.
TEST(InspectionKernel, LeavesTheRestOfLargerBuffersAlone) {
  Pixels part = kPart;
  part.insert(part.end(), {255, 0, 255});
  Pixels expected = kReport;
  expected.insert(expected.end(), {77, 77, 77});
  EXPECT_EQ(report_of(part, 9, parameters(2, 1, 6)), expected);
}

// Without parameters three die rows of two pixels, and the default threshold of 24: 70 - 24 = 46. A seventh byte is
// left over.
TEST(InspectionKernel, TakesThreeRowsWithoutParameters) {
  EXPECT_EQ(report_of(kPart, 6, {}), (Pixels{0, 0, 0, 46, 0, 0}));
  Pixels part = kPart;
  part.push_back(255);
  EXPECT_EQ(report_of(part, 7, {}), (Pixels{0, 0, 0, 46, 0, 0, 77}));
}

// Pixels of 16 bits, their bytes as x86 and ARM have them: 20, 20, 20, 20 + 1 * 256, 20, 20 with a threshold of 10. The
// fourth is 256 off, 246 above the threshold.
TEST(InspectionKernel, ComparesSixteenBits) {
  const Pixels part{20, 0, 20, 0, 20, 0, 20, 1, 20, 0, 20, 0};
  const Pixels report{0, 0, 0, 0, 0, 0, 246, 0, 0, 0, 0, 0};
  EXPECT_EQ(report_of(part, 12, to_bytes({{2, 1, 10, 16}, 12})), report);
  Pixels shifted(13);
  EXPECT_THROW(compare_on_host({std::as_bytes(std::span(shifted)).subspan(1),
                                std::as_writable_bytes(std::span(shifted)).subspan(1),
                                to_bytes({{2, 1, 10, 16}, 12}),
                                {}}),
               std::invalid_argument)
      << "an odd address";
  EXPECT_THROW(report_of(part, 12, to_bytes({{2, 1, 256, 8}, 12})), std::invalid_argument) << "no level of 8 bits";
}

TEST(InspectionKernel, DoesNothingWithoutAReport) { EXPECT_EQ(report_of(kPart, 0, parameters(2, 1, 6)), Pixels{}); }

TEST(InspectionKernel, ThrowsWhereThePartDoesNotFit) {
  EXPECT_THROW(report_of(kPart, 5, parameters(2, 1, 6)), std::invalid_argument) << "a report too small";
  EXPECT_THROW(report_of(kPart, 9, parameters(2, 1, 8)), std::invalid_argument) << "more than the input has";
  EXPECT_THROW(report_of(kPart, 6, parameters(2, 1, ~std::size_t{0})), std::invalid_argument);
}

TEST(InspectionKernel, ThrowsWhereThePartIsNoThreeDieRows) {
  EXPECT_THROW(report_of(kPart, 6, parameters(3, 1, 6)), std::invalid_argument) << "two";
  EXPECT_THROW(report_of(kPart, 6, parameters(2, 1, 5)), std::invalid_argument) << "two and a half";
  for (const int side : {0, -1}) {
    EXPECT_THROW(report_of(kPart, 6, parameters(side, 1, 6)), std::invalid_argument) << side;
    EXPECT_THROW(report_of(kPart, 6, parameters(2, side, 6)), std::invalid_argument) << side;
  }
  EXPECT_THROW(report_of({1, 2}, 2, {}), std::invalid_argument) << "no pixel for each of three rows";
}

// A GPU is asked for only behind the checks.
TEST(InspectionKernel, ChecksLaunchesOnAGpuAsOnTheHost) {
  Pixels report(6);
  EXPECT_THROW(compare_on_gpu(launch(kPart, report, parameters(2, 1, 8)), nullptr), std::invalid_argument);
  EXPECT_THROW(compare_on_gpu(launch(kPart, report, parameters(3, 1, 6)), nullptr), std::invalid_argument);
  Pixels none;
  EXPECT_NO_THROW(compare_on_gpu(launch(kPart, none, parameters(2, 1, 6)), nullptr));
}

/// What a kernel reads, in the order of its buffers.
struct Read {
  std::vector<tutti::ReadBuffer> buffers;

  template <class... Buffers>
  explicit Read(const Buffers&... all) : buffers{{"", "", std::as_bytes(std::span(all))}...} {}
};

template <class Written>
tutti::KernelLaunch launch(const Read& read, Written& written, const std::vector<std::byte>& parameters) {
  return {read.buffers[0].bytes, std::as_writable_bytes(std::span(written)), parameters, {}, read.buffers};
}

/// A part of three die rows of one die of `width` x 1 pixels, or more of them side by side.
std::vector<std::byte> dies(int width, int columns, int bits = 8) {
  const int all = width * columns;
  return to_bytes({{all, 1, 10, bits, 0, width, columns}, static_cast<std::size_t>(all) * 3 * (bits / 8)});
}

/// The words of a list with room for so many pixels.
std::vector<std::uint64_t> listed(const Pixels& report, const Pixels& part, std::size_t room,
                                  const std::vector<std::byte>& parameters) {
  std::vector<std::uint64_t> list(room + 1, 77);
  classify_on_host(launch(Read(report, part), list, parameters));
  return list;
}

constexpr std::uint64_t bright(std::uint64_t at, std::uint16_t level) {
  return PixelList::word_of(at, level, PixelClass::Bright);
}
constexpr std::uint64_t dark(std::uint64_t at, std::uint16_t level) {
  return PixelList::word_of(at, level, PixelClass::Dark);
}

// The number, then place, class and level; what is not used stays as it is. Three die rows of two pixels: the first
// pixel of the second is brighter than that above it, the second pixel of the first darker than that below.
TEST(ClassifyKernel, ListsWhatDiffersAsBrightOrDark) {
  const Pixels report{0, 5, 60, 0, 0, 0}, part{20, 1, 90, 20, 20, 20};
  EXPECT_EQ(listed(report, part, 3, dies(2, 1)), (std::vector<std::uint64_t>{2, dark(1, 5), bright(2, 60), 77}));
  EXPECT_EQ(listed(report, part, 1, dies(2, 1)), (std::vector<std::uint64_t>{2, dark(1, 5)})) << "of more it counts on";
  EXPECT_EQ(listed(report, part, 0, dies(2, 1)), std::vector<std::uint64_t>{2});
  EXPECT_EQ(listed(report, part, 2, {}), (std::vector<std::uint64_t>{2, dark(1, 5), bright(2, 60)}));
  EXPECT_EQ(listed({0, 0, 0, 1, 1, 1}, {0, 0, 0, 9, 0, 0}, 4, parameters(1, 1, 3)),
            (std::vector<std::uint64_t>{0, 77, 77, 77, 77}))
      << "of a part that takes less than its buffer";
  EXPECT_EQ(PixelList::class_in(dark(1ULL << 43U, 65'535)), PixelClass::Dark);
  EXPECT_EQ(PixelList::place_in(dark(1ULL << 43U, 65'535)), 1ULL << 43U);
  EXPECT_EQ(PixelList::level_in(bright(3, 65'535)), 65'535);
}

TEST(ClassifyKernel, ListsSixteenBits) {
  const Pixels report{0, 0, 0, 1, 0, 0}, part{20, 0, 20, 2, 20, 0};
  EXPECT_EQ(listed(report, part, 1, dies(1, 1, 16)), (std::vector<std::uint64_t>{1, bright(1, 256)}));
}

TEST(ClassifyKernel, ThrowsWhereItHasNoRoom) {
  Pixels pixels(6), list(7), longer(8);
  EXPECT_THROW(classify_on_host(launch(Read(pixels, pixels), list, {})), std::invalid_argument);
  EXPECT_THROW(classify_on_gpu(launch(Read(pixels, pixels), list, {}), nullptr), std::invalid_argument);
  EXPECT_THROW(classify_on_host(launch(Read(pixels, pixels), longer, parameters(3, 1, 9))), std::invalid_argument);
  EXPECT_THROW(classify_on_host(launch(Read(pixels), longer, {})), std::invalid_argument) << "no part";
}

TEST(AlignKernel, ThrowsWhereShiftsHaveNoRoom) {
  Pixels part(12);
  std::vector<Shift> shifts(5);
  EXPECT_THROW(align_on_host(launch(Read(part), shifts, dies(2, 2))), std::invalid_argument) << "five, of six dies";
  EXPECT_THROW(align_on_gpu(launch(Read(part), shifts, dies(2, 2)), nullptr), std::invalid_argument);
  EXPECT_THROW(compare_on_host(launch(Read(part, shifts), part, dies(2, 2))), std::invalid_argument);
  shifts.resize(6);
  const auto wide = to_bytes({{4, 1, 10, 8, 1, 2, 2}, 12});
  EXPECT_THROW(align_on_host(launch(Read(part), shifts, wide)), std::invalid_argument) << "beyond the right edge";
  EXPECT_NO_THROW(align_on_host(launch(Read(part), shifts, dies(2, 2))));
  EXPECT_NO_THROW(align_on_host(launch(Read(part), shifts, {}))) << "no columns, no shifts";
}

}  // namespace
}  // namespace wafer
