#include "model/control/exchange_yaml.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "model/control/exchange_fields.hpp"

namespace tutti::internal {

StepTime Form<StepTime>::read(Reader& reader, const Node& node, const FieldRules&) {
  StepTime time;
  if (node.kind == Node::Kind::Map) {
    read_fields(reader, node, Record<StepTime>::what, time);
  } else {
    time.host = read_duration(node);
  }
  return time;
}

Node Form<StepTime>::write(const StepTime& time) {
  if (!time.stream && !time.kernel) return scalar_node(to_string(time.host));
  Node map;
  map.kind = Node::Kind::Map;
  write_fields(time, map);
  return map;
}

std::string Form<StepTime>::schema(const FieldRules& rules) {
  return schema_of_any(std::array{Form<Duration>::schema(rules), schema_of_keys(key_schemas<StepTime>())});
}

namespace {

/// The checks of an exchange that go beyond one field.
class ExchangeCheck {
 public:
  ExchangeCheck(const ExchangeSpec& spec, Faults& faults) : spec_(spec), faults_(faults) {}

  void run() {
    check_fields(spec_, faults_);
    if (spec_.synchronization && spec_.synchronize_call)
      faults_.add("synchronize_call",
                  "'synchronization' is measured and 'synchronize_call' is for what is derived; write one of them");
    check_tasks("sends", spec_.sends);
    check_tasks("inner", spec_.inner);
    check_tasks("receives", spec_.receives);
    if (!faults_.none()) return;  // of sums, one fault is enough
    if (tasks_ > kMostTasks)
      faults_.add("", fmt::format("an iteration has {} tasks; write at most {}", tasks_, kMostTasks));
    if (!spec_.fused) return;
    if (blocks_ > kMostBlocks)
      faults_.add("fused", fmt::format("the fused kernel has {} blocks; write at most {}", blocks_, kMostBlocks));
    if (spec_.fused->slots() < 2 && !spec_.receives.empty())
      faults_.add("fused",
                  "the receiver block keeps the one slot of this GPU, so no block that sends can run; 'sms' times "
                  "'blocks_per_sm' must be at least 2");
  }

 private:
  template <class Task>
  void check_tasks(const std::string& list, const std::vector<Task>& tasks) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      tasks_ += tasks[i].times;
      blocks_ += std::int64_t{tasks[i].times} * tasks[i].blocks.value_or(0);
      if (spec_.fused && !tasks[i].blocks)
        faults_.add(path_of(path_of(list, i), "blocks"),
                    "a fused kernel needs the blocks of every task; add 'blocks' or leave 'fused' out");
    }
  }

  const ExchangeSpec& spec_;
  Faults& faults_;
  std::int64_t tasks_ = 0;
  std::int64_t blocks_ = 0;
};

}  // namespace

Expected<ExchangeSpec> checked(ExchangeSpec spec, Faults faults) {
  ExchangeCheck(spec, faults).run();
  if (!faults.none()) return tl::unexpected(faults.error());
  return spec;
}

Expected<ExchangeSpec> exchange_from(const Node& document) {
  return compiled<ExchangeSpec>(
      document, [](ExchangeSpec spec, Faults faults) { return checked(std::move(spec), std::move(faults)); });
}

Expected<ExchangeSpec> load_exchange(const std::string& path) { return read_document(path).and_then(exchange_from); }

std::string exchange_yaml(const ExchangeSpec& spec) { return file_text(spec); }

std::string exchange_schema() { return file_schema<ExchangeSpec>(); }

}  // namespace tutti::internal
