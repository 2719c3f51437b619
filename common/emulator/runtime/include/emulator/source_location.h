// std::source_location. The standard library has it only in C++20, but g++ knows the place of a call in
// C++17, too.
#pragma once

#if __cplusplus >= 202002L
#include <source_location>
#else
#include <cstdint>

namespace std {

// In memory the same as the class of C++20, with which the runtime is compiled.
class source_location {
 public:
  // g++ requires these names.
  struct __impl {
    const char *_M_file_name, *_M_function_name;
    unsigned _M_line, _M_column;
  };

  static source_location current(const void* place = __builtin_source_location()) {
    source_location made;
    made.place_ = static_cast<const __impl*>(place);
    return made;
  }
  const char* file_name() const { return place_ ? place_->_M_file_name : ""; }
  const char* function_name() const { return place_ ? place_->_M_function_name : ""; }
  uint_least32_t line() const { return place_ ? place_->_M_line : 0; }
  uint_least32_t column() const { return place_ ? place_->_M_column : 0; }

 private:
  const __impl* place_ = nullptr;
};

}  // namespace std
#endif
