// What both files know.
#pragma once

int number();
