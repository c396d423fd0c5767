#pragma once
#include <atomic>
#include <cstddef>
#include <span>

#include "runtime/core/kernel_registry.hpp"

namespace tutti::internal::test {

/// Output byte i is input byte i with all bits turned.
DeviceKernel device_invert();
/// A host function in a GPU's stream, called when its turn comes.
DeviceKernel device_mark(HostKernel mark);
/// Takes three times the time that it is declared to take.
DeviceKernel device_slow();
/// Writes where nothing is.
DeviceKernel device_fault();
/// Never returns.
DeviceKernel device_hang();
/// So many blocks of a cooperative kernel, which wait for each other: the second word of the output counts those that
/// came. Alone, a GPU has room for `cooperating_places`. On GPUs only.
DeviceKernel device_cooperates(std::size_t blocks);
std::size_t cooperating_places();

/// Launches a kernel that fills one of the buffers that are written, as `mix` of flow_runs.hpp.
void mix_into(const KernelLaunch& launch, std::size_t written, DeviceStream stream);
/// `mix`, in a kernel for each buffer.
DeviceKernel device_mix();
/// Launches a kernel that adds 1 to the first word.
void add_one(std::span<std::byte> output, DeviceStream stream);
/// Adds 1 to the first word of the output, in so many kernels.
DeviceKernel device_counts(int kernels);
/// Copies as much of the input as there is room for.
DeviceKernel device_fetches(std::span<std::byte> to);
/// In each of so many streams, one behind the other: sets a word of the output, and with `copies` reads and writes it
/// back.
DeviceKernel device_forks(int branches, bool copies);
/// Memory that the driver knows as pinned; kept to the end of the program.
std::span<std::byte> pinned(std::size_t size);

// Callables that do more than enqueue.
DeviceKernel device_allocates();
DeviceKernel device_waits();
DeviceKernel device_uses_default_stream();
DeviceKernel device_pins();
DeviceKernel device_frees();

/// Free memory of the first GPU.
std::size_t free_device_memory();

}  // namespace tutti::internal::test
