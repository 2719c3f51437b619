"""Connections of the server: unclear lengths, several requests at once, stops behind a balancer, gauges, memory."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from common.check.deploy import start_server
from common.deploy import Server, wait_until
from support.serving import DEPLOY_MARKS, receive, send_raw, zeros

pytestmark = DEPLOY_MARKS
BODY = json.dumps(zeros()).encode()
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
CLIENTS = 30


def post(*fields: bytes, body: bytes = BODY, version: bytes = b"1.1") -> bytes:
    """The bytes of a request with these fields of its head."""
    return b"POST /predict HTTP/" + version + b"\r\nHost: here\r\n" + b"".join(fields) + b"\r\n" + body


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server() as server:
        yield server


def statuses(text: str) -> list[int]:
    """The statuses of the responses in what a server sent."""
    return [int(found) for found in re.findall(r"HTTP/1\.1 (\d+) ", text)]


REFUSED = {
    "two lengths": (post(LENGTH, b"Content-Length: 3\r\n"), 400),
    "the same length twice": (post(LENGTH, LENGTH), 400),
    "a list of lengths": (post(b"Content-Length: 3, 3\r\n"), 400),
    "a length and chunks": (post(LENGTH, CHUNKED, body=CHUNKS), 400),
    "chunks and a length": (post(CHUNKED, LENGTH, body=CHUNKS), 400),
    "a negative length": (post(b"Content-Length: -1\r\n"), 400),
    "a length with a sign": (post(b"Content-Length: +%d\r\n" % len(BODY)), 400),
    "a length in words": (post(b"Content-Length: ten\r\n"), 400),
    "a length that no integer holds": (post(b"Content-Length: 99999999999999999999999\r\n"), 400),
    "another encoding": (post(b"Transfer-Encoding: xchunked\r\n", body=CHUNKS), 400),
    "two encodings": (post(b"Transfer-Encoding: gzip, chunked\r\n", body=CHUNKS), 400),
    "two fields of encodings": (post(b"Transfer-Encoding: identity\r\n", CHUNKED, body=CHUNKS), 400),
    "chunks in HTTP/1.0": (post(CHUNKED, body=CHUNKS, version=b"1.0"), 400),
    "a bad chunk": (post(CHUNKED, body=b"5;\r\nhello0\r\n\r\n"), 400),
    "a space before the colon": (post(b"Content-Length : 3\r\n"), 400),
    "a NUL": (post(LENGTH, b"A: \0\r\n"), 400),
    "newlines without returns": (post(LENGTH).replace(b"\r\n", b"\n"), 400),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "no length": (post(), 411),
    "a long head": (post(LENGTH, b"A: " + b"b" * 10_000 + b"\r\n"), 431),
    "a long line of a chunk": (post(CHUNKED, body=b"5;" + b"a" * 40_000), 400),
    "a body that ends early": (post(b"Content-Length: 1000\r\n"), 400),
}


@pytest.mark.parametrize(("request_", "status"), REFUSED.values(), ids=REFUSED)
def test_an_unclear_request_is_refused_at_once(request_, status, server):
    """A proxy may read such a request differently: what follows must not be read as the next one."""
    start = time.monotonic()
    connection = send_raw(server, request_)
    if status == 400 and request_.endswith(BODY):
        connection.shutdown(socket.SHUT_WR)
    answer = receive(connection)
    assert statuses(answer) == [status]
    assert "\r\nConnection: close\r\n" in answer
    assert time.monotonic() - start < 4  # the client may send for as long as a request may take; it has ended by then


def test_bytes_after_a_request_are_the_next_request(server):
    answer = receive(send_raw(server, post(LENGTH) + b"smuggled" + b"GET /health HTTP/1.1\r\n\r\n"))
    assert statuses(answer) == [200, 400]


@pytest.mark.parametrize("cut", [1, 40, 90])
def test_requests_sent_at_once_are_all_answered_in_order(cut, server):
    """The last of them arrives in two parts."""
    lengths = [1, 2, 3, 4]
    bodies = [json.dumps({"steps": [[0.0] * 8] * T}).encode() for T in lengths]
    data = b"".join(post(b"Content-Length: %d\r\n" % len(body), body=body) for body in bodies)
    connection = send_raw(server, data[:-cut])
    time.sleep(0.1)
    connection.sendall(data[-cut:] + b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
    answer = receive(connection)
    assert [int(steps) for steps in re.findall(r'"steps":(\d+)', answer)] == lengths
    assert statuses(answer) == [200] * 5


def test_other_ways_to_send_a_request(server):
    assert statuses(receive(send_raw(server, post(CHUNKED, b"Connection: close\r\n", body=CHUNKS)))) == [200]
    assert statuses(receive(send_raw(server, post(LENGTH, version=b"1.0")))) == [200]
    head = receive(send_raw(server, b"HEAD /health HTTP/1.0\r\n\r\n"))
    assert "Content-Length: 15\r\n" in head
    assert head.endswith("\r\n\r\n")


def test_a_client_that_waits_for_continue(server):
    connection = send_raw(server, post(LENGTH, b"Expect: 100-continue\r\nConnection: close\r\n", body=b""))
    assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
    connection.sendall(BODY)
    assert statuses(receive(connection)) == [200]


def test_keep_alive_is_an_option():
    with start_server(keep_alive_s=0) as server:
        assert "\r\nConnection: close\r\n" in receive(send_raw(server, post(LENGTH)))
    with start_server(keep_alive_s=1) as server:
        start = time.monotonic()
        answer = receive(send_raw(server, post(LENGTH)))
        assert "\r\nConnection: keep-alive\r\n" in answer
        assert 0.9 < time.monotonic() - start < 4


def test_the_time_before_a_stop_is_for_the_balancer():
    """/ready is 503, but requests are answered, also those of new connections. Each answer closes its connection."""
    with start_server(drain_ms=20_000) as server:
        assert server.get("/ready")[0] == 200
        connection = server.connect()
        server.post(zeros(), connection)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: server.get("/ready")[0] == 503)
        assert server.get("/health")[0] == 200
        for each in (connection, server.connect()):
            each.request("POST", "/predict", BODY)
            with each.getresponse() as response:
                assert response.status == 200
                assert response.headers["Connection"] == "close"
                response.read()
        start = time.monotonic()
        assert server.stop() == 0  # a second SIGTERM
        assert time.monotonic() - start < 10


class Client(threading.Thread):
    """Sends requests over one connection, one after the other, until an answer says that the connection closes."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server, self.answers, self.error = server, 0, None
        self.start()

    def run(self) -> None:
        connection = self.server.connect()
        try:
            is_last = False
            while not is_last:
                connection.request("POST", "/predict", BODY)
                with connection.getresponse() as response:
                    assert response.status == 200
                    is_last = response.headers["Connection"] == "close"
                    response.read()
                self.answers += 1
        except (OSError, AssertionError, http.client.HTTPException) as error:
            self.error = error


