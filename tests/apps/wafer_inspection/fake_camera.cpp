// A GigE Vision camera on the loopback interface, by Aravis; its frames are generated wafers.
//
// Usage: fake_camera SERIAL SIDE. It says "ready" on standard output, and ends when its standard input does.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arv.h>

#include "apps/wafer_inspection/image_set.hpp"

namespace {

/// The frames: wafers in turn.
struct FakeFrames {
  wafer::ImageSet images;
  ArvFakeCamera* device = nullptr;
  std::size_t next = 0;
};

void fill(ArvBuffer* buffer, void* data, guint32 /*exposure_us*/, guint32 /*gain*/, ArvPixelFormat /*format*/) {
  auto& frames = *static_cast<FakeFrames*>(data);
  const auto pixels = frames.images.pictures[frames.next++ % frames.images.pictures.size()].image.bytes();
  std::size_t filled = 0;  // nothing yet: the buffer is as large as a frame
  void* const to = const_cast<void*>(arv_buffer_get_data(buffer, &filled));
  if (arv_fake_camera_get_payload(frames.device) == pixels.size()) std::memcpy(to, pixels.data(), pixels.size());
}

/// Whether a camera has the port of the protocol; Aravis would share it.
bool port_is_taken() {
  constexpr guint16 kControlPort = 3956;
  GSocket* const probe = g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_DATAGRAM, G_SOCKET_PROTOCOL_UDP, nullptr);
  GSocketAddress* const address =
      g_inet_socket_address_new_from_string(ARV_GV_FAKE_CAMERA_DEFAULT_INTERFACE, kControlPort);
  const bool taken = probe == nullptr || g_socket_bind(probe, address, FALSE, nullptr) == FALSE;
  g_object_unref(address);
  if (probe != nullptr) g_object_unref(probe);
  return taken;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int side = std::atoi(argv[2]);
  if (port_is_taken()) return 3;
  auto images = wafer::generate_images({side, side, 11, 4, 12}, 3);
  ArvGvFakeCamera* const camera = arv_gv_fake_camera_new(ARV_GV_FAKE_CAMERA_DEFAULT_INTERFACE, argv[1]);
  if (!images || arv_gv_fake_camera_is_running(camera) == FALSE) return 3;
  ArvFakeCamera* const device = arv_gv_fake_camera_get_fake_camera(camera);
  FakeFrames frames{*std::move(images), device};
  arv_fake_camera_write_register(device, ARV_FAKE_CAMERA_REGISTER_WIDTH, static_cast<guint32>(side));
  arv_fake_camera_write_register(device, ARV_FAKE_CAMERA_REGISTER_HEIGHT, static_cast<guint32>(side));
  arv_fake_camera_set_fill_pattern(device, fill, &frames);
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  g_object_unref(camera);
  return 0;
}
