#include "apps/tutti/commands/files.hpp"

#include <filesystem>
#include <fstream>

namespace tutti::internal {
namespace {

Error refused(const std::string& path) {
  return {ErrorCode::InvalidInput, path + ": this cannot be written; name a file in a folder of yours", {}};
}

/// Where a file is written before it is moved to its place.
std::string beside(const std::string& path) { return path + ".new"; }

/// Whether something stands at the path that no file may replace: a folder, a device, a pipe.
bool is_taken(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status there = std::filesystem::status(path, error);
  return std::filesystem::exists(there) && !std::filesystem::is_regular_file(there);
}

/// Writes the text to the temporary file. @return whether all of it was written
bool write_beside(const std::string& path, const std::string& text) {
  std::ofstream stream(beside(path), std::ios::binary);
  if (!stream) return false;
  stream << text;
  stream.close();
  std::error_code error;
  if (!stream) std::filesystem::remove(beside(path), error);
  return stream.good();
}

}  // namespace

std::optional<Error> write_file(const std::string& path, const std::string& text) {
  if (is_taken(path) || !write_beside(path, text)) return refused(path);
  std::error_code error;
  std::filesystem::rename(beside(path), path, error);
  if (!error) return std::nullopt;
  std::filesystem::remove(beside(path), error);
  return refused(path);
}

std::optional<Error> check_writable(const std::string& path) {
  if (is_taken(path) || !write_beside(path, "")) return refused(path);
  std::error_code error;
  std::filesystem::remove(beside(path), error);
  return std::nullopt;
}

}  // namespace tutti::internal
