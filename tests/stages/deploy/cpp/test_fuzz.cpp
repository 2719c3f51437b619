// Mutated requests through the real parsers of HTTP and JSON. LLTM_FUZZ_INPUTS and LLTM_FUZZ_SEED choose how
// many and which.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

#include "http.h"
#include "json.h"
#include "status.h"

namespace {

using namespace std::chrono_literals;

constexpr Sizes kSizes = {2, 4, 3, 8, 16};
const HttpServer::Limits kLimits = {4096, 1, 5s, 5s};

const std::vector<std::string> kBodies = {
    R"({"steps": [[1, -2.5e3], [0, 1e30]]})",
    R"({"steps": [[1, 2]], "stream": "a\u00e9\n", "start": true, "end": false})",
    R"({"steps": [[1, 2, [3, {"a": null}]]], "other": {"deep": [[[[1]]]]}})",
    R"([{"steps": []}, "text", 18446744073709551615, -9223372036854775808])",
};

const std::vector<std::string> kHeads = {
    "POST /predict HTTP/1.1\r\nHost: here\r\nContent-Length: %\r\n\r\n",
    "POST /predict?a=b HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: %\r\n\r\n",
    "POST /predict HTTP/1.1\r\nHost: here\r\nExpect: 100-continue\r\nContent-Length: %\r\n\r\n",
    "GET /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n",
    "POST /predict HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;name=\"value\"\r\n{\"st\r\n0\r\nTrailer: "
    "a\r\n\r\n",
};

// What mutations insert: the characters and words that mean something to a parser.
const std::vector<std::string> kWords = {
    "\r\n",
    "\n",
    "\r\n\r\n",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\\u",
    ":",
    ",",
    "Content-Length: 3\r\n",
    "0",
    "-",
    "1e999",
    "null",
    std::string(1, '\0'),
    "\xff",
    ";",
    "\t",
    " ",
    "+1",
    "0x10",
    "Content-Length: 3, 3\r\n",
    "true",
    "1e-9",
    "chunked",
    "\xc3",
    "FFFFFF",
    "NaN",
    "'",
    "//",
    "%00",
    "[[[",
    "]]]]",
    "Transfer-Encoding: chunked\r\n",
};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  // One to three requests, one after the other, with up to five changes.
  std::string next() {
    std::string text;
    for (size_t k = below(3) + 1; k > 0; --k) text += request();
    for (size_t k = below(6); k > 0; --k) change(text);
    return text;
  }

  std::string body() {
    std::string text =
        kBodies[std::min(below(kBodies.size()), below(kBodies.size()))];  // the valid ones are first
    for (size_t k = below(3); k > 0; --k) change(text);
    return text;
  }

 private:
  std::mt19937_64 random_;

  size_t below(size_t count) { return random_() % count; }

  std::string request() {
    std::string head = kHeads[below(kHeads.size())];
    const auto place = head.find('%');
    if (place == head.npos) return head;
    const std::string content = body();
    return head.replace(place, 1, std::to_string(content.size())) + content;
  }

  void change(std::string& text) {
    const size_t place = below(text.size() + 1),
                 length = below(std::min<size_t>(text.size() - place, 20) + 1);
    switch (below(6)) {
      case 0:
        text.insert(place, kWords[below(kWords.size())]);
        break;
      case 1:
        text.erase(place, length);
        break;
      case 2:
        text.insert(place, text.substr(place, length));
        break;
      case 3:
        text.resize(place);
        break;
      case 4:
        text.insert(place, std::string(below(300), "[{\"0 "[below(5)]));
        break;
      default:
        if (place < text.size()) text[place] ^= char(1 << below(8));
    }
  }
};

size_t from_environment(const char* name, size_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// What a server sends for these bytes, if no more follow.
std::string answers_to(HttpServer& server, const std::string& sent) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) throw std::runtime_error("no sockets");
  EXPECT_EQ(write(ends[0], sent.data(), sent.size()), ssize_t(sent.size()));
  shutdown(ends[0], SHUT_WR);
  server.serve_connection(ends[1]);
  std::string received;
  char part[4096];
  for (ssize_t count; (count = read(ends[0], part, sizeof(part))) > 0;) received.append(part, count);
  close(ends[0]);
  return received;
}

// Whether a text is a number of whole responses. Their bodies here are "{}".
bool is_responses(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find("\r\n\r\n");
    if (!text.starts_with("HTTP/1.1 ") || end == text.npos) return false;
    const bool has_body = text.substr(9, 3) != "100";
    text.remove_prefix(end + 4);
    if (has_body && !text.starts_with("{}")) return false;
    if (has_body) text.remove_prefix(2);
  }
  return true;
}

TEST(Fuzz, EveryInputIsAnsweredOrRefused) {
  int64_t accepted = 0, refused = 0, malformed = 0;
  HttpServer server(
      kLimits,
      [&](const HttpRequest& request) -> HttpResponse {
        const int status = status_of([&] { parse_request(request.body, kSizes); });
        ++(status == 200 ? accepted : refused);
        return {status, "{}"};
      },
      [&](int status, const std::string&) -> HttpResponse {
        return ++malformed, HttpResponse{status, "{}"};
      });
  Mutator mutator(from_environment("LLTM_FUZZ_SEED", 1));
  const size_t count = from_environment("LLTM_FUZZ_INPUTS", 20'000);
  for (size_t k = 0; k < count; ++k) {
    const std::string input = mutator.next();
    const std::string received = answers_to(server, input);
    ASSERT_TRUE(is_responses(received)) << "input " << k << ": " << input << "\nanswers: " << received;
  }
  std::printf("%zu inputs: %ld bodies accepted, %ld refused, %ld requests malformed\n", count, accepted,
              refused, malformed);
  EXPECT_GT(accepted, count / 20);
  EXPECT_GT(refused, count / 20);
  EXPECT_GT(malformed, count / 20);
  EXPECT_EQ(server.connections() + server.requests_in_flight(), 0);
}

TEST(Fuzz, EveryBodyIsARequestOrAFailure) {
  Mutator mutator(from_environment("LLTM_FUZZ_SEED", 2));
  for (size_t k = from_environment("LLTM_FUZZ_INPUTS", 20'000); k > 0; --k) {
    const std::string body = mutator.body();
    try {
      const auto request = parse_request(body, kSizes);
      EXPECT_EQ(request.steps.size(1), kSizes.features);
      EXPECT_LE(request.steps.size(0), kSizes.max_length);
      EXPECT_LE(request.stream.size(), 100);
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.status, kBadRequest);
      EXPECT_LT(std::string(failure.what()).size(), 1000) << body;
    }
  }
}

TEST(Fuzz, DepthCostsNoStack) {
  for (const std::string& part : {"[", "{\"steps\":", "{\"steps\":[", "{\"steps\":[["}) {
    std::string body;
    while (body.size() < 10'000'000) body += part;
    EXPECT_EQ(status_of([&] { parse_request(body, kSizes); }), kBadRequest);
  }
}

}  // namespace
