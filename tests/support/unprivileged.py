"""Commands as an ordinary user, in a mount namespace where that user may open /dev/fuse; tests are run as root.

Nothing of the machine changes: the device, and whatever else a case needs to be different, is made in that namespace.
"""
import os
import pathlib
import shutil
import subprocess
import unittest

import fixture

USER = 1000
# $DEVICES: a folder for a device of our own, since the real one may be root's alone.
WITH_DEVICE = ('mknod -m 666 "$DEVICES/fuse$$" c 10 229 && mount --bind "$DEVICES/fuse$$" /dev/fuse && '
               'rm "$DEVICES/fuse$$" || exit 99; ')
AS_USER = f'exec setpriv --reuid={USER} --regid={USER} --clear-groups -- "$@"'
NO_NEW_PRIVILEGES = f'exec setpriv --no-new-privs --reuid={USER} --regid={USER} --clear-groups -- "$@"'
# fusermount3 3.17 mounts nothing for a user without a name.
NAMED = ('{ cat /etc/passwd; echo "una:x:%d:%d::/:/bin/sh"; } > "$DEVICES/passwd" && '
         'mount --bind "$DEVICES/passwd" /etc/passwd || exit 99; ' % (USER, USER))
# A new user namespace is refused in a chroot.
IN_CHROOT = 'mkdir -p "$DEVICES/root" && mount --rbind / "$DEVICES/root" || exit 99; '
CHROOT_AS_USER = f'exec chroot --userspec={USER}:{USER} --groups= "$DEVICES/root" "$@"'
WITHOUT_FUSE = ('mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && mknod -m 666 /dev/zero c 1 5 && '
                'mknod -m 666 /dev/urandom c 1 9 || exit 99; ')


@unittest.skipUnless(os.geteuid() == 0 and shutil.which('setpriv') and shutil.which('unshare'),
                     'needs root, setpriv and unshare')
class Unprivileged(fixture.SharedProject):
    """`una` is an ordinary user; the project is `shared`."""

    def setUp(self):
        super().setUp()
        self.home.chmod(0o755)
        self.program = self.home / 'playfs'
        shutil.copy(self.playfs_path, self.program)
        self.devices = self.home / 'devices'
        self.devices.mkdir()
        try:
            probed = self.as_user('true', check=False)
        except OSError as missing:
            self.skipTest(f'cannot change namespaces here: {missing}')
        if probed.returncode:
            self.skipTest(f'cannot make devices or change namespaces here: {probed.stderr}')

    def environment(self, who):
        variables = super().environment(who)
        if who == 'una':
            for path in (self.home / who, *(self.home / who).iterdir()):
                if path.stat().st_uid == 0 and not path.is_symlink():
                    os.chown(path, USER, USER)
        return {**variables, 'DEVICES': str(self.home / 'devices')}

    def words_as_user(self, *words, setting=WITH_DEVICE + AS_USER):
        return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', setting, 'sh', *map(str, words)]

    def as_user(self, *words, setting=WITH_DEVICE + AS_USER, cwd='/', **options):
        return self.command(*self.words_as_user(*words, setting=setting), who='una', cwd=cwd, **options)

    def playfs_as_user(self, *words, **options):
        return self.as_user(self.program, *words, **options)

    def start_as_user(self, *words, **options):
        """A process that is ended at the latest with the test."""
        process = subprocess.Popen(self.words_as_user(*words), env=self.environment('una'), cwd='/', text=True,
                                   stdin=options.pop('stdin', subprocess.DEVNULL), **options)

        def end():
            process.kill()
            process.wait()

        self.addCleanup(end)
        return process

    def head(self):
        return self.api.get('projects', self.project).get('latest_revision')

    def files(self):
        return set(self.api.get('revisions', self.head())['manifest']['files']) if self.head() else set()


def children_of(pid):
    return [int(child) for child in pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]


def state_of(pid):
    """One letter: R, S, T (stopped), Z … None if there is no such process."""
    try:
        return pathlib.Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
