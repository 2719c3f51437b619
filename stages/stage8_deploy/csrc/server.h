// The requests of the server: POST /predict, GET /health, GET /ready, GET /metrics.
#pragma once

#include "batcher.h"
#include "http.h"
#include "json.h"
#include "package.h"
#include "streams.h"

struct ServerLimits {
  Batcher::Limits batcher;
  Streams::Limits streams;
  HttpServer::Limits http;
};

class PredictionServer {
 public:
  PredictionServer(Package& package, const ServerLimits& limits);

  // Returns the port, which the system chooses if `port` is 0. Throws Failure if it is in use.
  int bind(const std::string& host, int port);
  void serve() { http_.serve(); }  // until `stop`, then finishes the requests that were accepted
  void drain() { http_.drain(); }  // /ready answers 503, and each response is the last of its connection
  void stop() { http_.stop(); }

 private:
  Package& package_;
  Streams streams_;
  Batcher batcher_;
  Histogram seconds_;
  StatusCounts responses_;
  HttpServer http_;

  HttpResponse answer(const HttpRequest& request);
  HttpResponse refuse(int status, const std::string& reason);
  HttpResponse route(const HttpRequest& request);
  std::string predict(const std::string& body);
  std::string predict_sequence(const Request& request);
  std::string predict_in_stream(const Request& request);
  std::string metrics() const;
};
