// A network of a library behind a camera: its layers are cuBLAS, captured as a CUDA graph of the program's own, which a
// kernel launches. network TASKS BUSID runs it on that GPU, network TASKS on a simulated machine, with the host form.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <cublas_v2.h>
#include <tutti/tutti.hpp>

namespace {

constexpr std::array kWidths{1024, 256, 64, 10};  // of the input, two layers, and the scores of ten classes
constexpr std::size_t kLayers = kWidths.size() - 1;

int report(const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return error.code == tutti::ErrorCode::InvalidInput ? 2 : 3;
}

// [layers] each [rows x columns], row after row.
std::vector<std::vector<float>> make_weights() {
  std::mt19937 random(1);
  std::vector<std::vector<float>> weights;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    weights.emplace_back(kWidths[layer] * kWidths[layer + 1]);
    for (float& weight : weights.back()) weight = (static_cast<float>(random() % 2001) - 1000) / 1000;
  }
  return weights;
}

std::vector<float> scores_of(const std::vector<std::vector<float>>& weights, std::span<const float> pixels) {
  std::vector<float> values(pixels.begin(), pixels.end());
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    std::vector<float> next(kWidths[layer + 1]);
    for (std::size_t row = 0; row < next.size(); ++row) {
      for (std::size_t i = 0; i < values.size(); ++i) next[row] += weights[layer][row * values.size() + i] * values[i];
      next[row] = std::max(next[row], 0.0F);
    }
    values = std::move(next);
  }
  return values;
}

std::size_t best_of(std::span<const float> scores) { return std::ranges::max_element(scores) - scores.begin(); }

void must(bool fine, const char* call) {
  if (!fine) throw std::runtime_error(std::string(call) + " failed");  // the task set is not run
}

__global__ void rectify(float* values, int count) {
  if (const int i = blockIdx.x * blockDim.x + threadIdx.x; i < count) values[i] = fmaxf(values[i], 0);
}

// As an inference library gives it: a graph with memory of its own, from its input to its output.
class Network {
 public:
  explicit Network(const std::vector<std::vector<float>>& weights) {
    for (const int width : kWidths) values_.push_back(allocate(width));
    for (const auto& layer : weights) {
      weights_.push_back(allocate(layer.size()));
      must(cudaMemcpy(weights_.back(), layer.data(), layer.size() * sizeof(float), cudaMemcpyHostToDevice) ==
               cudaSuccess,
           "cudaMemcpy");
    }
    must(cublasCreate(&blas_) == CUBLAS_STATUS_SUCCESS, "cublasCreate");
    record();
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Called when the task set is prepared, for each set of buffers.
  void enqueue(const tutti::KernelLaunch& launch, tutti::DeviceStream stream) const {
    const auto copy = [&](void* to, const void* from, std::size_t size) {
      must(cudaMemcpyAsync(to, from, size, cudaMemcpyDeviceToDevice, stream) == cudaSuccess, "cudaMemcpyAsync");
    };
    copy(values_.front(), launch.reads[0].bytes.data(), launch.reads[0].bytes.size());
    add_graph(stream);
    copy(launch.writes[0].bytes.data(), values_.back(), launch.writes[0].bytes.size());
  }

 private:
  static float* allocate(std::size_t count) {
    void* memory = nullptr;
    must(cudaMalloc(&memory, count * sizeof(float)) == cudaSuccess, "cudaMalloc");
    return static_cast<float*>(memory);
  }

  void record() {
    // cuBLAS allocates in the stream where it has no memory of its own, and no graph behind a gate may do that.
    constexpr std::size_t kWorkspace = std::size_t{32} << 20;
    cudaStream_t stream = nullptr;
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "cudaStreamCreate");
    must(cublasSetStream(blas_, stream) == CUBLAS_STATUS_SUCCESS, "cublasSetStream");
    must(cublasSetWorkspace(blas_, allocate(kWorkspace / sizeof(float)), kWorkspace) == CUBLAS_STATUS_SUCCESS,
         "cublasSetWorkspace");
    run_layers(stream);  // loads what it needs
    must(cudaStreamSynchronize(stream) == cudaSuccess, "cudaStreamSynchronize");
    must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess, "cudaStreamBeginCapture");
    run_layers(stream);
    must(cudaStreamEndCapture(stream, &graph_) == cudaSuccess, "cudaStreamEndCapture");
    must(cudaGraphInstantiate(&launched_, graph_, 0) == cudaSuccess, "cudaGraphInstantiate");
  }

  // A kernel is called once to run, and then to be recorded: no graph can be launched there, but it becomes a part of
  // what is recorded.
  void add_graph(cudaStream_t stream) const {
    cudaStreamCaptureStatus status{};
    cudaGraph_t whole = nullptr;
    const cudaGraphNode_t* before = nullptr;
    std::size_t count = 0;
    cudaGraphNode_t added = nullptr;
#if CUDART_VERSION >= 13000
    must(cudaStreamGetCaptureInfo(stream, &status, nullptr, &whole, &before, nullptr, &count) == cudaSuccess,
         "cudaStreamGetCaptureInfo");
#else
    must(cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &whole, &before, &count) == cudaSuccess,
         "cudaStreamGetCaptureInfo_v2");
