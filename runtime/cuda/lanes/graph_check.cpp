#include "runtime/cuda/lanes/graph_check.hpp"

#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "runtime/cuda/lanes/lane_pool.hpp"

namespace tutti::internal::cuda {
namespace {

/// Kernels that poll for gates and starts, of one block each.
constexpr std::size_t kPollingBlocks = LanePool::kMostLanes + 2;

using Node = cudaGraphNode_t;

/// Edges of a graph, in the form of the calls.
struct Edges {
  explicit Edges(std::size_t count = 0) : from(count), to(count), data(count) {}

  void add(Node before, Node behind) {
    from.push_back(before);
    to.push_back(behind);
    data.emplace_back();
  }
  [[nodiscard]] std::size_t size() const { return from.size(); }

  std::vector<Node> from, to;
  std::vector<cudaGraphEdgeData> data;
};

std::vector<Node> nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  static_cast<void>(cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<Node> nodes(count);
  if (count > 0) static_cast<void>(cudaGraphGetNodes(graph, nodes.data(), &count));
  return nodes;
}

// Since CUDA 13 an edge has data: a kernel may begin before the one that it depends on has ended.
#if CUDART_VERSION >= 13000
#define TUTTI_WITH_EDGE_DATA(data) data,
#else
#define TUTTI_WITH_EDGE_DATA(data)
#endif

Edges edges_of(cudaGraph_t graph) {
  std::size_t count = 0;
  static_cast<void>(cudaGraphGetEdges(graph, nullptr, nullptr, TUTTI_WITH_EDGE_DATA(nullptr) & count));
  Edges edges(count);
  if (count > 0)
    static_cast<void>(
        cudaGraphGetEdges(graph, edges.from.data(), edges.to.data(), TUTTI_WITH_EDGE_DATA(edges.data.data()) & count));
  return edges;
}

Expected<void> add_edges(cudaGraph_t graph, const Edges& edges) {
  if (edges.size() == 0) return {};
  return check(cudaGraphAddDependencies(graph, edges.from.data(), edges.to.data(),
                                        TUTTI_WITH_EDGE_DATA(edges.data.data()) edges.size()),
               "cudaGraphAddDependencies");
}

Expected<void> remove_edges(cudaGraph_t graph, const Edges& edges) {
  if (edges.size() == 0) return {};
  return check(cudaGraphRemoveDependencies(graph, edges.from.data(), edges.to.data(),
                                           TUTTI_WITH_EDGE_DATA(edges.data.data()) edges.size()),
               "cudaGraphRemoveDependencies");
}

cudaGraphNodeType type_of(Node node) {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  static_cast<void>(cudaGraphNodeGetType(node, &type));
  return type;
}

cudaGraph_t child_of(Node node) {
  cudaGraph_t child = nullptr;
  static_cast<void>(cudaGraphChildGraphNodeGetGraph(node, &child));
  return child;
}

// ---- order

/// The nodes in an order in which none comes before one that it waits for.
std::vector<Node> in_order(cudaGraph_t graph, const Edges& edges) {
  struct Links {
    std::vector<Node> behind;
    std::size_t unmet = 0;
  };
  std::unordered_map<Node, Links> links;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    links[edges.from[i]].behind.push_back(edges.to[i]);
    ++links[edges.to[i]].unmet;
  }
  std::vector<Node> order;
  for (const Node node : nodes_of(graph))
    if (links[node].unmet == 0) order.push_back(node);
  for (std::size_t next = 0; next < order.size(); ++next)
    for (const Node behind : links[order[next]].behind)
      if (--links[behind].unmet == 0) order.push_back(behind);
  return order;
}

/// Whether each node is behind the one before it and no other, in the order in which they were added: what one stream
/// gives.
bool is_line(const std::vector<Node>& nodes, const Edges& edges) {
  if (edges.size() + 1 != nodes.size()) return nodes.empty();
  for (std::size_t i = 0; i < edges.size(); ++i)
    if (edges.from[i] != nodes[i] || edges.to[i] != nodes[i + 1]) return false;
  return true;
}

// ---- nodes

/// Memory that neither belongs to a GPU nor is pinned: the thread that launches copies it itself.
bool is_ordinary(const void* address) {
  cudaPointerAttributes found{};
  if (address == nullptr || cudaPointerGetAttributes(&found, address) != cudaSuccess) return false;
  return found.type == cudaMemoryTypeUnregistered;
}

std::string fault_of_copy(Node node) {
  cudaMemcpy3DParms copy{};
  if (cudaGraphMemcpyNodeGetParams(node, &copy) != cudaSuccess) return "";
  const bool from = is_ordinary(copy.srcPtr.ptr), to = is_ordinary(copy.dstPtr.ptr);
  if (!from && !to) return "";
  return fmt::format(
      "a copy {} ordinary memory of the host, for which the call would wait until the gate opens; pin that memory "
      "(cudaHostAlloc, cudaHostRegister)",
      to ? "into" : "from");
}

std::string name_of(const void* function) {
  const char* name = nullptr;
  return cudaFuncGetName(&name, function) == cudaSuccess && name != nullptr ? fmt::format(" '{}'", name) : "";
}

/// A cooperative kernel begins when all its blocks have a place, and kernels that poll leave only with their gates.
std::string fault_of_kernel(int device, Node node) {
  cudaKernelNodeAttrValue cooperative{};
  if (cudaGraphKernelNodeGetAttribute(node, cudaLaunchAttributeCooperative, &cooperative) != cudaSuccess ||
      cooperative.cooperative == 0)
    return "";
  cudaKernelNodeParams kernel{};
  int each = 0, multiprocessors = 0;
  const auto threads = [](const dim3& size) { return static_cast<std::size_t>(size.x) * size.y * size.z; };
  if (cudaGraphKernelNodeGetParams(node, &kernel) != cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel.func, static_cast<int>(threads(kernel.blockDim)),
                                                    kernel.sharedMemBytes) != cudaSuccess ||
      cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
    return "a cooperative kernel, of which the driver does not say how many blocks the GPU holds; launch it plainly";
  const std::size_t places = static_cast<std::size_t>(each) * static_cast<std::size_t>(multiprocessors);
  const std::size_t room = places > kPollingBlocks ? places - kPollingBlocks : 0, blocks = threads(kernel.gridDim);
  if (blocks <= room) return "";
  return fmt::format(
      "the cooperative kernel{} of {} blocks, of which all must be on the GPU at once, where gates leave room for {}; "
      "launch it with fewer blocks",
      name_of(kernel.func), blocks, room);
}

std::string fault_of_node(int device, Node node, Capture capture) {
  const cudaGraphNodeType type = type_of(node);
  const bool is_called =
      type == cudaGraphNodeTypeHost || type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree;
  if (is_called && capture == Capture::Never) return "";
  switch (type) {
    case cudaGraphNodeTypeKernel: return fault_of_kernel(device, node);
    case cudaGraphNodeTypeMemcpy: return fault_of_copy(node);
    case cudaGraphNodeTypeMemset:
    case cudaGraphNodeTypeEmpty:
    case cudaGraphNodeTypeEventRecord: return "";
    case cudaGraphNodeTypeHost:
      return "a function of the host (cudaLaunchHostFunc), for which the GPU would wait; make it host work of a stream "
             "of its own, or write 'capture: never' for the kernel";
    case cudaGraphNodeTypeMemAlloc:
    case cudaGraphNodeTypeMemFree:
      return "memory that is allocated in the stream (cudaMallocAsync); allocate it before the kernel is prepared (for "
             "cuBLAS: cublasSetWorkspace)";
    case cudaGraphNodeTypeWaitEvent:
    case cudaGraphNodeTypeExtSemaphoreWait:
      return "a wait for what is not part of it, which may wait for a gate; leave it out";
    default:
      return "an operation that may wait for others; a kernel may enqueue kernels, copies and memsets on the stream "
             "that it is given";
  }
}

std::string fault_of_nodes(int device, cudaGraph_t graph, Capture capture) {
  const std::vector<Node> nodes = nodes_of(graph);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (type_of(nodes[i]) == cudaGraphNodeTypeGraph) {
      if (std::string fault = fault_of_nodes(device, child_of(nodes[i]), capture); !fault.empty()) return fault;
    } else if (const std::string fault = fault_of_node(device, nodes[i], capture); !fault.empty()) {
      return fmt::format("enqueues, as operation {} of {}, {}", i + 1, nodes.size(), fault);
    }
  }
  return "";
}

}  // namespace

