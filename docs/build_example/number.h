#pragma once

#define NUMBER 41
