"""Other libraries' agents as ours, one library per file; each is imported when it is used."""
