#pragma once
#include <string_view>

namespace tutti::internal {

/// apps/viewer/page.html, compiled in: the page with an empty place for data.
extern const std::string_view kViewerPage;

}  // namespace tutti::internal
