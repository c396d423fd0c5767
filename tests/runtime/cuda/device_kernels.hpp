#pragma once
#include <atomic>
#include <cstddef>

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

// Callables that do more than enqueue.
DeviceKernel device_allocates();
DeviceKernel device_waits();
DeviceKernel device_uses_default_stream();
DeviceKernel device_pins();
DeviceKernel device_frees();

/// Free memory of the first GPU.
std::size_t free_device_memory();

}  // namespace tutti::internal::test
