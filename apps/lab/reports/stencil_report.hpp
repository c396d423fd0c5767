#pragma once
#include <span>
#include <string>
#include <string_view>

#include "apps/lab/benches/stencil_bench.hpp"
#include "apps/tutti/reports/report.hpp"

namespace tutti::internal {

/// What `bench stencil` prints: a row for each case and mode, and how far predictions hold.
[[nodiscard]] std::string stencil_text(std::span<const StencilCase> cases);
[[nodiscard]] Json stencil_json(std::span<const StencilCase> cases, std::string_view machine);

}  // namespace tutti::internal
