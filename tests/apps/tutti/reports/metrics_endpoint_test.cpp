#include "apps/tutti/reports/metrics_endpoint.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tutti::internal {
namespace {

/// A client of an endpoint on the loopback address.
class Client {
 public:
  explicit Client(const MetricsEndpoint& endpoint) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::string& url = endpoint.url();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::uint16_t port = 0;
    std::from_chars(url.data() + url.rfind(':') + 1, url.data() + url.size(), port);
    address.sin_port = htons(port);
    EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(socket_); }

  void say(std::string_view text) const { static_cast<void>(send(socket_, text.data(), text.size(), MSG_NOSIGNAL)); }
  /// What comes within a tenth of a second; nothing: nothing does.
  [[nodiscard]] std::optional<std::string> hear() const {
    pollfd waiting{socket_, POLLIN, 0};
    if (poll(&waiting, 1, 100) == 0) return std::nullopt;
    std::array<char, 4096> bytes{};
    const ssize_t got = recv(socket_, bytes.data(), bytes.size(), 0);
    return std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }

 private:
  int socket_;
};

std::unique_ptr<MetricsEndpoint> endpoint(std::chrono::seconds longest) {
  return MetricsEndpoint::open(parse_listen_address("0").value(), longest).value();
}

// It is never silent for long, so the limit on silence does not end it.
TEST(MetricsEndpoint, CutsOffARequestThatTakesTooLong) {
  const auto served = endpoint(std::chrono::seconds{0});
  const Client client(*served);
  std::optional<std::string> heard;
  for (int i = 0; i < 600 && !heard; ++i) {
    client.say("G");
    served->publish("a 1\n");
    heard = client.hear();
  }
  EXPECT_EQ(heard, "");  // the end
}

TEST(MetricsEndpoint, KeepsAClientWhoseRequestsAreShort) {
  const auto served = endpoint(std::chrono::hours{1});
  const Client client(*served);
  for (const std::string text : {"a 1\n", "a 2\n"}) {
    served->publish(text);
    client.say("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    std::string answer;
    for (int i = 0; i < 600 && !answer.ends_with(text); ++i) answer += client.hear().value_or("");
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
    EXPECT_TRUE(answer.ends_with(text)) << answer;
  }
}

}  // namespace
}  // namespace tutti::internal
