// Prints the hostile letters as an mbox, for readers that share no code with playfs.
#include <iostream>

#include "mail/hostile_letters.h"
#include "mail/mbox.h"

int main() {
  using namespace playfs::mail;
  for (const Letter& letter : hostile_letters())
    std::cout << to_mboxrd(to_rfc5322(letter), address_of(letter), letter.date);
}
