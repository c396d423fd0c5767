// Two tasks, one with a kernel of this program: checked, and run only if every deadline is guaranteed.
#include <algorithm>
#include <cstdio>

#include <tutti/tutti.hpp>

namespace {

int report(const tutti::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return error.code == tutti::ErrorCode::InvalidInput ? 2 : 3;
}

// White where the image is bright, black elsewhere.
void threshold(const tutti::KernelLaunch& launch) {
  const std::size_t pixels = std::min(launch.input.size(), launch.output.size());
  for (std::size_t i = 0; i < pixels; ++i)
    launch.output[i] = launch.input[i] < std::byte{128} ? std::byte{0} : std::byte{255};
}

}  // namespace

int main(int argc, char** argv) {
  const auto tasks = tutti::TaskSet::load(argc == 2 ? argv[1] : "apps/examples/two_tasks.yaml");
  if (!tasks) return report(tasks.error());

  const auto verdict = tutti::check(*tasks);
  if (!verdict) return report(verdict.error());
  for (const std::string& reason : verdict->reasons) std::printf("%s\n", reason.c_str());
  if (!verdict->admitted) return 1;

  tutti::Kernels kernels;
  if (const auto added = kernels.add("threshold", threshold); !added) return report(added.error());

  std::size_t wrong = 0;
  tutti::TaskProgram image;
  image.on_ready = [](const tutti::Job& job) {  // fills the source of batch 0, stream 0
    std::ranges::fill(job.source(0, 0), job.index % 2 == 0 ? std::byte{200} : std::byte{50});
  };
  image.on_finished = [&](const tutti::Job& job) {  // reads the destination of batch 1, stream 0
    const std::byte expected = job.index % 2 == 0 ? std::byte{255} : std::byte{0};
    const auto right = static_cast<std::size_t>(std::ranges::count(job.destination(1, 0), expected));
    wrong += job.destination(1, 0).size() - right;
  };

  tutti::RunOptions options;
  options.jobs = 120;
  const auto record = tutti::run(*verdict->admitted, kernels, {{"image", image}}, options);
  if (!record) return report(record.error());
  const auto missed = std::ranges::count_if(record->jobs, &tutti::JobRecord::missed);
  std::printf("%zu jobs, %td missed deadlines, %zu wrong pixels\n", record->jobs.size(), missed, wrong);
  return missed == 0 && wrong == 0 ? 0 : 1;
}
