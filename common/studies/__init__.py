"""What maintainers record on a GPU: sanitizer, tool comparison, counts by ncu, ablation, wheels."""
