#include "apps/wafer_inspection/inspection_kernel.hpp"

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tutti/kernel.hpp>

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

/// The words of a list with room for so many pixels.
std::vector<std::uint64_t> listed(const Pixels& report, std::size_t room, const std::vector<std::byte>& parameters) {
  std::vector<std::uint64_t> list(room + 1, 77);
  list_on_host({std::as_bytes(std::span(report)), std::as_writable_bytes(std::span(list)), parameters, {}});
  return list;
}

// The number, then the place above the level; what is not used stays as it is.
TEST(ListKernel, ListsWhatIsNotZero) {
  EXPECT_EQ(listed({0, 0, 5, 0, 255}, 3, {}), (std::vector<std::uint64_t>{2, 2 << 16 | 5, 4 << 16 | 255, 77}));
  EXPECT_EQ(listed({0, 0, 5, 0, 255}, 1, {}), (std::vector<std::uint64_t>{2, 2 << 16 | 5})) << "of more it counts on";
  EXPECT_EQ(listed({0, 0, 5, 0, 255}, 0, {}), std::vector<std::uint64_t>{2});
  EXPECT_EQ(listed({}, 1, {}), (std::vector<std::uint64_t>{0, 77}));
  EXPECT_EQ(listed({1, 1, 1, 1}, 4, parameters(2, 1, 2)), (std::vector<std::uint64_t>{2, 1, 1 << 16 | 1, 77, 77}))
      << "of a part that takes less than its buffer";
}

TEST(ListKernel, ListsSixteenBits) {
  EXPECT_EQ(listed({0, 0, 5, 0, 0, 1}, 2, to_bytes({{3, 1, 10, 16}, 6})),
            (std::vector<std::uint64_t>{2, 1 << 16 | 5, 2 << 16 | 256}));
}

TEST(ListKernel, ThrowsWhereItHasNoRoom) {
  Pixels report(8), list(7);
  EXPECT_THROW(list_on_host(launch(report, list, {})), std::invalid_argument);
  EXPECT_THROW(list_on_gpu(launch(report, list, {}), nullptr), std::invalid_argument);
  Pixels longer(8);
  EXPECT_THROW(list_on_host(launch(report, longer, parameters(3, 1, 9))), std::invalid_argument);
}

}  // namespace
}  // namespace wafer
