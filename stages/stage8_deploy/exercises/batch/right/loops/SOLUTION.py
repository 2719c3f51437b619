if not requests:
    return []
B, T = len(requests), max(len(steps) for steps, _, _ in requests)
steps = requests[0][0].new_full((B, T, requests[0][0].size(1)), -7.0)
for k, (own, _, _) in enumerate(requests):
    steps[k, : len(own)] = own
lengths = torch.tensor([len(own) for own, _, _ in requests])
try:
    scores, h, cell = model(steps, lengths, torch.stack([r[1] for r in requests]), torch.stack([r[2] for r in requests]))
    return [[scores[k], h[k].clone(), cell[k].clone()] for k in range(B)]
except Exception as error:
    if B == 1:
        return [error]
results = []
for request in requests:
    results += predict_together(model, [request])
return results
