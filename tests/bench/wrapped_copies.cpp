// Copies between memory of the program that was wrapped and a GPU, beside copies of the library's own memory: lengths
// of batches, in turns, and their ratio. Usage: wrapped_copies
// MACHINE MEMORY GPU [RUNS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <tutti/tutti.hpp>

#include "tests/bench/value_of.hpp"

namespace {

using tutti::bench::value_of;

constexpr std::int64_t kSizes[] = {1 << 20, 16 << 20, 256 << 20};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "Usage: wrapped_copies MACHINE MEMORY GPU [RUNS]\n"), 2;
  const std::string memory = argv[2], gpu = argv[3];
  const int runs = argc > 4 ? std::max(1, std::atoi(argv[4])) : 101;
  const tutti::Machine machine = value_of(tutti::Machine::load(argv[1]));
  tutti::Runtime runtime =
      value_of(tutti::Runtime::open(machine, {}, {.kind = tutti::BackendKind::Cuda}, "all_at_once"));
  std::printf("size MiB  way   own us  wrapped us  wrapped / own\n");
  for (const std::int64_t size : kSizes) {
    std::vector<std::byte> program(static_cast<std::size_t>(size), std::byte{1});
    const tutti::Buffer there = value_of(runtime.allocate(gpu, tutti::Bytes{size}));
    const tutti::Buffer of_host[] = {value_of(runtime.allocate(memory, tutti::Bytes{size})),
                                     value_of(runtime.wrap(memory, program))};
    for (const bool up : {true, false}) {
      const tutti::BatchSpec spec{
          .streams = {{.from = up ? memory : gpu, .to = up ? gpu : memory, .size = tutti::Bytes{size}}}};
      const tutti::Batch batch = value_of(tutti::Batch::make(machine, spec));
      std::vector<tutti::PreparedBatch> prepared;
      for (const tutti::Buffer& host : of_host) {
        std::vector<tutti::StreamBinding> bindings(1);
        bindings[0].source = up ? host : there;
        bindings[0].destination = up ? there : host;
        prepared.push_back(value_of(runtime.prepare(batch, std::move(bindings))));
      }
      std::vector<double> lengths[2];
      for (int run = -3; run < runs; ++run)
        for (std::size_t which = 0; which < 2; ++which) {
          const auto result = value_of(tutti::batchOp(prepared[which]));
          if (run >= 0) lengths[which].push_back(static_cast<double>(result.latency().count()) / 1e3);
        }
      const double own = median(lengths[0]), wrapped = median(lengths[1]);
      std::printf("%8lld  %-4s %8.1f  %10.1f  %13.4f\n", static_cast<long long>(size >> 20), up ? "up" : "down", own,
                  wrapped, wrapped / own);
    }
  }
  return 0;
}
