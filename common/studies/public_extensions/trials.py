"""Calls of the packages' kernels, compared with the same result by torch. Shapes: see each reference.

Each function gets the module of an extension, which is empty for an extension that only registers operators.
"""

from __future__ import annotations

import itertools
from types import ModuleType

import torch
from torch import Tensor


def scatter(_: ModuleType) -> None:
    """Reductions of the rows of a matrix, by an index for each row."""
    x, index = torch.randn(70, 33), torch.randint(0, 9, (70,))
    index[:9] = torch.arange(9)
    for name, reduce in {"sum": "sum", "mean": "mean", "min": "amin", "max": "amax"}.items():
        every = index[:, None].expand_as(x)
        want = torch.zeros(9, 33).scatter_reduce(0, every, x, reduce, include_self=False)
        agree(getattr(torch.ops.torch_scatter, f"scatter_{name}")(x, every, 0, None, 9), want)


def segment_csr(_: ModuleType) -> None:
    """Reductions of neighbouring rows; `ends` says where each group begins and ends."""
    x, ends = torch.randn(70, 33), torch.tensor([0, 3, 3, 40, 70])
    for name in ("sum", "mean", "max"):
        groups = [x[begin:end] for begin, end in itertools.pairwise(ends.tolist())]
        want = torch.stack([reduced(group, name) for group in groups])
        agree(getattr(torch.ops.torch_scatter, f"segment_{name}_csr")(x, ends, None), want)
    agree(torch.ops.torch_scatter.gather_csr(x[:4], ends, None), x[:4].repeat_interleave(ends.diff(), 0))


def segment_coo(_: ModuleType) -> None:
    """Reductions of neighbouring rows with the same index."""
    x, index = torch.randn(70, 33), torch.arange(70) // 8
    for name in ("sum", "mean", "max"):
        want = torch.stack([reduced(x[index == k], name) for k in range(9)])
        agree(getattr(torch.ops.torch_scatter, f"segment_{name}_coo")(x, index, None, 9), want)


def reduced(rows: Tensor, how: str) -> Tensor:
    """The reduction of a group of rows; zeros for an empty one."""
    if len(rows) == 0:
        return torch.zeros(rows.size(1))
    return rows.amax(0) if how == "max" else getattr(rows, how)(0)


def knn(_: ModuleType) -> None:
    """The three nearest points of x for each point of y."""
    x, y = torch.randn(50, 3), torch.randn(20, 3)
    rows = torch.ops.torch_cluster.knn(x, y, ends_of(x), ends_of(y), 3, False, 1)
    want = torch.cdist(y, x).topk(3, largest=False).indices
    agree(rows[1].view(20, 3).sort(1).values, want.sort(1).values)


def radius(_: ModuleType) -> None:
    """The points of x within a distance of each point of y."""
    x, y = torch.randn(50, 3), torch.randn(20, 3)
    rows = torch.ops.torch_cluster.radius(x, y, ends_of(x), ends_of(y), 1.0, 50, 1)
    want = (torch.cdist(y, x) < 1).nonzero()
    found = torch.stack(sorted(rows.t(), key=lambda pair: pair.tolist()))
    agree(found, want)


def farthest_points(_: ModuleType) -> None:
    """Each next point is the farthest from those chosen before."""
    x = torch.randn(40, 3)
    chosen = [0]
    for _step in range(9):
        chosen.append(int(torch.cdist(x, x[chosen]).amin(1).argmax()))
    agree(torch.ops.torch_cluster.fps(x, ends_of(x), torch.tensor(0.25), False), torch.tensor(chosen))


def nearest(_: ModuleType) -> None:
    """The nearest point of y for each point of x."""
    x, y = torch.randn(50, 3), torch.randn(7, 3)
    agree(torch.ops.torch_cluster.nearest(x, y, ends_of(x), ends_of(y)), torch.cdist(x, y).argmin(1))