#endif
    if (status == cudaStreamCaptureStatusNone)
      return must(cudaGraphLaunch(launched_, stream) == cudaSuccess, "cudaGraphLaunch");
    must(cudaGraphAddChildGraphNode(&added, whole, before, count, graph_) == cudaSuccess, "cudaGraphAddChildGraphNode");
#if CUDART_VERSION >= 13000
    const cudaError_t moved =
        cudaStreamUpdateCaptureDependencies(stream, &added, nullptr, 1, cudaStreamSetCaptureDependencies);
#else
    const cudaError_t moved = cudaStreamUpdateCaptureDependencies(stream, &added, 1, cudaStreamSetCaptureDependencies);
#endif
    must(moved == cudaSuccess, "cudaStreamUpdateCaptureDependencies");
  }

  void run_layers(cudaStream_t stream) {
    const float one = 1, zero = 0;
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      const int columns = kWidths[layer], rows = kWidths[layer + 1];  // cuBLAS counts columns first
      must(cublasSgemv(blas_, CUBLAS_OP_T, columns, rows, &one, weights_[layer], columns, values_[layer], 1, &zero,
                       values_[layer + 1], 1) == CUBLAS_STATUS_SUCCESS,
           "cublasSgemv");
      rectify<<<(rows + 127) / 128, 128, 0, stream>>>(values_[layer + 1], rows);
    }
  }

  cublasHandle_t blas_ = nullptr;
  std::vector<float*> weights_, values_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t launched_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const auto tasks = tutti::TaskSet::load(argc > 1 ? argv[1] : "apps/examples/network.yaml");
  if (!tasks) return report(tasks.error());
  const auto verdict = tutti::check(*tasks);
  if (!verdict) return report(verdict.error());
  for (const std::string& reason : verdict->reasons) std::printf("%s\n", reason.c_str());
  if (!verdict->admitted) return 1;

  const auto weights = make_weights();
  const auto as_floats = [](std::span<const std::byte> bytes) {
    return std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
  };
  std::unique_ptr<Network> network;  // on the GPU, made when its kernel is called first
  tutti::Kernels kernels;
  const auto added = kernels.add(
      "classify",
      [&](const tutti::KernelLaunch& launch) {
        std::memcpy(launch.writes[0].bytes.data(), scores_of(weights, as_floats(launch.reads[0].bytes)).data(),
                    launch.writes[0].bytes.size());
      },
      [&](const tutti::KernelLaunch& launch, tutti::DeviceStream stream) {
        if (network == nullptr) network = std::make_unique<Network>(weights);
        network->enqueue(launch, stream);
      });
  if (!added) return report(added.error());

  std::size_t right = 0;
  tutti::TaskProgram camera;
  camera.on_ready = [](const tutti::Job& job) {
    std::mt19937 random(static_cast<unsigned>(job.index));
    for (std::size_t i = 0; i < job.buffer("frame").size(); i += sizeof(float)) {
      const float pixel = static_cast<float>(random() % 256) / 255;
      std::memcpy(job.buffer("frame").data() + i, &pixel, sizeof pixel);
    }
  };
  camera.on_host_step = [&](const tutti::Job& job, std::string_view) -> tutti::Expected<void> {  // "sort"
    const auto expected = scores_of(weights, as_floats(job.buffer("frame")));
    right += best_of(as_floats(job.buffer("scores"))) == best_of(expected) ? 1 : 0;
    return {};
  };

  tutti::RunOptions options;
  options.jobs = 100;
  if (argc > 2) {
    options.backend.kind = tutti::BackendKind::Cuda;
    options.backend.bind = {{"gpu0", argv[2]}};
  }
  const auto record = tutti::run(*verdict->admitted, kernels, {{"camera", camera}}, options);
  if (!record) return report(record.error());
  if (record->fatal) return report(*record->fatal);
  const auto missed = std::ranges::count_if(record->jobs, &tutti::JobRecord::missed);
  std::printf("%zu jobs, %td missed deadlines, %zu frames in the right class\n", record->jobs.size(), missed, right);
  return missed == 0 && right == record->jobs.size() ? 0 : 1;
}
