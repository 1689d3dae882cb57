"""``make demo``: a small archive, its models and a campaigns repo, and everything that reads it, on this machine."""
