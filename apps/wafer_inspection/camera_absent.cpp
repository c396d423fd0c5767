// In place of camera.cpp in a build without Aravis.
#include "apps/wafer_inspection/camera.hpp"
#include "apps/wafer_inspection/errors.hpp"

namespace wafer {

tutti::Expected<std::unique_ptr<Camera>> open_camera(const std::string& /*name*/) {
  return invalid_input(
      "--camera: this program was built without Aravis; install libaravis-dev and libusb-1.0-0-dev, configure with "
      "-Dcamera=enabled, and build anew");
}

}  // namespace wafer
