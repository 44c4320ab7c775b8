"""The code of the module."""
