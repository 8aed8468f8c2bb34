"""Wraps agents of other libraries, one library per file; a library is imported only when it is used."""
