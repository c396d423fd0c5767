#include "apps/wafer_inspection/camera.hpp"

#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include <arv.h>
#include <fmt/format.h>

#include "apps/wafer_inspection/errors.hpp"

namespace wafer {
namespace {

using tutti::Expected;
using Clock = std::chrono::steady_clock;

// Frames that wait for their jobs, and two that the camera fills meanwhile.
constexpr int kStreamBuffers = 10;
constexpr std::uint64_t kPopUs = 100'000;  // how soon the thread sees that it shall stop
constexpr auto kFirstFrame = std::chrono::seconds(10);

struct Unref {
  void operator()(gpointer object) const { g_object_unref(object); }
};
template <class Object>
using Owned = std::unique_ptr<Object, Unref>;

/// The error of a call to Aravis.
class Fault {
 public:
  Fault() = default;
  Fault(const Fault&) = delete;  // one owner
  Fault& operator=(const Fault&) = delete;
  ~Fault() { g_clear_error(&error_); }

  /// For the next call, which finds it empty.
  GError** slot() {
    g_clear_error(&error_);
    return &error_;
  }
  explicit operator bool() const { return error_ != nullptr; }
  [[nodiscard]] const char* text() const { return error_ == nullptr ? "no reason is given" : error_->message; }

 private:
  GError* error_ = nullptr;
};

/// Frames come from this host itself.
bool is_on_loopback(ArvDevice* device) {
  if (!ARV_IS_GV_DEVICE(device)) return false;
  GSocketAddress* const address = arv_gv_device_get_device_address(ARV_GV_DEVICE(device));
  return G_IS_INET_SOCKET_ADDRESS(address) &&
         g_inet_address_get_is_loopback(g_inet_socket_address_get_address(G_INET_SOCKET_ADDRESS(address)));
}

class AravisCamera final : public Camera {
 public:
  static Expected<std::unique_ptr<Camera>> open(const std::string& name);

  AravisCamera(const AravisCamera&) = delete;  // the device calls it back
  AravisCamera& operator=(const AravisCamera&) = delete;
  ~AravisCamera() override;

  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] int width() const override { return width_; }
  [[nodiscard]] int height() const override { return height_; }
  [[nodiscard]] Expected<GrayImage> first_frame(tutti::Duration period) override;
  [[nodiscard]] Expected<void> deliver(FrameQueue& frames, std::atomic<bool>& lost) override;
  void stop() override;
  [[nodiscard]] FrameCounts counts() const override { return counts_; }
  [[nodiscard]] bool is_lost() const override { return lost_; }

 private:
  AravisCamera(std::string name, Owned<ArvCamera> camera);

  [[nodiscard]] tl::unexpected<tutti::Error> refusal(std::string_view what, const Fault& fault) const {
    return machine_error(fmt::format("camera {}: {} ({})", name_, what, fault.text()));
  }
  Expected<void> configure();
  Expected<void> limit_rate(tutti::Duration period);
  Expected<void> start();
  /// Pixels of a whole frame of the right size; empty for all others.
  [[nodiscard]] std::span<const std::byte> pixels_of(ArvBuffer* buffer) const;
  void deliver_until_stopped(FrameQueue& frames);
  /// Failures of the stream so far; only they are counted in it.
  [[nodiscard]] FrameCounts failures() const;

