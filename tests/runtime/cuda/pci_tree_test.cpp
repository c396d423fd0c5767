#include "runtime/cuda/discovery/pci_tree.hpp"

#include <fstream>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

namespace tutti::internal::cuda {
namespace {

// Two sockets and a node of memory alone; on the first a GPU right below the host bridge, on the second one behind a
// root port and a switch.
constexpr const char* kHost = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x7" complete_nodeset="0x7" allowed_nodeset="0x7" gp_index="1">
  <object type="NUMANode" os_index="1" cpuset="0x0" complete_cpuset="0x0" nodeset="0x2" complete_nodeset="0x2" gp_index="2" local_memory="1000000"/>
  <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3">
   <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4" local_memory="1000000"/>
   <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="5"/>
   <object type="Bridge" gp_index="6" bridge_type="0-1" depth="0" bridge_pci="0000:[00-03]">
    <object type="PCIDev" gp_index="7" pci_busid="0000:00:06.0" pci_type="0302 [10de:2335] [10de:18be] a1" pci_link_speed="0.0"/>
   </object>
  </object>
  <object type="Package" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x4" complete_nodeset="0x4" gp_index="8">
   <object type="NUMANode" os_index="2" cpuset="0x2" complete_cpuset="0x2" nodeset="0x4" complete_nodeset="0x4" gp_index="9" local_memory="1000000"/>
   <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x4" complete_nodeset="0x4" gp_index="10"/>
   <object type="Bridge" gp_index="11" bridge_type="0-1" depth="0" bridge_pci="0001:[c0-cf]">
    <object type="Bridge" gp_index="12" bridge_type="1-1" depth="1" bridge_pci="0001:[c1-c3]" pci_busid="0001:c0:01.1" pci_type="0604 [1022:1483] [0000:0000] 00" pci_link_speed="31.5">
     <object type="Bridge" gp_index="13" bridge_type="1-1" depth="2" bridge_pci="0001:[c2-c3]" pci_busid="0001:c1:00.0" pci_type="0604 [1000:c010] [0000:0000] 00" pci_link_speed="31.5">
      <object type="PCIDev" gp_index="14" pci_busid="0001:c2:00.0" pci_type="0302 [10de:2335] [10de:18be] a1" pci_link_speed="31.5"/>
     </object>
    </object>
   </object>
  </object>
 </object>
</topology>
)";

/// hwloc takes a file in place of the host that the test runs on.
class PciTreeOfAFile : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(file_) << kHost;
    setenv("HWLOC_XMLFILE", file_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("HWLOC_XMLFILE");
    unlink(file_.c_str());
  }

  const std::string file_ = testing::TempDir() + "tutti-host-" + std::to_string(getpid()) + ".xml";
};

std::vector<std::string> ids_above(const PciTree& tree, const std::string& bus_id) {
  std::vector<std::string> ids;
  for (const PciBridge& bridge : tree.bridges_above(bus_id)) ids.push_back(bridge.id);
  return ids;
}

TEST_F(PciTreeOfAFile, KnowsBridgesAndNodes) {
  const auto tree = PciTree::read();
  ASSERT_TRUE(tree) << tree.error().text();
  EXPECT_EQ(tree->numa_nodes(), (std::vector<int>{0, 2}));
  EXPECT_EQ(ids_above(*tree, "0000:00:06.0"), (std::vector<std::string>{"pci0000:00"}));
  EXPECT_EQ(ids_above(*tree, "0001:c2:00.0"), (std::vector<std::string>{"pci0001:c0", "0001:c0:01.1", "0001:c1:00.0"}));
  EXPECT_EQ(tree->numa_node("0000:00:06.0"), 0);
  EXPECT_EQ(tree->numa_node("0001:c2:00.0"), 2);
}

TEST_F(PciTreeOfAFile, SaysNothingOfAStranger) {
  const auto tree = PciTree::read();
  ASSERT_TRUE(tree) << tree.error().text();
  EXPECT_EQ(ids_above(*tree, "0000:00:07.0"), std::vector<std::string>());
  EXPECT_EQ(tree->numa_node("0000:00:07.0"), -1);
}

TEST(PciTree, ReadsTheHostThatItRunsOn) {
  const auto tree = PciTree::read();
  ASSERT_TRUE(tree) << tree.error().text();
  EXPECT_GE(tree->numa_nodes().size(), 1U);
}

}  // namespace
}  // namespace tutti::internal::cuda
