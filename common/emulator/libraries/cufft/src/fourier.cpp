// Cooley and Tukey: a transform of p * m elements is p transforms of m elements, and m of p elements.
// Bluestein: with jk = (j^2 + k^2 - (j - k)^2) / 2, a transform of any size is a convolution, which
// transforms of a power of two compute.
#include "fourier.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace emulator::cufft {
namespace {

constexpr std::size_t kLargestFactor = 61;  // a transform of p elements takes p^2 products

Complex root(std::size_t k, std::size_t size, int sign) {
  return std::polar(1.0, sign * 2 * std::numbers::pi * double(k) / double(size));
}

// Without C++'s treatment of infinities, which takes most of the time.
Complex product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

std::vector<std::size_t> factorise(std::size_t size) {
  std::vector<std::size_t> factors;
  for (std::size_t p = 2; size > 1; p++)
    for (; size % p == 0; size /= p) factors.push_back(p);
  return factors;
}

}  // namespace

Fourier::Fourier(std::size_t size, int sign) : size_(size), factors_(factorise(size)) {
  if (size > 1 && factors_.back() > kLargestFactor) {
    factors_.clear();
    const std::size_t longer = std::bit_ceil(2 * size - 1);
    forward_ = std::make_unique<Fourier>(longer, -1);
    inverse_ = std::make_unique<Fourier>(longer, 1);
    std::vector<Complex> filter(longer);
    for (std::size_t k = 0; k < size; k++) {
      chirp_.push_back(root(k * k % (2 * size), 2 * size, sign));
      filter[k] = filter[(longer - k) % longer] = std::conj(chirp_[k]);
    }
    transformed_chirp_.resize(longer);
    forward_->transform(filter.data(), 1, transformed_chirp_.data());
    return;
  }
  for (std::size_t k = 0; k < size; k++) roots_.push_back(root(k, size, sign));
}

void Fourier::transform(const Complex* from, std::ptrdiff_t step, Complex* to) const {
  if (chirp_.empty())
    divide(size_, from, step, to, 0);
  else
    convolve(from, step, to);
}

void Fourier::divide(std::size_t size, const Complex* from, std::ptrdiff_t step, Complex* to,
                     std::size_t factor) const {
  if (size == 1) {
    *to = *from;
    return;
  }
  const std::size_t p = factors_[factor], m = size / p, scale = size_ / size;
  for (std::size_t j = 0; j < p; j++)
    divide(m, from + std::ptrdiff_t(j) * step, step * std::ptrdiff_t(p), to + j * m, factor + 1);
  Complex column[kLargestFactor];
  for (std::size_t q = 0; q < m; q++) {
    for (std::size_t j = 0; j < p; j++) column[j] = to[j * m + q];
    for (std::size_t r = 0; r < p; r++) {
      const std::size_t k = q + r * m;
      Complex sum = column[0];
      for (std::size_t j = 1; j < p; j++) sum += product(column[j], roots_[j * k % size * scale]);
      to[k] = sum;
    }
  }
}

void Fourier::convolve(const Complex* from, std::ptrdiff_t step, Complex* to) const {
  const std::size_t longer = transformed_chirp_.size();
  std::vector<Complex> padded(longer), transformed(longer);
  for (std::size_t k = 0; k < size_; k++) padded[k] = product(from[std::ptrdiff_t(k) * step], chirp_[k]);
  forward_->transform(padded.data(), 1, transformed.data());
  for (std::size_t k = 0; k < longer; k++) transformed[k] = product(transformed[k], transformed_chirp_[k]);
  inverse_->transform(transformed.data(), 1, padded.data());
  for (std::size_t k = 0; k < size_; k++) to[k] = product(padded[k], chirp_[k]) / double(longer);
}

}  // namespace emulator::cufft
