/* Loads a plugin and calls it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* plugin = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  int (*run)(const char*) = NULL;
  if (plugin != NULL) *(void**)&run = dlsym(plugin, "run_stranger");
  if (run == NULL) return fprintf(stderr, "%s\n", dlerror()), 1;
  return run(argv[2]);
}
