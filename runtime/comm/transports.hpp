#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/comm/shared_job.hpp"
#include "runtime/comm/transport.hpp"

namespace tutti::internal::comm {

/// Memory that the host and the streams of a program reach, for transports whose host moves the bytes.
class ProxyMemory {
 public:
  virtual ~ProxyMemory() = default;
  /// Memory of the host that all streams reach, zeros, until this object ends.
  /// @errors Machine: there is not so much
  [[nodiscard]] virtual Expected<std::span<std::byte>> allocate(std::size_t bytes) = 0;
  /// Lets streams reach memory of the host. Until this object ends.
  [[nodiscard]] virtual Expected<void> reach(std::span<std::byte> memory) = 0;
  [[nodiscard]] virtual bool is_host(const std::byte* memory) const = 0;
  /// Copies, and waits for that. Any thread may call it.
  [[nodiscard]] virtual Expected<void> copy(std::byte* to, const std::byte* from, std::size_t bytes) = 0;
};

/// What a rank says of itself when it joins the others.
struct JoinOptions {
  SharedJob job = {};           ///< mpi: name and number of ranks come from MPI
  int rank = 0;                 ///< mpi: comes from MPI
  NetworkOptions network = {};  ///< soft: what the network is like
  int device = 0;               ///< nccl, nvshmem, and soft with `gpu`: the GPU of this rank
  /// soft: of a rank whose streams are the GPU's, in processes that were forked before they called CUDA; null: streams
  /// and buffers of the host alone.
  const GpuFunctions* gpu = nullptr;
  BufferPlace buffers = BufferPlace::Device;  ///< soft with `gpu`: what the rank allocates; `Pinned`: in shared memory
  ProxyMemory* memory = nullptr;  ///< mpi: of a program whose streams are a GPU's; null: streams of the host alone
};

/// A transport. One more is one more row of `transport_rows`.
struct TransportRow {
  const char* name;
  const char* needs;
  /// Whether it can be used on this host.
  /// @errors Machine: why it cannot, and the remedy.
  Expected<void> (*check)();
  /// Joins the other ranks; all call it. @errors as those of the transport
  Expected<std::unique_ptr<Transport>> (*join)(const JoinOptions& options);
};

[[nodiscard]] std::span<const TransportRow> transport_rows();

/// @errors InvalidInput: there is no such transport; the sentence lists those that are.
[[nodiscard]] Expected<const TransportRow*> find_transport(std::string_view name);

/// Joins the other ranks through a transport.
/// @errors as `find_transport`; Machine: it cannot be used here, with its name, the reason and the remedy
[[nodiscard]] Expected<std::unique_ptr<Transport>> join_by(std::string_view name, const JoinOptions& options);

}  // namespace tutti::internal::comm
