// Thrust's memory: pointers to the device, and vectors on the device and on the host.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda_runtime.h"

namespace thrust {

class system_error : public std::runtime_error {
 public:
  system_error(cudaError_t error, const char* what)
      : std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error)), error_(error) {}
  cudaError_t error() const { return error_; }

 private:
  cudaError_t error_;
};

namespace system {
using thrust::system_error;
}

// Raises an error of CUDA's functions.
inline void check(cudaError_t error, const char* what) {
  if (error) throw system_error(error, what);
}

template <typename T>
class device_ptr;

// An element on the device: the host's reads and writes are copies.
template <typename T>
class device_reference {
 public:
  using value_type = std::remove_const_t<T>;

  explicit device_reference(T* address) : address_(address) {}
  device_reference(const device_reference&) = default;
  operator value_type() const {
    if (emulator::runs_in_kernel()) return *address_;
    value_type value;
    check(cudaMemcpy(&value, address_, sizeof(T), cudaMemcpyDeviceToHost), "a read of device memory");
    return value;
  }
  const device_reference& operator=(const value_type& value) const {
    if (emulator::runs_in_kernel())
      *address_ = value;
    else
      check(cudaMemcpy(address_, &value, sizeof(T), cudaMemcpyHostToDevice), "a write of device memory");
    return *this;
  }
  const device_reference& operator=(const device_reference& other) const { return *this = value_type(other); }
  device_ptr<T> operator&() const { return device_ptr<T>(address_); }
  const device_reference& operator+=(const value_type& value) const {
    return *this = value_type(*this) + value;
  }
  const device_reference& operator-=(const value_type& value) const {
    return *this = value_type(*this) - value;
  }
  const device_reference& operator*=(const value_type& value) const {
    return *this = value_type(*this) * value;
  }
  const device_reference& operator++() const { return *this += value_type(1); }
  const device_reference& operator--() const { return *this -= value_type(1); }

 private:
  T* address_;
};

// A pointer to the device. It is also the iterator of vectors on the device.
template <typename T>
class device_ptr {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_const_t<T>;
  using difference_type = std::ptrdiff_t;
  using reference = device_reference<T>;
  using pointer = device_ptr<T>;

  device_ptr(std::nullptr_t = nullptr) : address_(nullptr) {}
  explicit device_ptr(T* address) : address_(address) {}
  template <typename Other>
  requires(std::is_convertible_v<Other*, T*> && !std::is_same_v<Other, T>) device_ptr(device_ptr<Other> other)
      : address_(other.get()) {}

  T* get() const { return address_; }
  reference operator*() const { return reference(address_); }
  reference operator[](difference_type i) const { return reference(address_ + i); }
  explicit operator bool() const { return address_; }

  device_ptr& operator+=(difference_type n) { return address_ += n, *this; }
  device_ptr& operator-=(difference_type n) { return address_ -= n, *this; }
  device_ptr& operator++() { return *this += 1; }
  device_ptr& operator--() { return *this -= 1; }
  device_ptr operator++(int) { return std::exchange(*this, device_ptr(address_ + 1)); }
  device_ptr operator--(int) { return std::exchange(*this, device_ptr(address_ - 1)); }
  friend device_ptr operator+(device_ptr a, difference_type n) { return a += n; }
  friend device_ptr operator+(difference_type n, device_ptr a) { return a += n; }
  friend device_ptr operator-(device_ptr a, difference_type n) { return a -= n; }

 private:
  T* address_;
};
template <typename T, typename U>
std::ptrdiff_t operator-(device_ptr<T> a, device_ptr<U> b) {
  return a.get() - b.get();
}
template <typename T, typename U>
bool operator==(device_ptr<T> a, device_ptr<U> b) {
  return a.get() == b.get();
}
template <typename T, typename U>
bool operator!=(device_ptr<T> a, device_ptr<U> b) {
  return a.get() != b.get();
}
template <typename T, typename U>
bool operator<(device_ptr<T> a, device_ptr<U> b) {
  return a.get() < b.get();
}

