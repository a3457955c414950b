let greet = fn(name) => "¡Hola, " + name + "! — " + text(len(name)) + " letters";
print(greet("Señorita Øresund"));
