#pragma once
/// All of the library: machines, batches and their predictions, kernels, execution, task sets and their runs.
#include "runtime/api/profile.hpp"
#include "runtime/api/version.hpp"
