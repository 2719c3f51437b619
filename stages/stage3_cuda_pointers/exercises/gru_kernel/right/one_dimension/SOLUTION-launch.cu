gru_kernel<<<(B * S + 127) / 128, 128>>>(new_h, from_input, from_h, h, B, S);
