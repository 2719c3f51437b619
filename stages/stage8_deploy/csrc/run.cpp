#include "run.h"

#include <fstream>

#include "json.h"
#include "numpy_file.h"

namespace {

// Collects sequences, and writes their predictions whenever a batch is full.
class Writer {
 public:
  Writer(Package& package, std::ostream& out) : package_(package), out_(out) {}

  void add(const at::Tensor& steps) {
    batch_.push_back({steps, package_.first_state()});
    if (int64_t(batch_.size()) == package_.max_batch) flush();
  }

  void flush() {
    if (batch_.empty()) return;
    const auto predictions = package_.predict(batch_);
    for (size_t k = 0; k < batch_.size(); ++k)
      out_ << format_prediction(predictions[k], batch_[k].steps.size(0)) << '\n';
    batch_.clear();
  }

 private:
  Package& package_;
  std::ostream& out_;
  std::vector<Sequence> batch_;
};

void read_array(const std::filesystem::path& path, const Package& package, Writer& writer) {
  const auto array = read_numpy_file(path);
  if (array.dim() != 3)
    throw Failure(kBadRequest, path.string(), " has shape ", array.sizes(), ", expected (N, T, I)");
  for (int64_t n = 0; n < array.size(0); ++n) {
    try {
      package.check(array[n]);
    } catch (const Failure& failure) {
      throw Failure(failure.status, path.string(), ", sequence ", n, ": ", failure.what());
    }
    writer.add(array[n]);
  }
}

void read_lines(const std::filesystem::path& path, const Package& package, Writer& writer) {
  std::ifstream file(path);
  if (!file) throw Failure(kNotFound, path.string(), " cannot be read");
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    try {
      const auto request = parse_request(line, package);
      if (!request.stream.empty()) throw Failure(kBadRequest, "streams are for the server only");
      writer.add(request.steps);
    } catch (const Failure& failure) {
      throw Failure(failure.status, path.string(), ", line ", number, ": ", failure.what());
    }
  }
}

}  // namespace

void run_file(Package& package, const std::filesystem::path& input, const std::filesystem::path& output) {
  std::ofstream out(output);
  if (!out) throw Failure(kBadRequest, output.string(), " cannot be written");
  Writer writer(package, out);
  (input.extension() == ".npy" ? read_array : read_lines)(input, package, writer);
  writer.flush();
  if (!out.flush()) throw Failure(kBadRequest, output.string(), " cannot be written: is the disk full?");
}
