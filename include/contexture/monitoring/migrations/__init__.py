"""Migrations of the operational tables: one file for each version, run by Alembic.

A step that was released stays as it is, and names tables and columns itself: those of `tables` are of today.
"""
