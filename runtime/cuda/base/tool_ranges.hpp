#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cuda_runtime_api.h>

/// Ranges and names that Nsight Systems shows: NVTX, domain `tutti`. Where no tool is attached a call tests one
/// pointer; a build with -Dnvtx=disabled has none of it. No call allocates here; what a tool does is the tool's.
namespace tutti::internal::cuda {

/// A name that a tool knows, so that a range costs no copy of it.
class RangeName {
 public:
  RangeName() = default;
  explicit RangeName(const std::string& name);

 private:
  friend class ToolRange;
  void* handle_ = nullptr;  // null: no tool
};

/// A stretch of time that is under way. It may end in another thread than it began in.
class ToolRange {
 public:
  /// No range.
  ToolRange() = default;
  /// A run of a batch.
  /// @param job  that it is part of: its number, the payload
  [[nodiscard]] static ToolRange of_batch(const RangeName& name, std::uint64_t job);
  /// A job, from its start to its finish: "inspect 12". A longer name of its task is cut off.
  [[nodiscard]] static ToolRange of_job(std::string_view task, std::uint64_t index);
  /// What `number` of a range was.
  [[nodiscard]] static ToolRange numbered(std::uint64_t number) { return ToolRange(number); }

  /// 0: none.
  [[nodiscard]] std::uint64_t number() const { return number_; }
  /// Ends it; does nothing where there is none.
  void end();

 private:
  explicit ToolRange(std::uint64_t number) : number_(number) {}

  std::uint64_t number_ = 0;
};

/// Names a stream, as in "tutti gpu 0 lane 3", and the calling thread.
void name_for_tools(cudaStream_t stream, const std::string& name);
void name_thread_for_tools(const char* name);

}  // namespace tutti::internal::cuda
