"""Migrations of the operational tables: one file for each version, run by Alembic.

A released migration stays as it is, and names tables and columns itself, because `tables` has those of this version.
"""
