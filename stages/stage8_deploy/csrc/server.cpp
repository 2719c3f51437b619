#include "server.h"

#include <sys/socket.h>

#include <sstream>

namespace {

constexpr const char* kJson = "application/json";
constexpr int kWaitingConnections = 1024;  // until a thread accepts them
constexpr int kIdleSeconds = 2;            // between two requests of a connection; a stop may wait as long

void answer_with_error(httplib::Response& response, int status, const std::string& message) {
  response.status = status;
  response.set_content(format_error(message), kJson);
  if (status == kUnavailable) response.set_header("Retry-After", "1");
}

// Some of the request may still arrive. It must not be read as the next request, so the connection ends.
struct UnreadBody : Failure {
  using Failure::Failure;
};

// httplib closes a connection if a response cannot be written to its end.
void answer_and_close(httplib::Response& response, int status, const std::string& message) {
  const std::string text = format_error(message);
  response.status = status;
  response.set_header("Connection", "close");
  response.set_content_provider(text.size(), kJson, [text](size_t, size_t, httplib::DataSink& out) {
    out.write(text.data(), text.size());
    return false;
  });
}

// The message for an error that httplib finds by itself.
std::string describe(int status) {
  if (status == kNotFound) return "the paths are POST /predict, GET /health and GET /metrics";
  return "the request is not valid HTTP, or its head is too long";
}

}  // namespace

PredictionServer::PredictionServer(Package& package, const ServerLimits& limits)
    : limits_(limits),
      package_(package),
      streams_(package.first_state(), limits.streams),
      batcher_([&](const auto& batch) { return package.predict(batch); }, limits.batcher),
      seconds_("lltm_request_seconds", "From the whole request to its response.",
               {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1}) {
  http_.set_read_timeout(limits.receive_time);
  http_.set_write_timeout(limits.receive_time);
  http_.set_tcp_nodelay(true);
  http_.set_keep_alive_max_count(1'000'000);
  http_.set_keep_alive_timeout(kIdleSeconds);
  http_.new_task_queue = [=] { return new httplib::ThreadPool(limits.connections); };
  // httplib's default is SO_REUSEPORT: two servers could listen on one port, and each would get half of the
  // requests.
  http_.set_socket_options([this](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    socket_ = socket;
  });
  add_routes();
}

int PredictionServer::bind(const std::string& host, int port) {
  const int bound = port == 0 ? http_.bind_to_any_port(host) : http_.bind_to_port(host, port) ? port : -1;
  if (bound < 0) throw Failure(kUnavailable, "cannot listen on ", host, ":", port, ": is the port in use?");
  listen(socket_, kWaitingConnections);  // httplib lets only five wait
  return bound;
}

void PredictionServer::serve() { http_.listen_after_bind(); }

void PredictionServer::add_routes() {
  // The handler reads the body itself: httplib limits only the time between two packets, not that for all of
  // them.
  http_.Post("/predict", [this](const auto&, auto& response, const httplib::ContentReader& read) {
    const auto body = read_body(read);
    const auto start = std::chrono::steady_clock::now();
    const auto request = parse_request(body, package_);
    response.set_content(request.stream.empty() ? predict(request) : predict_in_stream(request), kJson);
    seconds_.observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  });
  http_.Get("/health",
            [](const auto&, auto& response) { response.set_content(R"({"status":"ok"})", kJson); });
  http_.Get("/metrics", [this](const auto&, auto& response) {
    response.set_content(metrics(), "text/plain; version=0.0.4");
  });
  http_.set_exception_handler([](const auto&, auto& response, std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const UnreadBody& failure) {
      answer_and_close(response, failure.status, failure.what());
    } catch (const Failure& failure) {
      answer_with_error(response, failure.status, failure.what());
    } catch (const std::exception& error) {
      answer_with_error(response, kInternalError, error.what());
    }
  });
  http_.set_error_handler([](const auto&, auto& response) {
    if (!response.has_header("Content-Type"))
      answer_with_error(response, response.status, describe(response.status));
  });
  http_.set_logger([this](const auto&, const auto& response) { responses_.add(response.status); });
}

// Reads on when the body is too large, and drops it: a client reads its response only after it has sent the
// request.
std::string PredictionServer::read_body(const httplib::ContentReader& read) const {
  const auto deadline = std::chrono::steady_clock::now() + limits_.receive_time;
  auto is_late = [&] { return std::chrono::steady_clock::now() >= deadline; };
  std::string body;
  bool is_too_large = false;
  const bool is_whole = read([&](const char* data, size_t length) {
    is_too_large = is_too_large || body.size() + length > limits_.body_bytes;
    if (!is_too_large) body.append(data, length);
    return !is_late();
  });
  if (is_too_large) throw UnreadBody(kTooLarge, "the request has more than ", limits_.body_bytes, " bytes");
  if (is_whole) return body;
  if (is_late())
    throw UnreadBody(kTooSlow, "the request took longer than ", limits_.receive_time.count(), " s");
  throw UnreadBody(kBadRequest, "the request ended before its Content-Length");
}

std::string PredictionServer::predict(const Request& request) {
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
  write_gauge(out, "lltm_queue_length", "Sequences that wait for the model.", batcher_.waiting());
  write_gauge(out, "lltm_streams", "Streams whose state is kept.", streams_.count());
  return out.str();
}
