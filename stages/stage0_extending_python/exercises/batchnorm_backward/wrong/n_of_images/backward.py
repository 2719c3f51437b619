n = x_hat.size(0)
d_gamma = (d_output * x_hat).sum(CHANNEL)
d_beta = d_output.sum(CHANNEL)
d_input = (d_output - column(d_beta / n) - x_hat * column(slope * d_gamma / n)) * column(gamma / root)
return d_input, d_gamma, d_beta
