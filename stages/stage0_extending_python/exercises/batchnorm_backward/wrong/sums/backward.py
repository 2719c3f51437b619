d_gamma, d_beta = (d_output * x_hat).sum(CHANNEL), d_output.sum(CHANNEL)
d_input = column(gamma / root) * (d_output - column(d_beta) - x_hat * column(slope * d_gamma))
return d_input, d_gamma, d_beta