std::string fault_of_graph(int device, cudaGraph_t graph, Capture capture) {
  std::string fault = fault_of_nodes(device, graph, capture);
  static_cast<void>(cudaGetLastError());
  return fault;
}

Expected<void> put_in_line(cudaGraph_t graph) {
  const std::vector<Node> nodes = nodes_of(graph);
  for (const Node node : nodes)
    if (type_of(node) == cudaGraphNodeTypeGraph)
      if (auto ok = put_in_line(child_of(node)); !ok) return ok;
  const Edges edges = edges_of(graph);
  if (is_line(nodes, edges)) return {};
  const std::vector<Node> order = in_order(graph, edges);
  std::unordered_map<Node, Node> before;
  for (std::size_t i = 1; i < order.size(); ++i) before[order[i]] = order[i - 1];
  Edges needless;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto place = before.find(edges.to[i]);
    if (place != before.end() && place->second == edges.from[i]) {
      before.erase(place);  // it is there
    } else {
      needless.add(edges.from[i], edges.to[i]);
      needless.data.back() = edges.data[i];
    }
  }
  Edges missing;
  for (const auto& [node, place] : before) missing.add(place, node);
  return remove_edges(graph, needless).and_then([&] { return add_edges(graph, missing); });
}

Expected<ExecutableGraph> load_graph(cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t loaded = nullptr;
  if (auto ok = check(cudaGraphInstantiate(&loaded, graph, 0), "cudaGraphInstantiate"); !ok)
    return tl::unexpected(std::move(ok.error()));
  ExecutableGraph executable(loaded);
  return check(cudaGraphUpload(loaded, stream), "cudaGraphUpload")
      .and_then([&] { return check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); })
      .map([&] { return std::move(executable); });
}

std::size_t places_of_graph(cudaGraph_t graph) {
  std::size_t places = 1;
  for (const Node node : nodes_of(graph)) {
    const auto type = type_of(node);
    if (type == cudaGraphNodeTypeGraph) places += places_of_graph(child_of(node));
    if (type != cudaGraphNodeTypeGraph && type != cudaGraphNodeTypeKernel) ++places;
  }
  return places;
}

std::size_t size_of_graph(cudaGraph_t graph) {
  std::size_t count = 0;
  for (const Node node : nodes_of(graph))
    count += type_of(node) == cudaGraphNodeTypeGraph ? size_of_graph(child_of(node)) : 1;
  return count;
}

}  // namespace tutti::internal::cuda
