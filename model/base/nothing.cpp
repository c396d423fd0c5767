// Fills up a list of sources; see the meson.build of the whole.
