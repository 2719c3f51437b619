#include "package.h"

#include <ATen/Context.h>
#include <ATen/ops/pad_sequence.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>
#include <openssl/evp.h>
#include <torch/headeronly/version.h>

#include <charconv>
#include <fstream>
#include <sstream>

namespace {

// The metadata that export.py writes. The number grows when a program cannot read older packages.
constexpr const char* kFormat = "1";

constexpr const char* kChecksums = "SHA256SUMS";  // beside the package, in the format of sha256sum

// The SHA-256 of a file in hexadecimal digits. Throws Failure if the file cannot be read.
std::string checksum_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> hash(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr);
  std::vector<char> part(1 << 16);
  while (file.read(part.data(), part.size()), file.gcount() > 0)
    EVP_DigestUpdate(hash.get(), part.data(), file.gcount());
  if (!file.eof()) throw Failure(kNotFound, path.string(), " cannot be read");
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(hash.get(), digest, &length);
  std::string text;
  for (unsigned k = 0; k < length; ++k) {
    text += "0123456789abcdef"[digest[k] >> 4];
    text += "0123456789abcdef"[digest[k] & 15];
  }
  return text;
}

// The checksums in a file of sha256sum by the names of the files.
std::unordered_map<std::string, std::string> read_checksums(const std::filesystem::path& path) {
  std::unordered_map<std::string, std::string> checksums;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.size() > 66) checksums[line.substr(66)] = line.substr(0, 64);  // two characters between them
  return checksums;
}

// Calls a function of torch. Its errors are long: the first line says what happened.
template <typename Function>
auto with_short_errors(const std::string& what, const Function& function) {
  try {
    return function();
  } catch (const Failure&) {
    throw;
  } catch (const std::exception& error) {
    const std::string_view message = error.what();
    throw Failure(kBadRequest, what, ": ", message.substr(0, message.find('\n')));
  }
}

// Whether this CPU has the vector instructions that the package was compiled for, such as "AVX512
// AVX512_VNNI".
bool has_instructions(const std::string& names) {
#if defined(__x86_64__)
  if (names.find("AVX2") != std::string::npos && !__builtin_cpu_supports("avx2")) return false;
  if (names.find("AVX512") != std::string::npos && !__builtin_cpu_supports("avx512f")) return false;
  if (names.find("VNNI") != std::string::npos && !__builtin_cpu_supports("avx512vnni")) return false;
#endif
  return true;
}

}  // namespace

Package::Package(const std::filesystem::path& path) : path_(path) {
  if (!std::filesystem::is_regular_file(path_)) throw Failure(kNotFound, path_.string(), " does not exist");
  check_file(path_.filename());
  read_metadata();
  choose_device(metadata_["AOTI_DEVICE_KEY"]);
  features = number("features");
  state_size = number("state_size");
  classes = number("classes");
  max_batch = number("max_batch");
  max_length = number("max_length");
  load_operators();
  load_model();
}

// A damaged file is found before it is loaded: the loader would crash on it, or the model return other
// scores.
void Package::check_file(const std::filesystem::path& name) const {
  const auto file = path_.parent_path() / name, sums = path_.parent_path() / kChecksums;
  if (!std::filesystem::is_regular_file(file)) throw Failure(kNotFound, file.string(), " does not exist");
  if (!std::filesystem::is_regular_file(sums))
    throw Failure(kNotFound, sums.string(), " does not exist: export the package again");
  const auto checksums = read_checksums(sums);
  const auto found = checksums.find(name.string());
  if (found == checksums.end()) throw Failure(kBadRequest, sums.string(), " has no line for ", name.string());
  if (found->second != checksum_of(file))
    throw Failure(kBadRequest, file.string(), " is damaged: its checksum is not the one in ", kChecksums);
}

