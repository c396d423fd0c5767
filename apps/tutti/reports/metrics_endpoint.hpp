#pragma once
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "model/base/error.hpp"

namespace tutti::internal {

/// Where a server listens: a `sockaddr` of IPv4 or IPv6.
struct ListenAddress {
  alignas(8) std::array<std::byte, 28> bytes{};
  unsigned size = 0;
  std::string text{};  ///< "127.0.0.1:9464", for sentences
};

/// Reads [ADDRESS:]PORT: a port alone is of the loopback address 127.0.0.1, an address of IPv6 stands in brackets.
/// @errors InvalidInput: it is none, or a port above 65535.
[[nodiscard]] Expected<ListenAddress> parse_listen_address(std::string_view text);

/// Serves a text for Prometheus over HTTP, at /metrics, as long as it lives.
///
/// It answers in a thread of its own, of ordinary priority, with what was published last: whoever publishes waits for
/// no client. At most 16 clients are connected, others wait; one that is silent for 5 s is cut off, and so is one whose
/// request takes longer than 10 s, at the next text that is published. A request is at most some kB long, without a
/// body.
class MetricsEndpoint {
 public:
  /// Listens, and starts the thread: call it in a thread with the cores that any thread may have.
  /// @errors InvalidInput: the address is in use, or none of this host. Machine: there is no thread or no memory.
  /// @param longest  a request may take
  [[nodiscard]] static Expected<std::unique_ptr<MetricsEndpoint>> open(
      const ListenAddress& address, std::chrono::seconds longest = std::chrono::seconds{10});
  MetricsEndpoint(const MetricsEndpoint&) = delete;  // its thread refers to it
  MetricsEndpoint& operator=(const MetricsEndpoint&) = delete;
  /// Cuts off all clients and closes the port.
  ~MetricsEndpoint();

  /// "http://127.0.0.1:9464/metrics", with the port that port 0 became.
  [[nodiscard]] const std::string& url() const { return url_; }
  /// Answers are this text from now on; before the first call they are empty. From any thread.
  void publish(const std::string& text);

 private:
  class Server;
  MetricsEndpoint(std::unique_ptr<Server> server, std::string url, std::chrono::seconds longest);

  std::unique_ptr<Server> server_;
  std::string url_;
  std::chrono::seconds longest_;
};

}  // namespace tutti::internal
