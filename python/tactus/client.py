"""Calls a KServe v2 server with a deadline, over HTTP or gRPC. docs/guide/python.md explains it."""
import http.client
import json
import math
import pathlib
import ssl
import struct
import time
import urllib.parse

import numpy

# A server that keeps deadlines answers by then; a client that hangs up first learns nothing.
GRACE_S = 1.0
TYPES = {"BOOL": "?", "UINT8": "<u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8",
         "INT8": "<i1", "INT16": "<i2", "INT32": "<i4", "INT64": "<i8", "FP16": "<f2",
         "FP32": "<f4", "FP64": "<f8"}
NAMES = {numpy.dtype(code): name for name, code in TYPES.items()}


class Error(Exception):
    """The server's text. `status`: the HTTP status, or the name of gRPC's code. `retry_after`: the
    seconds after which the server invites another try; None where it does not."""

    def __init__(self, text, status, retry_after=None):
        super().__init__(text)
        self.status, self.retry_after = status, retry_after


class Refused(Error):
    """The server has no room for the call now, or the model does not serve (HTTP 429, 503)."""


class Expired(Error):
    """The deadline passed, or could not be met any more, so nothing was computed (HTTP 504)."""


KINDS = {429: Refused, 503: Refused, 504: Expired, "RESOURCE_EXHAUSTED": Refused,
         "UNAVAILABLE": Refused, "DEADLINE_EXCEEDED": Expired}


class Answer(dict):
    """The outputs, name -> array. `exit`: the name of the exit that answered, or None; `timing`:
    Server-Timing, {"queue": ms, "exec": ms}; `parameters`: what else the server says of it."""

    def __init__(self, outputs, parameters, timing):
        super().__init__(outputs)
        self.parameters = parameters
        self.exit = parameters.get("tactus_exit")
        self.timing = {}
        for part in timing.split(",") if timing else ():
            name, *fields = (each.strip() for each in part.split(";"))
            self.timing.update((name, float(each[4:])) for each in fields if each[:4] == "dur=")


def encode(array):
    """A tensor's type, shape and bytes as KServe has them; texts are BYTES."""
    array = numpy.asarray(array)
    if array.dtype.kind in "OSU":
        texts = (t.encode() if isinstance(t, str) else bytes(t) for t in array.ravel().tolist())
        data = b"".join(struct.pack("<I", len(text)) + text for text in texts)
        return "BYTES", list(array.shape), data
    kind = NAMES.get(array.dtype.newbyteorder("<"))
    if kind is None:
        raise ValueError(f"KServe has no type for numpy's {array.dtype}; convert the array")
    return kind, list(array.shape), numpy.ascontiguousarray(array, TYPES[kind]).tobytes()


def decode(kind, shape, data):
    if kind in TYPES:
        return numpy.frombuffer(data, TYPES[kind]).reshape(shape)
    if kind != "BYTES":
        raise ValueError(f"numpy has no type for KServe's {kind}")
    array, at = numpy.empty(math.prod(shape), object), 0
    for place in range(array.size):
        size, = struct.unpack_from("<I", data, at)
        array[place] = bytes(data[at + 4:at + 4 + size])
        at += 4 + size
    return array.reshape(shape)


