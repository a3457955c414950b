#!/usr/bin/env python3
"""Several mounts beside a model of the service they show, while the service and the network are in trouble
(tests/support/coherence_run.py lists the claims).

For more rounds: PYTHONPATH=tests/support tests/mount/test_coherence.py --rounds N [--seed S]. A failing run is
shortened and printed; add what it printed here as a case.
"""
import argparse
import pprint
import sys

import fixture
from clocks import Clocks
from coherence_invent import Inventor
from coherence_run import PLAIN, Run
from http2 import Front
from trial import Trial

OTHERS = 104       # projects that nobody enters, so that lists have several pages
ROUNDS_OF_A_RUN = 25
SHORTENING = 240   # seconds
FULL = ('full', ()),
arguments = argparse.ArgumentParser()
arguments.add_argument('--rounds', type=int, default=50)
arguments.add_argument('--seed', type=int, default=1)
chosen, sys.argv[1:] = arguments.parse_known_args()


def published(project, seed, **ways):
    """A step: publishes two files, one of which alternates between file and directory."""
    path = 'f' if seed % 2 else 'f/g'
    return 'publish', project, (('a', 'file', 900, seed), (path, 'program', 40, seed)), tuple({**PLAIN, **ways}.items())


@fixture.needs_fuse
class Coherence(Clocks, fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.out_of_time.cancel()  # every wait has its own limit, and long runs exceed a test's
        self.api, self.others = self.serve(), []
        front = Front(self) if Front.is_there() else None
        self.inventor = None
        self.trial = Trial(lambda number: Run(self, self.api, number, front), self.next_step, look=('quiet',))
        self.is_http2_there = front is not None

    def make_others(self):
        self.others = [self.api.create('projects', name=f'other {n}')['id'] for n in range(OTHERS)]

    def next_step(self, _, chance):
        self.inventor = self.inventor or Inventor(chance, self.is_http2_there)
        return self.inventor.step(min(ROUNDS_OF_A_RUN, self.left))

    def replay(self, *steps):
        if difference := self.trial.replay(steps):
            raise difference

    def test_random_trouble(self):
        self.make_others()
        self.let_clocks_jump()
        self.left, seed = chosen.rounds, chosen.seed
        while self.left > 0:
            self.inventor = None
            steps, difference = self.trial.invent(seed, 100 * ROUNDS_OF_A_RUN)
            if difference:
                print(f'\nseed {seed}, step {len(steps)}: {difference}', flush=True)
                steps, difference = self.trial.shorten(steps, difference, SHORTENING)
                self.fail(f'seed {seed}: {difference}\nself.replay(*{pprint.pformat(tuple(steps), width=110)})')
            self.left -= ROUNDS_OF_A_RUN
            seed += 1

    # What such runs have found, with one sequence for each.

    def replay_on(self, mounts, *steps):
        """In the first of two projects with one revision each, which all mounts have seen."""
        self.replay(('project', 'a'), ('project', 'b'), published(0, 1), published(1, 2),
                    *(('mount', kind, options, False) for kind, options in mounts), ('quiet',), *steps)

    def test_a_head_that_was_set_back_is_followed_while_records_are_missing(self):
        self.replay_on(FULL, published(0, 3), ('quiet',), ('trouble', 0, 'missing', None, 'revisions'), ('move', 0, 0), ('wait',),
                       ('quiet',))

    def test_mounts_of_one_project_follow_it(self):
        self.replay_on((('one', ()), ('one-ro', ())), published(0, 3), ('quiet',), published(0, 4))

    def test_one_that_another_process_has_open_follows_too(self):
        self.replay_on(FULL, ('look', 0, 0, 'work'), ('mount', 'beside', (), False), published(0, 3), ('quiet',),
                       published(0, 4), ('away', 0, False), ('look', 1, 0, 'work'), published(0, 6))

    def test_a_size_in_characters_cuts_nothing_whoever_wrote_the_manifest_first(self):
        self.replay_on(FULL, published(0, 3, tx='own'), published(0, 5, tx='carried', size='characters'))

    def test_readers_that_hang_take_nobodys_turn(self):
        self.replay_on(FULL, ('crowd', 0, 0, 14), ('crowd', 0, 0, 70))

    def test_a_lookup_that_waits_holds_up_its_own_project_alone(self):
        self.replay_on(FULL, published(0, 3), ('quiet',), ('latch', 0, 0))

    def test_work_is_as_new_as_head_after_a_mount(self):
        for how in ((('delay', 0, 0.5), ('back', 0, False)), (('back', 0, True), ('look', 0, 0, 'head'), ('quiet',))):
            self.replay_on(FULL, ('away', 0, False), published(0, 3), ('command', 0, 0), *how)

    def test_a_list_is_whole_after_the_cache_was_cleared(self):
        self.make_others()
        self.replay_on(FULL, ('clear', 0), ('project', 'c'), ('quiet',), ('away', 0, False))

    def test_a_refused_store_is_seen_by_nobody(self):
        self.replay_on(FULL, ('scribble', 0, 0, 0))

    def test_what_is_known_is_shown_while_nothing_is_answered(self):
        self.replay_on(FULL, ('stall', 0))

    def test_the_first_look_after_idle_minutes_asks(self):
        self.make_others()
        self.let_clocks_jump()
        self.replay_on(FULL, ('idle', 0, 0))

    def test_names_are_as_fresh_as_lists(self):
        self.replay_on(FULL, ('rename', 0, 'z'), ('quiet',), ('new', 0, 'x'), ('new', 0, 'y'))

    def test_a_head_that_is_no_revision_of_the_project_is_shown_nowhere(self):
        self.replay_on((('full', ()), ('ro', ())), ('stray', 0, 1), ('wait',), ('quiet',), published(0, 3))

    def test_a_cache_whose_shared_file_was_cut_costs_speed_alone(self):
        self.replay_on(FULL, ('damage', 0), published(0, 3), ('clear', 0))

    def test_to_slow_down_for_a_day_is_no_day_without_reads(self):
        self.let_clocks_jump()
        self.replay_on(FULL, ('trouble', 0, 'limited', None, None), published(0, 3), ('look', 0, 0, 1))

    def test_one_answer_that_is_no_record_is_not_the_last_word(self):
        for lie in ('other', 'cut'):
            self.replay_on(FULL, ('trouble', 0, lie, 0, 'revisions'), published(0, 3), ('wait',))

    def test_all_revisions_are_listed_whatever_was_read_before(self):
        self.replay_on(FULL, published(0, 3), ('move', 0, 0), ('quiet',), ('file', 0, 0, 'log.ndjson'), published(0, 4))


if __name__ == '__main__':
    fixture.main()
