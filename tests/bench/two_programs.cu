// Two programs that know nothing of tutti and keep their data in ordinary memory, as the published ones do: a search in
// a graph by breadth, and a path of least cost through a grid. Run it by itself, and as `tutti accelerate --
// two_programs`. It prints, for each program and size, how long its transfers and its kernels take: medians of 9, ms.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include <cuda_runtime.h>

namespace {

constexpr int kRounds = 9;
constexpr int kThreads = 256;
constexpr std::uint32_t kDegree = 6;
constexpr std::uint32_t kUnseen = UINT32_MAX;

unsigned blocks_for(std::size_t items) { return static_cast<unsigned>((items + kThreads - 1) / kThreads); }

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Time of the transfers and of the kernels of a run.
struct Shares {
  double transfers = 0, kernels = 0;

  static double milliseconds(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    cudaDeviceSynchronize();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }
  void transfer(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    transfers += milliseconds([&] { cudaMemcpy(to, from, bytes, kind); });
  }
  void kernel(const std::function<void()>& launch) { kernels += milliseconds(launch); }
};

template <class T>
class OnDevice {
 public:
  explicit OnDevice(std::size_t count) { cudaMalloc(&data_, count * sizeof(T)); }
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }
  [[nodiscard]] T* get() const { return data_; }

 private:
  T* data_ = nullptr;
};

/// Marks the neighbours of the nodes of a level.
__global__ void search_level(const std::uint32_t* edges, std::uint32_t* levels, std::uint32_t nodes,
                             std::uint32_t level, int* found) {
  const std::uint32_t node = blockIdx.x * blockDim.x + threadIdx.x;
  if (node >= nodes || levels[node] != level) return;
  for (std::uint32_t i = 0; i < kDegree; ++i) {
    const std::uint32_t next = edges[node * kDegree + i];
    if (levels[next] != kUnseen) continue;
    levels[next] = level + 1;
    *found = 1;
  }
}

Shares search(std::uint32_t nodes) {
  std::vector<std::uint32_t> edges(std::size_t{nodes} * kDegree), levels(nodes, kUnseen);
  std::uint64_t state = nodes;
  for (std::uint32_t& edge : edges) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    edge = static_cast<std::uint32_t>(state >> 33) % nodes;
  }
  levels[0] = 0;
  const OnDevice<std::uint32_t> edges_there(edges.size()), levels_there(nodes);
  const OnDevice<int> found_there(1);
  Shares shares;
  shares.transfer(edges_there.get(), edges.data(), edges.size() * sizeof(std::uint32_t), cudaMemcpyHostToDevice);
  shares.transfer(levels_there.get(), levels.data(), nodes * sizeof(std::uint32_t), cudaMemcpyHostToDevice);
  int found = 1;
  for (std::uint32_t level = 0; found != 0; ++level) {
    found = 0;
    shares.transfer(found_there.get(), &found, sizeof found, cudaMemcpyHostToDevice);
    shares.kernel([&] {
      search_level<<<blocks_for(nodes), kThreads>>>(edges_there.get(), levels_there.get(), nodes, level,
                                                    found_there.get());
    });
    shares.transfer(&found, found_there.get(), sizeof found, cudaMemcpyDeviceToHost);
  }
  shares.transfer(levels.data(), levels_there.get(), nodes * sizeof(std::uint32_t), cudaMemcpyDeviceToHost);
  return shares;
}

/// Adds a row to the least costs of the paths that end in the row above.
__global__ void add_row(const int* row, const int* above, int* below, int columns) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= columns) return;
  int least = above[column];
  if (column > 0) least = min(least, above[column - 1]);
  if (column + 1 < columns) least = min(least, above[column + 1]);
  below[column] = row[column] + least;
}

Shares find_path(int columns) {
  constexpr int kRows = 100;
  std::vector<int> grid(std::size_t{kRows} * columns), costs(columns);
  for (std::size_t i = 0; i < grid.size(); ++i) grid[i] = static_cast<int>(i * 2654435761U % 10);
  const OnDevice<int> grid_there(grid.size()), above(columns), below(columns);
  Shares shares;
  shares.transfer(grid_there.get(), grid.data(), grid.size() * sizeof(int), cudaMemcpyHostToDevice);
  int* from = above.get();
  int* to = below.get();
  shares.kernel([&] {
    cudaMemsetAsync(from, 0, columns * sizeof(int));
    for (int row = 0; row < kRows; ++row) {
      add_row<<<blocks_for(columns), kThreads>>>(grid_there.get() + std::size_t(row) * columns, from, to, columns);
      std::swap(from, to);
    }
  });
  shares.transfer(costs.data(), from, columns * sizeof(int), cudaMemcpyDeviceToHost);
  return shares;
}

void report(const char* program, std::size_t bytes, const std::function<Shares()>& run) {
  std::vector<double> transfers, kernels;
  for (int round = 0; round < kRounds; ++round) {
    const Shares shares = run();
    transfers.push_back(shares.transfers);
    kernels.push_back(shares.kernels);
  }
  std::printf("%-10s %8.1f MiB   transfers %9.3f ms   kernels %9.3f ms\n", program,
              static_cast<double>(bytes) / (1 << 20), median(transfers), median(kernels));
}

}  // namespace

int main() {
  if (cudaFree(nullptr) != cudaSuccess) {
    std::puts("no GPU");
    return 3;
  }
  for (const std::uint32_t nodes : {32U << 10, 1U << 20, 8U << 20, 16U << 20})
    report("bfs", std::size_t{nodes} * (kDegree + 1) * sizeof(std::uint32_t), [&] { return search(nodes); });
  for (const int columns : {10 << 10, 100 << 10, 1000 << 10})
    report("path", std::size_t{400} * columns, [&] { return find_path(columns); });
  return 0;
}
