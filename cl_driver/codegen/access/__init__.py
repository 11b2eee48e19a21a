"""How lanes reach memory: which loads, stores and shuffles stand for one access of all lanes."""
