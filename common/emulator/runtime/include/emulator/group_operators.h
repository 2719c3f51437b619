// The operators of cooperative_groups::reduce and of its scans.
#pragma once

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace cooperative_groups {

#define EMULATOR_OPERATOR(name, expression)                       \
  template <typename T>                                           \
  struct name {                                                   \
    constexpr T operator()(T a, T b) const { return expression; } \
  };
EMULATOR_OPERATOR(plus, a + b)
EMULATOR_OPERATOR(less, b < a ? b : a)
EMULATOR_OPERATOR(greater, a < b ? b : a)
EMULATOR_OPERATOR(bit_and, a& b)
EMULATOR_OPERATOR(bit_or, a | b)
EMULATOR_OPERATOR(bit_xor, a ^ b)
#undef EMULATOR_OPERATOR

}  // namespace cooperative_groups
EMULATOR_END