def grid(_: ModuleType) -> None:
    """The number of the cell that a point is in; cells of the first dimension come first."""
    x = 4 * torch.rand(50, 2)
    cells = x.long()
    found = torch.ops.torch_cluster.grid(x, torch.ones(2), torch.zeros(2), torch.full((2,), 4.0))
    agree(found, cells[:, 0] + cells[:, 1] * (1 + 4))


def graclus(_: ModuleType) -> None:
    """A matching of the nodes of a ring: each node is alone or with one neighbour."""
    ends, columns = ring_of_twelve()
    pairs = torch.ops.torch_cluster.graclus(ends, columns, None)
    for label in pairs.unique():
        members = (pairs == label).nonzero().flatten().tolist()
        assert len(members) <= 2, f"{len(members)} nodes have one label"
        assert len(members) == 1 or (members[1] - members[0]) % 12 in (1, 11), "two nodes are not neighbours"


def random_walk(_: ModuleType) -> None:
    """Each step of a walk goes along an edge of a ring."""
    ends, columns = ring_of_twelve()
    nodes, _edges = torch.ops.torch_cluster.random_walk(ends, columns, torch.arange(12), 5, 1.0, 1.0)
    agree(nodes[:, 0], torch.arange(12))
    assert bool((nodes.diff(dim=1).remainder(12).sub(6).abs() == 5).all()), "a step does not follow an edge"


def sparse_product(_: ModuleType) -> None:
    """The product of a sparse matrix in rows and a dense one."""
    dense = torch.randn(40, 30) * (torch.rand(40, 30) < 0.2)
    sparse, x = dense.to_sparse_csr(), torch.randn(30, 33)
    ends, columns, values = sparse.crow_indices(), sparse.col_indices(), sparse.values()
    agree(torch.ops.torch_sparse.spmm_sum(None, ends, columns, values, None, None, x), dense @ x)


def compressed_rows(_: ModuleType) -> None:
    """Where the rows of sorted indices begin and end, and back."""
    rows = torch.randint(0, 30, (200,)).sort().values
    ends = torch.ops.torch_sparse.ind2ptr(rows, 30)
    agree(ends, torch.cat([torch.zeros(1, dtype=torch.long), rows.bincount(minlength=30).cumsum(0)]))
    agree(torch.ops.torch_sparse.ptr2ind(ends, 200), rows)


def diagonal_mask(_: ModuleType) -> None:
    """Which of the elements off the diagonal and on it, in the order of rows, are off it."""
    rows, columns = (1 - torch.eye(9, dtype=torch.long)).nonzero().t()
    agree(
        torch.ops.torch_sparse.non_diag_mask(rows, columns, 9, 9, 0),
        torch.eye(9, dtype=torch.bool).logical_not().flatten(),
    )


def spline_basis(_: ModuleType) -> None:
    """The values of the basis of B-splines at a point add up to one."""
    points, sizes, is_open = torch.rand(50, 2), torch.tensor([5, 4]), torch.tensor([1, 1], dtype=torch.uint8)
    for degree in (1, 2, 3):
        basis, index = torch.ops.torch_spline_conv.spline_basis(points, sizes, is_open, degree)
        agree(basis.sum(1), torch.ones(50))
        assert 0 <= int(index.min()) <= int(index.max()) < 20, "an index is outside of the kernel"


def spline_weighting(_: ModuleType) -> None:
    """The sum over s of basis[e, s] * x[e] @ weight[index[e, s]]."""
    x, weight, basis, index = (
        torch.randn(40, 5),
        torch.randn(20, 5, 7),
        torch.rand(40, 4),
        torch.randint(0, 20, (40, 4)),
    )
    want = torch.einsum("es,ei,esio->eo", basis, x, weight[index])
    agree(torch.ops.torch_spline_conv.spline_weighting(x, weight, basis, index), want)


def causal_product(module: ModuleType) -> None:
    """Each row is a sum over the rows before it: (q @ k.T with zeros above the diagonal) @ v."""
    q, k, v = torch.randn(2, 3, 70, 32), torch.randn(2, 3, 70, 32), torch.randn(2, 3, 70, 32)
    product = torch.zeros(2, 3, 70, 32)
    module.causal_dot_product(q, k, v, product)
    agree(product, (q @ k.transpose(2, 3)).tril() @ v)


