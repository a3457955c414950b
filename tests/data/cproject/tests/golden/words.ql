# Text is counted in characters, whatever their size in bytes.
let show = fn(word) => print(word, len(word), upper(word), lower(upper(word)), slice(word, 1, 2));
show("quill");
show("Ærø");
show("Ωμέγα");
show("журнал");
show("日本語");
show("🎲🎲🎲");
print(repeat("=", 20));
print("a\tb", "quote: \"", "back: \\");
