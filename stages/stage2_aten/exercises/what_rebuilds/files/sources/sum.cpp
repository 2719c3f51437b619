#include "number.h"

int sum() { return number() + 1; }
