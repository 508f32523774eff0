"""Record what a robot does as Cognitive3D sessions, and read such sessions back."""

__version__ = '1.0.0'
