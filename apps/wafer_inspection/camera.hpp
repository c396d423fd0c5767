#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <tutti/error.hpp>
#include <tutti/quantities.hpp>

#include "apps/wafer_inspection/frame_queue.hpp"
#include "apps/wafer_inspection/gray_image.hpp"

namespace wafer {

/// What became of the frames of a camera from the first that released a job on.
struct FrameCounts {
  std::uint64_t released = 0;    ///< released a job
  std::uint64_t early = 0;       ///< came too early, see `FrameQueue`
  std::uint64_t incomplete = 0;  ///< data were missing, or the size was another one
  std::uint64_t underruns = 0;   ///< no buffer was free
  std::uint64_t missing = 0;     ///< nothing of it came, by the numbers of the frames

  /// Frames that nothing inspected.
  [[nodiscard]] std::uint64_t lost() const { return early + incomplete + underruns + missing; }
};

/// A camera that is open and gives 8-bit gray.
class Camera {
 public:
  virtual ~Camera() = default;

  [[nodiscard]] virtual const std::string& name() const = 0;
  /// Size of its frames in pixels.
  [[nodiscard]] virtual int width() const = 0;
  [[nodiscard]] virtual int height() const = 0;

  /// Takes one frame. A camera that runs free, faster than a frame a period, is slowed down to that until it is closed.
  /// @param period  > 0
  /// @errors Machine: no whole frame comes within 10 s, or the camera refuses.
  [[nodiscard]] virtual tutti::Expected<GrayImage> first_frame(tutti::Duration period) = 0;

  /// Adds each frame to a queue from now on until `stop`, in a thread of its own.
  /// @param frames  outlives that
  /// @param lost    is set when the connection to the camera is lost; outlives the camera
  /// @errors Machine: the camera refuses.
  [[nodiscard]] virtual tutti::Expected<void> deliver(FrameQueue& frames, std::atomic<bool>& lost) = 0;
  /// No frame is added any more.
  virtual void stop() = 0;

  /// Of all that was delivered. @pre it is stopped
  [[nodiscard]] virtual FrameCounts counts() const = 0;
  /// Whether the connection to the camera was lost.
  [[nodiscard]] virtual bool is_lost() const = 0;
};

/// Opens a GigE Vision or USB3 Vision camera through Aravis and sets it to 8-bit gray. Its region, exposure and trigger
/// stay as they are.
/// @param name  as Aravis names cameras; empty: the first one. "Fake_1" is a camera of Aravis' own in this process.
/// @errors InvalidInput: this build has no Aravis. Machine: there is no such camera, or it is in use; it has no 8-bit
///         gray; its frames are too large.
[[nodiscard]] tutti::Expected<std::unique_ptr<Camera>> open_camera(const std::string& name);

}  // namespace wafer
