#include "apps/tutti/reports/metrics_endpoint.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/host/real_time.hpp"

namespace tutti::internal {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr unsigned kMostClients = 16, kMostSilentSeconds = 5;
constexpr std::size_t kClientBytes = 8 << 10;  // the head of its request, and that of its answer

static_assert(sizeof(ListenAddress::bytes) >= sizeof(sockaddr_in6));

Expected<ListenAddress> address_of(const std::string& host, std::string_view port, std::string text) {
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::string(port).c_str(), &wanted, &found) != 0)
    return invalid_input(fmt::format(
        "'{}' is no IP address; give one in numbers, like 192.0.2.7:{} or [::1]:{}, or a port alone for loopback", host,
        port, port));
  ListenAddress address;
  std::memcpy(address.bytes.data(), found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  address.text = std::move(text);
  freeaddrinfo(found);
  return address;
}

/// "127.0.0.1:9464" of what a socket is bound to.
std::string text_of(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size);
  getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, host.data(), host.size(), port.data(), port.size(),
              NI_NUMERICHOST | NI_NUMERICSERV);
  return bound.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host.data(), port.data())
                                     : fmt::format("{}:{}", host.data(), port.data());
}

tl::unexpected<Error> refused(const std::string& address, int error) {
  switch (error) {
    case EADDRINUSE:
      return invalid_input(
          fmt::format("{} is in use by another program; give another port, or 0 for a free one", address));
    case EADDRNOTAVAIL:
      return invalid_input(
          fmt::format("{} is no address of this host; give one of its own, or a port alone for loopback", address));
    case EACCES: return invalid_input(fmt::format("{} is not for this user; give a port from 1024 on", address));
    default:
      return invalid_input(
          fmt::format("nothing can listen at {} ({}); give another address", address, std::strerror(error)));
  }
}

/// A socket that listens.
Expected<int> listening(const ListenAddress& address) {
  const auto* at = reinterpret_cast<const sockaddr*>(address.bytes.data());
  const int made = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (made < 0) return refused(address.text, errno);
  const int yes = 1;  // connections of an earlier run that are closing do not keep the port
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(made, at, address.size) == 0 && listen(made, SOMAXCONN) == 0) return made;
  const int error = errno;
  close(made);
  return refused(address.text, error);
}

// Types of answers.
constexpr const char* kPlain = "text/plain; charset=utf-8";
constexpr const char* kPrometheus = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace

class MetricsEndpoint::Server {
 public:
  /// @param socket  listens; it is closed in any case
  static Expected<std::unique_ptr<Server>> start(int socket) {
    auto made = std::make_unique<Server>();
    std::string refusal = "no memory";
    try {
      // The library's thread inherits what the thread that starts it is.
      std::thread([&] {
        become_ordinary_thread("metrics");
        made->start_daemon(socket);
      }).join();
    } catch (const std::system_error& error) {
      refusal = error.code().message();
    }
    if (made->daemon_ != nullptr) return made;
    close(socket);
    return machine_error(fmt::format("no thread can be started to serve metrics ({}); end other programs", refusal));
  }
  Server() = default;
  Server(const Server&) = delete;  // the library refers to it
  Server& operator=(const Server&) = delete;
  ~Server() {
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  /// @param longest  a request that takes longer is cut off
  void publish(const std::string& text, std::chrono::seconds longest) {
    cut_off_before(SteadyClock::now() - longest);
    Response made = response_of(text, kPrometheus);
    const std::lock_guard lock(mutex_);
    metrics_.swap(made);
  }

 private:
  struct ResponseEnd {
    void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
  };
  using Response = std::unique_ptr<MHD_Response, ResponseEnd>;  // null: no memory; such answers cut the client off

  static Response response_of(std::string_view text, const char* type, const char* allowed = nullptr) {
    Response made(MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY));
    if (!made) return made;
    MHD_add_response_header(made.get(), MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (allowed != nullptr) MHD_add_response_header(made.get(), MHD_HTTP_HEADER_ALLOW, allowed);
    return made;
  }

  void start_daemon(int socket) {
    daemon_ = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, nullptr, nullptr, &Server::on_request,
                               this, MHD_OPTION_LISTEN_SOCKET, socket, MHD_OPTION_CONNECTION_LIMIT, kMostClients,
                               MHD_OPTION_CONNECTION_TIMEOUT, kMostSilentSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                               kClientBytes, MHD_OPTION_NOTIFY_CONNECTION, &Server::on_connection, this,
                               MHD_OPTION_NOTIFY_COMPLETED, &Server::on_completed, this, MHD_OPTION_END);
  }

