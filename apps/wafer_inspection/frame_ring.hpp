#pragma once
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tutti/tasks.hpp>

#include "apps/wafer_inspection/image_set.hpp"

namespace wafer {

/// Frames as a camera leaves them: memory of the program in which each picture lies as the streams of a task carry its
/// parts, so that nothing is copied for a job.
class FrameRing {
 public:
  /// The ring of the task's buffer with `slots`; empty where it has fewer than there are pictures, which jobs then
  /// copy.
  /// @param parts  [n] of each picture, one for each stream of the task's first batch
  /// @errors InvalidInput: the streams copy another buffer.
  [[nodiscard]] static tutti::Expected<FrameRing> make(const tutti::TaskSet& tasks, const ImageSet& images,
                                                       std::span<const Part> parts);

  FrameRing() = default;
  [[nodiscard]] bool empty() const { return slots_.empty(); }
  [[nodiscard]] const std::string& buffer() const { return buffer_; }
  /// Job i inspects what lies in slot i modulo their number, which holds picture slot modulo the number of pictures.
  [[nodiscard]] const std::vector<std::span<std::byte>>& slots() const { return slots_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::string buffer_;
  std::unique_ptr<std::byte[], Free> memory_;  // the pictures, each in pages of its own
  std::vector<std::span<std::byte>> slots_;
};

}  // namespace wafer
