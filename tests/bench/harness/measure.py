"""Timing in rounds: in each, every contender runs once, in a new order, so that a busy machine is busy for all alike."""
import os
import random
import statistics
import subprocess
import time


def seconds_of(words, cwd, good=(0,)):
    """A command's wall time, its start included."""
    start = time.perf_counter()
    done = subprocess.run(words, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          close_fds=False, timeout=600)
    took = time.perf_counter() - start
    if done.returncode not in good:
        raise RuntimeError(f'{words} in {cwd}: exit {done.returncode} {done.stderr[-500:]}')
    return took


def interleaved(contenders, rounds, patience=1.0, seed=1):
    """{name: callable giving seconds} -> {name: {round: seconds}}. Round 0 warms up and is not kept. A contender whose
    run takes more than `patience` seconds is asked in three rounds only."""
    order, chance = list(contenders), random.Random(seed)
    times = {name: {} for name in order}
    for turn in range(rounds + 1):
        chance.shuffle(order)
        for name in order:
            slow = turn > 3 and statistics.median(times[name].values()) > patience
            if not slow:
                times[name][turn] = contenders[name]()
        if turn == 0:
            for known in times.values():
                known.clear()
    return times


def spread(values):
    """Median and quartiles."""
    values = sorted(values)
    if len(values) < 2:
        return {'median': values[0], 'low': values[0], 'high': values[0], 'runs': len(values)}
    low, middle, high = statistics.quantiles(values, n=4, method='inclusive')
    return {'median': middle, 'low': low, 'high': high, 'runs': len(values)}


def compare(times, yardstick):
    """By contender: seconds, and the ratio to the yardstick's run of the same round."""
    base = times[yardstick]
    return {name: {'seconds': spread(known.values()),
                   'ratio': spread([known[turn] / base[turn] for turn in known if turn in base])}
            for name, known in times.items()}


def machine():
    def first(path, key):
        with open(path, encoding='utf-8') as lines:
            return next((line.split(':', 1)[1].strip() for line in lines if line.startswith(key)), '?')
    memory = int(first('/proc/meminfo', 'MemTotal').split()[0]) // 2**20
    load = os.getloadavg()[0]
    return {'cpu': first('/proc/cpuinfo', 'model name'), 'cores': os.cpu_count(), 'memory_gib': memory,
            'kernel': os.uname().release, 'load_at_start': round(load, 2)}
