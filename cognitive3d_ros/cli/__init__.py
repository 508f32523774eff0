"""The command line, c3d."""
