#include <array>

#include "tests/fuzz/target.hpp"

namespace tutti::internal::fuzz {
namespace {

constexpr std::array<std::string_view, 1> kMachines{"configs/machines"};
constexpr std::array<std::string_view, 1> kBatches{"configs/batches"};
constexpr std::array<std::string_view, 1> kTasks{"configs/tasks"};
constexpr std::array<std::string_view, 1> kScenarios{"configs/scenarios"};
constexpr std::array<std::string_view, 1> kChanges{"configs/changes"};
constexpr std::array<std::string_view, 1> kExchanges{"configs/control"};
constexpr std::array<std::string_view, 1> kFaults{"configs/faults"};
constexpr std::array<std::string_view, 1> kMeasurements{"tests/golden/h200x4-second-host.json"};
constexpr std::array<std::string_view, 9> kImports{"tests/golden/import/hwloc.xml",
                                                   "tests/golden/import/nccl.xml",
                                                   "tests/golden/import/nvidia-smi.txt",
                                                   "tests/golden/import/nvbandwidth.json",
                                                   "tests/golden/import/topologies/dgx1-v100.txt",
                                                   "tests/golden/import/topologies/three-and-three.txt",
                                                   "tests/golden/import/topologies/station.xml",
                                                   "tests/golden/import/topologies/power9.xml",
                                                   "tests/golden/import/topologies/four-that-contend.json"};

constexpr std::array<std::string_view, 1> kModels{"tests/golden/import/camera.amxmi"};

// A row a target.
// clang-format off
constexpr std::array kTargets{
    Target{"machine", takes_machine, kMachines},
    Target{"batch", takes_batch, kBatches},
    Target{"tasks", takes_tasks, kTasks},
    Target{"scenario", takes_scenario, kScenarios},
    Target{"changes", takes_changes, kChanges},
    Target{"exchange", takes_exchange, kExchanges},
    Target{"faults", takes_faults, kFaults},
    Target{"measurements", takes_measurements, kMeasurements},
    Target{"calibration", takes_calibration, {}},
    Target{"jobs", takes_jobs, {}},
    Target{"journal", takes_journal, {}},
    Target{"recording", takes_recording, {}},
    Target{"copies", takes_copies, {}},
    Target{"import", takes_import, kImports},
    Target{"nsys_trace", takes_nsys_trace, {}},
    Target{"chrome_trace", takes_chrome_trace, {}},
    Target{"model", takes_model, kModels},
    Target{"shared_words", takes_shared_words, {}},
};
// clang-format on

}  // namespace

std::span<const Target> targets() { return kTargets; }

}  // namespace tutti::internal::fuzz
