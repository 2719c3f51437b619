// Prints half of the sum of its arguments. Do not change this file; edit CMakeLists.txt.
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include <cstdio>
#include <cstdlib>

int main(int count, char** words) {
  const auto operation = c10::Dispatcher::singleton().findSchema({"lab::half", ""});
  if (!operation) {
    std::printf("there is no operator lab::half\n");
    return 1;
  }
  at::Tensor numbers = at::zeros({count - 1}, at::kDouble);
  for (int k = 1; k < count; k++) numbers.mutable_data_ptr<double>()[k - 1] = std::atof(words[k]);
  const auto half = operation->typed<at::Tensor(const at::Tensor&)>();
  std::printf("%.17g\n", half.call(numbers).sum().item<double>());
}
