#include "server.h"

#include <algorithm>
#include <sstream>

namespace {

constexpr const char* kPaths = "the paths are POST /predict, GET /health, GET /ready and GET /metrics";

// Beyond the time limit, too: how much longer than the limit a request can take must be visible.
std::vector<double> bounds_for(std::chrono::duration<double> timeout) {
  std::vector<double> bounds = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5};
  while (bounds.back() < 2 * timeout.count()) bounds.push_back(2 * bounds.back());
  return bounds;
}

// Adds the time of a request to a histogram, whether it succeeds or fails.
class Timer {
 public:
  explicit Timer(Histogram& seconds) : seconds_(seconds) {}
  ~Timer() {
    seconds_.observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count());
  }

 private:
  Histogram& seconds_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

PredictionServer::PredictionServer(Package& package, const ServerLimits& limits)
    : package_(package),
      streams_(package.first_state(), limits.streams),
      batcher_([&](const auto& batch) { return package.predict(batch); }, limits.batcher),
      seconds_("lltm_request_seconds", "From the whole request to its response, failures included.",
               bounds_for(limits.batcher.timeout)),
      http_(
          limits.http, [this](const auto& request) { return answer(request); },
          [this](int status, const std::string& reason) { return refuse(status, reason); }) {}

int PredictionServer::bind(const std::string& host, int port) {
  const int bound = http_.bind(host, port);
  if (bound < 0) throw Failure(kUnavailable, "cannot listen on ", host, ":", port, ": is the port in use?");
  return bound;
}

HttpResponse PredictionServer::answer(const HttpRequest& request) {
  try {
    const auto response = route(request);
    responses_.add(response.status);
    return response;
  } catch (const Failure& failure) {
    return refuse(failure.status, failure.what());
  } catch (const std::exception& error) {
    return refuse(kInternalError, error.what());
  }
}

HttpResponse PredictionServer::refuse(int status, const std::string& reason) {
  responses_.add(status);
  return {status, format_error(reason)};
}

HttpResponse PredictionServer::route(const HttpRequest& request) {
  if (request.method == "POST" && request.path == "/predict") return {200, predict(request.body)};
  if (request.method != "GET" && request.method != "HEAD") throw Failure(kNotFound, kPaths);
  if (request.path == "/health") return {200, R"({"status":"ok"})"};
  if (request.path == "/ready") {
    if (http_.is_draining()) throw Failure(kUnavailable, "the server is stopping");
    return {200, R"({"status":"ok"})"};
  }
  if (request.path == "/metrics") return {200, metrics(), "text/plain; version=0.0.4"};
  throw Failure(kNotFound, kPaths);
}

std::string PredictionServer::predict(const std::string& body) {
  const Timer timer(seconds_);
  const auto request = parse_request(body, package_);
  return request.stream.empty() ? predict_sequence(request) : predict_in_stream(request);
}

std::string PredictionServer::predict_sequence(const Request& request) {
  const auto prediction = batcher_.run({request.steps, package_.first_state()});
  return format_prediction(prediction, request.steps.size(0));
}

std::string PredictionServer::predict_in_stream(const Request& request) {
  auto turn = request.start ? streams_.begin(request.stream) : streams_.resume(request.stream);
  const auto prediction = batcher_.run({request.steps, turn.state()});
  const int64_t steps = turn.steps() + request.steps.size(0);
  const auto response = format_prediction(prediction, steps);
  if (request.end)
    turn.end();
  else
    turn.keep(prediction.state, steps);
  return response;
}

std::string PredictionServer::metrics() const {
  std::ostringstream out;
  responses_.write(out);
  seconds_.write(out);
  batcher_.batch_sizes().write(out);
  write_gauge(out, "lltm_connections", "Open connections.", http_.connections());
  write_gauge(out, "lltm_requests_in_flight", "Requests that have arrived and have no response yet.",
              http_.requests_in_flight());
  write_gauge(out, "lltm_queue_length", "Sequences that wait for the model.", batcher_.waiting());
  write_gauge(out, "lltm_streams", "Streams whose state is kept.", streams_.count());
  return out.str();
}