template <typename T>
device_ptr<T> device_pointer_cast(T* address) {
  return device_ptr<T>(address);
}
template <typename T>
T* raw_pointer_cast(device_ptr<T> pointer) {
  return pointer.get();
}
template <typename T>
T* raw_pointer_cast(T* pointer) {
  return pointer;
}
template <typename T>
T& raw_reference_cast(T& reference) {
  return reference;
}

template <typename T>
device_ptr<T> device_malloc(std::size_t count, EMULATOR_HERE) {
  void* memory;
  check(cudaMalloc(&memory, count * sizeof(T), where), "thrust::device_malloc");
  return device_ptr<T>(static_cast<T*>(memory));
}
template <typename T>
void device_free(device_ptr<T> memory, EMULATOR_HERE) {
  check(cudaFree(memory.get(), where), "thrust::device_free");
}

template <typename T>
class device_allocator {
 public:
  using value_type = T;
};

template <typename T, typename Allocator = std::allocator<T>>
class host_vector;

// An array on the device. The host may access each element: every access is a copy.
template <typename T, typename Allocator = device_allocator<T>>
class device_vector {
 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using pointer = device_ptr<T>;
  using const_pointer = device_ptr<const T>;
  using reference = device_reference<T>;
  using const_reference = device_reference<const T>;
  using iterator = device_ptr<T>;
  using const_iterator = device_ptr<const T>;

  device_vector(EMULATOR_HERE) : where_(where) {}
  explicit device_vector(size_type count, EMULATOR_HERE) : device_vector(count, T(), where) {}
  device_vector(size_type count, const T& value, EMULATOR_HERE) : where_(where) { resize(count, value); }
  device_vector(const device_vector& other) : where_(other.where_) { assign(other.begin(), other.end()); }
  device_vector(device_vector&& other) noexcept : where_(other.where_) { swap(other); }
  device_vector(std::initializer_list<T> values, EMULATOR_HERE) : where_(where) {
    assign(values.begin(), values.end());
  }
  template <typename Other>
  device_vector(const std::vector<T, Other>& values, EMULATOR_HERE) : where_(where) {
    assign(values.begin(), values.end());
  }
  template <typename Iterator>
  requires(!std::is_arithmetic_v<Iterator>) device_vector(Iterator first, Iterator last, EMULATOR_HERE)
      : where_(where) {
    assign(first, last);
  }
  ~device_vector() { release(); }

  device_vector& operator=(const device_vector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  device_vector& operator=(device_vector&& other) noexcept { return swap(other), *this; }
  template <typename Other>
  device_vector& operator=(const std::vector<T, Other>& values) {
    return assign(values.begin(), values.end()), *this;
  }
  device_vector& operator=(std::initializer_list<T> values) {
    return assign(values.begin(), values.end()), *this;
  }

  size_type size() const { return size_; }
  size_type capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }
  pointer data() { return pointer(data_); }
  const_pointer data() const { return const_pointer(data_); }
  iterator begin() { return iterator(data_); }
  iterator end() { return iterator(data_ + size_); }
  const_iterator begin() const { return const_iterator(data_); }
  const_iterator end() const { return const_iterator(data_ + size_); }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  reference operator[](size_type i) { return reference(data_ + i); }
  const_reference operator[](size_type i) const { return const_reference(data_ + i); }
  reference front() { return (*this)[0]; }
  reference back() { return (*this)[size_ - 1]; }
  const_reference front() const { return (*this)[0]; }
  const_reference back() const { return (*this)[size_ - 1]; }

