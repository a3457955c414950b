# What is printed before a mistake stays; the mistake names its line.
print("before");
let half = fn(n) => n / 0;
print("never seen", half(3));
