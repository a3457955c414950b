#!/usr/bin/env python3
"""The Debian packages: what is in them, and that each part works in the program that it is for. They are made by
tools/package from what is built here, without compiling again, and unpacked into a folder."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import fixture

BUILD = pathlib.Path(fixture.Fixture.playfs_path).resolve().parents[2]
MISSING = [name for name in ('git', 'dh', 'lintian', 'man', 'zsh', 'fish', 'pkg-config') if not shutil.which(name)]


def make_packages(place):
    """Their files by the package's name, and the tarball's as 'tarball'."""
    done = subprocess.run([fixture.ROOT / 'tools/package', '--tarball', '--reuse', BUILD, place], text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise AssertionError(done.stdout)
    (tarball,) = place.glob('*.tar.gz')
    return {'tarball': tarball, **{file.name.partition('_')[0]: file for file in place.glob('*.deb')}}


@unittest.skipIf(MISSING, f'missing: {", ".join(MISSING)}')
@unittest.skipUnless((fixture.ROOT / '.git').exists(), 'not a git repository')
class Packages(fixture.Fixture):
    @classmethod
    def setUpClass(cls):
        cls.place = pathlib.Path(tempfile.mkdtemp(prefix='playfs-packages-'))
        cls.addClassCleanup(shutil.rmtree, cls.place)
        cls.packages = make_packages(cls.place / 'made')
        cls.root = cls.place / 'root'
        for name in ('playfs', 'playfs-dev', 'playfs-server'):
            subprocess.run(['dpkg-deb', '--extract', cls.packages[name], cls.root], check=True)

    def environment(self, who):
        """What is found where the packages would have put it."""
        share = self.root / 'usr/share'
        return {**super().environment(who), 'PATH': f'{self.root}/usr/bin:{os.environ["PATH"]}', 'MANPATH': str(share / 'man'),
                'PKG_CONFIG_PATH': str(share / 'pkgconfig'), 'PKG_CONFIG_SYSROOT_DIR': str(self.root),
                'XDG_DATA_DIRS': f'{share}:/usr/share', 'LC_ALL': 'C.UTF-8'}

    def contents(self, package):
        listed = self.command('dpkg-deb', '--contents', self.packages[package]).stdout
        return [line.split()[5].removeprefix('.') for line in listed.splitlines() if not line.startswith('d')]

    def field(self, package, name):
        return self.command('dpkg-deb', '--field', self.packages[package], name).stdout.strip()

    def commands(self):
        """All of them, and their other names."""
        listed = self.command('playfs', '--help').stdout.partition('Subcommands:')[2].partition('\n\n')[0]
        return [name for names in re.findall(r'^  ([\w-]+(?:, [\w-]+)*)', listed, re.M) for name in names.split(', ')]

    def test_they_are_complete(self):
        self.assertLessEqual({'playfs', 'playfs-dev', 'playfs-server'}, self.packages.keys())
        self.assertLessEqual({'/usr/bin/playfs', '/usr/sbin/mount.playfs', '/usr/share/playfs/SKILL.md',
                              '/usr/lib/systemd/user/playfs@.service', '/usr/share/man/man8/mount.playfs.8.gz',
                              '/usr/share/bash-completion/completions/playfs',
                              '/usr/share/zsh/vendor-completions/_playfs',
                              '/usr/share/fish/vendor_completions.d/playfs.fish'}, set(self.contents('playfs')))
        self.assertEqual([name for name in self.contents('playfs-dev') if '/doc/' not in name],
                         ['/usr/include/playfs/ioctl.h', '/usr/share/pkgconfig/playfs.pc'])
        server = self.contents('playfs-server')
        self.assertRegex('\n'.join(server), r'(?m)^(/usr)?/lib/systemd/system/playfs-serve\.service$')
        self.assertLessEqual({'/usr/share/doc/playfs-server/examples/nginx/playfs.conf', '/etc/logrotate.d/playfs-server'},
                             set(server))
        self.assertEqual(os.readlink(self.root / 'usr/sbin/mount.playfs'), '../bin/playfs')

    def test_their_version_is_the_programs(self):
        version = self.command('playfs', '--version').stdout.split()[1]
        released = self.command('git', '-C', fixture.ROOT, 'tag', '--points-at', 'HEAD', '--list', 'v' + version).stdout
        changed = self.command('git', '-C', fixture.ROOT, 'diff', '--quiet', 'HEAD', check=False).returncode
        # A later commit's package is a newer one for apt.
        since = '' if released and not changed else r'[~+]git\d{8}\.\d{6}'
        for package in ('playfs', 'playfs-dev', 'playfs-server'):
            self.assertRegex(self.field(package, 'Version'), f'^{re.escape(version)}{since}-1~[a-z]+[0-9.]+$')
        self.assertEqual(self.command('pkg-config', '--modversion', 'playfs').stdout.strip(), version)

    def test_an_upgrade_restarts_the_server(self):
        """And nothing starts one. What the package's scripts do, as if systemd ran."""
        scripts = self.home / 'scripts'
        self.command('dpkg-deb', '--control', self.packages['playfs-server'], scripts)
        for name in ('deb-systemd-invoke', 'deb-systemd-helper', 'systemctl'):
            (self.home / name).write_text(f'#!/bin/sh\necho {name} "$*" >>{self.home}/done\n', encoding='utf-8')
            (self.home / name).chmod(0o755)

        def done(*calls):
            (self.home / 'done').write_text('', encoding='utf-8')
            for script, *arguments in calls:
                if (scripts / script).exists():
                    text = (scripts / script).read_text(encoding='utf-8').replace('/run/systemd/system', '/')
                    subprocess.run(['sh', '-c', text, script, *arguments], check=True,
                                   env={**os.environ, 'PATH': f'{self.home}:{os.environ["PATH"]}'})
            return re.findall(r'(?m)^deb-systemd-invoke (\S+) playfs-serve.service$', (self.home / 'done').read_text(encoding='utf-8'))

        # deb-systemd-invoke starts no unit that is not enabled.
        self.assertEqual(done(('preinst', 'install'), ('postinst', 'configure', '')), ['start'])
        self.assertEqual(done(('prerm', 'upgrade', '2'), ('preinst', 'upgrade', '1'), ('postrm', 'upgrade', '2'),
                              ('postinst', 'configure', '1')), ['restart'])
        self.assertEqual(done(('prerm', 'remove'), ('postrm', 'remove')), ['stop'])
        # The program is another package's, and may be upgraded alone.
        self.assertIn('interest-noawait /usr/bin/playfs', (scripts / 'triggers').read_text(encoding='utf-8'))
        self.assertEqual(done(('postinst', 'triggered', '/usr/bin/playfs')), ['try-restart'])

    def test_what_only_some_need_is_suggested(self):
        depends, suggests = self.field('playfs', 'Depends'), self.field('playfs', 'Suggests')
        for name in ('fuse3', 'libgit2', 'libsqlite3'):
            self.assertIn(name, depends)
        for name in ('ca-certificates', 'libcurl4', 'libgmime', 'libpq5'):
            self.assertIn(name, suggests)
            self.assertNotIn(name, depends)
        self.assertEqual(self.field('playfs', 'Recommends'), '')

    def test_the_tarball_works_from_any_folder(self):
        self.command('tar', '--extract', '--gunzip', '--file', self.packages['tarball'], cwd=self.home)
        (top,) = self.home.glob('playfs-*')
        version = self.command(top / 'bin/playfs', '--version').stdout.split()[1]
        self.assertEqual(top.name, f'playfs-{version}-{os.uname().machine}')
        for name in ('LICENSE', 'README.md', 'include/playfs/ioctl.h', 'licenses/libfuse3-dev', 'share/man/man1/playfs-commit.1',
                     'share/playfs/SKILL.md', 'share/bash-completion/completions/playfs', 'share/zsh/site-functions/_playfs',
                     'share/fish/vendor_completions.d/playfs.fish'):
            self.assertTrue((top / name).is_file(), name)
        self.assertEqual(os.readlink(top / 'sbin/mount.playfs'), '../bin/playfs')
        licenses = '\n'.join(file.read_text(encoding='utf-8') for file in (top / 'licenses').iterdir())
        named = set(re.findall(r'/usr/share/common-licenses/([\w.-]*\w)', licenses))
        self.assertIn('LGPL-2.1', named)
        for name in named:
            self.assertTrue((top / 'licenses' / name).is_file(), name)
        found = subprocess.run(['pkg-config', '--cflags', top / 'share/pkgconfig/playfs.pc'], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        self.assertEqual(os.path.realpath(found.split()[0].removeprefix('-I')), str((top / 'include').resolve()))
        listed = self.command('tar', '--list', '--verbose', '--numeric-owner', '--file', self.packages['tarball']).stdout
        self.assertEqual({line.split()[1] for line in listed.splitlines()}, {'0/0'})
        self.assertEqual(set(re.findall(r'(?m)^[^l].{9}', listed)), {'drwxr-xr-x', '-rw-r--r--', '-rwxr-xr-x'})

    def test_two_runs_make_the_same_bytes(self):
        again = make_packages(self.place / 'again')
        self.assertEqual(again.keys(), self.packages.keys())
        for name, file in again.items():
            self.assertEqual(file.read_bytes(), self.packages[name].read_bytes(), name)

    def test_every_command_has_a_page(self):
        names = self.commands()
        self.assertIn('publish', names)
        for page in ('playfs', 'mount.playfs', *(f'playfs-{name}' for name in names)):
            with self.subTest(page=page):
                self.assertTrue(self.command('man', '-w', page).stdout.startswith(str(self.root)))
                shown = self.command('man', '--warnings', page)
                self.assertEqual(shown.stderr, '')
                self.assertRegex(shown.stdout, r'(?m)^NAME\n +\S+.*? +- +\S')
        self.assertRegex(self.command('man', 'playfs-thread').stdout, r'(?s)thread new.*--dry-run.*SEE ALSO')

    def test_completion_in_zsh(self):
        (self.home / 'src').mkdir()
        (self.home / '.zshrc').write_text(f'fpath=({self.root}/usr/share/zsh/vendor-completions $fpath)\n'
                                          "autoload -U compinit; compinit -u; PS1='READY> '\n", encoding='utf-8')

        def complete(line):
            """The line after a tab: the terminal's user turns it into an argument of print."""
            shown = self.on_terminal('zsh', '-i', variables={'ZDOTDIR': str(self.home)}, cwd=self.home, until='READY> ',
                                     answer=f'{line}\t\x01print -r -- LINE \nexit\n'.encode())[1]
            return re.findall(r'^LINE (.*?) *$', shown, re.M)[0]

        self.assertEqual(complete('playfs chec'), 'playfs checkpoint')
        self.assertEqual(complete('playfs thread sh'), 'playfs thread show')
        self.assertEqual(complete('playfs thread show --fol'), 'playfs thread show --follow')
        self.assertEqual(complete('playfs thread list --fol'), 'playfs thread list --fol')
        self.assertEqual(complete('playfs publish --resol'), 'playfs publish --resolved')
        self.assertEqual(complete('playfs --site local:x cache ver'), 'playfs --site local:x cache verify')
        self.assertEqual(complete('playfs run x --instructions=sh'), 'playfs run x --instructions=show')
        self.assertEqual(complete('playfs import s'), 'playfs import src')
        (self.home / 'branches/1m7y').mkdir(parents=True)
        self.assertEqual(complete('playfs merge 1'), 'playfs merge 1m7y')

    def test_completion_in_fish(self):
        work = self.home / 'branch/work'
        (work / 'src').mkdir(parents=True)
        (self.home / 'branch/branches/1m7y').mkdir(parents=True)

        def complete(line):
            shown = self.command('fish', '-c', f'complete -C {line!r}', cwd=work).stdout
            return dict((text + '\t').split('\t')[:2] for text in shown.splitlines())

        self.assertLessEqual(set(self.commands()), complete('playfs ').keys())
        self.assertEqual(complete('playfs chec'), {'checkpoint': 'Keep what is staged on this machine, to return to it'})
        self.assertEqual(complete('playfs thread ').keys(), {'list', 'new', 'show'})
        self.assertIn('--follow', complete('playfs thread show --f'))
        self.assertNotIn('--follow', complete('playfs thread list --f'))
        self.assertIn('--resolved', complete('playfs --site local:x publish --'))
        self.assertEqual(complete('playfs cache ').keys(), {'stat', 'verify', 'clear'})
        self.assertEqual(complete('playfs run x --instructions ').keys(), {'show', 'hide'})
        self.assertEqual(complete('playfs merge ').keys(), {'1m7y'})
        self.assertEqual(complete('playfs mount ').keys(), {'src/'})

    def test_a_program_compiles_against_the_header(self):
        flags = self.command('pkg-config', '--cflags', 'playfs').stdout.split()
        self.assertIn(f'-I{self.root}/usr/include', flags)
        self.command('cc', '-std=gnu11', '-Wall', '-Werror', *flags, '-o', self.home / 'commit',
                     fixture.ROOT / 'tests/mount/commit.c')

    @unittest.skipUnless(shutil.which('systemd-analyze'), 'systemd is missing')
    def test_systemd_takes_the_units(self):
        for unit in self.root.rglob('*.service'):
            with self.subTest(unit=unit.name):
                text = unit.read_text(encoding='utf-8').replace('/usr/bin/playfs', f'{self.root}/usr/bin/playfs')
                copy = self.home / unit.name.replace('@', '@play')
                copy.write_text(text, encoding='utf-8')
                which = ['--user'] if 'user' in unit.parts else []
                done = self.command('systemd-analyze', *which, '--man=no', 'verify', copy, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ''))


if __name__ == '__main__':
    fixture.main()
