"""Lists of steps that a model and the real thing take together: taken, invented by chance, replayed, made shorter.

A run is made anew for each list; it has take(step), which raises where the two differ, and end(). A step is a tuple that
can be written down. Any list of steps makes sense, so that one that shows a fault can be made shorter.
"""
import random
import time


class Trial:
    def __init__(self, make_run, invent, look=('check',)):
        """`make_run(number)` begins a run, `invent(run, chance)` gives its next step, `look` is the step that looks at
        everything."""
        self.make_run, self.next_of, self.look, self.runs = make_run, invent, look, 0

    def attempt(self, next_step):
        """Takes the steps that `next_step` gives for a run, until None. What was taken, and the difference found."""
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
        """A list of steps, with a look at everything at its end; the difference found."""
        left = iter((*steps, self.look))
        return self.attempt(lambda _: next(left, None))[1]

    def invent(self, seed, length):
        """Random steps; what was taken, and the difference found."""
        chance = random.Random(seed)
        left = iter(range(length))
        return self.attempt(lambda run: next((self.next_of(run, chance) for _ in left), None))

    def shorten(self, steps, difference, seconds):
        """Fewer steps that still show a difference, as few as are found in that time; and the one that they show."""
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
