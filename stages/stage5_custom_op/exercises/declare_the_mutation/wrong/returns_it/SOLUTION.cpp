m.def("leak_(Tensor(a!) cell, Tensor share) -> Tensor(a!)");
m.def("leak(Tensor cell, Tensor share, Tensor(a!) lost) -> Tensor");
