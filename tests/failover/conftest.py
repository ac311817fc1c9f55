# SPDX-License-Identifier: MIT
"""Finds what all tests share."""
