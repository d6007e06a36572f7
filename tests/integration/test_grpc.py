"""tritonclient over gRPC: everything the protocol offers, and answers equal to ONNX Runtime's."""

import queue
import socket
import unittest

import grpc
import numpy
import tritonclient.grpc as client
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

import reference
from serving import WAIT_S, ServedTest


def image_input(batch):
    tensor = client.InferInput("input", batch.shape, "FP32")
    tensor.set_data_from_numpy(batch)
    return tensor


def frame(kind, flags, stream, payload=b""):
    return (len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
            + payload)


def literal(name, value):
    """A header field of HPACK that is in no table and is not packed."""
    return bytes([0, len(name)]) + name + bytes([len(value)]) + value


# HPACK's codes of the letters below, and their bits (RFC 7541, appendix B).
HUFFMAN = {"-": (0x16, 6), "a": (3, 5), "c": (4, 5), "e": (5, 5), "g": (0x26, 6), "m": (0x29, 6),
           "p": (0x2b, 6), "r": (0x2c, 6), "s": (8, 5), "t": (9, 5), "u": (0x2d, 6)}


def packed(text):
    """A text of HPACK, packed."""
    bits = "".join(format(code, f"0{size}b") for code, size in map(HUFFMAN.get, text))
    bits += "1" * (-len(bits) % 8)
    return bytes([0x80 | len(bits) // 8]) + int(bits, 2).to_bytes(len(bits) // 8, "big")


STATUS, MESSAGE = packed("grpc-status"), packed("grpc-message")


class FrameTest(ServedTest):
    """Calls whose message's frame no client of gRPC would send."""

    def answer_to(self, message):
        """What the server sends, up to a call's end, for a ModelInfer with these bytes."""
        data, end_stream, end_headers = 0, 1, 4
        headers = b"".join(literal(*field) for field in (
            (b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"x"),
            (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
            (b"content-type", b"application/grpc"), (b"te", b"trailers")))
        host, port = self.server.grpc.split(":")
        with socket.create_connection((host, int(port)), timeout=WAIT_S) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
                               + frame(1, end_headers, 1, headers)
                               + frame(data, end_stream, 1, message))
            received = b""
            while STATUS not in received or MESSAGE not in received:
                more = connection.recv(65536)
                if not more:
                    break
                received += more
            return received

    def test_a_message_whose_frame_is_cut_or_flagged_wrongly_is_internal(self):
        whole = service_pb2.ModelInferRequest(model_name="none").SerializeToString()
        head = len(whole).to_bytes(4, "big")
        internal = STATUS + b"\x0213"
        self.assertIn(STATUS + b"\x015", self.answer_to(b"\x00" + head + whole))  # NOT_FOUND
        for message in (b"\x00" + head + whole[:-1], b"\x00" + head[:2], b"",
                        b"\x02" + head + whole, b"\xff" + head + whole):
            with self.subTest(message):
                self.assertIn(internal, self.answer_to(message))


class GrpcTest(ServedTest):
    def setUp(self):
        self.client = client.InferenceServerClient(self.server.grpc)
        self.addCleanup(self.client.close)

    def exit_of(self, answer):
        return answer.get_response().parameters["tactus_exit"].string_param

    def test_health(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("ee_s"))
        self.assertFalse(self.client.is_model_ready("nobody"))

    def test_grpc_health_protocol(self):
        # grpc.health.v1 by hand: field 1 of the request names a service, of the response the state.
        with grpc.insecure_channel(self.server.grpc) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            self.assertEqual(check(b"", timeout=WAIT_S), b"\x08\x01")  # SERVING
            service = b"inference.GRPCInferenceService"
            request = bytes([0x0A, len(service)]) + service
            self.assertEqual(check(request, timeout=WAIT_S), b"\x08\x01")

    def test_reflection_lists_the_service(self):
        with grpc.insecure_channel(self.server.grpc) as channel:
            info = channel.stream_stream(
                "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
            # list_services (field 7) of any host.
            replies = info(iter([b"\x3a\x00"]), timeout=WAIT_S)
            self.assertIn(b"inference.GRPCInferenceService", next(replies))

    def test_metadata(self):
        server = self.client.get_server_metadata()
        self.assertEqual(server.name, "tactus")
        self.assertIn("model_configuration", server.extensions)
        model = self.client.get_model_metadata("ee_s", "1")
        self.assertEqual(list(model.versions), ["1"])
        self.assertEqual(list(model.inputs[0].shape), [-1, 1, 28, 28])
        self.assertEqual(model.outputs[0].name, "logits")

    def test_config(self):
        config = self.client.get_model_config("ee_s").config
        self.assertEqual(config.max_batch_size, 10)
        self.assertEqual(config.input[0].name, "input")
        self.assertEqual(config.parameters["slo_ms"].string_value, "60000")

    def test_answers_equal_onnx_runtime(self):
        for rows in (1, 3, 10):
            with self.subTest(rows=rows):
                batch = reference.images(rows, seed=rows)
                answer = self.client.infer("ee_s", [image_input(batch)], request_id="r1",
                                           client_timeout=WAIT_S)
                self.assertEqual(answer.get_response().id, "r1")
                reference.assert_same(self, answer.as_numpy("logits"), "ee_s",
                                      self.exit_of(answer), batch)

    def test_typed_contents(self):
        request = service_pb2.ModelInferRequest(model_name="echo")
        tensor = request.inputs.add(name="INPUT0", datatype="FP32", shape=[1, 4])
        tensor.contents.fp32_contents.extend([1, 2, 3, 4])
        with grpc.insecure_channel(self.server.grpc) as channel:
            stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
            answer = stub.ModelInfer(request, timeout=WAIT_S)
        self.assertEqual(numpy.frombuffer(answer.raw_output_contents[0], "<f4").tolist(),
                         [1, 2, 3, 4])

    def test_bytes(self):
        arrays = [
            ("text", "BYTES", numpy.array([b"", b"one", "zwölf".encode()], dtype=numpy.object_)),
            ("long", "INT64", numpy.array([[-2**63, 2**63 - 1]], dtype=numpy.int64)),
            ("half", "FP16", numpy.array([0.5], dtype=numpy.float16)),
            ("flag", "BOOL", numpy.array([True, False])),
            ("byte", "UINT8", numpy.arange(256, dtype=numpy.uint8)),
            ("double", "FP64", numpy.array([1e-300]))]
        inputs = []
        for name, datatype, array in arrays:
            tensor = client.InferInput(name, array.shape, datatype)
            tensor.set_data_from_numpy(array)
            inputs.append(tensor)
        answer = self.client.infer("any", inputs, client_timeout=WAIT_S)
        for i, (name, _, array) in enumerate(arrays):
            with self.subTest(name=name):
                numpy.testing.assert_array_equal(answer.as_numpy(f"OUTPUT{i}"), array)

    def test_beyond_grpcs_default_limit(self):
        array = numpy.random.default_rng(1).normal(size=5_000_000).astype(numpy.float32)
        tensor = client.InferInput("INPUT0", array.shape, "FP32")
        tensor.set_data_from_numpy(array)
        answer = self.client.infer("large", [tensor], client_timeout=WAIT_S)
        numpy.testing.assert_array_equal(answer.as_numpy("OUTPUT0"), array)

    def test_compression(self):
        batch = reference.images(4)
        for algorithm in ("gzip", "deflate"):
            with self.subTest(algorithm=algorithm):
                answer = self.client.infer("ee_s", [image_input(batch)],
                                           compression_algorithm=algorithm, client_timeout=WAIT_S)
                reference.assert_same(self, answer.as_numpy("logits"), "ee_s",
                                      self.exit_of(answer), batch)

    def test_callbacks(self):
        done = queue.Queue()
        batch = reference.images(2)
        for _ in range(32):
            self.client.async_infer("ee_s", [image_input(batch)],
                                    lambda result, error: done.put((result, error)),
                                    client_timeout=WAIT_S)
        for _ in range(32):
            answer, error = done.get(timeout=WAIT_S)
            self.assertIsNone(error)
            reference.assert_same(self, answer.as_numpy("logits"), "ee_s", self.exit_of(answer),
                                  batch)

    def test_stream(self):
        done = queue.Queue()
        self.client.start_stream(lambda result, error: done.put((result, error)))
        batch = reference.images(1)
        for i in range(20):
            model = "nobody" if i == 5 else "ee_s"
            self.client.async_stream_infer(model, [image_input(batch)], request_id=str(i))
        answered, failed = set(), 0
        for _ in range(20):
            answer, error = done.get(timeout=WAIT_S)
            if error is not None:
                self.assertIn("nobody", str(error))
                failed += 1
                continue
            reference.assert_same(self, answer.as_numpy("logits"), "ee_s", self.exit_of(answer),
                                  batch)
            answered.add(answer.get_response().id)
        self.client.stop_stream()
        self.assertEqual(failed, 1)
        self.assertEqual(answered, {str(i) for i in range(20) if i != 5})

    def test_statistics_count_this_call(self):
        def counts():
            stats = self.client.get_inference_statistics("ee_s").model_stats[0]
            return stats.inference_count, stats.inference_stats.success.count

        before = counts()
        self.client.infer("ee_s", [image_input(reference.images(5))], client_timeout=WAIT_S)
        after = counts()
        self.assertEqual((after[0] - before[0], after[1] - before[1]), (5, 1))

    def test_errors_carry_their_code(self):
        with self.assertRaises(InferenceServerException) as unknown:
            self.client.infer("nobody", [image_input(reference.images(1))])
        self.assertIn("NOT_FOUND", unknown.exception.status())
        with self.assertRaises(InferenceServerException) as unserved:
            self.client.register_system_shared_memory("region", "/key", 16)
        self.assertIn("UNIMPLEMENTED", unserved.exception.status())


if __name__ == "__main__":
    unittest.main(verbosity=2)
