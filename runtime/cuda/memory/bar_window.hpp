#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "model/base/error.hpp"

namespace tutti::internal::cuda {

/// A buffer that is pinned for the host, as GDRCopy names it.
struct GdrHandle {
  unsigned long value = 0;
};

/// GDRCopy, the library that maps memory of GPUs into programs: by its kernel module, or by DMA-BUF where library and
/// driver can. It is opened at run time, since few hosts have it and the toolkit has neither its header nor the
/// library.
class GdrCopy {
 public:
  static constexpr std::array kNames{"libgdrapi.so.2", "libgdrapi.so"};

  /// Opens the first library that is there.
  /// @errors Machine: there is none, it lacks a function, or it reaches no driver.
  [[nodiscard]] static Expected<std::shared_ptr<const GdrCopy>> open(std::span<const char* const> names = kNames);
  GdrCopy(const GdrCopy&) = delete;  // it closes one connection to the driver once
  GdrCopy& operator=(const GdrCopy&) = delete;
  ~GdrCopy();

 private:
  friend class BarWindow;
  GdrCopy() = default;
  template <class Function>
  [[nodiscard]] bool find(const char* name, Function& function);

  void* library_ = nullptr;
  void* connection_ = nullptr;
  std::string lacks_;  // the function that was not found

  // The functions below return 0, or an errno.
  void* (*open_)() = nullptr;
  int (*close_)(void*) = nullptr;
  int (*pin_)(void*, unsigned long, std::size_t, std::uint64_t, std::uint32_t, GdrHandle*) = nullptr;
  int (*unpin_)(void*, GdrHandle) = nullptr;
  int (*describe_)(void*, GdrHandle, struct GdrMapping*) = nullptr;
  int (*map_)(void*, GdrHandle, void**, std::size_t) = nullptr;
  int (*unmap_)(void*, GdrHandle, void*, std::size_t) = nullptr;
  int (*store_)(GdrHandle, void*, const void*, std::size_t) = nullptr;
  int (*load_)(GdrHandle, void*, const void*, std::size_t) = nullptr;
};

/// A part of a GPU's memory that the host reaches through the GPU's BAR, for as long as this lives.
class BarWindow {
 public:
  /// Not for two threads at a time.
  /// @errors Machine: the driver pins or maps this memory not.
  [[nodiscard]] static Expected<std::unique_ptr<BarWindow>> map(std::shared_ptr<const GdrCopy> library,
                                                                const std::byte* device, std::size_t bytes);
  BarWindow(const BarWindow&) = delete;  // it unmaps once
  BarWindow& operator=(const BarWindow&) = delete;
  ~BarWindow();

  /// Stores bytes. On return they have arrived: all that the GPU begins afterwards sees them.
  /// @param device  in the window, as the GPU's address
  [[nodiscard]] bool write(std::byte* device, const std::byte* from, std::size_t bytes) const;
  /// Loads bytes: slow, since each load waits for the bus.
  [[nodiscard]] bool read(std::byte* to, const std::byte* device, std::size_t bytes) const;

 private:
  explicit BarWindow(std::shared_ptr<const GdrCopy> library) : library_(std::move(library)) {}
  [[nodiscard]] Expected<void> map_pages(std::uintptr_t begin, std::size_t bytes);
  [[nodiscard]] std::byte* on_host(const std::byte* device) const {
    return host_ + (reinterpret_cast<std::uintptr_t>(device) - device_);
  }

  std::shared_ptr<const GdrCopy> library_;
  GdrHandle handle_{};
  bool pinned_ = false;
  std::byte* host_ = nullptr;  // where the window begins; null: not mapped
  std::uintptr_t device_ = 0;  // the GPU's address there
  std::size_t size_ = 0;
};

}  // namespace tutti::internal::cuda
