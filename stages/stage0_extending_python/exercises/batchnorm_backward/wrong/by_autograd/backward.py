n = x_hat.numel() // x_hat.size(1)
with torch.enable_grad():
    x, g = x_hat.detach().requires_grad_(), gamma.detach().requires_grad_()
    b = torch.zeros_like(gamma).requires_grad_()
    mean = x.mean(CHANNEL)
    spread = (x * x_hat).mean(CHANNEL)
    root_of = 1 + slope * (spread - spread.detach())
    output = column(g) * (x - column(mean)) / column(root_of) + column(b)
    output = output + column(g) * (x_hat * 0)
    d_x, d_gamma, d_beta = torch.autograd.grad(output, (x, g, b), d_output)
d_gamma = (d_output * x_hat).sum(CHANNEL)
return d_x / column(root), d_gamma, d_beta
