#include <array>

#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

constexpr std::array kTargets{
    Target{"png", takes_png, {}},
    Target{"tiff", takes_tiff, {}},
    Target{"truth", takes_truth, {}},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace tutti::internal::fuzz
