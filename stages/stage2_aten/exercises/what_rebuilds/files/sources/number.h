// The declaration that both files include.
#pragma once

int number();
