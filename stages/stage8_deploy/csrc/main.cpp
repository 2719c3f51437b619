// lltm_serve: predictions of a packaged model, without Python.
#include <ATen/Parallel.h>
#include <malloc.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <thread>

#include "options.h"
#include "run.h"
#include "server.h"

namespace {

constexpr const char* kUsage = R"(lltm_serve: predictions of a packaged model, without Python

  lltm_serve run PACKAGE INPUT OUTPUT
      INPUT: JSON lines, each {"steps": [[...], ...]}, or an array (N, T, I) of float32 in a .npy file
      OUTPUT: JSON lines, each {"label": 3, "scores": [...], "steps": 8}
  lltm_serve serve PACKAGE [OPTION NUMBER ...]
      POST /predict, GET /health, GET /ready, GET /metrics on 127.0.0.1
      SIGTERM and SIGINT finish what was accepted; a second one ends the time of --drain-ms
)";

const std::map<std::string, Options::Range> kServeOptions = {
    {"--port", {8080, 0, 65535}},              // 0: one that is free
    {"--max-batch", {32, 1, 1024}},            // sequences in a call of the model
    {"--max-delay-ms", {0, 0, 10000}},         // how long the first sequence of a batch waits for others
    {"--max-queue", {256, 1, 100000}},         // sequences that wait; one more is refused with 503
    {"--timeout-ms", {2000, 1, 600000}},       // from a request to its prediction, else 504
    {"--max-streams", {1000, 1, 1000000}},     // streams at a time
    {"--stream-expiry-s", {300, 1, 1000000}},  // after the last request of a stream
    {"--max-body-kb", {1024, 1, 1000000}},     // of a request, else 413
    {"--receive-s", {5, 1, 600}},              // for a whole request, else 408
    {"--keep-alive-s", {5, 0, 3600}},          // between two requests of a connection; 0: one for each
    {"--drain-ms", {0, 0, 600000}},            // after SIGTERM, for a balancer to see that /ready is 503
    {"--connections", {1024, 1, 100000}},      // at a time; others wait
    {"--threads", {1, 1, 1024}},               // of the model
};

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 3) throw Failure(kBadRequest, "run takes PACKAGE INPUT OUTPUT");
  Package package(arguments[0]);
  run_file(package, arguments[1], arguments[2]);
  return 0;
}

ServerLimits limits_of(const Options& options, const Package& package) {
  using std::chrono::milliseconds, std::chrono::seconds;
  ServerLimits limits;
  limits.batcher = {size_t(std::min(options["--max-batch"], package.max_batch)),
                    size_t(options["--max-queue"]), milliseconds(options["--max-delay-ms"]),
                    milliseconds(options["--timeout-ms"])};
  limits.streams = {size_t(options["--max-streams"]), seconds(options["--stream-expiry-s"])};
  limits.http = {size_t(options["--max-body-kb"] * 1024), size_t(options["--connections"]),
                 seconds(options["--receive-s"]), seconds(options["--keep-alive-s"])};
  return limits;
}

// As many open files as the system allows: each connection is one.
void raise_file_limit() {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// By default, glibc raises the size from which a block is returned to the system as soon as it is freed, and
// each thread keeps free memory of its own: after many large requests, gigabytes that no other request uses.
void return_memory() {
  mallopt(M_MMAP_THRESHOLD, 256 * 1024);
  mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
  mallopt(M_ARENA_MAX, 8);
}

int serve(const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw Failure(kBadRequest, "serve takes PACKAGE and options");
  Options options(kServeOptions);
  options.parse({arguments.begin() + 1, arguments.end()});
  // Blocked in this thread and in all that it starts, so that sigwait below gets the signal.
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  raise_file_limit();
  return_memory();
  at::set_num_threads(options["--threads"]);

  Package package(arguments[0]);
  PredictionServer server(package, limits_of(options, package));
  const int port = server.bind("127.0.0.1", options["--port"]);
  std::thread thread([&] { server.serve(); });
  std::printf("lltm_serve: listening on http://127.0.0.1:%d\n", port);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&stop_signals, &signal);
  server.drain();
  const auto drain_ms = options["--drain-ms"];
  const timespec drain_time = {drain_ms / 1000, drain_ms % 1000 * 1'000'000};
  sigtimedwait(&stop_signals, nullptr, &drain_time);
  server.stop();
  thread.join();
  std::printf("lltm_serve: stopped; all accepted requests are answered\n");
  return 0;
}

}  // namespace

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  try {
    if (!arguments.empty() && arguments[0] == "run") return run({arguments.begin() + 1, arguments.end()});
    if (!arguments.empty() && arguments[0] == "serve") return serve({arguments.begin() + 1, arguments.end()});
    std::fputs(kUsage, stderr);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lltm_serve: %s\n", error.what());
    return 1;
  }
}
