"""Runs htrflow on one archival volume, page by page, and streams its ALTO and PAGE XML into a bucket."""
