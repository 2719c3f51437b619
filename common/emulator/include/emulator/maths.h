#pragma once
#include <math.h>
#include <cmath>
