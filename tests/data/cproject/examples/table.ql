# A multiplication table, its columns aligned.
let pad = fn(t, width) => repeat(" ", max(0, width - len(t))) + t;
let row = fn(i) => fold(1, 10, "", fn(line, j) => line + pad(text(i * j), 4));
fold(1, 10, nil, fn(none, i) => print(row(i)));
