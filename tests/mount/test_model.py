#!/usr/bin/env python3
"""Random work by three processes in one mount, compared with a model of the expected result (tests/support/model.py).

PLAYFS_MODEL_SEED and PLAYFS_MODEL_LENGTH select another run and its number of steps. A failing run is shortened and
printed; add what it printed here as a case.
"""
import os
import pprint

import model_run
import fixture
from model_invent import invent
from trial import Trial

SEEDS = [int(os.environ['PLAYFS_MODEL_SEED'])] if 'PLAYFS_MODEL_SEED' in os.environ else [1, 2, 3]
LENGTH = int(os.environ.get('PLAYFS_MODEL_LENGTH', 200))
SHORTENING = 120  # seconds


@fixture.needs_fuse
class Model(fixture.Fixture):
    def setUp(self):
        super().setUp()
        api = self.serve()
        self.trial = Trial(lambda number: model_run.Run(self, api, f'run{number}'), lambda run, chance: invent(run.model, chance))

    def replay(self, *steps):
        difference = self.trial.replay(steps)
        if difference:
            raise difference

    def test_random_work(self):
        for seed in SEEDS:
            self.out_of_time.cancel()  # long runs take longer than a test may
            steps, difference = self.trial.invent(seed, LENGTH)
            if difference:
                print(f'\nseed {seed}, step {len(steps)}: {difference}', flush=True)
                steps, difference = self.trial.shorten(steps, difference, SHORTENING)
                self.fail(f'seed {seed}: {difference}\nself.replay(*{pprint.pformat(tuple(steps), width=110)})')

    # What such runs have found.

    def test_either_name_of_a_published_file_may_go(self):
        """The work tree no longer opened."""
        self.replay(('publish', 'mounted', (('b', 'file', 5, 1),)), ('link', 0, 'b', 'a'), ('commit',), ('unlink', 0, 'a'),
                    ('commit',), ('check',), ('remount',))

    def test_a_name_that_others_replace_is_a_link_less(self):
        self.replay(('publish', 'mounted', (('a', 'file', 5, 1),)), ('link', 0, 'a', 'b'), ('commit',), ('check',),
                    ('publish', 'mounted', (('a', 'file', 5, 2),)))

    def test_a_link_less_where_nobody_looked_into_the_directory_of_the_other_name(self):
        self.replay(('publish', 'mounted', (('d/a', 'file', 5, 1),)), ('link', 0, 'd/a', 'b'), ('commit',), ('remount',),
                    ('chmod', 0, 'b', 0o600), ('publish', 'mounted', (('d/a', 'file', 5, 2),)))

    def test_an_open_file_that_is_discarded_has_no_links(self):
        self.replay(('create', 0, 'a', 0o644), ('open_slot', 1, 0, 'a'), ('check',), ('discard',))

    def test_times_of_a_directory_after_the_first_change_in_it(self):
        for change in (('rename', 0, 'd/a', 'd/c', 0), ('rename', 0, 'd/a', 'd/b', 2), ('link', 0, 'd/a', 'd/c')):
            for end in ('remount', 'kill'):
                self.replay(('publish', 'mounted', (('d/a', 'file', 5, 1), ('d/b', 'file', 5, 2))), change, ('check',),
                            (end,))

    def test_times_of_a_directory_that_others_changed(self):
        self.replay(('publish', 'mounted', (('d/a', 'file', 5, 1),)), ('check',),
                    ('publish', 'mounted', (('d/b', 'file', 5, 2),)), ('check',), ('remount',))


if __name__ == '__main__':
    fixture.main()