class Client:
    """A server at `url`: http, https or, where tritonclient is installed, grpc or grpcs.
    `deadline_ms`: of calls that state none; None: only the model's own. `token`: of its bearer.
    `ca`: a file with the authorities to trust instead of the machine's. For one thread."""

    def __init__(self, url, deadline_ms=None, token=None, ca=None):
        self.deadline_ms = deadline_ms
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https", "grpc", "grpcs") or not parts.netloc:
            raise ValueError(f"{url}: give scheme, host and port; http, https, grpc or grpcs")
        self.wire = (Http if parts.scheme[0] == "h" else Grpc)(parts, ca)
        self.close = self.wire.close

    def infer(self, model, inputs, outputs=(), deadline_ms=None, version="", parameters=None):
        """The Answer of one call. `inputs`: name -> array; `outputs`: names, all if empty;
        `parameters`: of the request, such as {"priority": 1}. Raises Error, or OSError."""
        deadline_ms = self.deadline_ms if deadline_ms is None else deadline_ms
        parameters, headers, timeout_s = dict(parameters or {}), dict(self.headers), None
        if deadline_ms is not None:
            # The parameter is KServe's. From the header the server knows it before the body.
            parameters["timeout"] = max(1, round(deadline_ms * 1000))
            headers["X-Request-Timeout-Ms"] = f"{max(0.001, deadline_ms):.3f}"
            timeout_s = max(0, deadline_ms / 1000) + GRACE_S
        tensors = [(name, *encode(array)) for name, array in inputs.items()]
        return self.wire.infer(model, version, tensors, outputs, parameters, headers, timeout_s)

    def infer_retrying(self, model, inputs, deadline_ms, **more):
        """infer(), again each time that the server invites another try within `deadline_ms` of the
        first. A try is told the time that is left; the last error is raised."""
        end = time.monotonic() + deadline_ms / 1000
        while True:
            try:
                left_ms = (end - time.monotonic()) * 1000
                return self.infer(model, inputs, deadline_ms=left_ms, **more)
            except Error as error:
                if error.retry_after is None or time.monotonic() + error.retry_after >= end:
                    raise
                time.sleep(error.retry_after)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Http:
    def __init__(self, parts, ca):
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self.connection = kind(
            parts.netloc, **{"context": ssl.create_default_context(cafile=ca)} if secure else {})
        self.close = self.connection.close

    def post(self, path, body, headers, timeout_s):
        kept = self.connection.sock
        self.connection.timeout = timeout_s
        if kept:
            kept.settimeout(timeout_s)
        try:
            self.connection.request("POST", path, body, headers)
            reply = self.connection.getresponse()
            return reply, reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            if not kept or isinstance(error, TimeoutError):
                raise
        return self.post(path, body, headers, timeout_s)  # the server had closed what was idle

    def infer(self, model, version, tensors, outputs, parameters, headers, timeout_s):
        message = {"inputs": [{"name": name, "datatype": kind, "shape": shape,
                               "parameters": {"binary_data_size": len(data)}}
                              for name, kind, shape, data in tensors],
                   "parameters": {**parameters, "binary_data_output": True}}
        if outputs:
            message["outputs"] = [{"name": name, "parameters": {"binary_data": True}}
                                  for name in outputs]
        head = json.dumps(message).encode()
        headers["Inference-Header-Content-Length"] = str(len(head))
        path = "/".join(["/v2/models", urllib.parse.quote(model, ""),
                         *(["versions", str(version)] if version else []), "infer"])
        body = b"".join([head, *(data for *_, data in tensors)])
        reply, body = self.post(path, body, headers, timeout_s)
        if reply.status != 200:
            after = reply.getheader("Retry-After", "")
            text = body.decode(errors="replace") or reply.reason
            raise KINDS.get(reply.status, Error)(
                json.loads(text).get("error", text) if text[:1] == "{" else text,
                reply.status, int(after) if after.isdigit() else None)
        at = int(reply.getheader("Inference-Header-Content-Length", len(body)))
        message, arrays, body = json.loads(body[:at]), {}, memoryview(body)
        for output in message["outputs"]:
            end = at + output["parameters"]["binary_data_size"]
            arrays[output["name"]] = decode(output["datatype"], output["shape"], body[at:end])
            at = end
        return Answer(arrays, message.get("parameters", {}), reply.getheader("Server-Timing"))


class Grpc:
    def __init__(self, parts, ca):
        try:
            import grpc
            from tritonclient.grpc import service_pb2, service_pb2_grpc
        except ImportError as error:
            raise ImportError(f"{error}; grpc:// needs it: pip install 'tactus[grpc]'") from None
        self.grpc, self.messages = grpc, service_pb2
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        channel = grpc.insecure_channel(parts.netloc, options)
        if parts.scheme == "grpcs":
            authorities = pathlib.Path(ca).read_bytes() if ca else None
            channel = grpc.secure_channel(
                parts.netloc, grpc.ssl_channel_credentials(authorities), options)
        self.close = channel.close
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)

    def infer(self, model, version, tensors, outputs, parameters, headers, timeout_s):
        request = self.messages.ModelInferRequest(model_name=model, model_version=str(version))
        for name, kind, shape, data in tensors:
            request.inputs.add(name=name, datatype=kind, shape=shape)
            request.raw_input_contents.append(data)
        for name in outputs:
            request.outputs.add(name=name)
        fields = {bool: "bool_param", int: "int64_param", float: "double_param"}
        for name, value in parameters.items():
            setattr(request.parameters[name], fields.get(type(value), "string_param"), value)
        metadata = [(name.lower(), value) for name, value in headers.items()]
        try:
            response, call = self.stub.ModelInfer.with_call(request, timeout_s, metadata)
        except self.grpc.RpcError as error:
            code, said = error.code().name, dict(error.trailing_metadata() or ())
            after = said.get("grpc-retry-pushback-ms")
            raise KINDS.get(code, Error)(error.details(), code,
                                         int(after) / 1000 if after else None) from None
        arrays = {output.name: decode(output.datatype, list(output.shape), data)
                  for output, data in zip(response.outputs, response.raw_output_contents)}
        said = {name: getattr(value, value.WhichOneof("parameter_choice"))
                for name, value in response.parameters.items()}
        return Answer(arrays, said, dict(call.trailing_metadata()).get("server-timing"))
