#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/base/error.hpp"
#include "model/base/quantities.hpp"
#include "model/transfer/copy_method.hpp"

/// A batch as a user says it: plain fields with their defaults. Made by a batch file or in C++; `compile` turns it into
/// a `Batch` for a machine, or into a list of its faults.
///
///     BatchSpec spec{.streams = {{.name = "up", .from = "mem0", .to = "gpu0", .size = Bytes{32'000'000},
///                                 .kernel = KernelSpec{.throughput = GBps{10}}}}};
namespace tutti {

/// Sizes that have a name, so that streams can be a share of one.
using Parameters = std::map<std::string, Bytes, std::less<>>;

/// Size of a transfer: a number of bytes, or a share of a parameter.
struct SizeSpec {
  Bytes bytes{};               ///< where no parameter is named
  std::string parameter = {};  ///< a name of `Parameters`
  std::string percent = {};    ///< of the parameter, an exact decimal such as "12.5"; empty: all of it

  SizeSpec() = default;
  SizeSpec(Bytes exactly) : bytes(exactly) {}  // NOLINT: a number of bytes is a size
  SizeSpec(std::string of, std::string share) : parameter(std::move(of)), percent(std::move(share)) {}
  friend bool operator==(const SizeSpec&, const SizeSpec&) = default;
};

/// How often a GPU of this host is given the work of a kernel by the kernel's own function.
enum class Capture : std::uint8_t {
  Once,   ///< it is called when its batch is prepared; what it enqueues is recorded, and runs as one graph in each job
  Never,  ///< it is called in each job
};

/// "once", "never".
[[nodiscard]] constexpr std::string_view to_string(Capture capture) {
  return capture == Capture::Never ? "never" : "once";
}

/// Work of a stream behind its transfer; either `time` or `throughput` is set.
struct KernelSpec {
  std::string on = {};                ///< a gpu or a cpu; empty: the transfer's destination, else where its buffers lie
  std::optional<Duration> time = {};  ///< usual duration
  std::optional<GBps> throughput = {};   ///< over the bytes of `of`, else of the transfer
  std::string of = {};                   ///< a buffer of the task
  std::optional<Duration> worst = {};    ///< upper bound of the duration; absent: the usual one
  std::string name = "spin";             ///< a registered kernel
  Capture capture = Capture::Once;       ///< of its form for GPUs
  std::vector<std::string> reads = {};   ///< buffers of the task and of others ("camera.picture"), in the order in
                                         ///< which the kernel gets them
  std::vector<std::string> writes = {};  ///< of the task alone; one that is in both is changed in place

  friend bool operator==(const KernelSpec&, const KernelSpec&) = default;
};

/// An optional transfer, then its kernels one after the other.
struct StreamSpec {
  std::string name = {};                ///< empty: "stream" and its position
  std::string from = {};                ///< a memory or a GPU; a transfer has `from`, `to` and `size`
  std::string to = {};                  ///< likewise; with `copy` a buffer of the task
  std::optional<SizeSpec> size = {};    ///< with `copy` absent: all of it from `at` on
  std::string copy = {};                ///< a buffer of the task or of another, in place of `from`
  SizeSpec at = {};                     ///< with `copy`: where the transfer begins in it
  SizeSpec to_at = {};                  ///< with `copy`: where it begins in the buffer `to`
  std::vector<std::string> route = {};  ///< vertices from end to end; empty: the machine's route
  std::string via = {};                 ///< the memory of a staged copy; empty: the nearest
  CopyMethod method = CopyMethod::Automatic;
  int rows = 1;                     ///< equal parts of the transfer, 1 to 2^30; more than 1: a part of an image
  std::optional<Bytes> pitch = {};  ///< from one row to the next in the memory; at the GPU rows follow each other
  std::optional<KernelSpec> kernel = {};
  std::vector<KernelSpec> kernels = {};  ///< in place of `kernel`: several, which run where the first one does
  Place place = {};                      ///< where a file says it

  friend bool operator==(const StreamSpec&, const StreamSpec&) = default;
};

/// Which streams of a batch become one engine queue.
enum class Merging : std::uint8_t {
  On,          ///< streams whose copies are issued by one copy engine
  Off,         ///< none; for comparison
  Transitive,  ///< streams that use one copy engine at either end, directly or through others; a copy between GPUs then
               ///< holds an engine at both ends. For comparison
};

/// "on", "off", "transitive".
[[nodiscard]] constexpr std::string_view to_string(Merging merging) {
  constexpr std::array<std::string_view, 3> names{"on", "off", "transitive"};
  return names[static_cast<std::size_t>(merging)];
}

struct BatchSpec {
  std::string machine = {};  ///< the file of its machine, relative to the batch's file; empty: none is named
  Merging merging = Merging::On;
  std::vector<StreamSpec> streams = {};

  friend bool operator==(const BatchSpec&, const BatchSpec&) = default;
};

}  // namespace tutti
