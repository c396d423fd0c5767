// Calls about graphs. Their nodes are executed one after the other, in the order in which they were recorded.
#include <algorithm>

#include "tests/support/host_cuda/calls.hpp"
#include "tests/support/host_cuda/memory.hpp"

namespace tutti::internal::host_cuda {
namespace {

/// All nodes as one operation of a queue.
Operation executing(Gpu& gpu, std::vector<CUgraphNode_st> nodes) {
  for (CUgraphNode_st& node : nodes)
    if (node.computes && gpu.hangs_next.exchange(false)) node.operation = hanging(gpu);
  struct State {
    std::vector<CUgraphNode_st> nodes;
    std::size_t next = 0;
    std::optional<Instant> ended{};
  };
  return
      [state = std::make_shared<State>(State{std::move(nodes)})](Instant begin, Instant now) -> std::optional<Instant> {
        for (; state->next < state->nodes.size(); ++state->next) {
          const auto end = state->nodes[state->next].operation(state->ended.value_or(begin), now);
          if (!end) return std::nullopt;
          state->ended = end;
        }
        return state->ended.value_or(begin);
      };
}

/// Copies of memory that is not pinned hold the call.
bool waits(const CUgraphNode_st& node) {
  return node.type == cudaGraphNodeTypeMemcpy && (!region_of(node.to) || !region_of(node.from));
}

cudaError_t launch_graph(const CUgraphExec_st& graph, CUstream_st& stream) {
  std::vector<std::vector<CUgraphNode_st>> operations{graph.nodes};
  if (host().graphs_expand) {
    operations.clear();
    for (const CUgraphNode_st& node : graph.nodes) operations.push_back({node});
  }
  cudaError_t status = cudaSuccess;
  for (std::vector<CUgraphNode_st>& nodes : operations)
    if (status == cudaSuccess)
      status = enqueue(stream, CUgraphNode_st{cudaGraphNodeTypeGraph, executing(*stream.gpu, std::move(nodes))});
  const bool holds = status == cudaSuccess && std::ranges::any_of(graph.nodes, waits);
  return holds ? wait_for(stream, stream.enqueued) : status;
}

std::vector<std::pair<cudaGraphNode_t, cudaGraphNode_t>> edges_of(CUgraph_st& graph) {
  std::vector<std::pair<cudaGraphNode_t, cudaGraphNode_t>> edges;
  for (CUgraphNode_st& node : graph.nodes)
    for (CUgraphNode_st* const before : node.before) edges.emplace_back(before, &node);
  return edges;
}

}  // namespace
}  // namespace tutti::internal::host_cuda

using namespace tutti::internal::host_cuda;

extern "C" {

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", Scope::Unsafe, [&] {
    *executable = new CUgraphExec_st{{graph->nodes.begin(), graph->nodes.end()}};
    return cudaSuccess;
  });
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  return call("cudaGraphUpload", Scope::Device, [] { return cudaSuccess; });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return call("cudaGraphLaunch", Scope::Device, [&] {
    CUstream_st* found = nullptr;
    const cudaError_t status = find_stream(stream, found);
    return status == cudaSuccess ? launch_graph(*graph, *found) : status;
  });
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  return call("cudaGraphGetNodes", Scope::Program, [&] {
    if (nodes != nullptr)
      for (std::size_t i = 0; i < *count; ++i) nodes[i] = &graph->nodes[i];
    *count = graph->nodes.size();
    return cudaSuccess;
  });
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData*,
                              std::size_t* count) {
#else
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, std::size_t* count) {
#endif
  return call("cudaGraphGetEdges", Scope::Program, [&] {
    const auto edges = edges_of(*graph);
    for (std::size_t i = 0; from != nullptr && i < *count; ++i) std::tie(from[i], to[i]) = edges[i];
    *count = edges.size();
    return cudaSuccess;
  });
}

#if CUDART_VERSION >= 13000
#define EDGE_DATA const cudaGraphEdgeData*,
#else
#define EDGE_DATA
#endif
cudaError_t cudaGraphAddDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     EDGE_DATA std::size_t count) {
  return call("cudaGraphAddDependencies", Scope::Program, [&] {
    for (std::size_t i = 0; i < count; ++i) to[i]->before.push_back(from[i]);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        EDGE_DATA std::size_t count) {
  return call("cudaGraphRemoveDependencies", Scope::Program, [&] {
    for (std::size_t i = 0; i < count; ++i)
      if (std::erase(to[i]->before, from[i]) == 0) return cudaErrorInvalidValue;
    return cudaSuccess;
  });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return call("cudaGraphNodeGetType", Scope::Program, [&] { return *type = node->type, cudaSuccess; });
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* copy) {
  return call("cudaGraphMemcpyNodeGetParams", Scope::Program, [&] {
    copy->srcPtr.ptr = const_cast<void*>(node->from);
    copy->dstPtr.ptr = node->to;
    return cudaSuccess;
  });
}

/// No kernel is cooperative, and no graph is part of another one.
cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t, cudaLaunchAttributeID, cudaLaunchAttributeValue* value) {
  return call("cudaGraphKernelNodeGetAttribute", Scope::Program, [&] { return *value = {}, cudaSuccess; });
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t, cudaKernelNodeParams*) {
  return call("cudaGraphKernelNodeGetParams", Scope::Program, [] { return cudaErrorInvalidValue; });
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t, cudaGraph_t*) {
  return call("cudaGraphChildGraphNodeGetGraph", Scope::Program, [] { return cudaErrorInvalidValue; });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, std::size_t) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", Scope::Program, [] { return cudaErrorInvalidValue; });
}

cudaError_t cudaFuncGetName(const char**, const void*) {
  return call("cudaFuncGetName", Scope::Program, [] { return cudaErrorInvalidValue; });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}
}
