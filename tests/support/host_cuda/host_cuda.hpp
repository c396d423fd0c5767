#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/kernel_registry.hpp"

/// A CUDA runtime that is executed on the host: see README.md beside this file. This header is for tests: what the GPUs
/// are, what goes wrong on them, and how a kernel is launched that is written for the host.
namespace tutti::internal::host_cuda {

/// Most GPUs that there can be.
inline constexpr int kMostDevices = 8;

/// Speed of copies where a test sets no other, byte/ns.
inline constexpr double kCopyRate = 20;

/// Instant of a GPU's own timer, ns.
using Instant = std::uint64_t;

/// Looks once at the operation at the front of a queue. It is called until it returns, and never waits itself.
/// @param begin  when the operation before it ended
/// @return when the operation ended; nothing: not yet
using Operation = std::function<std::optional<Instant>(Instant begin, Instant now)>;

/// One GPU. A view.
class Device {
 public:
  explicit Device(int ordinal) : ordinal_(ordinal) {}

  // Faults.

  /// It falls off the bus: nothing that is enqueued is executed, and every call for it fails from now on.
  void lose() const;
  /// The next kernel that computes something (gates do not) does not end before `release`.
  void hang_next_kernel() const;
  /// Ends the kernels that hang.
  void release() const;

  // What it is.

  /// Speed of copies, byte/ns, by which their ends are reckoned. At first `kCopyRate`.
  void copy_rate(double bytes_per_ns) const;
  /// Its memory. At first 1 GiB.
  void memory(std::size_t size) const;
  /// Operations that were enqueued and have not ended.
  [[nodiscard]] std::uint64_t unfinished() const;
  /// Kernels that have begun where streams have so many multiprocessors, of 132: those that compute, and those that
  /// wait or mark.
  [[nodiscard]] std::uint64_t computing_on(int sms) const;
  [[nodiscard]] std::uint64_t waiting_on(int sms) const;
  /// Its timer now.
  [[nodiscard]] Instant timer() const;

 private:
  int ordinal_;
};

[[nodiscard]] inline Device device(int ordinal) { return Device(ordinal); }

/// The host has so many GPUs. At first 4.
void set_device_count(int count);
/// Version of CUDA that the driver serves. At first that of the headers.
void set_driver_version(int version);
/// Whether GPUs reach each other. At first they do.
void set_peer_access(bool reaches);
/// Whether streams can wait for words of memory. At first they can.
void set_memory_operations(bool work);
/// Whether the driver says that it ends kernels that take seconds, as with a display. At first it does not.
void set_limits_kernels(bool limits);
/// Whether the driver makes green contexts. At first it does.
void set_splits_sms(bool splits);
/// Whether the kernels of a graph are launched one by one, as under a sanitizer. At first they are not.
void set_graphs_expand(bool expand);
/// Blocks of a fused kernel that a GPU has at once. At first 4.
void set_fused_slots(std::uint32_t slots);

/// A call of a function fails.
/// @param function  "cudaMalloc"
/// @param status    a cudaError_t, or for a function of the driver a CUresult
/// @param before    calls of it that go well first
void fail_next(const std::string& function, int status, int before = 0);
/// Counts the calls of a function from now on.
void count_calls(const std::string& function);
/// Calls of a function since `count_calls`. @pre they are counted
[[nodiscard]] int counted_calls(const std::string& function);
/// Kernels so far that poll a signal in host memory.
[[nodiscard]] int polls_of_host_memory();
/// Rests so far of threads in blocks that pass messages.
[[nodiscard]] int rests_of_blocks();
/// Calls that wait at present for the work of GPUs because they free or unpin memory, or the queue is full.
[[nodiscard]] int waiting_calls();

/// Launches a kernel that computes something.
/// @param touches  addresses that it uses; one that its GPU does not reach breaks the GPU
void launch(DeviceStream stream, Operation kernel, const std::vector<const void*>& touches = {});
/// Launches a kernel that only waits.
void launch_gate(DeviceStream stream, Operation kernel, const std::vector<const void*>& touches = {});

}  // namespace tutti::internal::host_cuda
