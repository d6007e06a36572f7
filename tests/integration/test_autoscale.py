"""The autoscale advice: on the metrics page, and as KEDA asks for it."""

import struct
import subprocess
import unittest

import grpc

from serving import TACTUS, WAIT_S, Server, ServedTest

BODY = (b'{"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1, 4], '
        b'"data": [0, 1, 2, 3]}]}')
METRIC = b"tactus_autoscale_advice_lanes"


def text(field, value):
    return bytes([field << 3 | 2, len(value)]) + value


def number(field, value):
    return bytes([field << 3, value])


def double(field, value):
    return bytes([field << 3 | 1]) + struct.pack("<d", value)


REF = text(1, b"tactus") + text(2, b"models") + text(3, text(1, b"scalerAddress") + text(2, b"a:1"))


class AutoscaleTest(ServedTest):
    arguments = ("--lanes", "3", "--autoscale-interval-seconds", "0.02",
                 "--autoscale-window-seconds", "1000", "--autoscale-most", "8", "--no-pin")

    def setUp(self):
        self.channel = grpc.insecure_channel(self.server.grpc)
        self.addCleanup(self.channel.close)

    def ask(self, method, message):
        call = self.channel.unary_unary(f"/externalscaler.ExternalScaler/{method}")
        return call(message, timeout=WAIT_S)

    def test_the_advice_is_on_the_metrics_page(self):
        self.assertEqual(self.server.post("/v2/models/echo/infer", BODY)[0], 200)
        self.server.await_metric(1, "tactus_autoscale_window_calls")
        # The window is never full here, so nothing is given back.
        self.assertEqual(self.server.metric("tactus_autoscale_advice_lanes"), 3)
        self.assertEqual(self.server.metric("tactus_autoscale_lanes"), 3)
        self.assertGreater(self.server.metric("tactus_autoscale_idle_ratio"), 0)

    # By hand, field by field: whoever wrote KEDA's client read the numbers, not our file.
    def test_keda_gets_the_metric_and_its_target(self):
        spec = text(1, METRIC) + number(2, 3) + double(3, 3)
        self.assertEqual(self.ask("GetMetricSpec", REF), text(1, spec))
        value = text(1, METRIC) + number(2, 3) + double(3, 3)
        self.assertEqual(self.ask("GetMetrics", text(1, REF) + text(2, METRIC)), text(1, value))

    def test_keda_is_told_which_metrics_there_are(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.ask("GetMetrics", text(1, REF) + text(2, b"queue_length"))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("unknown metric 'queue_length'; there are: tactus_autoscale_advice_lanes",
                      caught.exception.details())

    def test_keda_sees_whether_the_server_is_needed(self):
        self.assertEqual(self.server.post("/v2/models/echo/infer", BODY)[0], 200)
        self.server.await_metric(1, "tactus_autoscale_window_calls")
        self.assertEqual(self.ask("IsActive", REF), number(1, 1))

    def test_a_stop_ends_the_stream_of_a_client_that_stays(self):
        server = Server("--autoscale-interval-seconds", "0.02", "--grace-seconds", "1000")
        self.addCleanup(server.close)
        with grpc.insecure_channel(server.grpc) as channel:
            stream = channel.unary_stream("/externalscaler.ExternalScaler/StreamIsActive")(
                REF, timeout=WAIT_S)
            self.assertEqual(next(stream), b"")  # false, which has no bytes
            self.assertEqual(server.post("/v2/models/echo/infer", BODY)[0], 200)
            self.assertEqual(next(stream), number(1, 1))
            self.assertEqual(server.terminate(), 0, server.errors())
            with self.assertRaises(grpc.RpcError) as caught:
                next(stream)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.UNAVAILABLE)


class NoAdviceTest(ServedTest):
    arguments = ("--autoscale-interval-seconds", "0")

    def test_a_server_that_does_not_look_advises_nothing(self):
        self.assertNotIn("tactus_autoscale", self.server.get("/metrics", self.server.metrics_page))
        with grpc.insecure_channel(self.server.grpc) as channel:
            with self.assertRaises(grpc.RpcError) as caught:
                channel.unary_unary("/externalscaler.ExternalScaler/IsActive")(b"", timeout=WAIT_S)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertIn("--autoscale-interval-seconds 0; with 1", caught.exception.details())


class OptionsTest(unittest.TestCase):
    def refused(self, *options):
        done = subprocess.run([TACTUS, "serve", "--models", "/nonexistent", *options],
                              capture_output=True, text=True, timeout=WAIT_S)
        self.assertNotEqual(done.returncode, 0)
        return done.stderr

    def test_limits_that_contradict_each_other_are_refused(self):
        self.assertIn("the least number of lanes must be from 1 to the most, which is 4",
                      self.refused("--autoscale-least", "5", "--autoscale-most", "4"))
        self.assertIn("idle_kept must be in [0, idle_threshold]",
                      self.refused("--autoscale-idle-kept", "0.5"))
        self.assertIn("--autoscale-bad-threshold", self.refused("--autoscale-bad-threshold", "1.5"))


if __name__ == "__main__":
    unittest.main(verbosity=2)