@pytest.mark.parametrize("drain_ms", [0, 500])
def test_no_client_loses_a_request_at_a_stop(drain_ms):
    with start_server(drain_ms=drain_ms, timeout_ms=20_000) as server:
        clients = [Client(server) for _ in range(CLIENTS)]
        wait_until(lambda: all(client.answers > 2 for client in clients))
        assert server.stop() == 0
        for client in clients:
            client.join()
        assert [client.error for client in clients] == [None] * CLIENTS


def test_slow_clients_do_not_hold_a_stop():
    """README: a stop takes at most the grace time of a second, and the time limit of a prediction."""
    is_over = threading.Event()
    head = post(LENGTH, body=b"")

    def send_slowly(connections: list[socket.socket]) -> None:
        for byte in head + b" " * 1000:
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.sendall(bytes([byte]))
            if is_over.wait(0.5):
                return

    with start_server(receive_s=60, keep_alive_s=60) as server:
        in_head = [send_raw(server, head[:10]) for _ in range(20)]
        in_body = [send_raw(server, head + BODY[:1]) for _ in range(20)]
        idle = [send_raw(server, b"") for _ in range(20)]
        never_reads = [send_raw(server, post(LENGTH) * 2000) for _ in range(2)]
        thread = threading.Thread(target=send_slowly, args=[[*in_head, *in_body]])
        thread.start()
        wait_until(lambda: server.metric("lltm_connections") > 60)
        start = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - start < 6
        is_over.set()
        thread.join()
        for connection in [*in_head, *in_body, *idle, *never_reads]:
            connection.close()


def trickle(connection: socket.socket, data: bytes) -> None:
    """Sends a byte every tenth of a second."""
    for byte in data:
        connection.sendall(bytes([byte]))
        time.sleep(0.1)


def test_a_head_byte_by_byte_ends_in_time():
    with start_server(receive_s=1) as server, send_raw(server, b"") as connection:
        start = time.monotonic()
        with pytest.raises(OSError, match=r"reset|[Bb]roken"):
            trickle(connection, post(LENGTH) * 2)
        assert time.monotonic() - start < 5


def test_gauges_and_times_of_failures():
    with start_server(max_delay_ms=1500, timeout_ms=20_000) as server:
        idle = [send_raw(server, b"") for _ in range(5)]
        waiting = send_raw(server, post(LENGTH, b"Connection: close\r\n"))
        wait_until(lambda: server.metric("lltm_requests_in_flight") == 2)  # and the one that reads the metrics
        assert server.metric("lltm_connections") == 7
        assert statuses(receive(waiting)) == [200]
        server.post({"steps": 1})
        assert server.metric("lltm_request_seconds_count") == 2
        assert server.metric('lltm_request_seconds_bucket{le="0.5"}') == 1
        text = server.get("/metrics")[1]
        assert max(float(bound) for bound in re.findall(r'request_seconds_bucket\{le="([0-9.e+]+)"', text)) >= 40
        assert re.search(r"lltm_request_seconds_sum 1\.\d{7,}\n", text)
        for connection in idle:
            connection.close()


def test_a_request_beyond_the_time_limit_has_a_bucket():
    with start_server(max_delay_ms=500, timeout_ms=50) as server:
        assert server.post(zeros())[0] == 504
        assert server.metric('lltm_request_seconds_bucket{le="0.02"}') == 0
        assert server.metric("lltm_request_seconds_count") == 1


def resident_mib(server: Server) -> float:
    with open(f"/proc/{server.process.pid}/status") as status:  # noqa: PTH123
        return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024


def test_large_bodies_leave_no_memory():
    """Forty megabytes at a time, which become 400,000 lists, or one text."""
    bodies = [
        b"[" + b"[1]," * 250_000,
        b'{"stream": "' + b"a" * 1_000_000 + b'"}',
        b'{"steps": [' + b"[1e9," * 190_000,
    ]

    def ask(server: Server, k: int) -> None:
        for _ in range(3):
            assert server.post(bodies[k % len(bodies)])[0] == 400

    with start_server() as server:
        server.post(zeros())
        before = resident_mib(server)
        threads = [threading.Thread(target=ask, args=(server, k)) for k in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wait_until(lambda: server.metric("lltm_connections") == 1)
        assert resident_mib(server) - before < 20
