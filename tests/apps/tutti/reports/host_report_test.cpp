#include "apps/tutti/reports/host_report.hpp"

#include <gtest/gtest.h>

#include "tests/apps/made_up_hosts.hpp"

namespace tutti::internal {
namespace {

TEST(HostReport, ShowsGpusPeersAndTheTree) {
  HostFacts host = test::two_sockets();
  host.devices[0].nvlink[1] = host.devices[1].nvlink[0] = true;
  host.devices[3].peer_access[2] = false;
  host.devices[3].numa_node = -1;
  host.devices[3].link = PcieLink{1, 16};
  EXPECT_EQ(host_text(host), R"(driver for CUDA 13.0, built with CUDA 13.0, NUMA nodes 0, 1

GPU   bus id        name         memory GB  free GB  copy engines  memory operations  NUMA node  PCIe now  at best  UUID
gpu0  0000:19:00.0  NVIDIA H200      150.1    150.1             3  yes                        0  4.0 x16   4.0 x16  GPU-00000000-0000-0000-0000-000000001900
gpu1  0000:1a:00.0  NVIDIA H200      150.1    150.1             3  yes                        0  4.0 x16   4.0 x16  GPU-00000000-0000-0000-0000-000000001a00
gpu2  0000:99:00.0  NVIDIA H200      150.1    150.1             3  yes                        1  4.0 x16   4.0 x16  GPU-00000000-0000-0000-0000-000000009900
gpu3  0000:9a:00.0  NVIDIA H200      150.1    150.1             3  yes                        -  1.0 x16   4.0 x16  GPU-00000000-0000-0000-0000-000000009a00

access from \ to  0000:19:00.0  0000:1a:00.0  0000:99:00.0  0000:9a:00.0
0000:19:00.0                 -        NVLink            no            no
0000:1a:00.0            NVLink             -            no            no
0000:99:00.0                no            no             -           yes
0000:9a:00.0                no            no            no             -

pci0000:16
  0000:16:01.0, PCIe 5.0 x16
    0000:17:00.0, PCIe 4.0 x16
      0000:18:00.0, PCIe 4.0 x16
        0000:19:00.0 gpu0, NVIDIA H200, PCIe 4.0 x16
      0000:18:01.0, PCIe 4.0 x16
        0000:1a:00.0 gpu1, NVIDIA H200, PCIe 4.0 x16
pci0000:96
  0000:96:01.0, PCIe 5.0 x16
    0000:97:00.0, PCIe 4.0 x16
      0000:98:00.0, PCIe 4.0 x16
        0000:99:00.0 gpu2, NVIDIA H200, PCIe 4.0 x16
      0000:98:01.0, PCIe 4.0 x16
        0000:9a:00.0 gpu3, NVIDIA H200, PCIe 4.0 x16
)");
}

TEST(HostReport, JsonHasNullsForWhatIsNotKnown) {
  const Json json = host_json(test::one_old_gpu());
  EXPECT_EQ(json["numa_nodes"], Json::parse("[0]"));
  const Json& gpu = json["gpus"][0];
  EXPECT_EQ(gpu["bus_id"], "0000:01:00.0");
  EXPECT_EQ(gpu["memory_bytes"], 150'109'880'320);
  EXPECT_EQ(gpu["memory_operations"], false);
  for (const char* const key : {"numa_node", "link", "link_at_best"}) EXPECT_TRUE(gpu[key].is_null()) << key;
  EXPECT_EQ(gpu["pci_path"][1]["id"], "0000:00:01.0");
}

TEST(HostReport, JsonNamesPeersByBusId) {
  const Json json = host_json(test::two_sockets());
  EXPECT_EQ(json["gpus"][0]["peer_access"], Json::parse(R"(["0000:1a:00.0"])"));
  EXPECT_EQ(json["gpus"][0]["nvlink"], Json::array());
  EXPECT_EQ(json["gpus"][3]["link_at_best"]["generation"], 4);
}

}  // namespace
}  // namespace tutti::internal
