// A package of AOTInductor, with the library of operators beside it.
#pragma once

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sequence.h"

class Package {
 public:
  // Loads the package and runs it once. Throws Failure with one line if the package is not for this program.
  explicit Package(const std::filesystem::path& path);

  int64_t features, state_size, classes;  // I, S and C
  int64_t max_batch, max_length;          // the largest B and T that the model was exported for

  // Throws Failure unless `steps` has the shape (T, I), with 1 to max_length steps, and finite numbers.
  void check(const at::Tensor& steps) const;
  State first_state() const;
  // One call of the model for all sequences, at most max_batch. Not for several threads at a time.
  std::vector<Prediction> predict(const std::vector<Sequence>& batch);

 private:
  std::filesystem::path path_;
  std::unordered_map<std::string, std::string> metadata_;
  std::unique_ptr<torch::inductor::AOTIModelPackageLoader> loader_;
  at::Device device_ = at::kCPU;  // the model's; sequences and predictions are CPU tensors

  void read_metadata();
  void choose_device(const std::string& kind);
  int64_t number(const char* name) const;
  void load_operators();
  void load_model();
};
