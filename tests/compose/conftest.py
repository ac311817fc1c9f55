# SPDX-License-Identifier: MIT
"""Finds what all tests share; the fixtures are those of the file."""
