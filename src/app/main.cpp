#include "app/run.h"

int main(int argc, char** argv) { return playfs::app::run_in_this_process(argc, argv); }
