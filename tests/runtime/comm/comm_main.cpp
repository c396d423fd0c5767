// The soft NIC and what stands on it, on virtual time and in threads.
#include "tests/runtime/comm/comm_worlds.hpp"

namespace tutti::internal::comm::test {

std::vector<CommWorldRow> comm_worlds() { return {simulated_world(), threaded_world()}; }

}  // namespace tutti::internal::comm::test