void Package::read_metadata() {
  const std::string what = path_.string() + " is not a package that torch " TORCH_VERSION " can read";
  metadata_ = with_short_errors(what, [&] {
    return torch::inductor::AOTIModelPackageLoader::load_metadata_from_package(path_.string(), "model");
  });
  auto refuse_unless = [&](bool fits, const auto&... reason) {
    if (!fits) throw Failure(kBadRequest, path_.string(), " ", reason...);
  };
  const std::string format = metadata_["format"], version = metadata_["torch"];
  refuse_unless(!format.empty(), "was not written by export.py of this stage: its metadata has no format");
  refuse_unless(format == kFormat, "has format ", format, ", but this program reads format ", kFormat,
                ": export it again");
  refuse_unless(version == TORCH_VERSION, "is for torch ", version, ", but this program has " TORCH_VERSION,
                ": export it again, or build the program with torch ", version);
  const std::string instructions = metadata_["AOTI_CPU_ISA"];
  refuse_unless(has_instructions(instructions), "was compiled for a CPU with ", instructions,
                ", which this one lacks");
}

// The compiled code runs on one kind of device: the one that the model was on when it was exported.
void Package::choose_device(const std::string& kind) {
  if (kind == "cpu") return;
  const std::string what = path_.string() + " is for the device '" + kind + "', ";
  if (kind != "cuda") throw Failure(kBadRequest, what, "but this program runs on CPUs and CUDA GPUs");
  if (!at::globalContext().hasCUDA()) throw Failure(kBadRequest, what, "and torch finds no GPU here");
  device_ = at::Device(at::kCUDA, 0);
}

int64_t Package::number(const char* name) const {
  const auto found = metadata_.find(name);
  const std::string text = found == metadata_.end() ? "" : found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1)
    throw Failure(kBadRequest, path_.string(), " has '", text, "' for ", name, " in its metadata");
  return value;
}

void Package::load_operators() {
  const auto name = std::filesystem::path(metadata_["operators"]).filename();
  check_file(name);
  const auto library = path_.parent_path() / name;
  // The library is also a module of Python, so one of its functions, PyInit__C, calls Python. RTLD_LAZY looks
  // up a function when it is first called, and the program never calls this one.
  if (!dlopen(std::filesystem::absolute(library).c_str(), RTLD_LAZY | RTLD_LOCAL))
    throw Failure(kBadRequest, "the operators of ", path_.string(), " cannot be loaded: ", dlerror());
}

void Package::load_model() {
  with_short_errors(path_.string() + " cannot be loaded", [&] {
    loader_ = std::make_unique<torch::inductor::AOTIModelPackageLoader>(path_.string(), "model");
    const auto shape = predict({{at::zeros({1, features}), first_state()}})[0].scores.sizes();
    if (shape != at::IntArrayRef{classes})
      throw Failure(kBadRequest, path_.string(), " returns scores of shape ", shape, ", expected [", classes,
                    "]");
  });
}

State Package::first_state() const { return {at::zeros({state_size}), at::zeros({state_size})}; }

std::vector<Prediction> Package::predict(const std::vector<Sequence>& batch) {
  const c10::InferenceMode no_gradients;
  std::vector<at::Tensor> steps, h, cell;
  std::vector<int64_t> lengths;
  for (const auto& sequence : batch) {
    steps.push_back(sequence.steps);
    lengths.push_back(sequence.steps.size(0));
    h.push_back(sequence.state.h);
    cell.push_back(sequence.state.cell);
  }
  // (B,T,I) with the longest T; the operator keeps the state of a row past its length.
  std::vector<at::Tensor> arguments = {at::pad_sequence(steps, /*batch_first=*/true), at::tensor(lengths),
                                       at::stack(h), at::stack(cell)};
  for (auto& argument : arguments) argument = argument.to(device_);
  auto results = loader_->run(arguments);
  for (auto& result : results) result = result.cpu();  // one copy for the whole batch; waits for a GPU
  std::vector<Prediction> predictions;
  for (int64_t row = 0; row < int64_t(batch.size()); ++row)
    predictions.push_back({results[0][row], {results[1][row], results[2][row]}});
  return predictions;
}
