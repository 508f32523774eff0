"""Sessions in the formats that people use: one module a format, behind one small registry.

A format's module has a function ``export(job, work)``: it writes what there is of ``job.session`` under the
name ``job.name`` into the folder ``work``, counts records with ``job.step`` and says with ``job.note`` what the
format cannot hold. It knows nothing of where the result goes, and may fail or be interrupted at any time.
"""

from cognitive3d_ros.export.job import Job, Options
from cognitive3d_ros.export.registry import FORMATS, Exported, export_session

__all__ = ['FORMATS', 'Exported', 'Job', 'Options', 'export_session']
