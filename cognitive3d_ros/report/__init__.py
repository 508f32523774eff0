"""A session as one HTML file that opens anywhere, offline."""

from cognitive3d_ros.report.page import Report, make_report

__all__ = ['Report', 'make_report']
