// How long does a batch take, usually and at worst?
#include <cstdio>

#include <tutti/tutti.hpp>

int main(int argc, char** argv) {
  const auto batch = tutti::Batch::load(argc == 2 ? argv[1] : "configs/batches/inspection-example.yaml");
  if (!batch) return std::fprintf(stderr, "%s\n", batch.error().text().c_str()), 2;
  const auto usual = tutti::predictBatchLatency(*batch);
  const auto worst = tutti::predictWorstBatchLatency(*batch);
  if (!usual || !worst) return 3;
  std::printf("%.3f ms, and never more than %.3f ms\n", static_cast<double>(usual->count()) / 1e6,
              static_cast<double>(worst->count()) / 1e6);
}
