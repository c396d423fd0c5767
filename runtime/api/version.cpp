#include "runtime/api/version.hpp"

namespace tutti {

Version library_version() noexcept { return kHeaderVersion; }

}  // namespace tutti
