#include "http.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>

namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::string_body>;
using std::chrono::milliseconds;

constexpr int kWaitingConnections = 4096;      // until a thread accepts them
constexpr size_t kLongestHead = 8192;          // of a request; also of the line before a chunk
constexpr size_t kReceiveBytes = 16384;        // at a time
constexpr milliseconds kLeastLingerTime{500};  // see Connection::linger

// What a connection is answered with before it is closed.
struct Refusal {
  int status;
  std::string reason;
};

struct Disconnected {};  // the client is gone
struct TimeIsUp {};

// A request line that the parser would refuse, known before the head has arrived.
bool is_request_line(std::string_view text) {
  const auto line = text.substr(0, text.find('\n'));
  const auto method = line.substr(0, line.find(' '));
  const bool is_token =
      std::all_of(method.begin(), method.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!is_token || line.size() > kLongestHead) return false;
  return line.size() == text.size() || line.ends_with(" HTTP/1.1\r") || line.ends_with(" HTTP/1.0\r");
}

// Two servers that read one of these requests differently would disagree about where the next one begins.
void refuse_unclear_request(const Parser& parser) {
  const auto& head = parser.get();
  const auto lengths = head.count(http::field::content_length);
  const auto encodings = head.count(http::field::transfer_encoding);
  const auto length = head[http::field::content_length];
  if (lengths + encodings > 1)
    throw Refusal{400, "the request has more than one Content-Length or Transfer-Encoding"};
  if (lengths == 1 && length.find_first_not_of("0123456789") != length.npos)
    throw Refusal{400, "Content-Length is not a number"};
  if (encodings == 1 &&
      (head.version() < 11 || !boost::beast::iequals(head[http::field::transfer_encoding], "chunked")))
    throw Refusal{400, "the only Transfer-Encoding is chunked, in HTTP/1.1"};
  if (head.method() == http::verb::unknown) throw Refusal{400, "the method of the request is unknown"};
  if (head.method() == http::verb::post && lengths + encodings == 0)
    throw Refusal{411, "the request has no Content-Length"};
}

std::string format(const HttpResponse& response, bool keep_alive, bool has_body) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + ' ';
  text += std::string(http::obsolete_reason(http::int_to_status(response.status)));
  text += "\r\nContent-Type: " + std::string(response.type);
  text += "\r\nContent-Length: " + std::to_string(response.body.size());
  text += keep_alive ? "\r\nConnection: keep-alive" : "\r\nConnection: close";
  if (response.status == 503) text += "\r\nRetry-After: 1";
  text += "\r\n\r\n";
  return has_body ? text + response.body : text;
}

}  // namespace

// A socket that does not block, with what has been received and not read.
class HttpServer::Connection {
 public:
  Connection(HttpServer& server, int socket) : server_(server), socket_(socket) {
    const int yes = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;

  // Answers one request. False: the connection ends.
  bool serve_one(bool is_first) {
    const auto& limits = server_.limits_;
    deadline_ = Clock::now() + (is_first ? limits.receive_time : limits.keep_alive);
    if (buffer_.size() == 0 && receive() == 0) return false;
    deadline_ = Clock::now() + limits.receive_time;
    try {
      Parser parser;
      parser.header_limit(kLongestHead);
      parser.body_limit(limits.body_bytes);
      read_request(parser);
      return answer(parser.release());
    } catch (const Refusal& refusal) {
      send(format(server_.refuse_(refusal.status, refusal.reason), false, true));
      linger();
      return false;
    }
  }

 private:
  HttpServer& server_;
  const int socket_;
  Clock::time_point deadline_;
  boost::beast::flat_buffer buffer_;

  void read_request(Parser& parser) {
    while (!parser.is_header_done()) {
      parse(parser);
      if (parser.is_header_done()) break;
      const auto head = buffer_.data();
      if (!is_request_line({static_cast<const char*>(head.data()), head.size()}))
        throw Refusal{400, "the request is not valid HTTP"};
      receive_more();
    }
    refuse_unclear_request(parser);
    if (boost::beast::iequals(parser.get()[http::field::expect], "100-continue") && buffer_.size() == 0)
      send("HTTP/1.1 100 Continue\r\n\r\n");
    for (parse(parser); !parser.is_done(); parse(parser)) receive_more();
  }

  void parse(Parser& parser) {
    boost::beast::error_code error;
    while (!parser.is_done() && buffer_.size() > 0 && !error) {
      const bool was_in_head = !parser.is_header_done();
      buffer_.consume(parser.put(buffer_.data(), error));
      if (was_in_head && parser.is_header_done()) break;
    }
    if (!error || error == http::error::need_more) {
      if (buffer_.size() > 2 * kLongestHead && error)
        throw Refusal{400, "the request is not valid HTTP: a line is too long"};
      return;
    }
    if (error == http::error::body_limit)
      throw Refusal{413,
                    "the request has more than " + std::to_string(server_.limits_.body_bytes) + " bytes"};
    if (error == http::error::header_limit) throw Refusal{431, "the head of the request is too long"};
    throw Refusal{400, "the request is not valid HTTP: " + error.message()};
  }

  bool answer(const http::request<http::string_body>& request) {
    const std::string target(request.target());
    const HttpResponse response = server_.answer(
        {std::string(request.method_string()), target.substr(0, target.find('?')), request.body()});
    // The requests that the client has sent already are answered before the connection ends.
    const bool is_last =
        server_.limits_.keep_alive.count() == 0 || (server_.is_draining_ && buffer_.size() == 0);
    const bool keep_alive = request.keep_alive() && !is_last;
    deadline_ = Clock::now() + server_.limits_.receive_time;
    send(format(response, keep_alive, request.method() != http::verb::head));
    if (!keep_alive) linger();
    return keep_alive;
  }

  void receive_more() {
    try {
      if (receive() == 0) throw Refusal{400, "the request ended before its last byte"};
    } catch (const TimeIsUp&) {
      if (Clock::now() < deadline_) throw Refusal{503, "the server stops"};
      throw Refusal{
          408, "the request took longer than " + std::to_string(server_.limits_.receive_time.count()) + " s"};
    }
  }

  // Waits for bytes and appends them to the buffer. Returns how many; 0: the client sends no more.
  size_t receive() {
    const auto space = buffer_.prepare(kReceiveBytes);
    const size_t count = receive_into(space.data(), space.size());
    buffer_.commit(count);
    return count;
  }

  size_t receive_into(void* data, size_t size) {
    while (true) {
      if (Clock::now() >= end()) throw TimeIsUp{};
      const ssize_t count = recv(socket_, data, size, 0);
      if (count >= 0) return count;
      wait_or_throw(POLLIN);
    }
  }

  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count >= 0)
        text.remove_prefix(count);
      else
        wait_or_throw(POLLOUT);
    }
  }

  Clock::time_point end() const { return std::min(deadline_, server_.end_.load()); }

  // After an operation that did not succeed: waits until it may, if it only has to wait.
  void wait_or_throw(short event) const {
    if (errno == EINTR) return;
    if (errno != EAGAIN) throw Disconnected{};
    while (Clock::now() < end()) {
      // A stop makes the time shorter, so it interrupts the wait, once.
      const bool is_stopped = server_.end_.load() != Clock::time_point::max();
      pollfd fds[] = {{socket_, event, 0}, {server_.stopped_, POLLIN, 0}};
      const auto left = std::chrono::ceil<milliseconds>(end() - Clock::now()).count();
      if (poll(fds, is_stopped ? 1 : 2, int(std::max<int64_t>(left, 0))) > 0 && fds[0].revents) return;
    }
    throw TimeIsUp{};
  }

  // Closing a socket with unread bytes resets the connection, and the client may lose the response. So the
  // rest of what it sends is read and dropped.
  void linger() {
    shutdown(socket_, SHUT_WR);
    deadline_ = std::max(deadline_, Clock::now() + kLeastLingerTime);
    char dropped[kReceiveBytes];
    while (receive_into(dropped, sizeof(dropped)) > 0) {
    }
  }
};

