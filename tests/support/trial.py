"""Lists of steps that a model and the real system take together: run, generated, replayed, shortened.

Each list gets a fresh run, which has take(step), which raises if the two differ, and end(). A step is a tuple that can
be printed. Any list of steps is valid, so a failing one can be shortened.
"""
import random
import time


class Trial:
    def __init__(self, make_run, invent, look=('check',)):
        """`make_run(number)` starts a run, `invent(run, chance)` returns its next step, `look` is the step that checks
        everything."""
        self.make_run, self.next_of, self.look, self.runs = make_run, invent, look, 0

    def attempt(self, next_step):
        """Takes the steps that `next_step` returns for a run, until None. The steps taken, and the difference found."""
        self.runs += 1
        run, taken = self.make_run(self.runs), []
        try:
            while step := next_step(run):
                taken.append(step)
                run.take(step)
            return taken, None
        except (AssertionError, OSError) as difference:
            return taken, difference
        finally:
            run.end()

    def replay(self, steps):
        """Runs a list of steps and a final check of everything; the difference found."""
        left = iter((*steps, self.look))
        return self.attempt(lambda _: next(left, None))[1]

    def invent(self, seed, length):
        """Random steps; the steps taken, and the difference found."""
        chance = random.Random(seed)
        left = iter(range(length))
        return self.attempt(lambda run: next((self.next_of(run, chance) for _ in left), None))

    def shorten(self, steps, difference, seconds):
        """As few steps as are found within `seconds` that still show a difference; and that difference."""
        end, piece = time.monotonic() + seconds, max(1, len(steps) // 2)
        while piece:
            begin = len(steps) - piece
            while begin >= 0 and time.monotonic() < end:
                fewer = steps[:begin] + steps[begin + piece:]
                if fewer and (found := self.replay(fewer)):
                    steps, difference = fewer, found
                begin -= piece
            piece = piece // 2 if time.monotonic() < end else 0
        return steps, difference