  void reserve(size_type count) {
    if (count <= capacity_) return;
    void* memory;
    check(cudaMalloc(&memory, count * sizeof(T), where_), "thrust::device_vector");
    if (size_)
      check(cudaMemcpy(memory, data_, size_ * sizeof(T), cudaMemcpyDeviceToDevice), "thrust::device_vector");
    const size_type size = size_;
    release();
    data_ = static_cast<T*>(memory);
    size_ = size;
    capacity_ = count;
  }
  void resize(size_type count, const T& value = T()) {
    reserve(count);
    if (count > size_) write(size_, std::vector<Stored>(count - size_, Stored{value}));
    size_ = count;
  }
  void push_back(const T& value) {
    if (size_ == capacity_) reserve(size_ ? 2 * size_ : 1);
    resize(size_ + 1, value);
  }
  void pop_back() { size_--; }
  void clear() { size_ = 0; }
  void shrink_to_fit() {}
  void assign(size_type count, const T& value) {
    clear();
    resize(count, value);
  }
  template <typename Iterator>
  requires(!std::is_arithmetic_v<Iterator>) void assign(Iterator first, Iterator last) {
    std::vector<Stored> values;
    for (; first != last; ++first) values.push_back(Stored{T(*first)});
    assign_stored(values);
  }
  template <typename Other>
  void assign(device_ptr<Other> first, device_ptr<Other> last) {
    std::vector<Stored> values(last - first);
    static_assert(std::is_same_v<std::remove_const_t<Other>, T>,
                  "the elements of both vectors have the same type");
    if (!values.empty())
      check(cudaMemcpy(values.data(), first.get(), values.size() * sizeof(T), cudaMemcpyDeviceToHost),
            "thrust::device_vector");
    assign_stored(values);
  }
  iterator erase(iterator first, iterator last) {
    std::vector<T> rest(end() - last, T());
    if (!rest.empty()) {
      check(cudaMemcpy(rest.data(), last.get(), rest.size() * sizeof(T), cudaMemcpyDeviceToHost), "erase");
      check(cudaMemcpy(first.get(), rest.data(), rest.size() * sizeof(T), cudaMemcpyHostToDevice), "erase");
    }
    size_ -= last - first;
    return first;
  }
  iterator erase(iterator place) { return erase(place, place + 1); }
  void swap(device_vector& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

 private:
  struct Stored {  // so that a vector of bool is an array
    T value;
  };

  void assign_stored(const std::vector<Stored>& values) {
    clear();
    reserve(values.size());
    write(0, values);
    size_ = values.size();
  }
  void write(size_type first, const std::vector<Stored>& values) {
    if (!values.empty())
      check(cudaMemcpy(data_ + first, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
            "thrust::device_vector");
  }
  void release() {
    if (data_) cudaFree(data_);
    data_ = nullptr;
    size_ = capacity_ = 0;
  }

  T* data_ = nullptr;
  size_type size_ = 0, capacity_ = 0;
  emulator::Position where_;
};

template <typename T, typename Allocator>
class host_vector : public std::vector<T, Allocator> {
 public:
  using std::vector<T, Allocator>::vector;
  host_vector() = default;
  host_vector(const std::vector<T, Allocator>& values) : std::vector<T, Allocator>(values) {}
  template <typename Other>
  host_vector(const device_vector<T, Other>& values) {
    *this = values;
  }
  template <typename Other>
  host_vector& operator=(const device_vector<T, Other>& values) {
    this->resize(values.size());
    if (values.size())
      check(cudaMemcpy(this->data(), values.data().get(), values.size() * sizeof(T), cudaMemcpyDeviceToHost),
            "thrust::host_vector");
    return *this;
  }
};

template <typename T, typename A, typename B>
bool operator==(const device_vector<T, A>& a, const device_vector<T, B>& b) {
  return host_vector<T>(a) == host_vector<T>(b);
}
template <typename T, typename A, typename B>
bool operator==(const device_vector<T, A>& a, const std::vector<T, B>& b) {
  return host_vector<T>(a) == b;
}
template <typename T, typename A, typename B>
bool operator==(const std::vector<T, A>& a, const device_vector<T, B>& b) {
  return b == a;
}

}  // namespace thrust
