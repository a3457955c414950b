# Arithmetic, precedence, and how numbers are printed.
print(1 + 2 * 3, (1 + 2) * 3, 2 ^ 10, -2 ^ 2);
print(10 / 4, 10 % 4, 1 / 3, 1000000 * 1000000);
print(0.1 + 0.2 == 0.3, abs(0.1 + 0.2 - 0.3) < 0.0000001);
print(sqrt(2), floor(2.9), round(-2.5), max(1, 5, 3), min(4, 2));
