// A library of one function.
#include "number.h"

extern "C" int number() { return NUMBER; }
