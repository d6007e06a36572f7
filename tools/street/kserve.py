"""One call of KServe v2 over HTTP with binary tensors, which is all that measuring a step takes."""
import json
import struct
import subprocess
import tempfile


class CallFailed(Exception):
    pass


SIZES = {'UINT8': 1, 'FP32': 4, 'INT32': 4, 'INT64': 8}


def elements(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def strings(data):
    """The elements of a BYTES tensor."""
    found = []
    while data:
        (length,) = struct.unpack_from('<I', data)
        found.append(data[4:4 + length])
        data = data[4 + length:]
    return found


def bytes_of(strings_):
    return b''.join(struct.pack('<I', len(each)) + each for each in strings_)


def call(space, port, model, inputs):
    """`inputs`: (name, datatype, shape, bytes). Outputs by name: (shape, bytes). By curl, since a
    socket of this process is in another namespace."""
    head = json.dumps({
        'inputs': [{'name': name, 'datatype': kind, 'shape': shape,
                    'parameters': {'binary_data_size': len(data)}}
                   for name, kind, shape, data in inputs],
        'parameters': {'binary_data_output': True}}).encode()
    with tempfile.NamedTemporaryFile() as body, tempfile.NamedTemporaryFile() as headers:
        body.write(head + b''.join(data for *_, data in inputs))
        body.flush()
        done = subprocess.run(
            ['ip', 'netns', 'exec', space, 'curl', '-sS', '--max-time', '60', '-D', headers.name,
             '-H', f'Inference-Header-Content-Length: {len(head)}', '--data-binary',
             f'@{body.name}', f'http://127.0.0.1:{port}/v2/models/{model}/infer'],
            capture_output=True, check=False)
        lines = headers.read().decode(errors='replace').splitlines()
    if done.returncode != 0 or not lines or ' 200' not in lines[0]:
        raise CallFailed(f'{model}: {(done.stderr or done.stdout)[:300]!r}')
    fields = {key.strip().lower(): value.strip()
              for key, _, value in (line.partition(':') for line in lines)}
    size = int(fields.get('inference-header-content-length', len(done.stdout)))
    rest = done.stdout[size:]
    outputs = {}
    for each in json.loads(done.stdout[:size])['outputs']:
        size = each.get('parameters', {}).get('binary_data_size', 0)
        outputs[each['name']] = (each['shape'], rest[:size])
        rest = rest[size:]
    return outputs
