"""The version, in one place; CHANGELOG.md must agree (tests/test_repository.py)."""

__version__ = "0.1.0"
