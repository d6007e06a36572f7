"""Our .proto files beside the messages tritonclient was built from: same numbers, same types."""

import pathlib
import subprocess
import tempfile
import unittest

from google.protobuf import descriptor_pb2
from tritonclient.grpc import model_config_pb2, service_pb2

from serving import SOURCE

# Of the Open Inference Protocol; Triton's messages lack it.
OURS_ALONE = {"ModelMetadataResponse.properties", "ModelMetadataResponse.PropertiesEntry.key",
              "ModelMetadataResponse.PropertiesEntry.value", "ModelStatistics.emulated"}


def fields_of(messages, prefix=""):
    for message in messages:
        name = prefix + message.name
        for field in message.field:
            yield f"{name}.{field.name}", (field.number, field.type, field.label, field.type_name)
        yield from fields_of(message.nested_type, name + ".")


def enums_of(messages, enums, prefix=""):
    for enum in enums:
        for value in enum.value:
            yield f"{prefix}{enum.name}.{value.name}", value.number
    for message in messages:
        yield from enums_of(message.nested_type, message.enum_type, f"{prefix}{message.name}.")


def methods_of(files):
    for file in files:
        for service in file.service:
            for m in service.method:
                yield (f"{file.package}.{service.name}.{m.name}",
                       (m.input_type, m.output_type, m.client_streaming, m.server_streaming))


def protos_of(module):
    proto = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(proto)
    return proto


class WireTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "set"
            proto = SOURCE / "src/server/proto"
            subprocess.run(["protoc", f"--proto_path={proto}", "--include_imports",
                            f"--descriptor_set_out={out}", "grpc_service.proto"],
                           check=True, timeout=60)
            cls.ours = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
        cls.theirs = [protos_of(service_pb2), protos_of(model_config_pb2)]

    def merged(self, files, extract):
        return {key: value for file in files for key, value in extract(file)}

    def test_fields(self):
        ours = self.merged(self.ours, lambda f: fields_of(f.message_type))
        theirs = self.merged(self.theirs, lambda f: fields_of(f.message_type))
        self.assertGreater(len(theirs), 300)
        shared = ours.keys() & theirs.keys()
        self.assertEqual({k: ours[k] for k in shared}, {k: theirs[k] for k in shared})
        self.assertEqual(ours.keys() - theirs.keys(), OURS_ALONE)
        self.assertEqual(theirs.keys() - ours.keys(), set())

    def test_enums(self):
        ours = self.merged(self.ours, lambda f: enums_of(f.message_type, f.enum_type))
        theirs = self.merged(self.theirs, lambda f: enums_of(f.message_type, f.enum_type))
        self.assertGreater(len(theirs), 30)
        self.assertEqual(ours, theirs)

    def test_methods(self):
        ours, theirs = dict(methods_of(self.ours)), dict(methods_of(self.theirs))
        self.assertGreater(len(theirs), 15)
        self.assertEqual(ours, theirs)


if __name__ == "__main__":
    unittest.main(verbosity=2)