HttpServer::HttpServer(const Limits& limits, Handle handle, Refuse refuse)
    : limits_(limits),
      handle_(std::move(handle)),
      refuse_(std::move(refuse)),
      stopped_(eventfd(0, EFD_CLOEXEC)) {}

HttpServer::~HttpServer() {
  if (listener_ >= 0) close(listener_);
  close(stopped_);
}

int HttpServer::bind(const std::string& address, int port) {
  sockaddr_in wanted = {};
  wanted.sin_family = AF_INET;
  wanted.sin_port = htons(port);
  inet_pton(AF_INET, address.c_str(), &wanted.sin_addr);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int yes = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  socklen_t size = sizeof(wanted);
  auto* generic = reinterpret_cast<sockaddr*>(&wanted);
  if (::bind(listener_, generic, size) != 0 || listen(listener_, kWaitingConnections) != 0) return -1;
  getsockname(listener_, generic, &size);
  return ntohs(wanted.sin_port);
}

void HttpServer::serve() {
  while (wait_for_client()) accept_one();
  while (accept_one()) {
  }  // those that the system has accepted for us
  close(listener_);
  listener_ = -1;
  wait_for_threads(0);
}

// False after `stop`.
bool HttpServer::wait_for_client() const {
  pollfd fds[] = {{stopped_, POLLIN, 0}, {listener_, POLLIN, 0}};
  poll(fds, 2, -1);
  return fds[0].revents == 0;
}

// False if no client waits. Waits itself while there are as many connections as allowed.
bool HttpServer::accept_one() {
  wait_for_threads(limits_.connections - 1);
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (socket < 0) {
    const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    const bool may_go_on = is_short || errno == ECONNABORTED || errno == EINTR;
    if (is_short) std::this_thread::sleep_for(milliseconds(10));  // until another connection ends
    return may_go_on;
  }
  change_threads(1);
  try {
    std::thread([this, socket] {
      serve_connection(socket);
      change_threads(-1);
    }).detach();
  } catch (const std::system_error&) {  // the system allows no more threads
    close(socket);
    change_threads(-1);
  }
  return true;
}

void HttpServer::change_threads(int change) {
  const std::lock_guard<std::mutex> lock(mutex_);
  threads_ += change;
  ended_.notify_all();  // while this thread holds the mutex: afterwards the server may be gone
}

void HttpServer::wait_for_threads(size_t most) {
  std::unique_lock<std::mutex> lock(mutex_);
  ended_.wait(lock, [&] { return threads_ <= most; });
}

void HttpServer::serve_connection(int socket) {
  ++connections_;
  try {
    Connection connection(*this, socket);
    for (bool is_first = true; connection.serve_one(is_first); is_first = false) {
    }
  } catch (const Disconnected&) {
  } catch (const TimeIsUp&) {
  } catch (const std::bad_alloc&) {  // this connection ends, the others go on
  }
  --connections_;
}

HttpResponse HttpServer::answer(const HttpRequest& request) {
  ++in_flight_;
  auto response = handle_(request);
  --in_flight_;
  return response;
}

void HttpServer::drain() { is_draining_ = true; }

void HttpServer::stop() {
  drain();
  end_ = Clock::now() + kGraceTime;
  const uint64_t one = 1;
  if (write(stopped_, &one, sizeof(one)) < 0) std::terminate();
}
