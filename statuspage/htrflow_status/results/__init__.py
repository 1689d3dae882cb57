"""The only way to the results: ``/results/…``, and what the pages read, each with the reader's own account.

:mod:`proxy` puts the parts together. :mod:`login` opens a session, :mod:`session` keeps it in a cookie, :mod:`reader`
says what can be read with it, :mod:`s3_reader` and :mod:`folder_reader` read, and :mod:`routes` hands it to browsers.
"""
