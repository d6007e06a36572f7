"""Calls that carry a number each, whose answers must carry the same, and what became of them."""
import collections
import queue
import threading
import time

import grpc
import numpy as np
from tritonclient.grpc import service_pb2, service_pb2_grpc

WINDOW = 4        # calls under way on each stream
CALL_S = 20       # what a call may take


class Ledger:
    """What became of each request, by the kind of process that was being killed at its end."""

    def __init__(self, on_end=None):
        self.lock = threading.Lock()
        self.on_end = on_end  # called with the name of a caller, when its call began, outcome, why
        self.phase = ""
        self.sent = 0
        self.under_way = {}  # by number: who called, and when
        self.counts = collections.defaultdict(collections.Counter)
        self.reasons = collections.Counter()
        self.newest = time.monotonic()  # when the latest right answer came
        self.silence = 0.0              # the longest time between two, since it was set to 0

    def begin(self, who=""):
        with self.lock:
            self.sent += 1
            self.under_way[self.sent] = who, time.monotonic()
            return self.sent

    def end(self, number, outcome, why=""):
        with self.lock:
            if number not in self.under_way:
                self.counts[self.phase]["twice"] += 1
                return
            who, begun = self.under_way.pop(number)
            self.counts[self.phase][outcome] += 1
            if outcome == "answered":
                now = time.monotonic()
                self.silence = max(self.silence, now - self.newest)
                self.newest = now
            elif why:
                self.reasons[f"{self.phase}: {outcome}: {why}"] += 1
            if self.on_end is not None:
                self.on_end(who, begun, outcome, why)

    def answered(self):
        with self.lock:
            return sum(count["answered"] for count in self.counts.values())

    def settle(self):
        """Once nobody sends any more: what has no end by now never has one."""
        end = time.monotonic() + 2 * CALL_S
        while self.under_way and time.monotonic() < end:
            time.sleep(0.1)
        with self.lock:
            self.counts[self.phase]["lost"] += len(self.under_way)
            self.under_way.clear()


class Streamer(threading.Thread):
    """Calls of the model `echo` over one gRPC stream, WINDOW at a time; a new stream where the old
    one broke. `where()` is the address, or None while nobody listens; `connect` makes a channel."""

    def __init__(self, ledger, where, connect=grpc.insecure_channel, who=""):
        super().__init__(daemon=True)
        self.ledger, self.where, self.connect, self.who = ledger, where, connect, who
        self.stopping = False
        self.start()

    def run(self):
        while not self.stopping:
            address = self.where()
            if address is None:
                time.sleep(0.02)
                continue
            with self.connect(address) as channel:
                try:
                    grpc.channel_ready_future(channel).result(timeout=1)
                except grpc.FutureTimeoutError:
                    continue
                self._stream(service_pb2_grpc.GRPCInferenceServiceStub(channel))

    def _stream(self, stub):
        todo, mine = queue.SimpleQueue(), set()

        def send():
            number = self.ledger.begin(self.who)
            mine.add(number)
            todo.put(request_of(number))
        for _ in range(WINDOW):
            send()
        try:
            for reply in stub.ModelStreamInfer(iter(todo.get, None)):
                number = int(reply.infer_response.id)
                mine.discard(number)
                outcome, why = outcome_of(number, reply)
                self.ledger.end(number, outcome, why)
                if outcome == "refused":
                    time.sleep(0.02)
                if not self.stopping:
                    send()
                elif not mine:
                    break
        except grpc.RpcError as error:
            for number in mine:
                self.ledger.end(number, "broken", f"{error.code().name} {error.details()}")
        finally:
            todo.put(None)


def request_of(number):
    request = service_pb2.ModelInferRequest(model_name="echo", id=str(number))
    request.parameters["timeout"].int64_param = CALL_S * 1_000_000
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 4])
    request.raw_input_contents.append(row_of(number))
    return request


def row_of(number):
    return np.array([number % 1_000_003, number % 97, -number % 89, 1], np.float32).tobytes()


def outcome_of(number, reply):
    if reply.error_message:
        return "refused", reply.error_message
    right = list(reply.infer_response.raw_output_contents) == [row_of(number)]
    return ("answered", "") if right else ("wrong", "another request's row")
