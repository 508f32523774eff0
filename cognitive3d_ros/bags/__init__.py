"""The offline door: bags and logs."""
