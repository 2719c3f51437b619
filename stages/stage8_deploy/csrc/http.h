// An HTTP/1.1 server: connections, deadlines, and a stop that loses no request. Boost.Beast parses the
// requests.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

struct HttpRequest {
  std::string method, path, body;
};

struct HttpResponse {
  int status;
  std::string body;
  const char* type = "application/json";
};

class HttpServer {
 public:
  struct Limits {
    size_t body_bytes;                  // the largest body of a request
    size_t connections;                 // at a time; each has a thread
    std::chrono::seconds receive_time;  // from the first byte of a request to its last
    std::chrono::seconds keep_alive;    // between two requests of a connection; 0: one request for each
  };
  using Handle = std::function<HttpResponse(const HttpRequest&)>;                     // must not throw
  using Refuse = std::function<HttpResponse(int status, const std::string& reason)>;  // what is not a request

  HttpServer(const Limits& limits, Handle handle, Refuse refuse);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;

  // Listens on an address such as 127.0.0.1. Returns the port, which the system chooses if `port` is 0, or
  // -1.
  int bind(const std::string& address, int port);
  void serve();  // until `stop`; then answers the requests that were accepted, and returns

  void
  drain();  // from now on, each response is the last of its connection; new connections are still accepted
  void stop();  // no new connections; a request that is still arriving has kGraceTime to be whole
  bool is_draining() const { return is_draining_; }
  int64_t connections() const { return connections_; }
  int64_t requests_in_flight() const { return in_flight_; }

  void serve_connection(int socket);  // answers the requests of one connection, and closes it

  static constexpr std::chrono::seconds kGraceTime{1};

 private:
  using Clock = std::chrono::steady_clock;
  class Connection;

  const Limits limits_;
  const Handle handle_;
  const Refuse refuse_;
  std::mutex mutex_;  // of `threads_`
  size_t threads_ = 0;
  std::condition_variable ended_;
  std::atomic<int64_t> connections_ = 0, in_flight_ = 0;
  std::atomic<bool> is_draining_ = false;
  std::atomic<Clock::time_point> end_ = Clock::time_point::max();  // of all receiving and sending
  int listener_ = -1;
  int stopped_;  // an eventfd, readable after `stop`

  bool wait_for_client() const;
  bool accept_one();
  void change_threads(int change);
  void wait_for_threads(size_t most);  // until there are at most so many
  HttpResponse answer(const HttpRequest& request);
};
