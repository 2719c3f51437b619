"""The packages, with their extensions and the function of trials.py that calls each of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from ...errors import UserError


class Package(NamedTuple):
    """A source distribution: its name, its version, and the trials of each of its extensions with kernels."""

    name: str
    version: str
    extensions: dict[str, tuple[str, ...]]

    def trials(self) -> list[tuple[str, str]]:
        """Each extension with each of its trials."""
        return [(extension, trial) for extension, trials in self.extensions.items() for trial in trials]

    def download(self, folder: Path) -> Path:
        """Fetches and unpacks the source distribution into `folder`; raises `UserError` if that fails."""
        options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-binary", ":all:", "--dest", folder)
        command = [sys.executable, "-m", "pip", "download", *options, f"{self.name}=={self.version}"]
        done = subprocess.run(command, env=os.environ | {"FORCE_CUDA": "1"}, capture_output=True, text=True)
        archive = next(folder.glob("*.tar.gz"), None)
        if done.returncode or archive is None:
            raise UserError(f"pip does not fetch {self.name} {self.version}: {done.stderr.strip()[-300:]}")
        shutil.unpack_archive(archive, folder, filter="data")
        archive.unlink()
        return next(path for path in folder.iterdir() if (path / "setup.py").is_file())


PACKAGES = (
    Package(
        "torch_scatter",
        "2.1.2",
        {
            "torch_scatter._scatter_cuda": ("scatter",),
            "torch_scatter._segment_csr_cuda": ("segment_csr",),
            "torch_scatter._segment_coo_cuda": ("segment_coo",),
        },
    ),
    Package(
        "torch_cluster",
        "1.6.3",
        {
            "torch_cluster._knn_cuda": ("knn",),
            "torch_cluster._radius_cuda": ("radius",),
            "torch_cluster._fps_cuda": ("farthest_points",),
            "torch_cluster._nearest_cuda": ("nearest",),
            "torch_cluster._grid_cuda": ("grid",),
            "torch_cluster._graclus_cuda": ("graclus",),
            "torch_cluster._rw_cuda": ("random_walk",),
        },
    ),
    Package(
        "torch_sparse",
        "0.6.9",
        {
            "torch_sparse._spmm_cuda": ("sparse_product",),
            "torch_sparse._convert_cuda": ("compressed_rows",),
            "torch_sparse._diag_cuda": ("diagonal_mask",),
        },
    ),
    Package(
        "torch_spline_conv",
        "1.2.2",
        {
            "torch_spline_conv._basis_cuda": ("spline_basis",),
            "torch_spline_conv._weighting_cuda": ("spline_weighting",),
        },
    ),
    Package(
        "pytorch-fast-transformers",
        "0.4.0",
        {
            "fast_transformers.causal_product.causal_product_cuda": ("causal_product",),
            "fast_transformers.hashing.hash_cuda": ("hashes",),
            "fast_transformers.aggregate.aggregate_cuda": ("aggregate",),
            "fast_transformers.sparse_product.sparse_product_cuda": ("chosen_products",),
            "fast_transformers.local_product.local_product_cuda": ("local_product",),
        },
    ),
    Package(
        "torch-points-kernels", "0.7.0", {"torch_points_kernels.points_cuda": ("nearest_three", "spread_points")}
    ),
    Package("nerfacc", "0.5.3", {"nerfacc.csrc": ("sums_of_rays",)}),
)
