# The primes up to 100, by trial division.
let divides = fn(d, n) => n % d == 0;
let prime = fn(n) => n > 1 and not fold(2, floor(sqrt(n)), false, fn(found, d) => found or divides(d, n));
print(fold(1, 100, "", fn(line, n) => if prime(n) then line + text(n) + " " else line));
