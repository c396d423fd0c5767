#include "apps/lab/learn/byte_source.hpp"

#include <cerrno>

#include <zlib.h>

#include "model/base/input_file.hpp"

namespace tutti::internal {

void ByteSource::Close::operator()(void* file) const { gzclose(static_cast<gzFile>(file)); }

Expected<ByteSource> ByteSource::open(const std::string& path) {
  ByteSource source;
  source.file_.reset(gzopen(path.c_str(), "rb"));
  if (!source.file_) return tl::unexpected(unreadable(path, "a trace", errno));
  source.buffer_.resize(256 << 10);
  return source;
}

bool ByteSource::refill() {
  if (!file_ || !fault_.empty()) return false;
  auto* const file = static_cast<gzFile>(file_.get());
  const int count = gzread(file, buffer_.data(), static_cast<unsigned>(buffer_.size()));
  if (count <= 0) {
    int number = Z_OK;
    const char* text = gzerror(file, &number);
    if (number == Z_OK || number == Z_STREAM_END) return false;
    fault_ = *text != 0 ? text : "it ends early";
    if (const std::size_t path = fault_.rfind(": "); path != std::string::npos) fault_.erase(0, path + 2);
    return false;
  }
  bytes_ = {buffer_.data(), static_cast<std::size_t>(count)};
  at_ = 0;
  return true;
}

}  // namespace tutti::internal
