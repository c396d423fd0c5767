// Tensors of other libraries through the installed headers alone. The layout is that of DLPack 1, written once more.
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <tutti/tutti.hpp>

struct DLManagedTensorVersioned {
  std::uint32_t major = 1, minor = 1;
  void* manager = nullptr;
  void (*deleter)(DLManagedTensorVersioned* self) = nullptr;
  std::uint64_t flags = 0;
  void* data = nullptr;
  std::int32_t device_type = 1, device_id = 0;
  std::int32_t dimensions = 0;
  std::uint8_t type_code = 2, bits = 32;
  std::uint16_t lanes = 1;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};

namespace {

/// A tensor of 3 x 4 floats, and how often it was given back.
struct Tensor {
  Tensor() {
    managed.manager = this;
    managed.deleter = [](DLManagedTensorVersioned* self) { ++static_cast<Tensor*>(self->manager)->given_back; };
    managed.data = memory.data();
    managed.dimensions = 2;
    managed.shape = shape.data();
  }

  std::array<float, 14> memory{};
  std::array<std::int64_t, 2> shape{3, 4}, strides{4, 1};
  int given_back = 0;
  DLManagedTensorVersioned managed;
};

class ApiTensors : public testing::Test {
 protected:
  tutti::Machine machine = tutti::Machine::load(TUTTI_EXAMPLES "/one_gpu.yaml").value();
  tutti::Runtime runtime = tutti::Runtime::open(machine).value();

