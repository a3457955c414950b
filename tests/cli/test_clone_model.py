#!/usr/bin/env python3
"""Two clones and a mount of one project, used in turn by a random model, and at times both clones at once: what is
published equals a plain directory that got the same edits, also where they were discarded and restored in between.
Commands are killed at random instants.

PLAYFS_SEED repeats a run, PLAYFS_STEPS sets its length. Without FUSE a third clone takes the mount's place.
"""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess

import fixture

STEPS = int(os.environ.get('PLAYFS_STEPS', '120'))
fixture.TEST_LIMIT = max(fixture.TEST_LIMIT, 2 * STEPS)
# Of two that publish at once, one that was killed may have to make sure for two minutes that nothing of it arrives late.
fixture.COMMAND_LIMIT = max(fixture.COMMAND_LIMIT, 200)
NAMES = ['a', 'b', 'dir', 'other', 'x.c', 'README', 'ü', 'with space']


class Tree:
    """Edits of a plain directory, each made alike in two trees."""

    def __init__(self, rng, *places):
        self.rng, self.places = rng, places

    def paths(self, kinds):
        found = []
        for folder, folders, files in os.walk(self.places[0]):
            folders[:] = sorted(name for name in folders if name != '.playfs')
            for name in sorted(files) + folders:
                path = pathlib.Path(folder, name)
                kind = 'link' if path.is_symlink() else 'folder' if path.is_dir() else 'file'
                if kind in kinds:
                    found.append(path.relative_to(self.places[0]))
        return sorted(found)

    def fresh(self):
        folder = self.rng.choice([pathlib.Path(), *(each for each in self.paths(['folder']) if len(each.parts) < 3)])
        return folder / self.rng.choice(NAMES)

    def content(self):
        kind = self.rng.randrange(4)
        if kind == 0:
            return self.rng.randbytes(self.rng.randrange(5000))
        return ''.join(f'{self.rng.randrange(50)}\n' for _ in range(self.rng.choice([0, 3, 40, 3000]))).encode()

    def each(self, edit):
        for place in self.places:
            edit(place)

    def step(self):
        getattr(self, self.rng.choice(['write', 'write', 'write', 'append', 'remove', 'move', 'chmod', 'link', 'folder',
                                       'remove_folder', 'same']))()

    def write(self):
        path, content = self.fresh(), self.content()
        if (self.places[0] / path).is_dir() and not (self.places[0] / path).is_symlink():
            return

        def edit(place):
            if (place / path).is_symlink():
                (place / path).unlink()
            (place / path).write_bytes(content)
        self.each(edit)

    def append(self):
        if files := self.paths(['file']):
            path, content = self.rng.choice(files), self.content()

            def edit(place):
                with open(place / path, 'ab') as file:
                    file.write(content)
            self.each(edit)

    def same(self):
        """Writes what is there already: no change."""
        if files := self.paths(['file']):
            path = self.rng.choice(files)
            self.each(lambda place: (place / path).write_bytes((place / path).read_bytes()))

    def remove(self):
        if files := self.paths(['file', 'link']):
            path = self.rng.choice(files)
            self.each(lambda place: (place / path).unlink())

    def move(self):
        if found := self.paths(['file', 'link', 'folder']):
            path, to = self.rng.choice(found), self.fresh()
            if os.path.lexists(self.places[0] / to) or to.is_relative_to(path):
                return
            self.each(lambda place: (place / path).rename(place / to))

    def chmod(self):
        if files := self.paths(['file']):
            path, mode = self.rng.choice(files), self.rng.choice([0o644, 0o755])
            self.each(lambda place: (place / path).chmod(mode))

    def link(self):
        path, target = self.fresh(), self.rng.choice(['a', '../b', '/etc/passwd', 'dir'])
        if not os.path.lexists(self.places[0] / path):
            self.each(lambda place: os.symlink(target, place / path))

    def folder(self):
        path = self.fresh()
        if not os.path.lexists(self.places[0] / path):
            self.each(lambda place: (place / path).mkdir())

    def remove_folder(self):
        if folders := self.paths(['folder']):
            path = self.rng.choice(folders)
            self.each(lambda place: shutil.rmtree(place / path))


def remove_empty_folders(place):
    """What another client published has none, so that only then two trees have the same folders."""
    for folder, _, _ in os.walk(place, topdown=False):
        if pathlib.Path(folder) != place and not os.listdir(folder) and '.playfs' not in pathlib.Path(folder).parts:
            os.rmdir(folder)


