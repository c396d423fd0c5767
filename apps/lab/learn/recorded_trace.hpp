#pragma once
#include <cstdint>
#include <string>
#include <vector>

/// What a program's trace says of its GPUs: every copy and kernel with its instants. Readers of all formats make one.
namespace tutti::internal {

enum class RecordedKind : std::uint8_t {
  Up,      ///< a copy from the host to a GPU
  Down,    ///< a copy from a GPU to the host
  Peer,    ///< a copy between two GPUs
  Kernel,  ///< a kernel, or a copy or memset inside one GPU
};

[[nodiscard]] constexpr bool is_copy(RecordedKind kind) { return kind != RecordedKind::Kernel; }

/// One copy or kernel. Times are ns since any instant.
struct RecordedOperation {
  std::int64_t start = 0, end = 0;  ///< end >= start
  std::int64_t bytes = 0;           ///< of a copy, also of one inside a GPU; 0: not known
  std::uint32_t name = 0;           ///< of a kernel: its position in `RecordedTrace::kernel_names`
  std::uint32_t stream = 0;         ///< a number for each CUDA stream of a process
  std::uint16_t process = 0;        ///< from 0
  std::uint16_t gpu = 0;            ///< from 0; of a copy between GPUs the source
  std::uint16_t to_gpu = 0;         ///< destination of a copy between GPUs
  RecordedKind kind = RecordedKind::Kernel;
  bool pageable = false;  ///< its memory on the host is ordinary memory

  [[nodiscard]] std::int64_t length() const { return end - start; }
  friend bool operator==(const RecordedOperation&, const RecordedOperation&) = default;
};

/// The number of what runs an operation, which runs one at a time: a direction of a GPU's copies, or its kernels.
[[nodiscard]] inline std::size_t recorded_engine(const RecordedOperation& operation) {
  return operation.gpu * std::size_t{4} + static_cast<std::size_t>(operation.kind);
}

struct RecordedTrace {
  std::string source = {};                         ///< the format, in words
  std::vector<RecordedOperation> operations = {};  ///< by start
  std::vector<std::string> kernel_names = {};      ///< short: letters, digits and '_' alone
  std::size_t gpus = 0;
  std::size_t processes = 0;
  std::vector<std::string> notes = {};  ///< what was left out while reading, a sentence each
  bool damaged = false;                 ///< the file ends early, and what stands before that was read

  /// Numbers of engines are below it.
  [[nodiscard]] std::size_t engines() const { return gpus * 4; }
};

}  // namespace tutti::internal
