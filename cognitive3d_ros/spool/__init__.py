"""The crash-safe disk spool between the recorder and the uploader."""
