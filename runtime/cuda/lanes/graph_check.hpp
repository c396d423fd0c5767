#pragma once
#include <string>

#include "model/batch/batch_spec.hpp"
#include "runtime/cuda/base/handles.hpp"
#include "runtime/cuda/base/status.hpp"

namespace tutti::internal::cuda {

/// What keeps a graph, or the calls that it was recorded from, from being enqueued behind a gate: the node, why, and a
/// remedy, as the end of "the kernel ...". Empty: nothing.
///
/// A graph may hold kernels, copies between memory of GPUs and pinned memory, memsets, and graphs of these. Copies of
/// ordinary memory, functions of the host and what waits for others would hold the caller or the stream; memory that is
/// allocated in the stream is freed behind its gate; a cooperative kernel needs all its blocks at once, beside the
/// kernels that poll. Calls that are never captured may have functions of the host and memory of the stream among them.
[[nodiscard]] std::string fault_of_graph(int device, cudaGraph_t graph, Capture capture);

/// Puts the nodes of a graph into one line, in an order that keeps what they wait for. A branch takes a queue of its
/// own where it runs, which the gate of another lane may hold (H100, driver 580: with copies in the branches, from five
/// branches beside the first on, all armed graphs counted together).
/// @errors Machine
[[nodiscard]] Expected<void> put_in_line(cudaGraph_t graph);

/// Makes a graph ready to be launched, all of it on the GPU.
/// @param stream  in which nothing waits for a gate; the call waits for it
/// @errors Machine
[[nodiscard]] Expected<ExecutableGraph> load_graph(cudaGraph_t graph, cudaStream_t stream);

/// Places of a queue that a launch of a graph in one line takes at most: one, and one for each node that is no kernel.
/// 511 launches of a gate, one copy and a mark were taken before the next one blocked, 102 of ten copies, 10 of a
/// hundred (H200, driver 580).
[[nodiscard]] std::size_t places_of_graph(cudaGraph_t graph);

/// Operations that a graph consists of.
[[nodiscard]] std::size_t size_of_graph(cudaGraph_t graph);

}  // namespace tutti::internal::cuda
