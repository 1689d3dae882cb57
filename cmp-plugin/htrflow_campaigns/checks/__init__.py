"""The rules of a campaigns repo: each module holds one kind of file, or the files together, to its rules."""
