// The program of the installed-package test.
#include <cstdio>

int main() {
  std::puts("tilevm package works");
  return 0;
}
