"""The benchmarks: ``make bench`` prints the table, ``python -m bench NAME...`` some of its rows."""
