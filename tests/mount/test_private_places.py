#!/usr/bin/env python3
"""Where a mount keeps what is staged, and its cache: for one user, whoever made the directories."""
import json
import os
import pathlib
import unittest

import fixture
import projects

DENIED = 6  # an exit code
NOBODY = 65534


@fixture.needs_fuse
class PrivatePlaces(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.api = self.serve()
        self.project = projects.publish(self.api, 'p', {'file': 'published\n'})
        variables = self.environment('eve')
        self.state, self.cache = (pathlib.Path(variables[f'XDG_{kind}_HOME']) / 'playfs' for kind in ('STATE', 'CACHE'))

    def run_mount(self):
        """What a mount that goes to the background says; it is used, and ended."""
        place = self.home / f'm{len(list(self.home.glob("m*")))}'
        place.mkdir()
        done = self.playfs('mount', self.api.origin, place, who='eve', check=False)
        if done.returncode == 0:
            work = place / 'projects/by-name/p/work'
            self.assertEqual((work / 'file').read_text(), 'published\n')
            (work / 'new').write_text('x')
            self.playfs('umount', place, who='eve')  # waits for its process, which has the work tree
        return done

    def test_what_others_could_write_is_made_private_and_told(self):
        self.assertNotIn('others could write', self.run_mount().stderr)
        sites = self.state / 'sites'
        places = [self.state, sites, next(sites.iterdir()), self.cache]
        for place in places:
            place.chmod(0o777)
        database = next(self.state.rglob('stage.db'))
        database.chmod(0o666)
        said = self.run_mount().stderr
        for place in places:
            self.assertEqual(place.stat().st_mode & 0o777, 0o700, place)
            self.assertEqual(said.count(f'others could write to {place}:'), 1, said)
        self.assertEqual(database.stat().st_mode & 0o777, 0o600)
        self.assertNotIn('others could write', self.run_mount().stderr)

    @unittest.skipUnless(os.geteuid() == 0, 'needs a mount namespace')
    def test_it_is_made_private_without_proc_too(self):
        """A directory is; for a file, which must not be opened for it, the error says what to do."""
        def listed():
            # The root of a chroot is no mount point, so unshare(1) could not make it private.
            hidden = 'mount --make-private /proc && mount -t tmpfs none /proc && exec "$@"'
            return self.command('unshare', '--mount', '--propagation', 'unchanged', 'sh', '-c', hidden, 'sh',
                                self.playfs_path, 'ls', '--site', f'local:{store}', who='eve', check=False)

        store = self.home / 'store'
        self.playfs('init', 'x', '--site', f'local:{store}', who='eve')
        store.chmod(0o777)
        done = listed()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(store.stat().st_mode & 0o777, 0o700)
        database = next(store.glob('*.db'))
        database.chmod(0o666)
        done = listed()
        self.assertEqual(done.returncode, DENIED, done.stderr)
        self.assertIn('without /proc', done.stderr)
        self.assertIn(f'chmod go-w {database}', done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, 'only root may give files away')
    def test_what_belongs_to_another_user_is_not_used(self):
        self.run_mount()
        for place in self.state, self.state / 'sites':
            os.chown(place, NOBODY, NOBODY)
            done = self.run_mount()
            self.assertEqual(done.returncode, DENIED, done.stderr)
            self.assertIn(f'{place} belongs to another user', done.stderr)
            os.chown(place, 0, 0)
        database = next(self.state.rglob('stage.db'))
        os.chown(database, NOBODY, NOBODY)
        mount = self.mount(self.api.origin, who='eve')
        with self.assertRaises(PermissionError):
            os.listdir(mount.project('p') / 'work')
        lines = [json.loads(line) for line in (mount.directory / '.playfs/errors.ndjson').read_text().splitlines()]
        self.assertIn(f'{database} belongs to another user', ' '.join(line['message'] for line in lines))


if __name__ == '__main__':
    fixture.main()
