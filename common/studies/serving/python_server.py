"""A minimal server in Python with the same model and requests as stage 8's, to compare it with.

`python -m common.studies.serving.python_server` prints its port. Each connection has a thread; there are no
batches, no limits and no streams.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

from ... import deploy


def make_handler(deployed: deploy.Deployed) -> type[BaseHTTPRequestHandler]:
    """A handler that calls the model for each request."""
    deployed.scores(torch.zeros(1, 8))  # loads the model, before the first request

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # connections for several requests
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            """Answers one request, a whole sequence."""
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            steps = torch.tensor(request["steps"])  # (T, I)
            scores = deployed.scores(steps).tolist()
            answer = {"label": scores.index(max(scores)), "scores": scores, "steps": len(steps)}
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None:
            """Prints nothing."""

    return Handler


def main(device: str = "cpu") -> None:
    """Serves until the process is terminated."""
    torch.set_num_threads(1)
    server = ThreadingHTTPServer(("127.0.0.1", 0), make_handler(deploy.build_package(device)))
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
