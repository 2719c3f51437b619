now = self.clock()
if not hasattr(self, "busy"):
    self.busy = set()
if name in self.busy:
    raise Refused(409)
for key in list(self.streams):
    if key not in self.busy and now - self.streams[key].last_use >= self.expiry:
        self.streams.pop(key)
stream = self.streams.get(name)
if stream is None and not start:
    raise Refused(404)
if stream is None and len(self.busy | self.streams.keys()) >= self.most:
    raise Refused(503)
self.busy.add(name)
try:
    answer, state = compute(self.first_state if start else stream.state)
except Exception:
    self.busy.discard(name)
    raise
self.busy.discard(name)
if end:
    self.streams.pop(name, None)
else:
    self.streams[name] = Stream(state, False, self.clock())
return answer
