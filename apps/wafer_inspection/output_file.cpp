#include "apps/wafer_inspection/output_file.hpp"

#include <filesystem>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

namespace fs = std::filesystem;
using tutti::Expected;

namespace {

tl::unexpected<tutti::Error> cannot_write(const std::string& path) {
  return invalid_input("this cannot be written; name a file in a folder of yours", {.file = path});
}

/// Where a file is written before it is moved to its place.
std::string beside(const std::string& path) { return path + ".new"; }

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

}  // namespace

Expected<void> write_aside(const std::string& path, const std::function<Expected<void>(const std::string&)>& write) {
  const std::string temporary = beside(path);
  if (auto written = write(temporary); !written) {
    remove_quietly(temporary);
    return written;
  }
  std::error_code status;
  fs::rename(temporary, path, status);
  if (!status) return {};
  remove_quietly(temporary);
  return cannot_write(path);
}

Expected<void> write_text(const std::string& path, const std::string& text) {
  return write_aside(path, [&](const std::string& temporary) -> Expected<void> {
    std::ofstream file{temporary, std::ios::binary};
    if (!file) return cannot_write(path);
    file << text << std::flush;
    if (!file) return machine_error(path + ": cannot be written to its end; make room on the disk");
    return {};
  });
}

Expected<void> check_writable(const std::string& path) {
  std::error_code status;
  if (fs::is_directory(path, status) || !std::ofstream{beside(path), std::ios::binary}) return cannot_write(path);
  remove_quietly(beside(path));
  return {};
}

Expected<void> make_folder(const std::string& path) {
  std::error_code status;
  fs::create_directories(path, status);
  if (!status && fs::is_directory(path, status)) return {};
  return invalid_input(fmt::format("the folder cannot be made ({}); name one that can",
                                   status ? status.message() : "something else stands there"),
                       {.file = path});
}

}  // namespace wafer
