#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "model/base/error.hpp"

namespace tutti::internal {

/// One file of a journal that is being written. It is always a new file: nothing that exists is overwritten, and no
/// link is followed.
class JournalFile {
 public:
  /// Makes the file. A journal that has this name already is put aside.
  /// @errors InvalidInput: something else has this name, or the folder may not be written.
  [[nodiscard]] static Expected<JournalFile> create(const std::string& path);
  /// No file: what is written is gone.
  JournalFile() = default;
  JournalFile(JournalFile&& other) noexcept;
  JournalFile& operator=(JournalFile&& other) noexcept;
  JournalFile(const JournalFile&) = delete;  // it is closed once
  JournalFile& operator=(const JournalFile&) = delete;
  ~JournalFile();

  /// Writes all of these bytes or, where that fails, none.
  /// @return errno where nothing was written; 0 where all is
  [[nodiscard]] int append(std::span<const std::byte> bytes) noexcept;
  /// Bytes written.
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Closes the file. @return errno, where the file system reports late that it could not keep it
  int close() noexcept;
  /// Whether this name is still that of this file.
  [[nodiscard]] bool has_name(const std::string& path) const;

 private:
  explicit JournalFile(int descriptor);

  int descriptor_ = -1;
  std::int64_t size_ = 0;
  std::uint64_t device_ = 0, inode_ = 0;
};

/// Gives the file of this name another: NAME.1, or one more than the largest number that there is. So the oldest file
/// has the smallest number.
/// @return  the new name
/// @errors  InvalidInput: the folder may not be written, or its file system has no links.
[[nodiscard]] Expected<std::string> put_aside(const std::string& path);

}  // namespace tutti::internal
