"""What leads from each version of the operational tables to the next: one file for each step, run by Alembic.

A step that was released stays as it is, and names tables and columns itself: those of `tables` are of today.
"""