def hashes(module: ModuleType) -> None:
    """A bit for each plane: on which side of it a point is."""
    x, planes, found = torch.randn(100, 8), torch.randn(16, 9), torch.zeros(100, dtype=torch.long)
    module.compute_hashes(x, planes, found)
    agree(found, ((x @ planes[:, :8].t() > planes[:, 8]).long() << torch.arange(16)).sum(1))


def aggregate(module: ModuleType) -> None:
    """The sums of the rows of a group, times a factor of the group."""
    x, groups, factors = (
        torch.randn(2, 3, 70, 5),
        torch.randint(0, 9, (2, 3, 70), dtype=torch.int32),
        torch.rand(2, 3, 9),
    )
    sums = torch.zeros(2, 3, 9, 5)
    module.aggregate(x, groups, factors, sums)
    every = groups.long()[..., None].expand_as(x)
    agree(sums, torch.zeros(2, 3, 9, 5).scatter_add(2, every, x) * factors[..., None])


def chosen_products(module: ModuleType) -> None:
    """The products of a query with the keys that were chosen for it."""
    q, k = torch.randn(2, 3, 40, 16), torch.randn(2, 3, 40, 16)
    chosen, products = torch.randint(0, 40, (2, 3, 40, 8)), torch.zeros(2, 3, 40, 8)
    module.sparse_dot_product(q, k, chosen, products)
    agree(products, (q @ k.transpose(2, 3)).gather(3, chosen))


def local_product(module: ModuleType) -> None:
    """The products of a query with the keys around it: L=70 rows, 9 keys, of which the fifth is its own."""
    q, k = torch.randn(2, 3, 70, 16), torch.randn(2, 3, 70, 16)
    mask, lengths = torch.zeros(70, 70), torch.full((2,), 70)
    found = module.local_dot_product(q, k, mask, lengths, 9)
    products = q @ k.transpose(2, 3)
    for j in range(9):
        rows = torch.arange(max(0, 4 - j), min(70, 74 - j))
        agree(found[:, :, rows, j], products[:, :, rows, rows + j - 4])


def nearest_three(module: ModuleType) -> None:
    """The three nearest points of y for each point of x."""
    x, y = torch.randn(2, 40, 3), torch.randn(2, 30, 3)
    distances, index = module.three_nn(x, y)
    want = torch.cdist(x, y).topk(3, largest=False)
    agree(index.long(), want.indices)
    agree(distances, want.values.square())


def spread_points(module: ModuleType) -> None:
    """Points that are far from each other: no point twice."""
    chosen = module.furthest_point_sampling(torch.randn(2, 40, 3), 8).long()
    for row in chosen:
        assert len(row.unique()) == len(row), "a point was chosen twice"


def sums_of_rays(module: ModuleType) -> None:
    """Running sums of the numbers of each ray."""
    counts, x = torch.tensor([5, 0, 40, 17]), torch.rand(62)
    starts = counts.cumsum(0) - counts
    parts = x.split(counts.tolist())
    agree(module.inclusive_sum(starts, counts, x, False, False), torch.cat([part.cumsum(0) for part in parts]))
    agree(module.exclusive_sum(starts, counts, x, False, False), torch.cat([part.cumsum(0) - part for part in parts]))


def ring_of_twelve() -> tuple[Tensor, Tensor]:
    """A graph as compressed rows: node k has edges to its two neighbours, modulo 12."""
    nodes = torch.arange(12)
    return 2 * torch.arange(13), torch.stack([nodes - 1, nodes + 1], 1).remainder(12).flatten()


def ends_of(rows: Tensor) -> Tensor:
    """Where the only example of a batch begins and ends."""
    return torch.tensor([0, len(rows)])


def agree(found: Tensor | tuple[Tensor, ...], want: Tensor) -> None:
    """Raises AssertionError unless two tensors are close; of several results, the first counts."""
    torch.testing.assert_close(found[0] if isinstance(found, tuple) else found, want, rtol=1e-4, atol=1e-4)
