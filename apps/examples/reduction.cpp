// A reduction over two GPUs, and a display that reads the newest total: buffers with names, a copy between GPUs, two
// rates.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>

#include <tutti/tutti.hpp>

namespace {

int report(const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return error.code == tutti::ErrorCode::InvalidInput ? 2 : 3;
}

std::uint64_t number_in(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

void put(std::uint64_t number, std::span<std::byte> bytes) { std::memcpy(bytes.data(), &number, sizeof number); }

// On the simulated machine; DeviceKernels beside them would add on GPUs.
void sum(const tutti::KernelLaunch& launch) {
  std::uint64_t total = 0;
  for (const std::byte byte : launch.reads[0].bytes) total += std::to_integer<std::uint64_t>(byte);
  put(total, launch.writes[0].bytes);
}

void add(const tutti::KernelLaunch& launch) {
  put(number_in(launch.reads[0].bytes) + number_in(launch.reads[1].bytes), launch.writes[0].bytes);
}

}  // namespace

int main(int argc, char** argv) {
  const auto tasks = tutti::TaskSet::load(argc == 2 ? argv[1] : "apps/examples/reduction.yaml");
  if (!tasks) return report(tasks.error());
  const auto verdict = tutti::check(*tasks);
  if (!verdict) return report(verdict.error());
  for (const std::string& reason : verdict->reasons) std::printf("%s\n", reason.c_str());
  if (!verdict->admitted) return 1;
  tutti::Kernels kernels;
  if (const auto added = kernels.add("sum", sum); !added) return report(added.error());
  if (const auto added = kernels.add("add", add); !added) return report(added.error());

  std::uint64_t right = 0, shown = 0;
  tutti::TaskProgram reduce, display;
  reduce.on_ready = [](const tutti::Job& job) {  // signal n is zeros, but for n ones from its middle on
    const std::span<std::byte> signal = job.buffer("signal");
    std::memset(signal.data(), 0, signal.size());
    std::memset(signal.data() + signal.size() / 2 - job.index / 2, 1, job.index);
  };
  reduce.on_finished = [&](const tutti::Job& job) { right += number_in(job.buffer("total")) == job.index ? 1 : 0; };
  display.on_host_step = [&](const tutti::Job& job, std::string_view) -> tutti::Expected<void> {
    shown = number_in(job.buffer("reduce.total"));  // of the newest job that is complete
    return {};
  };
  tutti::RunOptions options;
  options.jobs = 99;
  const auto record = tutti::run(*verdict->admitted, kernels, {{"reduce", reduce}, {"display", display}}, options);
  if (!record) return report(record.error());
  std::printf("%llu totals right, %llu shown last\n", static_cast<unsigned long long>(right),
              static_cast<unsigned long long>(shown));
  return right == record->summaries[0].jobs ? 0 : 1;
}