  tutti::Batch copy_to(std::string from, std::string to) {
    return tutti::Batch::make(machine,
                              {.streams = {{.from = std::move(from), .to = std::move(to), .size = tutti::Bytes{48}}}})
        .value();
  }
  std::string refusal(const std::function<void(Tensor&)>& change, const char* place = "mem0") {
    Tensor tensor;
    change(tensor);
    const auto buffer = runtime.wrap_tensor(place, &tensor.managed);
    EXPECT_FALSE(buffer.has_value());
    EXPECT_EQ(tensor.given_back, 0) << "it stays the caller's";
    return buffer ? "" : buffer.error().message;
  }
};

TEST_F(ApiTensors, AreWrappedWhereTheyAreAndGivenBackOnce) {
  Tensor tensor;
  {
    auto buffer = runtime.wrap_tensor("mem0", &tensor.managed).value();
    EXPECT_EQ(buffer.size(), tutti::Bytes{48});
    EXPECT_EQ(buffer.data(), reinterpret_cast<std::byte*>(tensor.memory.data()));
    const auto there = runtime.allocate("gpu0", tutti::Bytes{48}).value(),
               back = runtime.allocate("mem0", tutti::Bytes{48}).value();
    for (std::size_t i = 0; i < 12; ++i) tensor.memory[i] = static_cast<float>(i);
    auto up = runtime.prepare(copy_to("mem0", "gpu0"), {{buffer, there}}).value();
    auto down = runtime.prepare(copy_to("gpu0", "mem0"), {{there, back}}).value();
    ASSERT_TRUE(tutti::batchOp(up) && tutti::batchOp(down));
    EXPECT_EQ(std::memcmp(back.data(), tensor.memory.data(), 48), 0);
    buffer = {};
    EXPECT_EQ(tensor.given_back, 0) << "a prepared batch has it";
  }
  static_cast<void>(runtime.allocate("mem0", tutti::Bytes{1}));  // in a call of any runtime
  EXPECT_EQ(tensor.given_back, 1);
}

TEST_F(ApiTensors, MayHaveAnOffsetStridesAndNoElements) {
  Tensor tensor;
  tensor.managed.strides = tensor.strides.data();
  tensor.managed.byte_offset = 8;
  EXPECT_EQ(runtime.wrap_tensor("mem0", &tensor.managed)->data(), reinterpret_cast<std::byte*>(&tensor.memory[2]));
  Tensor single;  // strides of lengths of 1 say nothing
  single.shape = {1, 4};
  single.strides = {77, 1};
  single.managed.strides = single.strides.data();
  EXPECT_EQ(runtime.wrap_tensor("mem0", &single.managed)->size(), tutti::Bytes{16});
  for (const std::array<std::int64_t, 2> shape : {std::array<std::int64_t, 2>{0, INT64_MAX}, {INT64_MAX, 0}}) {
    Tensor empty;
    empty.shape = shape;
    EXPECT_EQ(runtime.wrap_tensor("mem0", &empty.managed)->size(), tutti::Bytes{0});
  }
  Tensor number;
  number.managed.dimensions = 0;
  EXPECT_EQ(runtime.wrap_tensor("mem0", &number.managed)->size(), tutti::Bytes{4});
}

TEST_F(ApiTensors, AreRefusedWhereTheyCannotBeABuffer) {
  const std::vector<std::pair<std::function<void(Tensor&)>, std::string>> wrong{
      {[](Tensor& tensor) { tensor.managed.major = 2; },
       "the tensor is of version 2.1 of DLPack; give one of version 1"},
      {[](Tensor& tensor) {
         tensor.strides = {5, 1}, tensor.managed.strides = tensor.strides.data();
       },
       "the elements of the tensor do not follow each other"},
      {[](Tensor& tensor) {
         tensor.strides = {1, 3}, tensor.managed.strides = tensor.strides.data();
       },
       "the elements of the tensor do not follow each other"},
      {[](Tensor& tensor) { tensor.managed.device_type = 13; }, "the tensor lies in managed memory, which may move"},
      {[](Tensor& tensor) { tensor.managed.device_type = 10; }, "the tensor lies on a device of kind 10"},
      {[](Tensor& tensor) { tensor.managed.device_type = 2; },
       "the tensor lies in GPU 0 of CUDA, and 'mem0' is no GPU of CUDA here; name the place of that GPU"},
      {[](Tensor& tensor) { tensor.shape[0] = -1; }, "the tensor has no shape, or one with a negative length"},
      {[](Tensor& tensor) {
         tensor.shape = {INT64_MAX / 2, INT64_MAX / 2};
       },
       "the tensor has no shape, or one with a negative length"},
      {[](Tensor& tensor) { tensor.managed.device_type = 2, tensor.managed.device_id = -1; },
       "the tensor lies in GPU -1 of CUDA, which is none"},
      {[](Tensor& tensor) { tensor.managed.byte_offset = UINT64_MAX - 3; },
       "the tensor begins 18446744073709551612 bytes"},
      {[](Tensor& tensor) { tensor.managed.data = nullptr, tensor.managed.byte_offset = 64; }, ""},
      {[](Tensor& tensor) { tensor.managed.dimensions = -1; }, "the tensor has no shape"},
      {[](Tensor& tensor) { tensor.managed.shape = nullptr; }, "the tensor has no shape"},
      {[](Tensor& tensor) { tensor.managed.data = nullptr; }, ""},
  };
  for (const auto& [change, sentence] : wrong) EXPECT_EQ(refusal(change).find(sentence), 0U) << refusal(change);
  EXPECT_NE(refusal([](Tensor&) {}, "nowhere").find("has no 'nowhere'"), std::string::npos);
  EXPECT_EQ(runtime.wrap_tensor("mem0", nullptr).error().message, "there is no tensor; give one");
}

TEST_F(ApiTensors, ThatAreReadOnlyAreNotWritten) {
  Tensor tensor;
  tensor.managed.flags = 1;
  const auto buffer = runtime.wrap_tensor("mem0", &tensor.managed).value();
  const auto there = runtime.allocate("gpu0", tutti::Bytes{48}).value();
  EXPECT_TRUE(runtime.prepare(copy_to("mem0", "gpu0"), {{buffer, there}}));
  const auto refused =
      runtime.prepare(copy_to("gpu0", "mem0"), {{there, buffer.part(tutti::Bytes{0}, tutti::Bytes{48}).value()}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("a batch would write a tensor that is read-only"), 0U);
  DLManagedTensorVersioned* const again = runtime.lend_tensor(buffer).value();
  EXPECT_EQ(again->flags, 1U);
  again->deleter(again);
}

TEST_F(ApiTensors, AreLentWithTheirMemory) {
  auto buffer = runtime.allocate("mem0", tutti::Bytes{100}).value();
  const auto part = buffer.part(tutti::Bytes{10}, tutti::Bytes{80}).value();
  DLManagedTensorVersioned* const tensor = runtime.lend_tensor(part).value();
  EXPECT_EQ(tensor->data, buffer.data() + 10);
  EXPECT_EQ(std::vector(tensor->shape, tensor->shape + tensor->dimensions), std::vector<std::int64_t>{80});
  EXPECT_EQ(tensor->strides[0], 1);
  EXPECT_EQ((std::vector<int>{tensor->type_code, tensor->bits, tensor->lanes, tensor->device_type}),
            (std::vector{1, 8, 1, 1}));
  EXPECT_EQ(tensor->major, 1U);
  const auto wrapped = runtime.wrap_tensor("mem0", tensor).value();  // there and back
  EXPECT_EQ(wrapped.data(), part.data());
  buffer = {};
  std::memset(wrapped.data(), 7, 80);
  EXPECT_EQ(part.data()[0], std::byte{7});
  auto other = tutti::Runtime::open(machine).value();
  EXPECT_NE(other.lend_tensor(part).error().message.find("belongs to another runtime"), std::string::npos);
  EXPECT_FALSE(runtime.lend_tensor({}));
}

}  // namespace
