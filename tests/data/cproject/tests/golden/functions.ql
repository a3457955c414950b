# Functions are values: they close over their surroundings and can be passed on.
let twice = fn(f) => fn(x) => f(f(x));
let counter = fn(step) => fn(n) => n + step;
print(twice(counter(5))(1));
let compose = fn(f, g) => fn(x) => f(g(x));
print(compose(fn(x) => x * x, fn(x) => x + 1)(6));
let fib = fn(n) => if n < 2 then n else fib(n - 1) + fib(n - 2);
print(fold(0, 15, "", fn(line, i) => line + text(fib(i)) + " "));