  std::string name_;
  Owned<ArvCamera> camera_;
  gulong watch_ = 0;  // of the connection
  int width_ = 0, height_ = 0;
  std::optional<double> own_rate_;  // frames a second before it was slowed down; the camera gets it back
  Owned<ArvStream> stream_;         // while frames are taken
  std::thread thread_;
  std::atomic<bool> stopped_ = false, lost_ = false;
  std::atomic<std::atomic<bool>*> tell_lost_ = nullptr;
  std::uint64_t incomplete_ = 0;  // of the stream
  FrameCounts counts_;
};

AravisCamera::AravisCamera(std::string name, Owned<ArvCamera> camera)
    : name_(std::move(name)), camera_(std::move(camera)) {
  const auto on_lost = +[](ArvDevice*, gpointer self) {
    auto& found = *static_cast<AravisCamera*>(self);
    found.lost_ = true;
    if (std::atomic<bool>* const tell = found.tell_lost_) *tell = true;
  };
  watch_ = g_signal_connect(arv_camera_get_device(camera_.get()), "control-lost", G_CALLBACK(on_lost), this);
}

AravisCamera::~AravisCamera() {
  stop();
  if (own_rate_) arv_camera_set_frame_rate(camera_.get(), *own_rate_, nullptr);  // a lost camera does not answer
  g_signal_handler_disconnect(arv_camera_get_device(camera_.get()), watch_);
}

Expected<std::unique_ptr<Camera>> AravisCamera::open(const std::string& name) {
  if (name.starts_with("Fake_")) arv_enable_interface("Fake");
  std::string chosen = name;
  if (name.empty()) {
    arv_update_device_list();
    if (arv_get_n_devices() == 0)
      return machine_error("--camera: this host sees no camera; look at its power, its cable and its address");
    chosen = arv_get_device_id(0);
  }
  Fault fault;
  Owned<ArvCamera> device(arv_camera_new(chosen.c_str(), fault.slot()));
  if (!device)
    return machine_error(
        fmt::format("--camera: camera '{:.80}' is not found, or another program has it ({}); "
                    "'arv-tool-0.8' of aravis-tools-cli lists the cameras that this host sees",
                    chosen, fault.text()));
  std::unique_ptr<AravisCamera> camera(new AravisCamera(std::move(chosen), std::move(device)));
  if (auto fine = camera->configure(); !fine) return tl::unexpected(std::move(fine.error()));
  return camera;
}

Expected<void> AravisCamera::configure() {
  Fault fault;
  arv_camera_set_pixel_format(camera_.get(), ARV_PIXEL_FORMAT_MONO_8, fault.slot());
  if (fault) return refusal("8-bit gray (Mono8) is needed, and the camera refuses it", fault);
  arv_camera_set_acquisition_mode(camera_.get(), ARV_ACQUISITION_MODE_CONTINUOUS, fault.slot());
  if (fault) return refusal("continuous acquisition is needed, and the camera refuses it", fault);
  int x = 0, y = 0;
  arv_camera_get_region(camera_.get(), &x, &y, &width_, &height_, fault.slot());
  if (fault) return refusal("the size of its frames cannot be read", fault);
  if (width_ < 1 || height_ < 1 || width_ > max_image_side || height_ > max_image_side ||
      std::int64_t{width_} * height_ > max_image_bytes)
    return machine_error(
        fmt::format("camera {}: frames of {} x {} pixels cannot be inspected; set a region of at most "
                    "{} pixels a side and 1 GiB",
                    name_, width_, height_, max_image_side));
  if (is_on_loopback(arv_camera_get_device(camera_.get())))  // packet sockets do not see its packets
    arv_camera_gv_set_stream_options(camera_.get(), ARV_GV_STREAM_OPTION_PACKET_SOCKET_DISABLED);
  return {};
}

Expected<void> AravisCamera::limit_rate(tutti::Duration period) {
  ArvCamera* const camera = camera_.get();
  const bool is_triggered = arv_camera_is_feature_available(camera, "TriggerMode", nullptr) != FALSE &&
                            std::string_view("On") == arv_camera_get_string(camera, "TriggerMode", nullptr);
  if (is_triggered || arv_camera_is_frame_rate_available(camera, nullptr) == FALSE) return {};
  // Slower than the period by a thousandth: the clocks of camera and host differ by less.
  const double rate = 1e9 / (1.001 * static_cast<double>(period.count()));
  Fault fault;
  const double own = arv_camera_get_frame_rate(camera, fault.slot());
  if (!fault && own <= rate) return {};
  if (!fault) own_rate_ = own;
  if (!fault) arv_camera_set_frame_rate(camera, rate, fault.slot());
  if (fault) return refusal(fmt::format("{:.6g} frames a second are needed, and the camera refuses that", rate), fault);
  return {};
}

Expected<void> AravisCamera::start() {
  Fault fault;
  stream_.reset(arv_camera_create_stream(camera_.get(), nullptr, nullptr, fault.slot()));
  if (!stream_) return refusal("it gives no stream", fault);
  if (ARV_IS_GV_STREAM(stream_.get()))
    g_object_set(stream_.get(), "socket-buffer", ARV_GV_STREAM_SOCKET_BUFFER_AUTO, nullptr);
  const guint payload = arv_camera_get_payload(camera_.get(), fault.slot());
  if (fault) return refusal("the size of its frames cannot be read", fault);
  for (int i = 0; i < kStreamBuffers; ++i) arv_stream_push_buffer(stream_.get(), arv_buffer_new_allocate(payload));
  incomplete_ = 0;
  arv_camera_start_acquisition(camera_.get(), fault.slot());
  if (fault) return refusal("it does not start", fault);
  return {};
}

void AravisCamera::stop() {
  stopped_ = true;
  if (thread_.joinable()) thread_.join();
  if (!stream_) return;
  arv_camera_stop_acquisition(camera_.get(), nullptr);  // a camera that is lost cannot answer
  stream_.reset();
}

std::span<const std::byte> AravisCamera::pixels_of(ArvBuffer* buffer) const {
  const auto bytes = static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_);
  if (arv_buffer_get_status(buffer) != ARV_BUFFER_STATUS_SUCCESS ||
      arv_buffer_get_payload_type(buffer) != ARV_BUFFER_PAYLOAD_TYPE_IMAGE)
    return {};
  std::size_t size = 0;
  const void* const data = arv_buffer_get_image_data(buffer, &size);
  int x_padding = 0, y_padding = 0;
  arv_buffer_get_image_padding(buffer, &x_padding, &y_padding);
  if (data == nullptr || size < bytes || x_padding != 0 || arv_buffer_get_image_width(buffer) != width_ ||
      arv_buffer_get_image_height(buffer) != height_ ||
      arv_buffer_get_image_pixel_format(buffer) != ARV_PIXEL_FORMAT_MONO_8)
    return {};
  return {static_cast<const std::byte*>(data), bytes};
}

