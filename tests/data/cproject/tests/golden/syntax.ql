print("nothing runs when the text cannot be read");
let x = (1 + 2;
