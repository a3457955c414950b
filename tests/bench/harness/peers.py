"""What playfs is measured against. Each peer shows the same tree at `.tree`, and caches as much as it can be told to."""
import getpass
import os
import pathlib
import shutil
import subprocess

from world import answers, free_port, mounted

SSH = ('StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR', 'IdentitiesOnly=yes')
EXAMPLE = pathlib.Path('/usr/share/doc/libfuse3-dev/examples/passthrough_ll.c')


class Mounted:
    """A peer with a mount of its own, by one process."""

    def __init__(self, world, name, words, **options):
        self.name, self.directory = name, world.new_folder(name.split()[0])
        self.process = world.start(*[self.directory if word is DIRECTORY else word for word in words],
                                   mount=self.directory, **options)
        self.process.until(lambda: mounted(self.directory), f'{name} is mounted')
        self.tree = self.directory

    def end(self):
        self.process.end()


DIRECTORY = object()  # stands for the mount point in a command


def passthrough(world, source, name='floor', stateless=True, extra=(), count=True):
    """Our own, the least there is."""
    counter = world.folder / f'messages-{world.names}'
    words = [world.driver('passthrough'), *(['--stateless'] if stateless else []), *(['--count', counter] if count else []),
             *extra, source, DIRECTORY]
    peer = Mounted(world, name, words)
    peer.messages = lambda: int.from_bytes(counter.read_bytes(), 'little')
    return peer


def libfuse_example(world, source):
    """libfuse's own passthrough_ll, from the examples that come with Debian's package; None where they are missing."""
    if not EXAMPLE.exists():
        return None
    program = world.folder / 'passthrough_ll'
    if not program.exists():
        flags = world.run('pkgconf', '--cflags', '--libs', 'fuse3').split()
        world.run('cc', '-O2', '-o', program, EXAMPLE, *flags)
    return Mounted(world, 'passthrough_ll', [program, '-f', '-o', f'source={source},cache=always,default_permissions',
                                             DIRECTORY])


def squashfuse(world, source):
    image = world.folder / 'tree.squashfs'
    if not image.exists():
        world.run('mksquashfs', source, image, '-quiet', '-no-progress')
    return Mounted(world, 'squashfuse', ['squashfuse_ll', '-f', image, DIRECTORY])


class SshServer:
    """sshd on loopback for this run alone, with a key of its own."""

    def __init__(self, world):
        folder = self.folder = world.new_folder('sshd')
        for key in ('host', 'user'):
            world.run('ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', folder / key)
        shutil.copy(folder / 'user.pub', folder / 'authorized')
        self.port = free_port()
        (folder / 'config').write_text(
            f'Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n'
            f'PidFile {folder}/pid\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n'
            'Subsystem sftp internal-sftp\n')
        if os.geteuid() == 0:
            os.makedirs('/run/sshd', exist_ok=True)
        world.start(shutil.which('sshd') or '/usr/sbin/sshd', '-D', '-e', '-f', folder / 'config').until(
            lambda: answers(self.port), 'sshd answers')

    def mount(self, world, source, port=None, name='sshfs'):
        options = [f'IdentityFile={self.folder}/user', *SSH, 'kernel_cache', 'auto_cache', 'entry_timeout=3600',
                   'attr_timeout=3600', 'dcache_timeout=3600', 'max_conns=1']
        return Mounted(world, name, ['sshfs', '-f', '-p', str(port or self.port), '-o', ','.join(options),
                                     f'{getpass.getuser()}@127.0.0.1:{source}', DIRECTORY])


class RcloneServer:
    def __init__(self, world, source, kind):
        self.kind, self.port = kind, free_port()
        world.start('rclone', 'serve', kind, source, '--addr', f'127.0.0.1:{self.port}', '--config', '/dev/null',
                    '--read-only').until(lambda: answers(self.port), f'rclone serve {kind} answers')

    def mount(self, world, port=None):
        url = f'http://127.0.0.1:{port or self.port}'
        options = [f'--{self.kind}-url', url] + (['--webdav-vendor', 'other'] if self.kind == 'webdav' else [])
        return Mounted(world, f'rclone {self.kind}',
                       ['rclone', 'mount', f':{self.kind}:', DIRECTORY, *options, '--config', '/dev/null', '--read-only',
                        '--vfs-cache-mode', 'full', '--dir-cache-time', '1000h', '--attr-timeout', '1h',
                        '--cache-dir', world.new_folder('rclone-cache')])


class GitServer:
    """The same files as a git repository behind `git daemon`."""

    def __init__(self, world, source):
        self.folder = world.new_folder('git')
        work = self.folder / 'tree'
        shutil.copytree(source, work)
        identity = ['-c', 'user.name=bench', '-c', 'user.email=bench@localhost', '-c', 'init.defaultBranch=main']
        for words in (['init', '-q'], ['add', '-A'], ['commit', '-q', '-m', 'The tree']):
            world.run('git', *identity, *words, cwd=work)
        self.port = free_port()
        world.start('git', 'daemon', '--reuseaddr', '--export-all', f'--base-path={self.folder}', '--listen=127.0.0.1',
                    f'--port={self.port}', str(self.folder)).until(lambda: answers(self.port), 'git daemon answers')

    def clone(self, directory, port):
        subprocess.run(['git', 'clone', '-q', f'git://127.0.0.1:{port}/tree', str(directory)], check=True,
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
