"""Steps that the rival methods share: what two of them do is written once, and no step knows a hasher.

The default method and the method of the paper have files of their own beside this folder; nothing here is theirs. A
step is a file with one idea (principal directions, rows bounded in length, one view predicted by another) and a test of
its own.
"""
