"""Prepares headlines for use as actions: reads files of them and makes a corpus of texts, embeddings and scores."""
