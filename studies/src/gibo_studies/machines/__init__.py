"""Studies of what tuning a machine needs: values of limits, failures, uneven noise, drift, simulators.

Each module is a program that writes a CSV file: ``python -m gibo_studies.machines.drift --out drift.csv``.
"""
