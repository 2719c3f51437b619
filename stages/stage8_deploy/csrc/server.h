// The HTTP server: POST /predict, GET /health, GET /metrics.
#pragma once

#include <httplib.h>

#include "batcher.h"
#include "json.h"
#include "package.h"
#include "streams.h"

struct ServerLimits {
  Batcher::Limits batcher;
  Streams::Limits streams;
  size_t body_bytes;                  // the largest body of a request
  size_t connections;                 // at a time; each has a thread
  std::chrono::seconds receive_time;  // for the body of a request, and between two bytes of its head
};

class PredictionServer {
 public:
  PredictionServer(Package& package, const ServerLimits& limits);

  // Returns the port, which the system chooses if `port` is 0. Throws Failure if it is in use.
  int bind(const std::string& host, int port);
  void serve();  // until `stop`, then finishes the requests that were accepted
  void stop() { http_.stop(); }

 private:
  const ServerLimits limits_;
  Package& package_;
  Streams streams_;
  Batcher batcher_;
  Histogram seconds_;
  StatusCounts responses_;
  httplib::Server http_;
  int socket_ = -1;

  std::string read_body(const httplib::ContentReader& read) const;
  std::string predict(const Request& request);
  std::string predict_in_stream(const Request& request);
  std::string metrics() const;
  void add_routes();
};
