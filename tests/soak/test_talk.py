#!/usr/bin/env python3
"""Agents talk through mounts of their own, while mounts and the service are killed and the network fails
(talk_run.py lists the claims).

By hand: PYTHONPATH=tests/support tests/soak/test_talk.py --minutes N [--seed S] [--steps N] [--shorten N]. A failing run
is printed with its seed, shortened if there are minutes for that: add it here as a case.
"""
import argparse
import pprint
import sys
import time

import fixture
from talk_invent import Inventor
from talk_run import Run
from trial import Trial

arguments = argparse.ArgumentParser()
arguments.add_argument('--minutes', type=float, default=0.4)
arguments.add_argument('--seed', type=int, default=1)
arguments.add_argument('--steps', type=int, default=120, help='of each seed')
arguments.add_argument('--quiet', type=int, default=40, help='steps from one quiet moment to the next')
arguments.add_argument('--shorten', type=float, default=0, help='minutes')
chosen, sys.argv[1:] = arguments.parse_known_args()


@fixture.needs_fuse
class Talk(fixture.Fixture):
    def setUp(self):
        super().setUp()
        self.out_of_time.cancel()  # every wait has a limit of its own
        self.inventor, self.taken = None, 0
        self.trial = Trial(self.make_run, self.next_step, look=('quiet',))

    def make_run(self, number):
        self.run_of_talk = Run(self, number)
        return self.run_of_talk

    def api_of(self, service):
        return fixture.Api(service.url)

    def environment(self, who):
        """`who` is RUN/HOME/AGENT here: agents may share a home."""
        home, is_agent, agent = who.rpartition('/')
        return {**super().environment(home), 'PLAYFS_AGENT': agent} if is_agent else super().environment(who)

    def next_step(self, _, chance):
        self.inventor = self.inventor or Inventor(chance)
        self.taken += 1
        if self.taken > chosen.steps:
            return ('quiet',) if self.taken == chosen.steps + 1 else None
        return self.inventor.step() if self.taken % chosen.quiet else ('quiet',)

    def replay(self, *steps):
        if difference := self.trial.replay(steps):
            raise difference

    # What such runs have found, with one sequence for each.

    def test_an_edit_that_mentions_somebody_is_new_again_though_their_mount_was_killed(self):
        self.replay(('thread', 0, 'help', 'json'), ('quiet',), ('reply', 2, 2, None, (), 'read'), ('quiet',),
                    ('mark', 0, 0, 1, False), ('kill', 0, 0.2), ('name', 0, 1, 'ann'), ('back', 0))

    def test_random_trouble(self):
        end, seed, steps_of_all = time.monotonic() + 60 * chosen.minutes, chosen.seed, 0
        while seed == chosen.seed or time.monotonic() < end:
            self.inventor, self.taken, begun = None, 0, time.monotonic()
            steps, difference = self.trial.invent(seed, 2 * chosen.steps)
            steps_of_all += len(steps)
            if difference:
                print(f'\nseed {seed}, step {len(steps)}: {difference}', flush=True)
                if chosen.shorten:
                    steps, difference = self.trial.shorten(steps, difference, 60 * chosen.shorten)
                self.fail(f'seed {seed}: {difference}\nself.replay(*{pprint.pformat(tuple(steps), width=110)})')
            print(f'seed {seed}: {len(steps)} steps in {time.monotonic() - begun:.0f} s, {self.run_of_talk}', flush=True)
            seed += 1
        print(f'{steps_of_all} steps', flush=True)


if __name__ == '__main__':
    fixture.main()
