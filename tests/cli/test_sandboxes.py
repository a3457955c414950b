#!/usr/bin/env python3
"""Where agents run: a place without /dev/fuse, worked in from start to end by a script that knows what `playfs --help`
says; and a container that has the device, but no program that may mount."""
import shutil
import unittest

import fixture
import unprivileged

# A root directory as runtimes make it: without setuid programs, without fusermount3, and with a /dev of its own.
CONTAINER = ('mkdir -p "$DEVICES/root" && mount --rbind / "$DEVICES/root" && cd "$DEVICES/root" && '
             'mount -o remount,bind,nosuid . && for helper in usr/bin/fusermount3 bin/fusermount usr/bin/fusermount; do '
             '[ ! -e $helper ] || mount --bind /dev/null $helper || exit 99; done && '
             'pivot_root . . && umount -l . && cd / || exit 99; ')

# Each step is a line of `playfs --help` or of the help of the command that it names.
NEWCOMER = r'''
set -eu
playfs() { command "$PLAYFS" "$@"; }
fails_with() { local wanted=$1 got=0; shift; "$@" || got=$?; [ $got = $wanted ] || { echo "$* gave $got"; exit 1; }; }
[ "$(id -u)" = 1000 ] && [ ! -e /dev/fuse ]
export PLAYFS_SITE=$SITE PLAYFS_AGENT=una

playfs init garden
playfs clone garden ~/garden
cd ~/garden
printf '#include "say.h"\nint main(void) { return say("hello") < 0; }\n' > main.c
printf 'int say(const char *what);\n' > say.h
printf '#include <stdio.h>\n#include "say.h"\nint say(const char *what) { return puts(what); }\n' > say.c
printf 'hello: main.o say.o\n\t$(CC) -o $@ $^\nmain.o say.o: say.h\n' > Makefile
printf '*.o\nhello\n' > .gitignore
make
[ "$(./hello)" = hello ]
playfs status
playfs commit -m 'Say hello'

# Somebody else changes the same line, and another one.
playfs clone garden ~/other
(cd ~/other && make && sed -i 's/hello/hello, world/' main.c && echo '# Garden' > README && playfs commit -m World)
sed -i 's/hello/good morning/' main.c
make
[ "$(./hello)" = 'good morning' ]
playfs diff
fails_with 3 playfs commit -m Morning
fails_with 3 playfs update
[ -e README ]
playfs status
playfs status | grep -q main.c
printf '#include "say.h"\nint main(void) { return say("good morning, world") < 0; }\n' > main.c
playfs commit -m 'Merge both greetings'
make
[ "$(./hello)" = 'good morning, world' ]
playfs log --oneline
(cd ~/other && playfs update && make && [ "$(./hello)" = 'good morning, world' ])

thread=$(playfs thread new 'About the greeting' -m 'I merged both. Is that right?')
playfs thread list | grep -q 'About the greeting'
playfs post "$thread" -m 'It is.'
playfs thread show "$thread" | grep -q 'It is.'
'''


class WithoutTheDevice(unprivileged.Unprivileged):
    @unittest.skipUnless(shutil.which('make') and shutil.which('cc'), 'needs make and a compiler')
    def test_a_newcomer_builds_commits_resolves_and_talks(self):
        script = f'export PLAYFS={self.program} SITE={self.api.origin}; {NEWCOMER}'
        setting = unprivileged.WITHOUT_FUSE + unprivileged.IN_CHROOT + unprivileged.CHROOT_AS_USER
        done = self.as_user('bash', '-c', script, setting=setting, check=False)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        garden = next(each for each in self.api.all('projects') if each['name'] == 'garden')
        head = self.api.get('revisions', garden['latest_revision'])
        self.assertEqual(set(head['manifest']['files']), {'main.c', 'say.c', 'say.h', 'Makefile', '.gitignore', 'README'})
        self.assertLessEqual({'I merged both. Is that right?', 'It is.'},
                             {each['body'] for each in self.api.all('messages')})


@fixture.needs_fuse
class MountedFromFstab(unprivileged.Unprivileged):
    def test_the_home_that_mount_fuse_gives_everybody_is_not_used(self):
        """mount(8) sets no HOME for a user whom fstab lets mount, and mount.fuse then sets root's."""
        named = ('{ echo "una:x:%d:%d::%s:/bin/sh"; cat /etc/passwd; } > "$DEVICES/passwd" && '
                 'mount --bind "$DEVICES/passwd" /etc/passwd || exit 99; '
                 % (unprivileged.USER, unprivileged.USER, self.home / 'una'))
        unset = [word for kind in ('CONFIG', 'DATA', 'CACHE', 'STATE') for word in ('-u', f'XDG_{kind}_HOME')]
        self.as_user('env', *unset, 'HOME=/root', self.program, 'init', 'garden', '--site', 'local:default',
                     setting=named + unprivileged.WITH_DEVICE + unprivileged.AS_USER)
        self.assertTrue((self.home / 'una/.local/share/playfs').is_dir())


@fixture.needs_fuse
class WithTheDeviceAlone(unprivileged.Unprivileged):
    SETTING = unprivileged.WITH_DEVICE + CONTAINER + unprivileged.AS_USER

    def run_in(self, script, *options, check=True):
        return self.playfs_as_user('run', '--site', self.api.origin, 'shared', *options, '--', 'sh', '-c', script,
                                   setting=self.SETTING, check=check)

    def test_run_works_in_a_container_that_has_no_program_to_mount(self):
        done = self.run_in('id -u; ! fusermount3 --version 2> /dev/null; mkdir src; echo "int a;" > src/a.c; exit 7', check=False)
        self.assertEqual((done.returncode, done.stdout), (7, '1000\n'), done.stderr)
        self.assertIn('Still staged in shared: 1 path.', done.stderr)
        self.assertEqual(self.run_in('kill -TERM $$', check=False).returncode, 128 + 15)
        refused = self.run_in('cat src/a.c; echo b > b', '--read-only', check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn('Read-only file system', refused.stderr)
        self.assertEqual(self.files(), set())
        self.assertEqual(self.run_in('cat src/a.c', '--commit', '-m', 'From a container').stdout, 'int a;\n')
        self.assertEqual(self.files(), {'src/a.c'})


if __name__ == '__main__':
    fixture.main()
