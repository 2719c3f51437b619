n = x_hat.numel() // x_hat.size(1)
d_gamma, d_beta = (d_output * x_hat).sum(CHANNEL), d_output.sum(CHANNEL)
d_input = column(gamma / root) * (d_output - column(d_beta / n) - x_hat * column(d_gamma / n))
return d_input, d_gamma, d_beta