Expected<GrayImage> AravisCamera::first_frame(tutti::Duration period) {
  if (auto fine = limit_rate(period); !fine) return tl::unexpected(std::move(fine.error()));
  if (auto fine = start(); !fine) return tl::unexpected(std::move(fine.error()));
  GrayImage image;
  for (const auto end = Clock::now() + kFirstFrame; image.bytes().empty() && Clock::now() < end;) {
    ArvBuffer* const buffer = arv_stream_timeout_pop_buffer(stream_.get(), kPopUs);
    if (buffer == nullptr) continue;
    if (const auto pixels = pixels_of(buffer); !pixels.empty()) {
      image = GrayImage(width_, height_);
      std::memcpy(image.bytes().data(), pixels.data(), pixels.size());
    }
    arv_stream_push_buffer(stream_.get(), buffer);
  }
  stop();
  if (image.bytes().empty())
    return machine_error(
        fmt::format("camera {}: no whole frame has come within {} s; look at its trigger, its exposure "
                    "and the network",
                    name_, kFirstFrame.count()));
  return image;
}

Expected<void> AravisCamera::deliver(FrameQueue& frames, std::atomic<bool>& lost) {
  counts_ = {};
  stopped_ = false;
  tell_lost_ = &lost;
  if (lost_) lost = true;  // before it was told whom to tell
  if (auto fine = start(); !fine) return fine;
  thread_ = std::thread([this, &frames] { deliver_until_stopped(frames); });
  return {};
}

void AravisCamera::deliver_until_stopped(FrameQueue& frames) {
  FrameCounts before;
  while (!stopped_) {
    ArvBuffer* const buffer = arv_stream_timeout_pop_buffer(stream_.get(), kPopUs);
    const auto now = Clock::now();
    if (buffer == nullptr) continue;
    const auto pixels = pixels_of(buffer);
    if (pixels.empty()) {
      ++incomplete_;
      arv_stream_push_buffer(stream_.get(), buffer);
      continue;
    }
    // Goes back to the stream, which lives as long, when the frame has been copied.
    g_object_ref(stream_.get());
    std::shared_ptr<const void> held(static_cast<const void*>(buffer), [buffer, stream = stream_.get()](const void*) {
      arv_stream_push_buffer(stream, buffer);
      g_object_unref(stream);
    });
    const bool none_yet = frames.released() == 0;
    if (frames.add({pixels, std::move(held), now}) && none_yet) before = failures();
  }
  counts_ = failures();
  counts_.incomplete -= before.incomplete;
  counts_.underruns -= before.underruns;
  counts_.missing -= before.missing;
  counts_.released = frames.released();
  counts_.early = frames.early();
}

FrameCounts AravisCamera::failures() const {
  std::uint64_t completed = 0, failed = 0;
  FrameCounts counts{.incomplete = incomplete_};
  arv_stream_get_statistics(stream_.get(), &completed, &failed, &counts.underruns);
  for (guint i = 0; i < arv_stream_get_n_infos(stream_.get()); ++i)
    if (std::string_view("n_missing_frames") == arv_stream_get_info_name(stream_.get(), i))
      counts.missing = arv_stream_get_info_uint64(stream_.get(), i);
  return counts;
}

}  // namespace

Expected<std::unique_ptr<Camera>> open_camera(const std::string& name) { return AravisCamera::open(name); }

}  // namespace wafer
