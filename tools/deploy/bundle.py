"""bundle.py IMAGE ROOT MODELS ARGUMENT...: prints runc's config.json for a container of an image.
IMAGE is what `buildah inspect --type image` said of it, ROOT its file system, MODELS a folder that
it sees as /models. It has the rights that deploy/helm/tactus gives: the image's user, no
capability, a file system that is read only, a /tmp, a network of its own.

bundle.py --signal IMAGE: prints the signal by which the image wants to be ended.
"""
import json
import pathlib
import sys

SPACES = ('pid', 'network', 'ipc', 'uts', 'mount')
HIDDEN = ('/proc/kcore', '/proc/keys', '/proc/timer_list', '/sys/firmware')


def settings(image):
    """What the Containerfile said, as the image has it."""
    return json.loads(pathlib.Path(image).read_text())['OCIv1']['config']


def config(image, root, models, arguments):
    said = settings(image)
    user, group = (int(each) for each in said['User'].split(':'))
    nothing = {each: [] for each in ('bounding', 'effective', 'permitted', 'inheritable',
                                     'ambient')}
    safe = ['nosuid', 'noexec', 'nodev']
    return {
        'ociVersion': '1.0.2',
        'root': {'path': root, 'readonly': True},
        'hostname': 'tactus',
        'process': {'user': {'uid': user, 'gid': group}, 'cwd': said['WorkingDir'],
                    'args': [*said['Entrypoint'], *arguments], 'env': said['Env'],
                    'capabilities': nothing, 'noNewPrivileges': True},
        'mounts': [
            {'destination': '/proc', 'type': 'proc', 'source': 'proc'},
            {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs',
             'options': ['nosuid', 'mode=755', 'size=65536k']},
            {'destination': '/dev/shm', 'type': 'tmpfs', 'source': 'shm', 'options': safe},
            {'destination': '/sys', 'type': 'sysfs', 'source': 'sysfs', 'options': [*safe, 'ro']},
            {'destination': '/tmp', 'type': 'tmpfs', 'source': 'tmpfs',
             'options': ['nosuid', 'nodev', 'mode=1777']},
            {'destination': '/models', 'type': 'bind', 'source': models,
             'options': ['rbind', 'ro']}],
        'linux': {'namespaces': [{'type': each} for each in SPACES], 'maskedPaths': list(HIDDEN)}}


def main(*words):
    if words[0] == '--signal':
        print(settings(words[1])['StopSignal'])
    else:
        print(json.dumps(config(*words[:3], words[3:]), indent=1))


if __name__ == '__main__':
    main(*sys.argv[1:])