  static int socket_of(MHD_Connection* connection) {
    const auto* const found = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return found == nullptr ? -1 : found->connect_fd;
  }
  /// A client has come; or it has gone, and its socket is closed behind this call.
  static void on_connection(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
    auto& server = *static_cast<Server*>(self);
    const std::lock_guard lock(server.clients_mutex_);
    if (what == MHD_CONNECTION_NOTIFY_STARTED)
      server.clients_[socket_of(connection)] = SteadyClock::now();
    else
      server.clients_.erase(socket_of(connection));
  }
  static void on_completed(void* self, MHD_Connection* connection, void**, MHD_RequestTerminationCode) {
    auto& server = *static_cast<Server*>(self);
    const std::lock_guard lock(server.clients_mutex_);
    if (const auto client = server.clients_.find(socket_of(connection)); client != server.clients_.end())
      client->second = SteadyClock::now();
  }
  /// Cuts off clients whose request is older: the library's limit is one on silence, and a client that sends or takes a
  /// byte now and then would keep its place for ever.
  void cut_off_before(SteadyClock::time_point oldest) {
    const std::lock_guard lock(clients_mutex_);
    for (const auto& [socket, since] : clients_)
      if (since < oldest) shutdown(socket, SHUT_RDWR);
  }

  /// Called when the head of a request has come, and when all of it has.
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char*, const char*, std::size_t* body, void** seen) {
    auto& server = *static_cast<Server*>(self);
    if (*body != 0) return MHD_NO;  // it has no meaning here: the connection is closed
    const std::string_view word = method;
    if (word != MHD_HTTP_METHOD_GET && word != MHD_HTTP_METHOD_HEAD)
      return MHD_queue_response(connection, MHD_HTTP_METHOD_NOT_ALLOWED, server.not_allowed_.get());
    if (*seen == nullptr) {
      *seen = self;
      return MHD_YES;
    }
    return server.answer(connection, path);
  }
  MHD_Result answer(MHD_Connection* connection, std::string_view path) {
    if (path == "/") return MHD_queue_response(connection, MHD_HTTP_OK, root_.get());
    if (path != "/metrics") return MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, not_found_.get());
    const std::lock_guard lock(mutex_);
    return MHD_queue_response(connection, MHD_HTTP_OK, metrics_.get());
  }

  const Response root_ = response_of("A run of tutti: its metrics are at /metrics\n", kPlain);
  const Response not_found_ = response_of("not here: metrics are at /metrics\n", kPlain);
  const Response not_allowed_ = response_of("metrics are read with GET or HEAD\n", kPlain, "GET, HEAD");
  std::mutex mutex_;
  Response metrics_ = response_of("", kPrometheus);  // guarded by the mutex
  std::mutex clients_mutex_;
  std::map<int, SteadyClock::time_point> clients_;  // by socket: since when its request is under way; guarded by that
  MHD_Daemon* daemon_ = nullptr;
};

MetricsEndpoint::MetricsEndpoint(std::unique_ptr<Server> server, std::string url, std::chrono::seconds longest)
    : server_(std::move(server)), url_(std::move(url)), longest_(longest) {}

MetricsEndpoint::~MetricsEndpoint() = default;

Expected<std::unique_ptr<MetricsEndpoint>> MetricsEndpoint::open(const ListenAddress& address,
                                                                 std::chrono::seconds longest) {
  const auto socket = listening(address);
  if (!socket) return tl::unexpected(socket.error());
  std::string url = fmt::format("http://{}/metrics", text_of(*socket));
  auto server = Server::start(*socket);
  if (!server) return tl::unexpected(std::move(server.error()));
  return std::unique_ptr<MetricsEndpoint>(new MetricsEndpoint(*std::move(server), std::move(url), longest));
}

void MetricsEndpoint::publish(const std::string& text) { server_->publish(text, longest_); }

Expected<ListenAddress> parse_listen_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const std::string_view port = colon == std::string_view::npos ? text : text.substr(colon + 1);
  std::string_view host = colon == std::string_view::npos ? "127.0.0.1" : text.substr(0, colon);
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), number);
  const bool is_number = end == port.data() + port.size() && fault != std::errc::invalid_argument;
  if (!is_number || host.empty() || has_brackets != (host.find(':') != std::string_view::npos))
    return invalid_input(fmt::format(
        "'{}' is no [ADDRESS:]PORT; give a port, like 9464, or an address with it, like 192.0.2.7:9464 or [::1]:9464",
        text));
  if (fault != std::errc{} || number > 65535)
    return invalid_input(fmt::format("there is no port {}; give one from 1 to 65535, or 0 for a free one", port));
  return address_of(std::string(host), port,
                    colon == std::string_view::npos ? fmt::format("127.0.0.1:{}", port) : std::string(text));
}

}  // namespace tutti::internal
