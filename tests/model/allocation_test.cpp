// A prediction allocates nothing once its workspace has seen the batch. A program of its own, since it counts every
// `operator new` there is.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "model/planner.hpp"
#include "tests/support/random_machine.hpp"

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace tutti {
namespace {

TEST(Predict, AllocatesNothingAfterTheFirstCall) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Topology machine = test::random_machine(seed);
    const BatchOperation batch = test::random_batch(machine, seed);
    for (const Planner& planner : planners()) {
      BatchSimulation workspace;
      predict(planner, machine, batch, Basis::Nominal, workspace);
      const std::size_t before = allocations;
      for (const Basis basis : {Basis::Nominal, Basis::Nominal}) predict(planner, machine, batch, basis, workspace);
      EXPECT_EQ(allocations - before, 0U) << planner.name << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tutti
