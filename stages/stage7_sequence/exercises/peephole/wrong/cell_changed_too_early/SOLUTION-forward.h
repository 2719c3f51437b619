cell *= sigmoid(z[1] + peepholes[1] * cell);
cell += sigmoid(z[0] + peepholes[0] * cell) * std::tanh(z[2]);
return std::tanh(cell) * sigmoid(z[3] + peepholes[2] * cell);