class Turns(fixture.Fixture):
    def test_a_random_model(self):
        seed = int(os.environ.get('PLAYFS_SEED', random.randrange(1 << 30)))
        print('seed', seed)
        rng = random.Random(seed)
        api = self.serve()
        project = json.loads(self.playfs('init', 'garden', '--json', '--site', api.origin).stdout)['project']
        places = {}
        for who in ('ann', 'bob'):
            places[who] = self.home / f'of-{who}'
            self.playfs('clone', project, places[who], '--site', api.origin, who=who)
        if os.path.exists('/dev/fuse'):
            places['cat'] = self.mount(api.origin, 'cat').directory / 'projects' / project / 'work'
        else:
            places['cat'] = self.home / 'of-cat'
            self.playfs('clone', project, places['cat'], '--site', api.origin, who='cat')
        wanted = self.home / 'wanted'
        wanted.mkdir()
        done = 0
        while done < STEPS:
            if rng.random() < 0.2:
                done += self.both_at_once(rng, places, wanted, (seed, done))
                continue
            who = rng.choice(sorted(places))
            place = places[who]
            in_clone = (place / '.playfs/clone.json').exists()

            def run(*words):
                if in_clone and rng.random() < 0.3:
                    self.kill(words, place, who, rng.random() * 0.2)
                return self.playfs(*words, cwd=place, who=who)

            run('update')
            self.compare(wanted, place, (seed, done, who, 'updated'))
            for each in place, wanted:
                remove_empty_folders(each)
            tree = Tree(rng, place, wanted)
            for _ in range(rng.randrange(1, 8)):
                tree.step()
                done += 1
                if in_clone and rng.random() < 0.1:
                    run('status')
            staged = json.loads(self.playfs('status', '--json', cwd=place, who=who).stdout)['staged']
            if staged and rng.random() < 0.4:
                run('discard', '.')
                newest = json.loads(self.playfs('status', '--json', cwd=place, who=who).stdout)['checkpoints'][0]
                self.assertEqual(newest['message'], 'before a discard', (seed, done, who))
                run('checkpoint', 'restore', str(newest['id']))
                self.compare(wanted, place, (seed, done, who, 'discarded and restored'))
            run('commit', '-m', f'step {done}')
            status = json.loads(self.playfs('status', '--json', cwd=place, who=who).stdout)
            self.assertEqual((status['staged'], status['conflicts']), ([], []), (seed, done, who))
            self.compare(wanted, place, (seed, done, who, 'committed'))
            head = api.get('projects', project).get('latest_revision')
            if head:
                out = self.home / 'out'
                self.playfs('export', head, out, '--site', api.origin, who='dan')
                self.compare(wanted, out, (seed, done, who, 'published'))
                shutil.rmtree(out)

    def both_at_once(self, rng, places, wanted, where):
        """Both clones are edited, each in a folder of its own, and publish at the same moment. Returns the steps."""
        both = [who for who, place in sorted(places.items()) if (place / '.playfs/clone.json').exists()][:2]
        steps = 0
        for who in both:
            self.playfs('update', cwd=places[who], who=who)
            self.compare(wanted, places[who], (*where, who, 'updated, for both'))
        for who in both:
            own = f'only-{who}'
            for each in places[who], wanted:
                remove_empty_folders(each)
                (each / own).mkdir(exist_ok=True)
            tree = Tree(rng, places[who] / own, wanted / own)
            for _ in range(rng.randrange(1, 6)):
                tree.step()
                steps += 1
        running = [(who, subprocess.Popen([self.playfs_path, 'commit', '-m', f'by {who}'], cwd=places[who],
                                          env=self.environment(who), stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE, text=True)) for who in both]
        killed = rng.choice([None, None, *both])
        for who, process in running:
            if who == killed:
                self.end(process, rng.random() * 0.2)
            why = process.communicate(timeout=fixture.COMMAND_LIMIT)[1]
            self.assertIn(process.returncode, (0, -signal.SIGKILL) if who == killed else (0,), (*where, who, why))
            self.tell_waits(who, why)
        if killed:
            self.tell_waits(killed, self.playfs('commit', '-m', f'by {killed}, again', cwd=places[killed], who=killed).stderr)
        for who in both:
            self.playfs('update', cwd=places[who], who=who)
            status = json.loads(self.playfs('status', '--json', cwd=places[who], who=who).stdout)
            self.assertEqual((status['staged'], status['conflicts']), ([], []), (*where, who))
            self.compare(wanted, places[who], (*where, who, 'both at once'))
        return steps

    @staticmethod
    def tell_waits(who, said):
        for line in said.splitlines():
            if line.startswith('Waiting: '):
                print(who, line)

    def kill(self, words, place, who, after):
        process = subprocess.Popen([self.playfs_path, *words], cwd=place, env=self.environment(who),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.end(process, after)

    @staticmethod
    def end(process, after):
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def compare(self, wanted, got, where):
        """Without directories: a revision has no empty ones."""
        def files(place):
            return {path: value for path, value in self.describe(place).items() if value != 'folder'}
        self.assertEqual(files(wanted), files(got), where)


if __name__ == '__main__':
    fixture.main()
