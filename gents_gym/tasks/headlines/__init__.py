"""Headlines as actions: files of headlines in, a corpus of texts, embeddings and scores out."""
