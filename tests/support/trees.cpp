#include "tests/support/trees.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/base/expects.hpp"
#include "model/sharing/compile_machine.hpp"

namespace tutti::internal::test {
namespace {

/// What grows on it link by link.
class TreeMaker {
 public:
  void vertex(std::string name, VertexKind kind) { spec_.vertices.push_back({.name = std::move(name), .kind = kind}); }
  void link(std::string from, std::string to, double rate, double back) {
    spec_.links.push_back({std::move(from), std::move(to), GBps{rate}, GBps{back}});
  }
  Topology build() {
    auto made = compile(spec_);
    TUTTI_EXPECTS(made.has_value(), "a tree is a valid machine");
    return *std::move(made);
  }

 private:
  MachineSpec spec_{.name = "tree"};
};

Topology make_nested(std::size_t gpus) {
  TreeMaker tree;
  tree.vertex("mem0", VertexKind::Memory);
  tree.vertex("cpu0", VertexKind::Cpu);
  tree.link("mem0", "cpu0", 48, 48);
  for (std::size_t i = 0; i < gpus; ++i) {
    const std::string upstream = fmt::format("switch{}", i / 4);
    if (i % 4 == 0) {
      tree.vertex(upstream, VertexKind::Switch);
      tree.link("cpu0", upstream, 16, 16);
    }
    tree.vertex(fmt::format("gpu{}", i), VertexKind::Gpu);
    tree.link(upstream, fmt::format("gpu{}", i), 12, 12);
  }
  return tree.build();
}

std::size_t count_sockets(std::size_t gpus) { return std::max<std::size_t>(2, gpus / 4); }

Topology make_sockets(std::size_t gpus) {
  TreeMaker tree;
  const std::size_t sockets = count_sockets(gpus);
  const std::size_t gpus_each = gpus / sockets;
  if (sockets > 2) tree.vertex("hub0", VertexKind::Hub);
  for (std::size_t s = 0; s < sockets; ++s) {
    const std::string cpu = fmt::format("cpu{}", s);
    tree.vertex(cpu, VertexKind::Cpu);
    tree.vertex(fmt::format("mem{}", s), VertexKind::Memory);
    tree.link(fmt::format("mem{}", s), cpu, 38.5, 31.2);
    if (sockets > 2) tree.link(cpu, "hub0", 19.2, 18.7);
    for (std::size_t i = s * gpus_each; i < (s + 1) * gpus_each; ++i) {
      const std::string upstream = fmt::format("switch{}", i / 2);
      if (i % 2 == 0) {
        tree.vertex(upstream, VertexKind::Switch);
        tree.link(cpu, upstream, 9.43, 10.1);
      }
      tree.vertex(fmt::format("gpu{}", i), VertexKind::Gpu);
      tree.link(upstream, fmt::format("gpu{}", i), 6.03, 6.41);
    }
  }
  if (sockets == 2) tree.link("cpu0", "cpu1", 19.2, 18.7);
  return tree.build();
}

/// Where one copy goes.
struct Ends {
  std::size_t gpu;  ///< position among the machine's
  bool in;
  std::size_t socket;  ///< of the memory
};

template <class T>
void shuffle(std::vector<T>& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

std::vector<std::size_t> shuffled(std::size_t count, Random& random) {
  std::vector<std::size_t> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(i);
  shuffle(values, random);
  return values;
}

std::vector<Ends> draw_ends(Tree tree, std::size_t gpus, std::size_t streams, Random& random) {
  std::vector<Ends> drawn;
  if (tree == Tree::Nested) {
    const auto order = shuffled(gpus, random);
    for (std::size_t i = 0; i < streams; ++i) drawn.push_back({order[i % gpus], i / gpus % 2 == 0, 0});
    return drawn;
  }
  const auto engines = shuffled(2 * gpus, random);
  const std::size_t sockets = count_sockets(gpus);
  for (std::size_t i = 0; i < streams; ++i) {
    const std::size_t engine = engines[i % engines.size()];
    const std::size_t own = engine / 2 * sockets / gpus;
    const std::size_t other = (own + 1 + random.below(sockets - 1)) % sockets;
    drawn.push_back({engine / 2, engine % 2 == 0, random.one_in(4) ? other : own});
  }
  return drawn;
}

}  // namespace

Topology make_tree(Tree tree, std::size_t gpus) {
  TUTTI_EXPECTS(gpus >= 4 && gpus % 4 == 0, "a tree has four GPUs or a multiple of them");
  return tree == Tree::Nested ? make_nested(gpus) : make_sockets(gpus);
}

Batch make_tree_batch(const Topology& machine, Tree tree, std::size_t streams, bool kernels, Random& random) {
  const std::size_t gpus = machine.gpus().size();
  const auto [least, most] = tree == Tree::Nested ? std::pair(32'000'000, 512'000'000) : std::pair(1 << 20, 256 << 20);
  std::vector<CommandStream> made;
  for (const auto& [position, in, socket] : draw_ends(tree, gpus, streams, random)) {
    const VertexId gpu = machine.gpus()[position];
    const VertexId memory = machine.memories()[socket];
    const std::size_t own = tree == Tree::Nested ? 0 : position * count_sockets(gpus) / gpus;
    CommandStream stream{fmt::format("stream{}", made.size()),
                         Transfer{in ? memory : gpu, in ? gpu : memory, Bytes{random.between(least, most)}, {}, {}},
                         {}};
    const Duration time{random.between(1, 20'000'000)};
    if (kernels) stream.kernel = Kernel{in ? gpu : *machine.find_vertex(fmt::format("cpu{}", own)), time, time, "spin"};
    made.push_back(std::move(stream));
  }
  auto batch = Batch::make(machine, std::move(made));
  TUTTI_EXPECTS(batch.has_value(), "copies between memories and GPUs are a valid batch");
  return *std::move(batch);
}

}  // namespace tutti::internal::test
