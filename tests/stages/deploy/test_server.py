"""The server: bad requests, slow clients, limits, streams, and its end. A bad client costs no other its answer."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from common.check.deploy import assert_close, start_server
from common.deploy import Server, wait_until
from common.errors import UserError
from support.serving import DEPLOY_MARKS, receive, send_raw, zeros

pytestmark = DEPLOY_MARKS
HEAD = b"POST /predict HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server(receive_s=2) as server:
        yield server


@pytest.fixture(autouse=True)
def served(server: Server) -> Iterator[None]:
    """After each test, the shared server still answers, and correctly."""
    yield
    sequence = torch.rand(3, 8)
    status, answer = server.post({"steps": sequence.tolist()})
    assert status == 200
    assert_close("after the test", answer["scores"], sequence)


BAD = {
    "nothing": (b"", "the request is not JSON: parse error at line 1, column 1"),
    "not UTF-8": (b"\xff\xfe{}", "the request is not JSON"),
    "a list": ([1], "the request is a list; expected an object"),
    "no steps": ({}, "the request has no field steps"),
    "an unknown field": (
        zeros(strean="a"),
        'there is no field "strean"; the fields are steps, stream, start and end',
    ),
    "steps is text": ({"steps": "1"}, 'steps is "1"; expected a list of steps'),
    "no step": ({"steps": []}, "steps is []; expected a list of steps, each a list of 8 numbers"),
    "a short step": ({"steps": [[0.0] * 8, [0.0] * 7]}, "step 1 is a list of 7; expected a list of 8 numbers"),
    "a step is null": ({"steps": [None]}, "step 0 is null; expected a list of 8 numbers"),
    "a number is text": ({"steps": [[0.0] * 7 + ["1"]]}, 'steps has "1" in step 0, feature 7; expected a number'),
    "a number is true": ({"steps": [[True] * 8]}, "steps has true in step 0, feature 0; expected a number"),
    "NaN": ({"steps": [[float("nan")] * 8]}, "the request is not JSON"),
    "not finite in float32": ({"steps": [[1e39] * 8]}, "steps has the value inf in step 0, feature 0"),
    "not finite in double": (b'{"steps": [[1e999]]}', "the request is not JSON: number overflow"),
    "too many steps": ({"steps": [[0.0] * 8] * 1025}, "the model was exported for at most 1024"),
    "deeply nested": (b"[" * 500_000, "the request is a list; expected an object"),
    "deeply nested steps": (
        b'{"steps": ' + b"[" * 500_000,
        "steps has a list in step 0, feature 0; expected a number",
    ),
    "deeply nested and whole": (b"[" * 73_437 + b"]" * 73_437, "the request is a list; expected an object"),
    "nested objects": (b'{"steps":' * 73_437, "steps is an object; expected a list of steps"),
    "a field twice": (b'{"steps": [[0,0,0,0,0,0,0,0]], "steps": []}', "the field steps is there twice"),
    "start without stream": (zeros(start=True), "start and end are for streams"),
    "start is a number": (zeros(stream="a", start=1), "start is 1; expected true or false"),
    "a name is a number": (zeros(stream=1), "stream is 1; expected a name"),
    "an empty name": (zeros(stream=""), 'stream is ""; expected a name of 1 to 100 bytes'),
    "a long name": (zeros(stream="a" * 101), "stream is string; expected a name of 1 to 100 bytes"),
}


@pytest.mark.parametrize(("body", "message"), BAD.values(), ids=BAD)
def test_a_bad_request_gets_a_clear_error(body, message, server):
    connection = server.connect()
    status, answer = server.post(body, connection)
    assert status == 400
    assert message in answer["error"]
    assert server.post(zeros(), connection)[0] == 200  # the connection goes on


def test_other_paths(server):
    assert server.get("/health") == (200, '{"status":"ok"}')
    status, text = server.get("/predict")
    assert status == 404
    assert json.loads(text) == {"error": "the paths are POST /predict, GET /health, GET /ready and GET /metrics"}


@pytest.mark.parametrize(
    "data", [b"GARBAGE\r\n\r\n", b"\0" * 20_000 + b"\r\n\r\n", b"GET " + b"x" * 9000 + b" HTTP/1.1\r\n\r\n"]
)
def test_what_is_not_http(data, server):
    assert re.match(r"HTTP/1.1 4\d\d ", receive(send_raw(server, data)))


def test_ten_megabytes_of_garbage(server):
    status, answer = server.post(b"x" * 10_000_000)
    assert (status, answer) == (413, {"error": "the request has more than 1048576 bytes"})


def test_ten_megabytes_in_chunks(server):
    connection = server.connect()
    connection.request("POST", "/predict", iter([b"x" * 100_000] * 100), encode_chunked=True)
    assert connection.getresponse().status == 413


def test_a_request_that_stops_half_way(server):
    start = time.monotonic()
    answer = receive(send_raw(server, HEAD + b'{"steps"'))
    assert answer.startswith("HTTP/1.1 408 ")
    assert answer.endswith('{"error":"the request took longer than 2 s"}')
    assert time.monotonic() - start < 4


def trickle(connection: socket.socket, seconds: float) -> None:
    """Sends a byte every tenth of a second."""
    for _ in range(int(seconds * 10)):
        connection.sendall(b" ")
        time.sleep(0.1)


def test_a_request_that_arrives_byte_by_byte(server):
    """Each byte arrives in time, but not all of them: a limit for the time between two bytes would never end this."""
    start = time.monotonic()
    with send_raw(server, HEAD) as connection, pytest.raises(OSError, match=r"reset|[Bb]roken"):
        trickle(connection, seconds=10)
    assert 1.5 < time.monotonic() - start < 5


def test_the_rest_of_a_late_request_is_not_read_as_a_request(server):
    connection = send_raw(server, HEAD + b"{")
    time.sleep(2.5)
    connection.sendall(b"GET /health HTTP/1.1\r\n\r\n")
    with connection, connection.makefile("rb") as file:
        try:
            answer = file.read()
        except ConnectionResetError:
            return
    assert answer.count(b"HTTP/1.1") == 1


def test_many_slow_clients_cost_no_other_its_answer(server):
    slow = [send_raw(server, HEAD[: k % len(HEAD)]) for k in range(400)]
    start = time.monotonic()
    for _ in range(20):
        assert server.post(zeros())[0] == 200
    assert time.monotonic() - start < 2
    for connection in slow:
        connection.close()


def test_clients_that_leave_before_their_answer(server):
    body = json.dumps(zeros()).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: here\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(50):
        send_raw(server, head + body).close()


def test_a_full_queue(server):
    with start_server(max_queue=3, max_delay_ms=2000, timeout_ms=20000) as busy, ThreadPoolExecutor(3) as clients:
        waiting = [clients.submit(busy.post, zeros()) for _ in range(3)]
        wait_until(lambda: busy.metric("lltm_queue_length") == 3)
        connection = busy.connect()
        connection.request("POST", "/predict", json.dumps(zeros()))
        response = connection.getresponse()
        assert response.status == 503
        assert response.headers["Retry-After"] == "1"
        assert "the queue is full: 3 sequences wait; try again later" in response.read().decode()
        assert [one.result()[0] for one in waiting] == [200] * 3


def test_the_delay_of_a_batch_is_bounded(server):
    with start_server(max_delay_ms=300, max_batch=4) as waits:
        start = time.monotonic()
        assert waits.post(zeros())[0] == 200
        assert 0.3 <= time.monotonic() - start < 1
        start = time.monotonic()
        with ThreadPoolExecutor(4) as clients:  # a full batch does not wait
            assert [status for status, _ in clients.map(lambda _: waits.post(zeros()), range(4))] == [200] * 4
        assert time.monotonic() - start < 0.3


def test_a_request_that_waits_too_long(server):
    with start_server(max_delay_ms=500, timeout_ms=50) as slow:
        status, answer = slow.post(zeros())
        assert (status, answer) == (504, {"error": "no prediction within 50 ms; try again later"})


def test_a_stream_ends(server):
    assert server.post(zeros(stream="a", start=True))[1]["steps"] == 1
    assert server.post(zeros(stream="a"))[1]["steps"] == 2
    assert server.metric("lltm_streams") == 1
    assert server.post(zeros(stream="a", end=True))[1]["steps"] == 3
    assert server.metric("lltm_streams") == 0
    status, answer = server.post(zeros(stream="a"))
    assert status == 404
    assert 'begin it with "start": true' in answer["error"]


def test_a_stream_begins_again(server):
    first = server.post(zeros(stream="b", start=True))
    assert server.post(zeros(stream="b"))[1] != first[1]
    assert server.post(zeros(stream="b", start=True)) == first
    server.post(zeros(stream="b", end=True))


def test_a_failed_request_leaves_its_stream_as_it_was(server):
    sequence = torch.rand(2, 8)
    server.post({"steps": [sequence[0].tolist()], "stream": "c", "start": True})
    assert server.post({"steps": [[0.0] * 7], "stream": "c"})[0] == 400
    status, answer = server.post({"steps": [[3e38] * 8] * 2, "stream": "c"})
    assert status == 400
    assert "the scores are not finite: the numbers in steps are too large" in answer["error"]
    answer = server.post({"steps": [sequence[1].tolist()], "stream": "c", "end": True})[1]
    assert answer["steps"] == 2
    assert_close("the stream", answer["scores"], sequence)


def test_a_stream_in_use(server):
    with start_server(max_delay_ms=700) as busy, ThreadPoolExecutor(1) as client:
        first = client.submit(busy.post, zeros(stream="a", start=True))
        wait_until(lambda: busy.metric("lltm_queue_length") == 1)
        for start in (True, False):
            status, answer = busy.post(zeros(stream="a", start=start))
            assert (status, answer) == (409, {"error": "stream 'a' is in use by another request"})
        assert first.result()[0] == 200


def test_too_many_streams_and_their_expiry(server):
    with start_server(max_streams=2, stream_expiry_s=1) as small:
        for name in ("a", "b"):
            assert small.post(zeros(stream=name, start=True))[0] == 200
        status, answer = small.post(zeros(stream="c", start=True))
        assert status == 503
        assert "there are 2 streams already" in answer["error"]
        assert small.post(zeros(stream="b"))[0] == 200
        time.sleep(1.1)
        assert small.post(zeros(stream="c", start=True))[0] == 200
        assert small.metric("lltm_streams") == 1
        assert "expired after 1 s" in small.post(zeros(stream="a"))[1]["error"]


def test_a_stop_refuses_new_connections_and_ends_by_itself(server):
    with start_server() as ends:
        idle = ends.connect()
        assert ends.post(zeros(), idle)[0] == 200
        start = time.monotonic()
        assert ends.stop() == 0
        assert time.monotonic() - start < 5
        with pytest.raises(ConnectionRefusedError):
            ends.post(zeros())


def test_kill_and_restart_on_the_same_port(server):
    with start_server() as first:
        assert first.post(zeros(stream="a", start=True))[0] == 200
        first.process.kill()
        first.process.wait()
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            first.post(zeros())
    with start_server(port=first.port) as second:
        assert second.post(zeros())[0] == 200
        assert second.post(zeros(stream="a"))[0] == 404


def test_a_port_in_use(server):
    message = rf"cannot listen on 127.0.0.1:{server.port}: is the port in use\?"
    with pytest.raises(UserError, match=message):
        start_server(port=server.port)


def test_the_metrics_count_what_happened(server):
    with start_server() as counted:
        for _ in range(3):
            counted.post(zeros())
        counted.post({})
        status, text = counted.get("/metrics")
        assert status == 200
        line = re.compile(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"\})? [0-9.e+-]+')
        assert all(line.fullmatch(each) for each in text.splitlines())
        assert counted.metric('lltm_responses_total{status="400"}') == 1
        assert counted.metric("lltm_request_seconds_count") == 4
        assert counted.metric("lltm_batch_size_sum") == 3


def resident_megabytes(server: Server) -> float:
    status = open(f"/proc/{server.process.pid}/status").read()  # noqa: PTH123, SIM115
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def test_the_memory_does_not_grow(server):
    sequence = {"steps": torch.rand(20, 8).tolist()}

    def ask(many: int) -> None:
        connection = fast.connect()
        for k in range(many):
            assert fast.post(sequence, connection)[0] == 200
            fast.post({"steps": k}, connection)

    with start_server(max_delay_ms=0) as fast:
        ask(200)
        before = resident_megabytes(fast)
        ask(600)
        assert resident_megabytes(fast) - before < 5
